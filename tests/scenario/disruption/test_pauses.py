"""Pauses in the whole world: what is paused does not happen, what was begun ends well, and it ends by itself."""

from datetime import timedelta

import pytest

from shared.model.core.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.core.units import format_instant
from shared.model.decisions.action import EvictPod
from shared.model.karpenter.pause import CLUSTER_NAMESPACE
from tests.scenario.disruption.test_disruption import (
    build_settled_world,
    build_shrunk_world,
    list_command_reasons,
    list_phases,
    list_tainted_nodes,
)
from tests.scenario.worlds import POOLS, World, count_vcpus, make_deployment, make_node_class, make_node_pool


def annotate(world: World, key: str, text: str | None, nodepool: str = "") -> None:
    target = (POOLS, nodepool) if nodepool else ("namespaces", CLUSTER_NAMESPACE)
    world.cluster.api.patch(*target, {"metadata": {"annotations": {key: text}}})


@pytest.mark.parametrize("nodepool", ["", "default"])
def test_paused_consolidation_does_not_run_until_it_is_resumed(nodepool: str) -> None:
    world = build_settled_world(8)
    annotate(world, DISRUPTION_PAUSED, "Underutilized by anna because Black Friday", nodepool)
    world.scale(2)
    world.advance_seconds(400)
    assert (count_vcpus(world), list_phases(world)) == (8, [])
    assert any("Black Friday" in event for event in world.list_events("default", "DisruptionPaused"))
    annotate(world, DISRUPTION_PAUSED, None, nodepool)
    world.wait_until(lambda: count_vcpus(world) == 2)


def test_disruption_pause_with_an_end_time_expires() -> None:
    world = build_settled_world(8)
    annotate(world, DISRUPTION_PAUSED, f"true until {format_instant(world.clock.get_time() + timedelta(seconds=400))}")
    world.scale(2)
    world.advance_seconds(390)
    assert list_phases(world) == []
    world.wait_until(lambda: count_vcpus(world) == 2)


def test_cluster_wide_pause_applies_to_a_nodepool_created_later() -> None:
    world = World(make_node_class(), make_deployment(0))
    annotate(world, DISRUPTION_PAUSED, "true")
    world.apply(
        [
            make_node_pool(
                types=("m5.large",), disruption={"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}
            )
        ]
    )
    world.scale(1)
    world.wait_until_settled(1)
    world.scale(0)
    world.advance_seconds(300)
    assert len(world.list_active_instances()) == 1


def test_disruption_pause_rolls_back_a_launched_replacement() -> None:
    world = build_shrunk_world()
    world.wait_until(lambda: list_phases(world) == ["LAUNCHED"])
    annotate(world, DISRUPTION_PAUSED, "true")
    world.wait_until(lambda: list_phases(world) == ["ROLLED_BACK"])
    world.wait_until(lambda: not list_tainted_nodes(world))
    assert "is paused" in list_command_reasons(world, "ROLLED_BACK")[0]
    world.advance_seconds(120)
    assert (len(world.list_running_pods()), world.list_done_actions(EvictPod)) == (2, [])


def test_node_that_is_already_draining_when_disruption_is_paused_finishes_draining() -> None:
    world = build_shrunk_world()
    world.wait_until(lambda: list_phases(world) in (["INITIALIZED"], ["DRAINING"]))
    annotate(world, DISRUPTION_PAUSED, "true")
    world.wait_until(lambda: list_phases(world) == ["DONE"])
    assert count_vcpus(world) == 2


def test_unreadable_pause_annotation_stops_disruption_and_is_reported() -> None:
    world = build_settled_world(8)
    annotate(world, DISRUPTION_PAUSED, "till tomorrow")
    world.scale(2)
    world.advance_seconds(300)
    assert (count_vcpus(world), list_phases(world)) == (8, [])
    assert [
        problem
        for problem in world.list_problems()
        if problem.startswith("Namespace kube-system: metadata.annotations")
    ]


def test_paused_launches_leave_pods_pending_with_an_event_and_keep_existing_nodes_in_use() -> None:
    world = World(make_node_class(), make_node_pool(types=("m5.large",)), make_deployment(1))
    world.wait_until_settled(1)
    annotate(world, LAUNCHES_PAUSED, "true by anna")
    world.scale(6)
    world.advance_seconds(180)
    assert len(world.launched) == 1
    assert world.list_unbound_pods()
    assert any("launches are paused: by anna" in event for event in world.list_events())
    annotate(world, LAUNCHES_PAUSED, None)
    world.wait_until_settled(6)


def test_nodeclaim_created_before_launches_were_paused_is_still_launched() -> None:
    world = World(make_node_class(), make_node_pool(types=("m5.large",)), make_deployment(0))
    world.scale(1)
    world.wait_until(world.list_claims)
    annotate(world, LAUNCHES_PAUSED, "true")
    world.wait_until_settled(1)


def test_interruption_is_handled_while_disruption_is_paused() -> None:
    world = build_settled_world(2)
    annotate(world, DISRUPTION_PAUSED, "true")
    [instance] = world.list_active_instances()
    world.forfeit.add(instance.instance_id)
    world.cloud.instances.terminate_immediately(instance.instance_id)
    world.wait_until_settled(2, timeout=600)
    assert world.cluster.api.get(POOLS, "default")


def test_paused_launches_allow_empty_node_removal_but_no_replacement() -> None:
    world = build_settled_world(8)
    annotate(world, LAUNCHES_PAUSED, "true")
    world.scale(2)
    world.advance_seconds(300)
    assert (count_vcpus(world), list_phases(world), len(world.launched)) == (8, [], 1)
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances())
