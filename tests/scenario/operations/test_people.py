"""Users delete, kill, forbid and protect objects in any order: nodes are drained, nothing is lost or left over."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model.decisions.action import DeletePod, EvictPod, TerminateInstances
from tests.scenario.worlds import (
    CLAIMS,
    CLASSES,
    POOLS,
    Json,
    World,
    make_deployment,
    make_node_class,
    make_node_pool,
    make_pod_disruption_budget,
)


def get_name(manifest: Json) -> str:
    return str(manifest["metadata"]["name"])


def build_settled_world(*manifests: Json, replicas: int = 4, **pool_spec: Any) -> World:
    world = World(make_node_class(), make_node_pool(**pool_spec), *manifests, make_deployment(replicas))
    world.wait_until_settled(replicas)
    return world


def test_deleted_unused_node_class_deletes_its_launch_templates() -> None:
    world = build_settled_world()
    world.cluster.api.delete(CLASSES, "default")
    world.cluster.api.delete(POOLS, "default", propagation="Foreground")
    world.wait_until(lambda: not world.list_claims())
    world.wait_until(lambda: not world.cluster.api.list(CLASSES))
    assert not world.cloud.templates.list_by_tag("eks:eks-cluster-name", world.cloud.facts.name)
    world.advance_seconds(120)
    assert not world.list_errors()


def test_deleted_node_class_remains_until_its_launch_templates_are_confirmed_deleted() -> None:
    world = build_settled_world()
    world.cluster.api.delete(CLASSES, "default")
    world.cluster.api.delete(POOLS, "default", propagation="Foreground")
    with world.fail_ports("ec2.describe_launch_templates"):
        world.wait_until(lambda: not world.list_claims())
        world.advance_seconds(120)
        assert len(world.cluster.api.list(CLASSES)) == 1
    world.wait_until(lambda: not world.cluster.api.list(CLASSES))
    assert not world.cloud.templates.list_by_tag("eks:eks-cluster-name", world.cloud.facts.name)


@pytest.mark.parametrize("resource", ["nodes", CLAIMS])
def test_deleted_node_or_nodeclaim_is_drained_and_replaced(resource: str) -> None:
    world = build_settled_world()
    [victim] = world.cluster.api.list(resource) if resource == CLAIMS else world.list_nodes()
    [old] = world.list_active_instances()
    world.cluster.api.delete(resource, get_name(victim))
    world.wait_until(lambda: old.instance_id not in {one.instance_id for one in world.list_active_instances()})
    world.wait_until_settled(4)
    world.wait_until(
        lambda: len(world.list_claims()) == len(world.list_active_instances()) == len(world.list_nodes()) == 1
    )


def test_deleted_nodepool_drains_and_terminates_its_nodes() -> None:
    world = build_settled_world()
    world.cluster.api.delete(POOLS, "default", propagation="Foreground")
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims() and not world.list_nodes())
    assert len(world.list_done_actions(EvictPod)) == 4
    world.wait_until(lambda: not world.cluster.api.list(POOLS))
    assert len(world.list_unbound_pods()) == 4


def test_deleted_node_class_in_use_keeps_its_nodes() -> None:
    world = build_settled_world()
    world.cluster.api.delete(CLASSES, "default")
    world.advance_seconds(120)
    assert len(world.list_running_pods()) == 4
    assert world.get_condition(POOLS, "default", "NodeClassReady")[0] == "False"
    assert len(world.list_active_instances()) == 1


def test_instance_terminated_in_the_console_is_replaced() -> None:
    world = build_settled_world()
    [old] = world.list_active_instances()
    world.forfeit.add(old.instance_id)
    world.cloud.instances.terminate_immediately(old.instance_id)
    world.wait_until(lambda: len(world.launched) == 2)
    world.wait_until_settled(4, timeout=600)
    world.wait_until(
        lambda: len(world.list_claims()) == len(world.list_active_instances()) == len(world.list_nodes()) == 1
    )


def test_instance_stopped_in_the_console_is_replaced() -> None:
    world = build_settled_world()
    [old] = world.list_active_instances()
    world.forfeit.add(old.instance_id)
    world.cloud.instances.stop(old.instance_id)
    world.wait_until_settled(4, timeout=900)
    world.wait_until(
        lambda: len(world.list_claims()) == len(world.list_active_instances()) == len(world.list_nodes()) == 1,
        timeout=600,
    )
    assert [
        instance.state for instance in world.cloud.instances.describe_all() if instance.instance_id == old.instance_id
    ] in (
        ["terminated"],
        [],
    )


def test_instance_that_never_boots_is_replaced_after_fifteen_minutes() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))
    world.cloud.instances.boot_failures.fail_next_boot()
    world.scale(3)
    took = world.wait_until_settled(3, timeout=1200)
    assert 900 <= took <= 1080
    assert len(world.launched) == 2
    world.wait_until(lambda: len(world.list_active_instances()) == 1)


def test_node_that_never_becomes_ready_launches_no_second_instance() -> None:
    world = World(make_node_class(userData="#!/bin/sh\n<broken"), make_node_pool(), make_deployment(3))
    world.advance_seconds(300)
    assert len(world.launched) <= 1


def test_pod_disruption_budget_blocks_a_drain_until_it_is_relaxed() -> None:
    world = build_settled_world(make_pod_disruption_budget(maxUnavailable=0))
    world.cluster.api.delete(CLAIMS, get_name(world.list_claims()[0]))
    world.advance_seconds(180)
    assert len(world.list_running_pods()) == 4
    assert world.list_done_actions(EvictPod) == []
    [node] = [node_manifest for node_manifest in world.list_nodes() if "deletionTimestamp" in node_manifest["metadata"]]
    assert any(
        "PodDisruptionBudget default/web blocks the eviction of" in message
        for message in world.list_events(get_name(node), "FailedDraining")
    )
    world.cluster.api.patch("poddisruptionbudgets.policy", "web", {"spec": {"maxUnavailable": 1}}, "default")
    running_counts: list[int] = []

    def is_node_drained() -> bool:
        running_counts.append(len(world.list_running_pods()))
        return get_name(node) not in {get_name(node_manifest) for node_manifest in world.list_nodes()}

    world.wait_until(is_node_drained, timeout=600)
    assert min(running_counts) >= 3
    world.wait_until_settled(4)


def test_termination_grace_period_overrides_a_blocking_pod_disruption_budget() -> None:
    world = build_settled_world(make_pod_disruption_budget(maxUnavailable=0), template={"terminationGracePeriod": "2m"})
    [old] = world.list_active_instances()
    world.cluster.api.delete(CLAIMS, get_name(world.list_claims()[0]))
    world.advance_seconds(60)
    assert len(world.list_running_pods()) == 4
    took = world.wait_until(lambda: old.instance_id not in {one.instance_id for one in world.list_active_instances()})
    assert took <= 90
    assert world.list_done_actions(DeletePod)
    assert world.list_events(reason="TerminationGracePeriodExpiring")
    world.wait_until_settled(4)


def test_do_not_disrupt_pod_blocks_a_drain() -> None:
    world = World(
        make_node_class(), make_node_pool(), make_deployment(2, annotations={"karpenter.sh/do-not-disrupt": "true"})
    )
    world.wait_until_settled(2)
    world.cluster.api.delete(CLAIMS, get_name(world.list_claims()[0]))
    world.advance_seconds(200)
    assert (
        len(world.list_running_pods()),
        world.list_done_actions(EvictPod),
        world.list_done_actions(TerminateInstances),
    ) == (2, [], [])
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances())


def test_do_not_disrupt_daemonset_pod_keeps_an_otherwise_empty_node() -> None:
    daemon = make_deployment(
        1, "agent", cpu="50m", kind="DaemonSet", annotations={"karpenter.sh/do-not-disrupt": "true"}
    )
    world = World(make_node_class(), make_node_pool(), daemon, make_deployment(2))
    world.wait_until(lambda: len(world.list_running_pods()) == 3)
    world.scale(0)
    world.advance_seconds(240)
    assert len(world.list_active_instances()) == 1
    assert any("do-not-disrupt" in message for message in world.list_events(reason="DisruptionBlocked"))


def test_node_with_only_daemonset_pods_counts_as_empty() -> None:
    world = World(
        make_node_class(),
        make_node_pool(),
        make_deployment(1, "agent", cpu="50m", kind="DaemonSet"),
        make_deployment(2),
    )
    world.wait_until(lambda: len(world.list_running_pods()) == 3)
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=200)


def test_daemonset_overhead_is_included_in_node_sizing() -> None:
    """Four pods of 900m fit four CPUs, but not beside a daemon of 500m."""
    agent = make_deployment(1, "agent", cpu="500m", kind="DaemonSet")
    world = World(make_node_class(), make_node_pool(), agent, make_deployment(4, cpu="900m"))
    world.wait_until(lambda: len(world.list_running_pods()) >= 6)
    assert len(world.launched) == 2


BLOCKED = {
    "zero nodes": [{"nodes": "0"}],
    "zero nodes for reason Empty": [{"nodes": "0", "reasons": ["Empty"]}],
    "zero nodes on a schedule": [{"nodes": "0", "schedule": "0 8 * * *", "duration": "8h"}],
}


@pytest.mark.parametrize("budgets", BLOCKED.values(), ids=BLOCKED.keys())
def test_disruption_budget_of_zero_keeps_an_empty_node(budgets: list[Json]) -> None:
    world = build_settled_world(disruption={"budgets": budgets})
    world.scale(0)
    world.advance_seconds(240)
    assert len(world.list_active_instances()) == 1
    assert any("blocking budget" in message for message in world.list_events("default", "DisruptionBlocked"))


def test_empty_node_is_removed_after_the_blocking_budget_window_ends() -> None:
    world = build_settled_world(disruption={"budgets": [{"nodes": "0", "schedule": "0 8 * * *", "duration": "8m"}]})
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances(), timeout=700)
    assert timedelta(minutes=8) <= world.clock.get_time() - world.began < timedelta(minutes=11)


def test_disruption_budget_of_one_removes_empty_nodes_one_at_a_time() -> None:
    world = build_settled_world(replicas=12, disruption={"budgets": [{"nodes": "1"}]})
    assert len(world.list_active_instances()) == 3
    world.scale(0)
    deleting_counts = [0]

    def has_no_claims() -> bool:
        deleting_claims = [claim for claim in world.list_claims() if "deletionTimestamp" in claim["metadata"]]
        deleting_counts.append(len(deleting_claims))
        return not world.list_claims()

    world.wait_until(has_no_claims, timeout=900)
    assert max(deleting_counts) == 1
