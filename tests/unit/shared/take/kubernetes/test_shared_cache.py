"""Tests of the reader of stored lists: when a cold container uses them, and when it lists."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.cycles.setup.shared_cache import store_large_lists
from shared.errors import Expired, Forbidden, Unreachable
from shared.ports.world import World
from shared.store.shared_cache.code_digest import compute_code_digest
from shared.store.shared_cache.list_index import ROW_KIND, read_list_index
from shared.take.kubernetes import informer_cache, shared_cache
from shared.take.kubernetes.shared_cache import take_stored_list_reads
from shared.take.snapshot import take_snapshot
from tests.support.snapshot_world import NOW, make_object, make_pod
from tests.unit.shared.take.kubernetes.test_informer_cache import (
    PODS_REQUEST,
    Watched,
    encode_event,
    list_pod_names,
    make_watch_events,
    make_world_with_memory,
)


class SharedWorld:
    """A cluster, a store, and containers that share their lists at times of the test."""

    def __init__(self) -> None:
        """Store the lists of a first container."""
        self.kube = Watched(Pod=[make_pod("a"), make_pod("b"), make_pod("c")], Namespace=[make_object("kube-system")])
        self.kube.per_page = 2
        base = make_world_with_memory(self.kube)
        self.now = NOW
        self.base: World = replace(base, settings=replace(base.settings, shared_cache="on"), clock=lambda: self.now)
        self.run_container()
        self.kube.requested_kinds.clear()

    def run_container(self) -> dict[str, object]:
        """Read the pods in a new container, then share them; return the memory of the container."""
        memory: dict[str, object] = {}
        world = replace(self.base, memory=memory)
        self.pod_names = list_pod_names(take_snapshot(world, PODS_REQUEST))
        self.reads = take_stored_list_reads(memory)
        store_large_lists(world)
        return memory

    def get_refusal(self) -> str:
        self.run_container()
        assert self.pod_names == ["a", "b", "c"]
        assert self.kube.requested_kinds.count("Pod") >= 2, "the pods are listed"
        [read] = self.reads[-1:]
        return read.refusal


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
    monkeypatch.setattr(shared_cache, "MIN_STORED_LIST_BYTES", 0)


@pytest.fixture
def shared() -> Iterator[SharedWorld]:
    return SharedWorld()  # type: ignore[return-value]


def test_cold_container_loads_the_stored_list_and_watches_from_its_version(shared: SharedWorld) -> None:
    shared.now = NOW + timedelta(seconds=40)
    shared.kube.watch_results["Pod"] = make_watch_events(encode_event("DELETED", make_pod("a"), "12"))
    shared.run_container()
    assert shared.pod_names == ["b", "c"]
    assert shared.kube.requested_kinds == ["Pod", "Namespace", "watch Pod", "ask Pod"]
    assert [since for _, since, _ in shared.kube.since] == ["10"]
    [read] = shared.reads
    assert (read.field, read.age, read.count, read.refusal) == ("pods", timedelta(seconds=40), 3, "")


def test_setting_off_makes_no_request(shared: SharedWorld) -> None:
    shared.base = replace(shared.base, settings=replace(shared.base.settings, shared_cache="off"))
    shared.base = replace(shared.base, table=None, bucket=None)
    shared.run_container()
    assert shared.kube.requested_kinds == ["Pod", "Pod"]


def test_small_list_makes_no_request(shared: SharedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_cache, "MIN_STORED_LIST_BYTES", 16 * 1024**2)
    shared.base = replace(shared.base, table=None, bucket=None)
    shared.run_container()
    assert shared.kube.requested_kinds == ["Pod", "Pod"]


def test_size_of_a_list_includes_the_objects_that_remain(shared: SharedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(
        shared_cache.StoredListReader, "load", lambda _, __, progress: sizes.append(progress.min_size_bytes)
    )
    shared.kube.per_page = 1
    plain_list = shared.kube.list

    def list_with_count(path: str, **options: Any) -> bytes:
        page = plain_list(path, **options)
        return (
            page if options.get("continue_token") else page.replace(b'"continue"', b'"remainingItemCount":2,"continue"')
        )

    shared.kube.list = list_with_count  # type: ignore[method-assign]
    shared.run_container()
    first_size, second_size = sizes
    page_size = second_size // 2
    assert first_size // 3 == pytest.approx(page_size, abs=20)


def test_list_that_no_container_has_stored_is_listed(shared: SharedWorld) -> None:
    row = shared.base.table.read(ROW_KIND, compute_code_digest())
    assert row is not None
    shared.base.table.remove(ROW_KIND, row.name, version=row.version)
    shared.run_container()
    assert shared.kube.requested_kinds[:2] == ["Pod", "Pod"]
    assert shared.reads == ()


def test_watch_that_is_refused_causes_a_list(shared: SharedWorld) -> None:
    shared.kube.watch_results["Pod"] = Expired("too old resource version")
    assert shared.get_refusal() == "Expired: too old resource version"
    assert shared.kube.requested_kinds == ["Pod", "Namespace", "watch Pod", "ask Pod", "Pod", "Pod"]


def test_forbidden_watch_is_not_tried_again(shared: SharedWorld) -> None:
    shared.kube.refusal = Forbidden("403")
    memory = shared.run_container()
    shared.kube.requested_kinds.clear()
    take_snapshot(replace(shared.base, memory=memory), PODS_REQUEST)
    assert shared.kube.requested_kinds == ["Pod", "Pod"]


def test_list_of_an_api_server_that_was_restored_from_a_backup_is_not_used(shared: SharedWorld) -> None:
    shared.kube.versions = {"": "9", "2": "9"}
    assert shared.get_refusal() == "ValueError: its resourceVersion is 10, the API server is at 9"
    index_before = read_list_index(shared.base.table)
    shared.now = NOW + timedelta(minutes=1)
    shared.run_container()
    index = read_list_index(shared.base.table)
    assert (index_before.lists["pods"].version, index.lists["pods"].version) == ("10", "9")


def test_list_of_another_cluster_is_not_used(shared: SharedWorld) -> None:
    [namespace] = shared.kube.objects["Namespace"]
    shared.kube.objects = {
        **shared.kube.objects,
        "Namespace": [{"metadata": {**namespace["metadata"], "uid": "new"}}],  # type: ignore[index]
    }
    assert shared.get_refusal() == "ValueError: it is of another cluster"
    assert read_list_index(shared.base.table).cluster_uid == "new"
    assert read_list_index(shared.base.table).lists.keys() == {"pods"}


def test_cluster_without_its_system_namespace_uses_and_stores_no_list(shared: SharedWorld) -> None:
    shared.kube.objects = {**shared.kube.objects, "Namespace": []}
    assert shared.get_refusal() == "ValueError: the namespace kube-system does not exist"


@pytest.mark.parametrize(
    ("later", "is_used"), [(timedelta(minutes=29), True), (timedelta(minutes=30), False), (-timedelta(1), False)]
)
def test_list_that_was_listed_half_an_hour_ago_is_not_used(
    shared: SharedWorld, later: timedelta, *, is_used: bool
) -> None:
    shared.now = NOW + later
    shared.run_container()
    assert [not read.refusal for read in shared.reads] == [is_used]


def test_store_that_does_not_respond_causes_a_list(shared: SharedWorld) -> None:
    class SilentTable:
        def read(self, kind: str, name: str) -> None:
            raise Unreachable(f"{kind} {name}")

    shared.base = replace(shared.base, table=SilentTable())
    assert shared.get_refusal().startswith("Unreachable: stored-lists ")
