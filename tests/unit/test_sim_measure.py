"""What a play is judged by."""

from datetime import timedelta
from typing import Any

import pytest

from sim.embedded import Embedded
from sim.measure import Tally, Waits, is_over, is_running, measured, percentile, sample
from sim.scenario import MEASURES, Managed
from sim.staff import NAME, start_managed_node
from tests.unit.plays import deployment

READY = [{"type": "Ready", "status": "True"}]
LEAVING = {"deletionTimestamp": "2026-11-21T08:00:00Z"}


def pod(phase: str, *, ready: bool = True, metadata: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": metadata or {}, "status": {"phase": phase, "conditions": READY if ready else []}}


@pytest.fixture
def world() -> Embedded:
    world = Embedded()
    start_managed_node(world, Managed(instance_type="m5.large", labels={"team": "ops"}))
    world.run(timedelta(seconds=5))
    return world


@pytest.mark.parametrize(
    ("some", "running", "over"),
    [
        (pod("Running"), True, False),
        (pod("Running", ready=False), False, False),
        (pod("Running", metadata=LEAVING), False, True),
        (pod("Pending"), False, False),
        (pod("Succeeded"), False, True),
        (pod("Failed", ready=False), False, True),
        ({"metadata": {}}, False, False),
    ],
)
def test_a_pod_runs_or_waits_or_is_over(some: dict[str, Any], running: bool, over: bool) -> None:  # noqa: FBT001 - a table's columns
    assert (is_running(some), is_over(some)) == (running, over)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 10), (0.95, 19), (0.951, 20), (1.0, 20), (0.05, 1), (0.051, 2)]
)
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile(reversed(range(1, 21)), share) == expected


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile([], 0.5) is None
    assert percentile([7.0], 0.95) == 7.0


def test_every_measure_is_measured(world: Embedded) -> None:
    assert list(measured(world, Tally())) == list(MEASURES)


def test_an_empty_cluster_counts_nothing_but_what_is_not_ours(world: Embedded) -> None:
    now = sample(world)
    assert (now.nodes, now.managed, now.vcpus, now.running, now.pending, now.cost_usd_per_hour) == (0, 1, 0, 0, 0, 0)
    assert {name: value for name, value in measured(world, Tally()).items() if value} == {"managedNodes": 1}


def test_a_managed_node_is_ready_at_once_and_known_by_its_labels(world: Embedded) -> None:
    node = world.live.api.get("nodes", NAME)
    assert (node["metadata"]["labels"]["team"], node["status"]["allocatable"]["cpu"]) == ("ops", "1930m")
    assert [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"] == ["True"]


def test_an_instance_type_that_nobody_sells_is_named(world: Embedded) -> None:
    with pytest.raises(ValueError, match=r"no type 'm99\.large'"):
        start_managed_node(world, Managed(instance_type="m99.large"))


def test_pods_are_counted_where_they_run(world: Embedded) -> None:
    world.apply([deployment(3)])
    world.run(timedelta(seconds=20))
    now = measured(world, Tally(launched=2, problems={"a", "b"}))
    assert (now["running"], now["pending"], now["onManaged"]) == (2, 1, 2)
    assert (now["launched"], now["problems"]) == (2, 2)


def test_a_wait_is_counted_from_the_pods_creation() -> None:
    world = Embedded()
    waits = Waits(world)
    world.apply([deployment(1)])
    world.run(timedelta(seconds=7))
    [pod] = world.live.pods("default")
    uid, name = pod["metadata"]["uid"], f"default/{pod['metadata']['name']}"
    waits.launched([name, "default/other"])
    assert list(waits.to_launch) == [uid]
    assert 6 <= waits.to_launch[uid] <= 7
    first = dict(waits.to_launch)
    world.run(timedelta(seconds=7))
    waits.launched([name])
    assert waits.to_launch == first
    start_managed_node(world, Managed())
    world.run(timedelta(seconds=30))
    assert list(waits.to_running) == [uid]
    assert waits.to_running[uid] > 14


def test_a_pod_that_finds_room_at_once_did_not_wait(world: Embedded) -> None:
    waits = Waits(world)
    world.apply([deployment(1)])
    world.run(timedelta(seconds=20))
    assert sample(world).running == 1
    assert waits.to_running == {}
    world.live.api.delete("deployments.apps", "web", "default")
    world.run(timedelta(minutes=1))
    assert world.live.pods("default") == []
    assert waits.to_running == {}
