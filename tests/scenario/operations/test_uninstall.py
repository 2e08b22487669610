"""`joiner uninstall` in an embedded world: Joiner's objects are removed in order, other objects stay."""

from datetime import timedelta
from typing import Any

import pytest

from cli.uninstall.steps import (
    RemovalPlan,
    build_removal_plan,
    delete,
    pause_launches,
    read_cluster,
    resume_launches,
    wait,
)
from shared.model.decisions.action import EvictPod
from shared.model.karpenter.pause import CLUSTER_NAMESPACE
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.scenario.worlds import (
    CLASSES,
    POOLS,
    Json,
    World,
    make_deployment,
    make_node_class,
    make_node_pool,
    make_pod_disruption_budget,
)

REMOVAL_TIMEOUT = timedelta(hours=1)


class Uninstaller:
    """A user who runs `joiner uninstall`."""

    def __init__(self, world: World) -> None:
        """Pause launches, as the command does."""
        self.world, self.kube = world, InMemoryKube(world.cluster.api)
        self.messages: list[str] = []
        self.deleted_objects: list[str] = []
        pause_launches(self.kube, "anna", world.clock.get_time())

    def plan_and_delete(self) -> RemovalPlan:
        removal_plan = build_removal_plan(read_cluster(self.kube, "here"))
        self.deleted_objects += delete(self.kube, removal_plan)
        return removal_plan

    def wait_for_removal(self, timeout: timedelta = REMOVAL_TIMEOUT) -> RemovalPlan:
        return wait(self.plan_and_delete, self.messages.append, self.world.advance_seconds, timeout)


def build_settled_world(*manifests: Json, replicas: int = 4, **spec: Any) -> World:
    world = World(make_node_class(), make_node_pool(**spec), *manifests, make_deployment(replicas))
    world.wait_until_settled(replicas)
    return world


def test_uninstall_deletes_nodepools_first_then_drains_nodes_without_new_launches() -> None:
    world = build_settled_world()
    uninstaller = Uninstaller(world)
    assert uninstaller.wait_for_removal().is_empty
    assert uninstaller.deleted_objects[0] == "NodePool default"
    assert not world.list_active_instances()
    assert len(world.launched) == 1
    assert len(world.list_done_actions(EvictPod)) == 4
    assert world.cluster.api.list(CLASSES)
    resume_launches(uninstaller.kube, world.clock.get_time())
    assert "joiner.dev/launches-paused" not in world.cluster.api.get("namespaces", CLUSTER_NAMESPACE)["metadata"].get(
        "annotations", {}
    )


def test_nodepool_created_during_uninstall_is_deleted_and_gets_no_node() -> None:
    world = build_settled_world()
    uninstaller = Uninstaller(world)
    uninstaller.plan_and_delete()
    world.apply([make_node_pool(name="late")])
    assert uninstaller.wait_for_removal().is_empty
    assert len(world.launched) == 1
    assert not world.cluster.api.list(POOLS)


@pytest.mark.parametrize("interrupted_after", [0, 10, 60])
def test_interrupted_uninstall_continues_on_the_next_run(interrupted_after: int) -> None:
    world = build_settled_world()
    first = Uninstaller(world)
    first.plan_and_delete()
    world.advance_seconds(interrupted_after)
    second = Uninstaller(world)
    assert second.wait_for_removal().is_empty
    assert "NodePool default" not in second.deleted_objects


def test_uninstall_respects_pod_disruption_budgets_and_reports_the_blocked_node() -> None:
    world = build_settled_world(make_pod_disruption_budget(maxUnavailable=0))
    uninstaller = Uninstaller(world)
    removal_plan = uninstaller.wait_for_removal(timedelta(minutes=25))
    assert [row.pool for row in removal_plan.rows] == ["default"]
    assert len(world.list_running_pods()) == 4
    assert any("no change for 10m" in line for line in uninstaller.messages)
    assert any("PodDisruptionBudget" in line for line in uninstaller.messages)
