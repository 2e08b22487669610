"""The changes in a change set."""

from collections.abc import Callable, Mapping
from typing import Any

from sim.aws_account.cloudformation.stack import Stack
from sim.aws_account.cloudformation.template_parser import find_references
from sim.aws_account.cloudformation.template_resolver import TemplateResolver
from sim.aws_account.resource_types.resource_provider import ResourceProvider


def compute_changes(
    stack: Stack, resolver: TemplateResolver, find_provider: Callable[[str], ResourceProvider]
) -> list[dict[str, Any]]:
    """Return the changes from *stack* to the template of *resolver*, as DescribeChangeSet does, by logical id."""
    new_definitions, old_definitions = resolver.select_resources(), stack.template.get("Resources", {})
    changes = []
    for name in sorted(new_definitions.keys() | stack.resources.keys()):
        if name not in new_definitions:
            changes.append(_build_change("Remove", name, stack.resources[name].type, stack))
        elif name not in stack.resources:
            changes.append(_build_change("Add", name, new_definitions[name]["Type"], stack))
        elif new_definitions[name] != old_definitions.get(name) or find_references(
            new_definitions[name]
        ) & _find_changed_parameters(stack, resolver):
            changes.append(
                _build_modify_change(name, old_definitions.get(name, {}), new_definitions[name], stack, find_provider)
            )
    return changes


def _find_changed_parameters(stack: Stack, resolver: TemplateResolver) -> frozenset[str]:
    """Return the names of the parameters whose value changed."""
    return frozenset(name for name, value in resolver.parameter_values.items() if stack.parameters.get(name) != value)


def _build_modify_change(
    name: str,
    old_definition: Mapping[str, Any],
    new_definition: Mapping[str, Any],
    stack: Stack,
    find_provider: Callable[[str], ResourceProvider],
) -> dict[str, Any]:
    old_properties, new_properties = old_definition.get("Properties", {}), new_definition.get("Properties", {})
    changed = sorted(
        key
        for key in old_properties.keys() | new_properties.keys()
        if old_properties.get(key) != new_properties.get(key)
    )
    is_replaced = old_definition.get("Type") != new_definition["Type"] or find_provider(
        new_definition["Type"]
    ).needs_replacement(old_properties, new_properties)
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
    modify_change = _build_change("Modify", name, new_definition["Type"], stack)
    modify_change["ResourceChange"] |= {"Replacement": str(is_replaced), "Scope": ["Properties"], "Details": details}
    return modify_change


def _build_change(action: str, name: str, resource_type: str, stack: Stack) -> dict[str, Any]:
    resource = stack.resources.get(name)
    resource_change = {
        "Action": action,
        "LogicalResourceId": name,
        "ResourceType": resource_type,
        "Scope": [],
        "Details": [],
    }
    return {
        "Type": "Resource",
        "ResourceChange": resource_change
        | ({"PhysicalResourceId": resource.physical_resource.physical_id} if resource is not None else {}),
    }
