"""Tests of the measures of a scenario."""

from datetime import timedelta
from typing import Any

import pytest

from sim.scenarios.managed_node_group import MANAGED_NODE_NAME, start_managed_node
from sim.scenarios.scenario import MEASURE_DESCRIPTIONS, ManagedNode
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import (
    ActCounts,
    PodWaitTimes,
    compute_measures,
    compute_percentile,
    is_finished,
    is_running,
    take_sample,
)
from tests.support.plays import make_deployment

READY = [{"type": "Ready", "status": "True"}]
LEAVING = {"deletionTimestamp": "2026-11-21T08:00:00Z"}


def make_pod(phase: str, *, ready: bool = True, metadata: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": metadata or {}, "status": {"phase": phase, "conditions": READY if ready else []}}


@pytest.fixture
def world() -> EmbeddedWorld:
    world = EmbeddedWorld()
    start_managed_node(world, ManagedNode(instance_type="m5.large", labels={"team": "ops"}))
    world.run(timedelta(seconds=5))
    return world


@pytest.mark.parametrize(
    ("pod_object", "running", "over"),
    [
        (make_pod("Running"), True, False),
        (make_pod("Running", ready=False), False, False),
        (make_pod("Running", metadata=LEAVING), False, True),
        (make_pod("Pending"), False, False),
        (make_pod("Succeeded"), False, True),
        (make_pod("Failed", ready=False), False, True),
        ({"metadata": {}}, False, False),
    ],
)
def test_pod_is_running_waiting_or_finished(pod_object: dict[str, Any], running: bool, over: bool) -> None:  # noqa: FBT001 - a table's columns
    assert (is_running(pod_object), is_finished(pod_object)) == (running, over)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 10), (0.95, 19), (0.951, 20), (1.0, 20), (0.05, 1), (0.051, 2)]
)
def test_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert compute_percentile(reversed(range(1, 21)), share) == expected


def test_percentile_of_an_empty_list_is_none() -> None:
    assert compute_percentile([], 0.5) is None
    assert compute_percentile([7.0], 0.95) == 7.0


def test_all_described_measures_are_computed(world: EmbeddedWorld) -> None:
    assert list(compute_measures(world, ActCounts())) == list(MEASURE_DESCRIPTIONS)


def test_cluster_without_joiner_nodes_counts_only_the_managed_node(world: EmbeddedWorld) -> None:
    now = take_sample(world)
    assert (
        now.joiner_nodes,
        now.managed_nodes,
        now.vcpus,
        now.running_pods,
        now.pending_pods,
        now.cost_usd_per_hour,
    ) == (0, 1, 0, 0, 0, 0)
    assert {name: value for name, value in compute_measures(world, ActCounts()).items() if value} == {"managedNodes": 1}


def test_managed_node_is_ready_immediately_with_its_labels(world: EmbeddedWorld) -> None:
    node = world.cluster.api.get("nodes", MANAGED_NODE_NAME)
    assert (node["metadata"]["labels"]["team"], node["status"]["allocatable"]["cpu"]) == ("ops", "1930m")
    assert [condition["status"] for condition in node["status"]["conditions"] if condition["type"] == "Ready"] == [
        "True"
    ]


def test_unknown_instance_type_is_rejected(world: EmbeddedWorld) -> None:
    with pytest.raises(ValueError, match=r"no type 'm99\.large'"):
        start_managed_node(world, ManagedNode(instance_type="m99.large"))


def test_pods_are_counted_by_phase_and_node_kind(world: EmbeddedWorld) -> None:
    world.apply([make_deployment(3)])
    world.run(timedelta(seconds=20))
    now = compute_measures(world, ActCounts(launched=2, problems={"a", "b"}))
    assert (now["running"], now["pending"], now["onManaged"]) == (2, 1, 2)
    assert (now["launched"], now["problems"]) == (2, 2)


def test_pod_wait_time_is_measured_from_pod_creation() -> None:
    world = EmbeddedWorld()
    waits = PodWaitTimes(world)
    world.apply([make_deployment(1)])
    world.run(timedelta(seconds=7))
    [pod] = world.cluster.list_pods("default")
    uid, name = pod["metadata"]["uid"], f"default/{pod['metadata']['name']}"
    waits.record_launch([name, "default/other"])
    assert list(waits.seconds_to_launch) == [uid]
    assert 6 <= waits.seconds_to_launch[uid] <= 7
    first = dict(waits.seconds_to_launch)
    world.run(timedelta(seconds=7))
    waits.record_launch([name])
    assert waits.seconds_to_launch == first
    start_managed_node(world, ManagedNode())
    world.run(timedelta(seconds=30))
    assert list(waits.seconds_to_running) == [uid]
    assert waits.seconds_to_running[uid] > 14


def test_pod_scheduled_immediately_has_no_wait_time(world: EmbeddedWorld) -> None:
    waits = PodWaitTimes(world)
    world.apply([make_deployment(1)])
    world.run(timedelta(seconds=20))
    assert take_sample(world).running_pods == 1
    assert waits.seconds_to_running == {}
    world.cluster.api.delete("deployments.apps", "web", "default")
    world.run(timedelta(minutes=1))
    assert world.cluster.list_pods("default") == []
    assert waits.seconds_to_running == {}


def test_evicted_pods_are_counted_until_they_are_replaced(world: EmbeddedWorld) -> None:
    api = world.cluster.api
    api.create("deployments.apps", make_deployment(3, cpu="100m"), "default")
    world.run(timedelta(minutes=2))
    for pod in world.cluster.list_pods("default")[:2]:
        api.evict("default", pod["metadata"]["name"])
    sample = take_sample(world)
    assert (sample.running_pods, sample.pending_pods, sample.unreplaced_pods) == (1, 0, 2)
    world.run(timedelta(seconds=1))
    sample = take_sample(world)
    assert (sample.running_pods + sample.pending_pods, sample.unreplaced_pods) == (3, 0)
