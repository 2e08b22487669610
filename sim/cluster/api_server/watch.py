"""Watch cache: the newest writes of each resource, as watch events since a revision.

As in kube-apiserver, an object that leaves the selection of a watch is DELETED for that watch, and an object that
enters it is ADDED, regardless of the kind of write.
"""

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Final

import msgspec

from shared.crds.definitions import Object
from shared.errors import Expired

MAX_WRITES_PER_RESOURCE: Final = 2_000
"""Number of writes that are kept per resource, unless a simulation sets another number."""


class StoreWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write; *old* is None for a new object, *new* for a removed object."""

    revision: int
    old: Object | None
    new: Object | None


class ApiWatchEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a watch receives."""

    type: str
    object: Object


class WatchCache:
    """The newest writes of every resource."""

    def __init__(self) -> None:
        """Create an empty cache."""
        self.max_writes_per_resource = MAX_WRITES_PER_RESOURCE
        self._writes: dict[str, deque[StoreWrite]] = {}
        self._discarded_revisions: dict[str, int] = {}
        self._expired_revision = 0

    def record(self, resource: str, write: StoreWrite) -> None:
        """Add *write*, and discard the oldest write of the resource if there are too many."""
        writes = self._writes.setdefault(resource, deque())
        writes.append(write)
        if len(writes) > self.max_writes_per_resource:
            self._discarded_revisions[resource] = writes.popleft().revision

    def expire(self, revision: int) -> None:
        """Discard all writes up to *revision*."""
        self._expired_revision = revision
        self._writes.clear()

    def list_events(
        self, resource: str, is_selected: Callable[[Object], bool], *, since: int, current_revision: int
    ) -> tuple[ApiWatchEvent, ...]:
        """Return the events after revision *since* for a watch of the selected objects, oldest first.

        Raises:
            Expired: some of the writes are discarded, or *since* is later than *current_revision*.
        """
        if since < max(self._discarded_revisions.get(resource, 0), self._expired_revision):
            raise Expired(f"{resource}: too old resource version: {since}")
        if since > current_revision:
            raise Expired(f"{resource}: too large resource version: {since}, current: {current_revision}")
        newest_writes = takewhile(lambda write: write.revision > since, reversed(self._writes.get(resource, ())))
        events = (_build_event(is_selected, write) for write in reversed(list(newest_writes)))
        return tuple(event for event in events if event is not None)


def _build_event(is_selected: Callable[[Object], bool], write: StoreWrite) -> ApiWatchEvent | None:
    was_selected = write.old is not None and is_selected(write.old)
    if write.new is not None and is_selected(write.new):
        return ApiWatchEvent(type="MODIFIED" if was_selected else "ADDED", object=write.new)
    if write.old is None or not was_selected:
        return None
    metadata = {**write.old["metadata"], "resourceVersion": str(write.revision)}
    return ApiWatchEvent(type="DELETED", object={**write.old, "metadata": metadata})
