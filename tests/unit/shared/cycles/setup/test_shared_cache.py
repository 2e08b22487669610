"""Tests of sharing lists: when a container stores them, and what it logs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shared.cycles.setup.run_cycle import CycleReport, run_and_report
from shared.cycles.setup.shared_cache import STORE_INTERVAL, store_large_lists
from shared.errors import Unreachable
from shared.ports.kubernetes import WatchEvents
from shared.ports.world import World
from shared.store.shared_cache.list_index import StoredListEntry, read_list_index
from shared.take.kubernetes import informer_cache, shared_cache
from shared.take.snapshot import take_snapshot
from sim.world.memory_ports import MemoryTable
from tests.support.snapshot_world import NOW, make_object, make_pod
from tests.unit.shared.take.kubernetes.test_informer_cache import PODS_REQUEST, Watched, make_world_with_memory


class Container:
    """A container of a function, with a clock that the test sets."""

    def __init__(self, store: World | None = None) -> None:
        """Use the table and the bucket of *store*."""
        self.kube = Watched(Pod=[make_pod("a"), make_pod("b")], Namespace=[make_object("kube-system")])
        self.kube.per_page = 1
        self.seconds = 0.0
        self.lines: list[dict[str, Any]] = []
        base = make_world_with_memory(self.kube)
        self.world = replace(
            base,
            settings=replace(base.settings, shared_cache="on"),
            clock=lambda: NOW + timedelta(seconds=self.seconds),
            emit=lambda line: self.lines.append(msgspec.json.decode(line)),
        )
        if store is not None:
            self.world = replace(self.world, table=store.table, bucket=store.bucket)

    def run(self, seconds: float, version: str = "10") -> None:
        """Run a cycle *seconds* after the start, when the API server is at *version*."""
        self.seconds = seconds
        self.kube.versions = {"": version, "1": version}
        if self.kube.memory:
            self.kube.watch_results["Pod"] = WatchEvents(version=version)
        take_snapshot(self.world, PODS_REQUEST)
        store_large_lists(self.world)

    def get_entry(self) -> StoredListEntry:
        return read_list_index(self.world.table).lists["pods"]

    def list_messages(self) -> list[str]:
        return [line["message"] for line in self.lines]


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
    monkeypatch.setattr(shared_cache, "MIN_STORED_LIST_BYTES", 0)


def test_list_is_stored_again_once_the_stored_list_is_old() -> None:
    container = Container()
    versions = []
    for seconds, version in ((0, "10"), (30, "20"), (49.9, "21"), (50, "22"), (99, "30"), (110, "40")):
        container.run(seconds, version)
        versions.append(container.get_entry().version)
    assert versions == ["10", "10", "10", "22", "22", "40"]
    assert container.get_entry().listed_at == NOW
    assert container.get_entry().current_at == NOW + timedelta(seconds=110)


def test_container_stores_nothing_while_the_list_of_another_is_new() -> None:
    first = Container()
    first.run(0, "10")
    second = Container(first.world)
    second.run(STORE_INTERVAL.total_seconds() - 1, "20")
    assert first.get_entry().version == "10"


def test_older_list_never_replaces_a_newer_one() -> None:
    old, new = Container(), Container()
    old.world = replace(old.world, table=new.world.table, bucket=new.world.bucket)
    old.seconds = 0
    take_snapshot(old.world, PODS_REQUEST)
    new.run(30, "20")
    old.seconds = 59
    store_large_lists(old.world)
    assert new.get_entry().version == "20"


def test_list_that_was_read_in_an_earlier_cycle_is_not_stored() -> None:
    container = Container()
    take_snapshot(container.world, PODS_REQUEST)
    container.seconds = 60
    store_large_lists(container.world)
    assert read_list_index(container.world.table).lists == {}


def test_of_two_containers_that_store_at_once_one_reports_that_it_was_slower() -> None:
    class RacingTable(MemoryTable):
        before_write: Callable[[], None] | None = None

        def write(self, *args: Any, **options: Any) -> Any:
            before_write, self.before_write = self.before_write, None
            if before_write is not None:
                before_write()
            return super().write(*args, **options)

    slow = Container()
    table = RacingTable()
    slow.world = replace(slow.world, table=table)
    fast = Container(slow.world)
    table.before_write = lambda: fast.run(1, "20")
    slow.run(0, "10")
    assert slow.get_entry().version == "20"
    assert slow.list_messages() == ["lists not stored: another container was faster"]
    assert fast.list_messages() == ["stored lists"]


def test_loaded_list_is_logged_with_its_age() -> None:
    first = Container()
    first.run(0)
    cold = Container(first.world)
    cold.run(41.6)
    [line] = cold.lines
    assert (line["message"], line["age_seconds"], line["objects"]) == ("loaded stored list of pods, 42 s old", 41.6, 2)


def test_list_that_is_not_used_is_logged_with_the_reason() -> None:
    first = Container()
    first.run(0, "10")
    cold = Container(first.world)
    cold.run(10, "9")
    [line] = cold.lines
    reason = "ValueError: its resourceVersion is 10, the API server is at 9"
    assert (line["message"], line["list"], line["reason"]) == ("stored list not used", "pods", reason)


@pytest.mark.parametrize("setting", ["off", "on"])
def test_setting_off_small_lists_and_no_memory_make_no_request(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_cache, "MIN_STORED_LIST_BYTES", 0 if setting == "off" else 10**9)
    container = Container()
    settings = replace(container.world.settings, shared_cache=setting)
    container.world = replace(container.world, settings=settings, table=None, bucket=None)
    container.run(0)
    store_large_lists(replace(container.world, memory=None))
    assert (container.kube.requested_kinds, container.lines) == (["Pod", "Pod"], [])


def test_nothing_is_stored_when_the_invocation_is_about_to_end() -> None:
    container = Container()
    container.world = replace(container.world, time_left=lambda: timedelta(seconds=19))
    container.run(0)
    assert read_list_index(container.world.table).lists == {}


def test_fault_is_logged_and_does_not_fail_the_cycle() -> None:
    class SilentTable(MemoryTable):
        def read(self, kind: str, name: str) -> None:
            raise Unreachable(f"{kind} {name}")

    container = Container()
    container.world = replace(container.world, table=SilentTable())
    container.run(0)
    message = container.lines[-1]
    assert (message["level"], message["message"]) == ("WARNING", "lists not stored")
    assert message["error"].startswith("Unreachable: stored-lists")


def test_successful_cycle_stores_lists_and_failed_cycle_does_not() -> None:
    def fail() -> CycleReport:
        take_snapshot(container.world, PODS_REQUEST)
        raise Unreachable("EC2")

    def succeed() -> CycleReport:
        return CycleReport(cluster=take_snapshot(container.world, PODS_REQUEST), quiet=True)

    container = Container()
    with pytest.raises(Unreachable):
        run_and_report("catalog", container.world, "schedule", fail)
    assert read_list_index(container.world.table).lists == {}
    run_and_report("catalog", container.world, "schedule", succeed)
    assert container.get_entry().version == "10"
