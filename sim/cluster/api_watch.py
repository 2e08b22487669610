"""What changed since a version: the newest writes of each resource, and no more.

As in the real one an object that leaves a selection is DELETED for whoever watches that selection, and one that joins
it is ADDED, whatever the write was.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from shared.errors import Expired
from sim.cluster.api_kinds import Object

KEPT: Final = 2_000
"""Writes per resource that are remembered."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One write; *old* is None for a new object, *new* for a removed one."""

    revision: int
    old: Object | None
    new: Object | None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher is told."""

    type: str
    object: Object


class History:
    """The newest writes of every resource."""

    def __init__(self) -> None:
        """Begin with none."""
        self._writes: dict[str, deque[Write]] = {}
        self._forgotten: dict[str, int] = {}
        self._floor = 0

    def record(self, resource: str, write: Write) -> None:
        """Remember *write*, and forget the oldest one where there are too many."""
        writes = self._writes.setdefault(resource, deque())
        writes.append(write)
        if len(writes) > KEPT:
            self._forgotten[resource] = writes.popleft().revision

    def expire(self, revision: int) -> None:
        """Forget everything up to *revision*."""
        self._floor = revision
        self._writes.clear()

    def events(self, resource: str, selects: Callable[[Object], bool], *, since: int, now: int) -> tuple[Event, ...]:
        """Answer what a watcher of what *selects* is told of the writes after the revision *since*, oldest first.

        Raises:
            Expired: some of them are forgotten, or *since* is later than the revision *now*.
        """
        if since < max(self._forgotten.get(resource, 0), self._floor):
            raise Expired(f"{resource}: too old resource version: {since}")
        if since > now:
            raise Expired(f"{resource}: too large resource version: {since}, current: {now}")
        writes = [write for write in self._writes.get(resource, ()) if write.revision > since]
        events = (_event(selects, write) for write in writes)
        return tuple(event for event in events if event is not None)


def _event(selects: Callable[[Object], bool], write: Write) -> Event | None:
    was_there = write.old is not None and selects(write.old)
    if write.new is not None and selects(write.new):
        return Event(type="MODIFIED" if was_there else "ADDED", object=write.new)
    if write.old is None or not was_there:
        return None
    metadata = {**write.old["metadata"], "resourceVersion": str(write.revision)}
    return Event(type="DELETED", object={**write.old, "metadata": metadata})
