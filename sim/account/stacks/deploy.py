"""What CloudFormation does to a stack: make it, change it, take a failure back, take it away.

Resources are made one after the other, each after those it needs, and taken away in the opposite order. Only those that
CodeDeploy moves, which takes minutes, are changed beside each other. What an update leaves over (resources that the
template has no more, and those that were replaced) goes last of all, when nothing can fail any more. A failure is taken
back: what was changed becomes what it was, latest first, and what was made goes.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

import msgspec

from sim.account.kinds.kind import Kind, Made, Place, Services
from sim.account.stacks.removal import remove
from sim.account.stacks.site import REFUSALS, Site, reason_of
from sim.account.stacks.stack import Resource, Stack
from sim.account.stacks.template import InvalidTemplate, Template, needs, sorter_of
from sim.account.stacks.values import Scope

_MOST: Final = 32
"""Resources that are changed beside each other; the others wait."""


class Unfinished(Exception):
    """A resource could not be made or changed; the message is what the stack says of it."""


class Deployment:
    """One change of a stack."""

    def __init__(self, stack: Stack, services: Services, kinds: Callable[[str], Kind]) -> None:
        """Change *stack*, which nobody else changes meanwhile."""
        self._stack, self._site = stack, Site(stack, services, kinds)
        self._undo: list[list[Callable[[], None]]] = []
        """By change, in order; the last word on each is what takes it back."""
        self._fresh: list[Resource] = []
        self._leftovers: list[Resource] = []

    @property
    def made(self) -> Mapping[str, Made]:
        """What is there, by logical id; grows while it deploys."""
        return self._site.made

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
            left = remove(self._site, [*self._stack.resources.values()], is_rollback=True)
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
        remove(self._site, [*self._leftovers, *removed], is_replaced={id(one) for one in self._leftovers})
        for one in removed:
            self._stack.resources.pop(one.logical_id, None)
        self._stack.become("UPDATE_COMPLETE")
        return True

    def delete(self) -> None:
        """Take the stack away; what cannot go stays, with all that it needs."""
        self._stack.become("DELETE_IN_PROGRESS", "User Initiated")
        left = remove(self._site, [*self._stack.resources.values()])
        self._stack.become("DELETE_FAILED" if left else "DELETE_COMPLETE", left)

    def _make_all(self, scope: Scope) -> None:
        """Have every resource be as it is wanted.

        Raises:
            Unfinished: one could not be; nothing is begun any more, and what was begun is over.
        """
        definitions = scope.resources()
        sorter = sorter_of({name: needs(one) for name, one in definitions.items()})
        begun: dict[Future[None], str] = {}
        with ThreadPoolExecutor(_MOST, thread_name_prefix=f"stack {self._stack.name}") as beside:
            while sorter.is_active():
                ready = sorted(sorter.get_ready())
                slow = [name for name in ready if self._takes_minutes(name, definitions[name])]
                begun |= {beside.submit(self._settle, scope, name, definitions[name]): name for name in slow}
                for name in sorted(set(ready) - set(slow)):
                    self._settle(scope, name, definitions[name])
                    sorter.done(name)
                if ready == slow:
                    for one in wait(begun, return_when=FIRST_COMPLETED).done:
                        one.result()
                        sorter.done(begun.pop(one))

    def _takes_minutes(self, name: str, definition: Template) -> bool:
        return name in self._stack.resources and "UpdatePolicy" in definition

    def _settle(self, scope: Scope, name: str, definition: Template) -> None:
        """Have the resource called *name* be as *definition* says.

        Raises:
            Unfinished: it could not be.
        """
        before = self._stack.resources.get(name)
        verb = "CREATE" if before is None else "UPDATE"
        try:
            wanted = self._wanted(scope, name, definition)
            policy = scope.resolve(definition.get("UpdatePolicy", {}))
            if before is None:
                self._create(wanted, self._site.place(wanted, policy))
            else:
                self._change(before, wanted, policy)
        except REFUSALS as error:
            known = self._stack.resources.get(name)
            physical_id = known.made.physical_id if known is not None else ""
            self._stack.tell(name, physical_id, definition["Type"], f"{verb}_FAILED", reason_of(error))
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

    def _change(self, before: Resource, wanted: Resource, policy: Mapping[str, object]) -> None:
        kind = self._site.kinds(wanted.type)
        if before.type == wanted.type and before.properties == wanted.properties:
            self._site.keep(msgspec.structs.replace(wanted, made=before.made, ordinal=before.ordinal, at=before.at))
        elif before.type != wanted.type or kind.replaces(before.properties, wanted.properties):
            self._replace(before, wanted, policy)
        else:
            self._update(before, wanted, policy)

    def _create(self, wanted: Resource, place: Place) -> None:
        self._site.tell(wanted, "CREATE_IN_PROGRESS")
        try:
            made = self._site.kinds(wanted.type).create(place, wanted.properties)
        except REFUSALS:
            for half in place.begun[-1:]:
                self._is_there(msgspec.structs.replace(wanted, made=half, status="CREATE_FAILED"))
            raise
        there = msgspec.structs.replace(wanted, made=made)
        self._is_there(there)
        self._site.tell(there, "CREATE_COMPLETE")

    def _is_there(self, resource: Resource) -> None:
        self._site.keep(resource)
        self._fresh.append(resource)

    def _replace(self, before: Resource, wanted: Resource, policy: Mapping[str, object]) -> None:
        why = "Requested update requires the creation of a new physical resource; hence creating one."
        wanted = msgspec.structs.replace(wanted, ordinal=before.ordinal + 1, status="UPDATE_COMPLETE")
        self._site.tell(before, "UPDATE_IN_PROGRESS", why)
        place = self._site.place(wanted, policy)
        try:
            made = self._site.kinds(wanted.type).create(place, wanted.properties)
        except REFUSALS:
            self._fresh += [msgspec.structs.replace(wanted, made=half) for half in place.begun[-1:]]
            raise
        there = msgspec.structs.replace(wanted, made=made)
        self._is_there(there)
        self._leftovers.append(before)
        self._undo.append([lambda: self._site.keep(before)])
        self._site.tell(there, "UPDATE_COMPLETE")

    def _update(self, before: Resource, wanted: Resource, policy: Mapping[str, object]) -> None:
        kind = self._site.kinds(wanted.type)
        wanted = msgspec.structs.replace(wanted, ordinal=before.ordinal, status="UPDATE_COMPLETE")
        self._site.tell(before, "UPDATE_IN_PROGRESS")
        # Half a change is taken back like a whole one.
        undo = [lambda: self._restore(before, wanted)]
        self._undo.append(undo)
        made = kind.update(self._site.place(wanted, policy), before.made, before.properties, wanted.properties)
        there = msgspec.structs.replace(wanted, made=made)
        self._site.keep(there)
        if made.physical_id != before.made.physical_id:
            self._fresh.append(there)
            self._leftovers.append(before)
            undo.append(lambda: self._restore_replaced(before, there))
        self._site.tell(there, "UPDATE_COMPLETE")

    def _restore(self, before: Resource, after: Resource) -> None:
        self._site.tell(before, "UPDATE_IN_PROGRESS")
        kind = self._site.kinds(before.type)
        made = kind.update(self._site.place(before, {}), before.made, after.properties, before.properties)
        self._site.keep(msgspec.structs.replace(before, made=made))
        self._site.tell(before, "UPDATE_COMPLETE")

    def _restore_replaced(self, before: Resource, there: Resource) -> None:
        """Tell the new one what the old one was; which of the two answers is the one that stays."""
        self._site.tell(there, "UPDATE_IN_PROGRESS")
        kind = self._site.kinds(before.type)
        made = kind.update(self._site.place(before, {}), there.made, there.properties, before.properties)
        self._fresh[:] = [one for one in self._fresh if one is not there or made.physical_id != one.made.physical_id]
        self._site.keep(msgspec.structs.replace(before, made=made))
        self._site.tell(before, "UPDATE_COMPLETE")

    def _take_back(self, old: Mapping[str, Resource], why: str) -> None:
        self._stack.become("UPDATE_ROLLBACK_IN_PROGRESS", why)
        try:
            while self._undo:
                self._undo.pop()[-1]()
        except REFUSALS as error:
            self._stack.become("UPDATE_ROLLBACK_FAILED", reason_of(error))
            return
        self._stack.become("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        kept = {one.made.physical_id for name, one in self._stack.resources.items() if name in old}
        remove(self._site, [one for one in self._fresh if one.made.physical_id not in kept], is_rollback=True)
        for name in self._stack.resources.keys() - old.keys():
            del self._stack.resources[name]
        self._stack.become("UPDATE_ROLLBACK_COMPLETE")
