"""What CloudFormation does to a stack: make it, change it, take a failure back, take it away.

Resources are made one after the other, each after those it needs, and taken away in the opposite order. What an update
leaves over (resources that the template has no more, and those that were replaced) goes last of all, when nothing can
fail any more. A failure is taken back: what was changed becomes what it was, latest first, and what was made goes.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from sim.account.kinds.kind import Failed, Kind, Made, Place, Services
from sim.account.stacks.stack import Resource, Stack
from sim.account.stacks.template import InvalidTemplate, Template, needs, ordered
from sim.account.stacks.values import Scope

REFUSALS: Final = (Failed, InvalidTemplate, ClientError, BotoCoreError, KeyError)
_GONE: Final = ("NoSuch", "NotFound", "NonExistent", "DoesNotExist", "Unknown")
_RETAINED: Final = frozenset({"Retain", "Snapshot"})


class Unfinished(Exception):
    """A resource could not be made or changed; the message is what the stack says of it."""


class Deployment:
    """One change of a stack."""

    def __init__(self, stack: Stack, services: Services, kinds: Callable[[str], Kind]) -> None:
        """Change *stack*, which nobody else changes meanwhile."""
        self._stack, self._services, self._kinds = stack, services, kinds
        self._undo: list[Callable[[], None]] = []
        self._fresh: list[Resource] = []
        self._leftovers: list[Resource] = []
        self.made: dict[str, Made] = {name: one.made for name, one in stack.resources.items()}
        """By logical id; grows while it deploys."""

    def create(self, scope: Scope, *, keeps: bool = False) -> None:
        """Make the stack; after a failure everything goes again, unless it *keeps* what was made."""
        self._stack.become("CREATE_IN_PROGRESS", "User Initiated")
        try:
            self._make_all(scope)
            self._stack.outputs = scope.outputs()
        except (Unfinished, InvalidTemplate) as error:
            if keeps:
                self._stack.become("CREATE_FAILED", str(error))
                return
            self._stack.become("ROLLBACK_IN_PROGRESS", f"{error} Rollback requested by user.")
            left = self._remove([*self._stack.resources.values()], is_rollback=True)
            self._stack.become("ROLLBACK_FAILED" if left else "ROLLBACK_COMPLETE", left)
        else:
            self._stack.become("CREATE_COMPLETE")

    def update(self, scope: Scope, *, keeps: bool = False) -> bool:
        """Change the stack, or leave it as it was; answer whether it changed."""
        self._stack.updated_at = self._stack.now()
        self._stack.become("UPDATE_IN_PROGRESS", "User Initiated")
        old, outputs = dict(self._stack.resources), self._stack.outputs
        try:
            self._make_all(scope)
            outputs = scope.outputs()
        except (Unfinished, InvalidTemplate) as error:
            if keeps:
                self._stack.become("UPDATE_FAILED", str(error))
                return False
            self._take_back(old, str(error))
            return False
        self._stack.outputs = outputs
        self._stack.become("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        wanted = scope.resources().keys()
        removed = [one for name, one in old.items() if name not in wanted]
        # Retained or not, none of these is the stack's any more.
        self._remove([*self._leftovers, *removed], is_replaced={id(one) for one in self._leftovers})
        for one in removed:
            self._stack.resources.pop(one.logical_id, None)
        self._stack.become("UPDATE_COMPLETE")
        return True

    def delete(self) -> None:
        """Take the stack away; what cannot go stays, with all that it needs."""
        self._stack.become("DELETE_IN_PROGRESS", "User Initiated")
        left = self._remove([*self._stack.resources.values()])
        self._stack.become("DELETE_FAILED" if left else "DELETE_COMPLETE", left)

    def _make_all(self, scope: Scope) -> None:
        definitions = scope.resources()
        for name in ordered({name: needs(one) for name, one in definitions.items()}):
            self._settle(scope, name, definitions[name])

    def _settle(self, scope: Scope, name: str, definition: Template) -> None:
        """Have the resource called *name* be as *definition* says.

        Raises:
            Unfinished: it could not be.
        """
        before = self._stack.resources.get(name)
        verb = "CREATE" if before is None else "UPDATE"
        try:
            wanted = self._wanted(scope, name, definition)
            if before is None:
                self._create(wanted, self._place(wanted, scope.resolve(definition.get("UpdatePolicy", {}))))
                return
            kind = self._kinds(wanted.type)
            if before.type == wanted.type and before.properties == wanted.properties:
                self._keep(msgspec.structs.replace(wanted, made=before.made, ordinal=before.ordinal, at=before.at))
                return
            policy = scope.resolve(definition.get("UpdatePolicy", {}))
            if before.type != wanted.type or kind.replaces(before.properties, wanted.properties):
                self._replace(before, wanted, policy)
            else:
                self._update(before, wanted, policy)
        except REFUSALS as error:
            known = self._stack.resources.get(name)
            physical_id = known.made.physical_id if known is not None else ""
            self._stack.tell(name, physical_id, definition["Type"], f"{verb}_FAILED", _reason(error))
            raise Unfinished(f"The following resource(s) failed to {verb.lower()}: [{name}].") from error

    def _wanted(self, scope: Scope, name: str, definition: Template) -> Resource:
        return Resource(
            logical_id=name,
            type=definition["Type"],
            made=Made(physical_id=""),
            properties=scope.resolve(definition.get("Properties", {})),
            needs=tuple(sorted(needs(definition))),
            deletion=definition.get("DeletionPolicy", "Delete"),
            replacement=definition.get("UpdateReplacePolicy", "Delete"),
            at=self._stack.now(),
        )

    def _create(self, wanted: Resource, place: Place) -> None:
        self._tell(wanted, "CREATE_IN_PROGRESS")
        try:
            made = self._kinds(wanted.type).create(place, wanted.properties)
        except REFUSALS:
            for half in place.begun[-1:]:
                self._is_there(msgspec.structs.replace(wanted, made=half, status="CREATE_FAILED"))
            raise
        there = msgspec.structs.replace(wanted, made=made)
        self._is_there(there)
        self._tell(there, "CREATE_COMPLETE")

    def _is_there(self, resource: Resource) -> None:
        self._keep(resource)
        self._fresh.append(resource)

    def _replace(self, before: Resource, wanted: Resource, policy: Mapping[str, object]) -> None:
        why = "Requested update requires the creation of a new physical resource; hence creating one."
        wanted = msgspec.structs.replace(wanted, ordinal=before.ordinal + 1, status="UPDATE_COMPLETE")
        self._tell(before, "UPDATE_IN_PROGRESS", why)
        place = self._place(wanted, policy)
        try:
            made = self._kinds(wanted.type).create(place, wanted.properties)
        except REFUSALS:
            self._fresh += [msgspec.structs.replace(wanted, made=half) for half in place.begun[-1:]]
            raise
        there = msgspec.structs.replace(wanted, made=made)
        self._is_there(there)
        self._leftovers.append(before)
        self._undo.append(lambda: self._keep(before))
        self._tell(there, "UPDATE_COMPLETE")

    def _update(self, before: Resource, wanted: Resource, policy: Mapping[str, object]) -> None:
        kind = self._kinds(wanted.type)
        wanted = msgspec.structs.replace(wanted, ordinal=before.ordinal, status="UPDATE_COMPLETE")
        self._tell(before, "UPDATE_IN_PROGRESS")
        # Half a change is taken back like a whole one.
        self._undo.append(lambda: self._restore(before, wanted))
        made = kind.update(self._place(wanted, policy), before.made, before.properties, wanted.properties)
        there = msgspec.structs.replace(wanted, made=made)
        self._keep(there)
        if made.physical_id != before.made.physical_id:
            self._fresh.append(there)
            self._leftovers.append(before)
            self._undo[-1] = lambda: self._restore_replaced(before, there)
        self._tell(there, "UPDATE_COMPLETE")

    def _restore(self, before: Resource, after: Resource) -> None:
        self._tell(before, "UPDATE_IN_PROGRESS")
        kind = self._kinds(before.type)
        made = kind.update(self._place(before, {}), before.made, after.properties, before.properties)
        self._keep(msgspec.structs.replace(before, made=made))
        self._tell(before, "UPDATE_COMPLETE")

    def _restore_replaced(self, before: Resource, there: Resource) -> None:
        """Tell the new one what the old one was; which of the two answers is the one that stays."""
        self._tell(there, "UPDATE_IN_PROGRESS")
        made = self._kinds(before.type).update(self._place(before, {}), there.made, there.properties, before.properties)
        self._fresh[:] = [one for one in self._fresh if one is not there or made.physical_id != one.made.physical_id]
        self._keep(msgspec.structs.replace(before, made=made))
        self._tell(before, "UPDATE_COMPLETE")

    def _take_back(self, old: Mapping[str, Resource], why: str) -> None:
        self._stack.become("UPDATE_ROLLBACK_IN_PROGRESS", why)
        try:
            while self._undo:
                self._undo.pop()()
        except REFUSALS as error:
            self._stack.become("UPDATE_ROLLBACK_FAILED", _reason(error))
            return
        self._stack.become("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        kept = {one.made.physical_id for name, one in self._stack.resources.items() if name in old}
        self._remove([one for one in self._fresh if one.made.physical_id not in kept], is_rollback=True)
        for name in self._stack.resources.keys() - old.keys():
            del self._stack.resources[name]
        self._stack.become("UPDATE_ROLLBACK_COMPLETE")

    def _remove(
        self, resources: Iterable[Resource], *, is_rollback: bool = False, is_replaced: Iterable[int] = ()
    ) -> str:
        """Take *resources* away, last first; answer what is left and why, empty if nothing is."""
        found = list(resources)
        by_name: dict[str, list[Resource]] = {}
        for one in found:
            by_name.setdefault(one.logical_id, []).append(one)
        order = ordered({name: {need for one in some for need in one.needs} for name, some in by_name.items()})
        stuck: set[str] = set()
        failed = []
        for one in (one for name in reversed(order) for one in by_name[name]):
            policy = one.replacement if id(one) in set(is_replaced) else one.deletion
            if one.logical_id in stuck:
                stuck.update(one.needs)
            elif not self._take_away(one, policy, is_rollback=is_rollback):
                failed.append(one.logical_id)
                stuck.update(one.needs)
        return f"The following resource(s) failed to delete: [{', '.join(failed)}]." if failed else ""

    def _take_away(self, one: Resource, policy: str, *, is_rollback: bool) -> bool:
        retained = policy in _RETAINED or (policy == "RetainExceptOnCreate" and not is_rollback)
        if retained:
            self._tell(one, "DELETE_SKIPPED")
        else:
            self._tell(one, "DELETE_IN_PROGRESS")
            try:
                self._delete(one)
            except REFUSALS as error:
                self._tell(one, "DELETE_FAILED", _reason(error))
                self._mark(one, "DELETE_FAILED", _reason(error))
                return False
            self._tell(one, "DELETE_COMPLETE")
        if self._is_current(one):
            del self._stack.resources[one.logical_id]
            self.made.pop(one.logical_id, None)
        return True

    def _delete(self, one: Resource) -> None:
        try:
            self._kinds(one.type).delete(self._place(one, {}), one.made, one.properties)
        except ClientError as error:
            if not any(word in error.response["Error"]["Code"] for word in _GONE):
                raise

    def _is_current(self, one: Resource) -> bool:
        current = self._stack.resources.get(one.logical_id)
        return current is not None and current.made.physical_id == one.made.physical_id

    def _mark(self, one: Resource, status: str, reason: str) -> None:
        if self._is_current(one):
            self._stack.resources[one.logical_id] = msgspec.structs.replace(one, status=status, reason=reason)

    def _keep(self, resource: Resource) -> None:
        self._stack.resources[resource.logical_id] = resource
        self.made[resource.logical_id] = resource.made

    def _place(self, resource: Resource, policy: Mapping[str, object]) -> Place:
        return Place(
            services=self._services,
            stack_name=self._stack.name,
            stack_id=self._stack.arn,
            logical_id=resource.logical_id,
            type=resource.type,
            ordinal=resource.ordinal,
            update_policy=policy,
        )

    def _tell(self, one: Resource, status: str, reason: str = "") -> None:
        self._stack.tell(one.logical_id, one.made.physical_id, one.type, status, reason)


def _reason(error: Exception) -> str:
    if isinstance(error, ClientError):
        with suppress(KeyError):
            said = error.response["Error"]
            return f"{said['Message']} (Service: {error.operation_name}, Status Code: {said['Code']})"
    if isinstance(error, KeyError):
        return f"Model validation failed: required key [{error.args[0]}] not found"
    return str(error)
