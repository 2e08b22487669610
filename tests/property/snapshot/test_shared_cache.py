"""A stored list with the events since equals a fresh list, byte for byte, after any history of several containers."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cycles.setup.shared_cache import store_large_lists
from shared.errors import Conflict, Expired, Fault, Forbidden, NotFound, Unreachable
from shared.ports.kubernetes import Kube
from shared.ports.storage import Bucket, Table
from shared.ports.world import World
from shared.store.shared_cache.list_document import STORED_FIELDS
from shared.store.shared_cache.list_index import LIST_PREFIX, read_list_index
from shared.take.kubernetes import informer_cache, paging, shared_cache
from shared.take.kubernetes.shared_cache import StoredListRead, take_stored_list_reads
from shared.take.snapshot import SnapshotRequest, take_snapshot
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from sim.world.memory_ports import MemoryBucket, MemoryTable
from tests.property.snapshot.snapshot_histories import (
    BODIES,
    Step,
    create_three_of_each,
    encode_snapshot,
    generate_histories,
    write,
)
from tests.property.snapshot.test_informer_cache import Troubled
from tests.support.snapshot_world import make_world

EVERYTHING = SnapshotRequest()
CONTAINERS = st.sampled_from(["first", "second"])
WATCHED = st.sampled_from(sorted(STORED_FIELDS & set(BODIES)))
FAULTS = st.sampled_from([Expired("410"), Unreachable("cut"), Forbidden("403"), NotFound("404"), Conflict("odd")])
STORE_FAULTS = st.sampled_from(["table read", "table write", "bucket read", "bucket write", "torn"])
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("run"), CONTAINERS),
    st.tuples(st.just("run"), CONTAINERS),
    st.just(("cold",)),
    st.just(("cold",)),
    st.tuples(st.just("wait"), st.sampled_from([20, 60, 17 * 60])),
    st.just(("expire history",)),
    st.tuples(st.just("fail watch"), WATCHED, st.sampled_from(["begun", "asked"]), FAULTS),
    st.tuples(st.just("fail store"), STORE_FAULTS),
)
HISTORIES = generate_histories(STEPS, max_pairs=8)
NOTHING_LEAVES = st.lists(
    st.tuples(
        st.sampled_from(["make", "label", "change"]),
        st.sampled_from(sorted(BODIES)),
        st.sampled_from("abcd"),
        st.sampled_from(["", "x", "1"]),
    ),
    max_size=12,
).map(lambda writes: ("write", *writes))
"""Writes after which each list has two pages or more."""


class BrokenStore:
    """Table and bucket that fail once, as *fault* says."""

    def __init__(self) -> None:
        """Work as usual."""
        self.rows, self.objects = MemoryTable(), MemoryBucket()
        self.fault = ""

    def read(self, kind: str, name: str) -> object:
        self._fail("table read")
        return self.rows.read(kind, name)

    def write(self, kind: str, name: str, body: str, **options: object) -> object:
        self._fail("table write")
        return self.rows.write(kind, name, body, **options)  # type: ignore[arg-type]

    def put(self, key: str, body: bytes) -> None:
        if self.fault == "torn":
            self.fault = ""
            self.objects.put(key, body[: len(body) // 2])
            return
        self._fail("bucket write")
        self.objects.put(key, body)

    def get(self, key: str) -> bytes:
        self._fail("bucket read")
        return self.objects.get(key)

    def _fail(self, fault: str) -> None:
        if self.fault == fault:
            self.fault = ""
            raise Unreachable(fault)


class Cluster:
    """One cluster with containers that share lists; a container that reads without a memory is the reference."""

    def __init__(self) -> None:
        """Begin with three of each kind."""
        self.clock = Clock()
        self.api = ApiServer(self.clock, definitions=None)
        self.people = cast("Kube", InMemoryKube(self.api))
        self.kube = Troubled(self.people)
        self.store = BrokenStore()
        self.memory_by_container: dict[str, dict[str, object]] = {"first": {}, "second": {}}
        self.cold_reads: list[StoredListRead] = []
        create_three_of_each(self.people)
        world = make_world(clock=self._get_time)
        self.fresh = msgspec.structs.replace(world, kube=self.people)
        self.shared = msgspec.structs.replace(
            world,
            kube=cast("Kube", self.kube),
            table=cast("Table", self.store),
            bucket=cast("Bucket", self.store),
            settings=msgspec.structs.replace(world.settings, shared_cache="on"),
        )

    def _get_time(self) -> datetime:
        return self.clock.get_time()

    def build_world(self, memory: dict[str, object]) -> World:
        return msgspec.structs.replace(self.shared, memory=memory)

    def run(self, container: str) -> None:
        """Run one cycle in a container: it reads everything, then shares its lists."""
        self.assert_equal_to_fresh_list(self.memory_by_container[container])

    def start_cold(self) -> None:
        memory: dict[str, object] = {}
        world = self.build_world(memory)
        assert encode_snapshot(take_snapshot(world, EVERYTHING)) == encode_snapshot(
            take_snapshot(self.fresh, EVERYTHING)
        )
        self.cold_reads = list(take_stored_list_reads(memory))
        store_large_lists(world)

    def assert_equal_to_fresh_list(self, memory: dict[str, object]) -> None:
        world = self.build_world(memory)
        assert encode_snapshot(take_snapshot(world, EVERYTHING)) == encode_snapshot(
            take_snapshot(self.fresh, EVERYTHING)
        )
        store_large_lists(world)


def play(cluster: Cluster, history: list[Step]) -> None:
    for step in history:
        match step:
            case ("run", str(container)):
                cluster.run(container)
            case ("cold",):
                cluster.start_cold()
            case ("wait", int(seconds)):
                cluster.clock.advance(timedelta(seconds=seconds))
            case ("expire history",):
                cluster.api.expire_history()
            case ("fail watch", str(field), str(when), Fault() as fault):
                cluster.kube.faults[BODIES[field][2].rpartition("/")[2], when] = fault
            case ("fail store", str(fault)):
                cluster.store.fault = fault
            case ("write", *_):
                for write_args in step[1:]:
                    write(cluster.people, *write_args)
            case _:
                pytest.fail(f"no such step: {step}")


@pytest.fixture(autouse=True, scope="module")
def _small_lists_are_stored_and_read_in_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
        patched.setattr(shared_cache, "MIN_STORED_LIST_BYTES", 0)
        patched.setattr(paging, "MAX_OBJECTS_PER_PAGE", 2)
        yield


@given(HISTORIES)
def test_shared_cache_with_the_events_since_equal_a_fresh_list_after_any_history(history: list[Step]) -> None:
    play(Cluster(), [("run", "first"), *history, ("cold",), ("cold",)])


@given(NOTHING_LEAVES)
def test_a_cold_container_loads_every_large_list_and_follows_it(writes: Step) -> None:
    cluster = Cluster()
    play(cluster, [("run", "first"), writes])
    lists_before = cluster.kube.lists
    cluster.start_cold()
    loaded = {read.field for read in cluster.cold_reads if not read.refusal}
    assert loaded == STORED_FIELDS & set(BODIES)
    assert cluster.kube.lists - lists_before == len(BODIES) + 1, "one page of each list, and kube-system"


@given(NOTHING_LEAVES)
def test_a_stored_list_that_is_too_old_for_a_watch_is_listed(writes: Step) -> None:
    cluster = Cluster()
    play(cluster, [("run", "first"), writes, ("write", ("label", "nodes", "a", "x")), ("expire history",), ("cold",)])
    refusals = {read.field: read.refusal for read in cluster.cold_reads if read.refusal}
    assert refusals.keys() == STORED_FIELDS & set(BODIES)
    assert all(refusal.startswith("Expired: ") for refusal in refusals.values())


def test_a_torn_document_is_never_used() -> None:
    cluster = Cluster()
    cluster.store.fault = "torn"
    play(cluster, [("run", "first"), ("cold",)])
    [refusal] = [read for read in cluster.cold_reads if read.refusal]
    assert refusal.refusal.endswith("the document is not the one that was stored")


@pytest.mark.parametrize("fault", ["table write", "bucket write"])
def test_a_crash_while_lists_are_stored_leaves_the_previous_lists(fault: str) -> None:
    cluster = Cluster()
    play(cluster, [("run", "first"), ("wait", 60)])
    index_before = read_list_index(cluster.store.rows)
    cluster.store.fault = fault
    play(cluster, [("write", ("label", "pods", "a", "x")), ("run", "first"), ("cold",)])
    assert cluster.store.fault == ""
    index = read_list_index(cluster.store.rows)
    assert index.row_version in (index_before.row_version, index_before.row_version + 1)
    assert all(entry.key in cluster.store.objects.list_keys(LIST_PREFIX) for entry in index.lists.values())
