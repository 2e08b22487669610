"""Large lists that another container has stored: a cold container loads them, then watches from their resourceVersion.

A stored list is only a starting point, like the list that a warm container has cached. It is used if a watch can
continue from it; else the list is read as without it. It is not used if it is of another cluster or another version of
Joiner, if it is newer than the API server (which was restored from a backup), if its objects were listed more than half
an hour ago, or if anything about it cannot be read. The store is asked only while a large list is being read: in a
small cluster, no request is made.
"""

from collections.abc import MutableMapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import msgspec

from shared.errors import Fault
from shared.ports.kubernetes import Kube
from shared.ports.storage import Bucket, Table
from shared.store.shared_cache.list_document import STORED_FIELDS
from shared.store.shared_cache.list_index import (
    ListIndex,
    StoredList,
    StoredListEntry,
    read_list_index,
    read_stored_list,
)
from shared.take.kubernetes.informer_cache import RELIST_INTERVAL, CachedList, list_cached_lists, map_by_name
from shared.take.kubernetes.paging import ListProgress
from shared.take.kubernetes.resource_kinds import ResourceKind

MIN_STORED_LIST_BYTES: Final = 16 * 1024**2
"""Smaller lists are read in less than half a second, which loading a stored list would take as well."""
_READS_CACHE_KEY: Final = "stored lists: reads"
_CLUSTER_UID_CACHE_KEY: Final = "stored lists: cluster uid"
_NAMESPACES_PATH: Final = "/api/v1/namespaces"
_SYSTEM_NAMESPACE_SELECTOR: Final = "metadata.name=kube-system"


class StoredListRead(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt to use a stored list."""

    field: str
    age: timedelta = timedelta()
    """How long before the read the list was at its resourceVersion."""
    count: int = 0
    """Number of its objects."""
    refusal: str = ""
    """Why the list was read from the API server instead; "" if it was not."""


class StoredListReader:
    """The stored lists of the cluster of *kube* at *now*, for one read of a snapshot."""

    def __init__(
        self, kube: Kube, table: Table, bucket: Bucket, cache: MutableMapping[str, object], now: datetime
    ) -> None:
        """Start without reading."""
        self._kube, self._table, self._bucket, self._cache, self._now = kube, table, bucket, cache, now
        self._tried_fields: set[str] = set()

    def load(self, resource_kind: ResourceKind, progress: ListProgress) -> CachedList | None:
        """Return the stored list of *resource_kind*, which is being read with *progress*; None: continue to read.

        Each list is tried once.
        """
        field = resource_kind.field
        is_small = progress.min_size_bytes < MIN_STORED_LIST_BYTES
        if is_small or field not in STORED_FIELDS or field in self._tried_fields:
            return None
        self._tried_fields.add(field)
        try:
            stored_list = self._read(field, progress)
        except (Fault, ValueError) as error:
            self.record_refusal(field, f"{type(error).__name__}: {error}")
            return None
        if stored_list is None:
            return None
        entry = stored_list.entry
        count = len(stored_list.values)
        self._record(StoredListRead(field=field, age=self._now - entry.current_at, count=count))
        return CachedList(
            field=field,
            version=entry.version,
            listed_at=entry.listed_at,
            current_at=entry.current_at,
            size_bytes=entry.size_bytes,
            values=map_by_name(stored_list.values),
            problems={problem.name: problem for problem in stored_list.problems},
            ordered=stored_list.values,
        )

    def record_refusal(self, field: str, refusal: str) -> None:
        """Record why the list *field* is read from the API server although it is stored, or may be."""
        self._record(StoredListRead(field=field, refusal=refusal))

    def _read(self, field: str, progress: ListProgress) -> StoredList | None:
        """Return the stored list *field*, None if there is none.

        Raises:
            Fault: it could not be read.
            ValueError: it cannot be used.
        """
        entry = self._index.lists.get(field)
        if entry is None:
            return None
        self._check(entry, progress)
        return read_stored_list(self._bucket, field, entry)

    def _check(self, entry: StoredListEntry, progress: ListProgress) -> None:
        """Check whether a watch could continue from the list that *entry* describes.

        Raises:
            ValueError: it could not.
        """
        if not timedelta() <= self._now - entry.listed_at < RELIST_INTERVAL:
            raise ValueError(f"its objects were listed at {entry.listed_at.isoformat()}")
        if not (entry.version.isdecimal() and progress.version.isdecimal()):
            raise ValueError(f"{entry.version!r} or {progress.version!r} is not a resourceVersion")
        if int(entry.version) > int(progress.version):
            raise ValueError(f"its resourceVersion is {entry.version}, the API server is at {progress.version}")
        if self._index.cluster_uid != find_cluster_uid(self._kube, self._cache):
            raise ValueError("it is of another cluster")

    @cached_property
    def _index(self) -> ListIndex:
        return read_list_index(self._table)

    def _record(self, stored_list_read: StoredListRead) -> None:
        self._cache[_READS_CACHE_KEY] = (*_get_reads(self._cache), stored_list_read)


class _UidMetaJson(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str


class _UidJson(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _UidMetaJson


class _UidListJson(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[_UidJson, ...] = ()


def find_cluster_uid(kube: Kube, cache: MutableMapping[str, object]) -> str:
    """Return the uid of the namespace kube-system, which every cluster has and no two clusters share.

    Raises:
        Fault: it could not be read.
        ValueError: there is no such namespace.
    """
    cached_uid = cache.get(_CLUSTER_UID_CACHE_KEY)
    if isinstance(cached_uid, str):
        return cached_uid
    body = kube.list(_NAMESPACES_PATH, field_selector=_SYSTEM_NAMESPACE_SELECTOR, limit=1)
    namespaces = msgspec.json.decode(body, type=_UidListJson).items
    if [namespace.metadata.name for namespace in namespaces] != ["kube-system"]:
        raise ValueError("the namespace kube-system does not exist")
    uid = cache[_CLUSTER_UID_CACHE_KEY] = namespaces[0].metadata.uid
    return uid


def take_stored_list_reads(cache: MutableMapping[str, object]) -> tuple[StoredListRead, ...]:
    """Return the attempts to use stored lists since the last call."""
    reads = _get_reads(cache)
    cache.pop(_READS_CACHE_KEY, None)
    return reads


def _get_reads(cache: MutableMapping[str, object]) -> tuple[StoredListRead, ...]:
    reads = cache.get(_READS_CACHE_KEY)
    return reads if isinstance(reads, tuple) else ()


def find_storable_lists(cache: MutableMapping[str, object], since: datetime) -> dict[str, StoredList]:
    """Return the large cached lists that were current after *since*, by field."""
    return {
        cached_list.field: StoredList(
            entry=StoredListEntry(
                key="",
                version=cached_list.version,
                listed_at=cached_list.listed_at,
                current_at=cached_list.current_at,
                size_bytes=cached_list.size_bytes,
            ),
            values=cached_list.ordered,
            problems=tuple(cached_list.problems.values()),
        )
        for cached_list in list_cached_lists(cache)
        if cached_list.field in STORED_FIELDS
        and cached_list.size_bytes >= MIN_STORED_LIST_BYTES
        and cached_list.current_at > since
    }
