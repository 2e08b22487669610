"""People delete, kill, forbid and protect, in whatever order: all is drained, nothing is lost, nothing is left."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model.action import DeletePod, EvictPod, TerminateInstances
from tests.scenario.worlds import CLAIMS, CLASSES, POOLS, Json, World, budget, deployment, node_class, pool


def name_of(one: Json) -> str:
    return str(one["metadata"]["name"])


def at_work(*manifests: Json, replicas: int = 4, **how: Any) -> World:
    world = World(node_class(), pool(**how), *manifests, deployment(replicas))
    world.settled(replicas)
    return world


def test_a_node_class_that_nobody_uses_any_more_takes_its_launch_templates_with_it() -> None:
    world = at_work()
    world.live.api.delete(CLASSES, "default")
    world.live.api.delete(POOLS, "default", propagation="Foreground")
    world.until(lambda: not world.claims())
    world.until(lambda: not world.live.api.list(CLASSES))
    assert not world.cloud.templates.tagged("eks:eks-cluster-name", world.cloud.facts.name)
    world.seconds(120)
    assert not world.errors()


def test_a_node_class_stays_until_ec2_says_that_its_launch_templates_are_gone() -> None:
    world = at_work()
    world.live.api.delete(CLASSES, "default")
    world.live.api.delete(POOLS, "default", propagation="Foreground")
    with world.down("ec2.launch_templates"):
        world.until(lambda: not world.claims())
        world.seconds(120)
        assert len(world.live.api.list(CLASSES)) == 1
    world.until(lambda: not world.live.api.list(CLASSES))
    assert not world.cloud.templates.tagged("eks:eks-cluster-name", world.cloud.facts.name)


@pytest.mark.parametrize("resource", ["nodes", CLAIMS])
def test_what_somebody_deletes_is_drained_and_replaced(resource: str) -> None:
    world = at_work()
    [victim] = world.live.api.list(resource) if resource == CLAIMS else world.nodes()
    [old] = world.living()
    world.live.api.delete(resource, name_of(victim))
    world.until(lambda: old.instance_id not in {one.instance_id for one in world.living()})
    world.settled(4)
    world.until(lambda: len(world.claims()) == len(world.living()) == len(world.nodes()) == 1)


def test_a_nodepool_that_is_deleted_takes_everything_with_it() -> None:
    world = at_work()
    world.live.api.delete(POOLS, "default", propagation="Foreground")
    world.until(lambda: not world.living() and not world.claims() and not world.nodes())
    assert len(world.done(EvictPod)) == 4
    world.until(lambda: not world.live.api.list(POOLS))
    assert len(world.waiting()) == 4


def test_a_node_class_in_use_that_is_deleted_keeps_its_nodes() -> None:
    world = at_work()
    world.live.api.delete(CLASSES, "default")
    world.seconds(120)
    assert len(world.running()) == 4
    assert world.condition(POOLS, "default", "NodeClassReady")[0] == "False"
    assert len(world.living()) == 1


def test_an_instance_that_is_killed_in_the_console_is_replaced() -> None:
    world = at_work()
    [old] = world.living()
    world.forfeit.add(old.instance_id)
    world.cloud.kill(old.instance_id)
    world.until(lambda: len(world.launched) == 2)
    world.settled(4, within=600)
    world.until(lambda: len(world.claims()) == len(world.living()) == len(world.nodes()) == 1)


def test_an_instance_that_is_stopped_in_the_console_is_replaced() -> None:
    world = at_work()
    [old] = world.living()
    world.forfeit.add(old.instance_id)
    world.cloud.stop(old.instance_id)
    world.settled(4, within=900)
    world.until(lambda: len(world.claims()) == len(world.living()) == len(world.nodes()) == 1, within=600)
    assert [one.state for one in world.cloud.instances() if one.instance_id == old.instance_id] in (["terminated"], [])


def test_an_instance_that_never_boots_is_replaced_after_a_quarter_of_an_hour() -> None:
    world = World(node_class(), pool(), deployment(0))
    world.cloud.next_boot_fails()
    world.scale(3)
    took = world.settled(3, within=1200)
    assert 900 <= took <= 1080
    assert len(world.launched) == 2
    world.until(lambda: len(world.living()) == 1)


def test_a_node_that_never_becomes_ready_does_not_multiply() -> None:
    world = World(node_class(userData="#!/bin/sh\n<broken"), pool(), deployment(3))
    world.seconds(300)
    assert len(world.launched) <= 1


def test_a_budget_holds_a_drain_until_it_is_relaxed() -> None:
    world = at_work(budget(maxUnavailable=0))
    world.live.api.delete(CLAIMS, name_of(world.claims()[0]))
    world.seconds(180)
    assert len(world.running()) == 4
    assert world.done(EvictPod) == []
    [node] = [one for one in world.nodes() if "deletionTimestamp" in one["metadata"]]
    assert any(
        "is held by pod disruption budget default/web" in one for one in world.events(name_of(node), "FailedDraining")
    )
    world.live.api.patch("poddisruptionbudgets.policy", "web", {"spec": {"maxUnavailable": 1}}, "default")
    low: list[int] = []

    def drained() -> bool:
        low.append(len(world.running()))
        return name_of(node) not in {name_of(one) for one in world.nodes()}

    world.until(drained, within=600)
    assert min(low) >= 3
    world.settled(4)


def test_a_termination_grace_period_forces_what_a_budget_holds() -> None:
    world = at_work(budget(maxUnavailable=0), template={"terminationGracePeriod": "2m"})
    [old] = world.living()
    world.live.api.delete(CLAIMS, name_of(world.claims()[0]))
    world.seconds(60)
    assert len(world.running()) == 4
    took = world.until(lambda: old.instance_id not in {one.instance_id for one in world.living()})
    assert took <= 90
    assert world.done(DeletePod)
    assert world.events(reason="TerminationGracePeriodExpiring")
    world.settled(4)


def test_a_pod_that_must_not_be_disrupted_holds_a_drain() -> None:
    world = World(node_class(), pool(), deployment(2, annotations={"karpenter.sh/do-not-disrupt": "true"}))
    world.settled(2)
    world.live.api.delete(CLAIMS, name_of(world.claims()[0]))
    world.seconds(200)
    assert (len(world.running()), world.done(EvictPod), world.done(TerminateInstances)) == (2, [], [])
    world.scale(0)
    world.until(lambda: not world.living())


def test_a_do_not_disrupt_daemon_keeps_an_empty_node() -> None:
    daemon = deployment(1, "agent", cpu="50m", kind="DaemonSet", annotations={"karpenter.sh/do-not-disrupt": "true"})
    world = World(node_class(), pool(), daemon, deployment(2))
    world.until(lambda: len(world.running()) == 3)
    world.scale(0)
    world.seconds(240)
    assert len(world.living()) == 1
    assert any("do-not-disrupt" in one for one in world.events(reason="DisruptionBlocked"))


def test_a_node_with_daemons_only_is_empty() -> None:
    world = World(node_class(), pool(), deployment(1, "agent", cpu="50m", kind="DaemonSet"), deployment(2))
    world.until(lambda: len(world.running()) == 3)
    world.scale(0)
    world.until(lambda: not world.living() and not world.claims(), within=200)


def test_room_for_daemons_is_reckoned_with() -> None:
    """Four pods of 900m fit four CPUs, but not beside a daemon of 500m."""
    agent = deployment(1, "agent", cpu="500m", kind="DaemonSet")
    world = World(node_class(), pool(), agent, deployment(4, cpu="900m"))
    world.until(lambda: len(world.running()) >= 6)
    assert len(world.launched) == 2


BLOCKED = {
    "no node": [{"nodes": "0"}],
    "none as empty": [{"nodes": "0", "reasons": ["Empty"]}],
    "none for hours": [{"nodes": "0", "schedule": "0 8 * * *", "duration": "8h"}],
}


@pytest.mark.parametrize("budgets", BLOCKED.values(), ids=BLOCKED.keys())
def test_a_budget_of_none_keeps_an_empty_node(budgets: list[Json]) -> None:
    world = at_work(disruption={"budgets": budgets})
    world.scale(0)
    world.seconds(240)
    assert len(world.living()) == 1
    assert any("blocking budget" in one for one in world.events("default", "DisruptionBlocked"))


def test_a_window_that_closes_lets_the_empty_node_go() -> None:
    world = at_work(disruption={"budgets": [{"nodes": "0", "schedule": "0 8 * * *", "duration": "8m"}]})
    world.scale(0)
    world.until(lambda: not world.living(), within=700)
    assert timedelta(minutes=8) <= world.clock.now() - world.began < timedelta(minutes=11)


def test_a_budget_of_one_lets_one_go_at_a_time() -> None:
    world = at_work(replicas=12, disruption={"budgets": [{"nodes": "1"}]})
    assert len(world.living()) == 3
    world.scale(0)
    most = [0]

    def gone() -> bool:
        going = [one for one in world.claims() if "deletionTimestamp" in one["metadata"]]
        most.append(len(going))
        return not world.claims()

    world.until(gone, within=900)
    assert max(most) == 1
