"""What a change set says would be done."""

from collections.abc import Callable, Mapping
from typing import Any

from sim.account.kinds.kind import Kind
from sim.account.stacks.stack import Stack
from sim.account.stacks.template import references
from sim.account.stacks.values import Scope


def changes_of(stack: Stack, scope: Scope, kinds: Callable[[str], Kind]) -> list[dict[str, Any]]:
    """Answer the changes that would make of *stack* what *scope* wants, as DescribeChangeSet does, by logical id."""
    wanted, before = scope.resources(), stack.template.get("Resources", {})
    found = []
    for name in sorted(wanted.keys() | stack.resources.keys()):
        if name not in wanted:
            found.append(_change("Remove", name, stack.resources[name].type, stack))
        elif name not in stack.resources:
            found.append(_change("Add", name, wanted[name]["Type"], stack))
        elif wanted[name] != before.get(name) or references(wanted[name]) & _regiven(stack, scope):
            found.append(_modified(name, before.get(name, {}), wanted[name], stack, kinds))
    return found


def _regiven(stack: Stack, scope: Scope) -> frozenset[str]:
    """Answer the parameters with other values than before."""
    return frozenset(name for name, value in scope.said.items() if stack.given.get(name) != value)


def _modified(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any], stack: Stack, kinds: Callable[[str], Kind]
) -> dict[str, Any]:
    was, will_be = old.get("Properties", {}), new.get("Properties", {})
    changed = sorted(key for key in was.keys() | will_be.keys() if was.get(key) != will_be.get(key))
    is_replaced = old.get("Type") != new["Type"] or kinds(new["Type"]).replaces(was, will_be)
    details = [
        {
            "Target": {
                "Attribute": "Properties",
                "Name": key,
                "RequiresRecreation": "Always" if is_replaced else "Never",
            },
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
        for key in changed
    ]
    one = _change("Modify", name, new["Type"], stack)
    one["ResourceChange"] |= {"Replacement": str(is_replaced), "Scope": ["Properties"], "Details": details}
    return one


def _change(action: str, name: str, kind: str, stack: Stack) -> dict[str, Any]:
    there = stack.resources.get(name)
    said = {"Action": action, "LogicalResourceId": name, "ResourceType": kind, "Scope": [], "Details": []}
    return {
        "Type": "Resource",
        "ResourceChange": said | ({"PhysicalResourceId": there.made.physical_id} if there is not None else {}),
    }
