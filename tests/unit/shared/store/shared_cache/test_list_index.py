"""Tests of the index of stored lists: concurrent writers, other versions and damaged rows."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from shared.errors import NotFound, Unreachable
from shared.model.core.metadata import ObjectMeta
from shared.model.kubernetes.node import Node
from shared.store.shared_cache import list_index
from shared.store.shared_cache.code_digest import compute_code_digest
from shared.store.shared_cache.list_index import (
    LIST_PREFIX,
    ROW_KIND,
    ListIndex,
    StoredList,
    StoredListEntry,
    read_list_index,
    read_stored_list,
    write_stored_lists,
)
from sim.world.memory_ports import MemoryBucket, MemoryTable

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ENTRY = StoredListEntry(key="", version="7", listed_at=NOW, current_at=NOW, size_bytes=9)
NODES = StoredList(entry=ENTRY, values=(Node(meta=ObjectMeta(name="n")),), problems=())
INDEX = ListIndex(cluster_uid="uid")


class Store:
    """A table and a bucket."""

    def __init__(self) -> None:
        """Start empty."""
        self.table, self.bucket = MemoryTable(), MemoryBucket()

    def write(self, index: ListIndex, stored_list: StoredList = NODES, field: str = "nodes") -> bool:
        return write_stored_lists(self.table, self.bucket, index, {field: stored_list}, NOW)


def test_stored_list_is_read_back() -> None:
    store = Store()
    assert store.write(INDEX)
    index = read_list_index(store.table)
    assert (index.cluster_uid, index.row_version, list(index.lists)) == ("uid", 1, ["nodes"])
    entry = index.lists["nodes"]
    assert read_stored_list(store.bucket, "nodes", entry) == replace(NODES, entry=entry)
    assert replace(entry, key="") == ENTRY
    assert entry.key in store.bucket.list_keys(LIST_PREFIX)


def test_other_lists_of_the_index_stay() -> None:
    store = Store()
    store.write(INDEX)
    store.write(read_list_index(store.table), field="node_claims")
    assert sorted(read_list_index(store.table).lists) == ["node_claims", "nodes"]


def test_of_two_writers_the_second_changes_nothing() -> None:
    store = Store()
    assert store.write(INDEX)
    first = read_list_index(store.table)
    assert not store.write(INDEX, replace(NODES, entry=replace(ENTRY, version="3")))
    assert read_list_index(store.table) == first


def test_another_version_of_joiner_has_another_index(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    store.write(INDEX)
    monkeypatch.setattr(list_index, "compute_code_digest", lambda: "other")
    assert read_list_index(store.table) == ListIndex()


def test_undecodable_row_is_empty_and_replaced() -> None:
    store = Store()
    store.table.write(ROW_KIND, compute_code_digest(), "[]", version=0)
    index = read_list_index(store.table)
    assert index == ListIndex(row_version=1)
    assert store.write(index)


def test_row_expires_an_hour_after_it_was_written() -> None:
    store = Store()
    store.write(INDEX)
    row = store.table.read(ROW_KIND, compute_code_digest())
    assert row is not None
    assert row.expires_at == NOW + timedelta(hours=1)


def test_document_that_is_missing_or_not_the_stored_one_is_refused() -> None:
    store = Store()
    store.write(INDEX)
    entry = read_list_index(store.table).lists["nodes"]
    store.bucket.put(entry.key, b"other")
    with pytest.raises(ValueError, match="nodes: the document is not the one that was stored"):
        read_stored_list(store.bucket, "nodes", entry)
    with pytest.raises(NotFound):
        read_stored_list(MemoryBucket(), "nodes", entry)


def test_row_names_a_document_only_after_the_document_is_stored() -> None:
    class FullBucket(MemoryBucket):
        def put(self, key: str, body: bytes) -> None:
            raise Unreachable(f"{key}: {len(body)} bytes")

    store = Store()
    store.bucket = FullBucket()
    with pytest.raises(Unreachable):
        store.write(INDEX)
    assert read_list_index(store.table) == ListIndex()
