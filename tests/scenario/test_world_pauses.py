"""Pauses in the whole world: what is paused does not happen, what was begun ends well, and it ends by itself."""

from datetime import timedelta

import pytest

from shared.model.action import EvictPod
from shared.model.holds import HOME
from shared.model.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.units import instant_text
from tests.scenario.test_world_disruption import at_work, phases, said, shrunk, tainted
from tests.scenario.worlds import POOLS, World, deployment, node_class, pool, vcpus


def annotate(world: World, key: str, text: str | None, nodepool: str = "") -> None:
    where = (POOLS, nodepool) if nodepool else ("namespaces", HOME)
    world.live.api.patch(*where, {"metadata": {"annotations": {key: text}}})


@pytest.mark.parametrize("nodepool", ["", "default"])
def test_what_is_paused_does_not_happen_until_it_is_resumed(nodepool: str) -> None:
    world = at_work(8)
    annotate(world, DISRUPTION_PAUSED, "Underutilized by anna because Black Friday", nodepool)
    world.scale(2)
    world.seconds(400)
    assert (vcpus(world), phases(world)) == (8, [])
    assert any("Black Friday" in one for one in world.events("default", "DisruptionPaused"))
    annotate(world, DISRUPTION_PAUSED, None, nodepool)
    world.until(lambda: vcpus(world) == 2)


def test_a_pause_ends_by_itself() -> None:
    world = at_work(8)
    annotate(world, DISRUPTION_PAUSED, f"true until {instant_text(world.clock.now() + timedelta(seconds=400))}")
    world.scale(2)
    world.seconds(390)
    assert phases(world) == []
    world.until(lambda: vcpus(world) == 2)


def test_a_nodepool_of_later_is_paused_too() -> None:
    world = World(node_class(), deployment(0))
    annotate(world, DISRUPTION_PAUSED, "true")
    world.apply([pool(types=("m5.large",), disruption={"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"})])
    world.scale(1)
    world.settled(1)
    world.scale(0)
    world.seconds(300)
    assert len(world.living()) == 1


def test_what_was_begun_is_taken_back() -> None:
    world = shrunk()
    world.until(lambda: phases(world) == ["LAUNCHED"])
    annotate(world, DISRUPTION_PAUSED, "true")
    world.until(lambda: phases(world) == ["ROLLED_BACK"])
    world.until(lambda: not tainted(world))
    assert "is paused" in said(world, "ROLLED_BACK")[0]
    world.seconds(120)
    assert (len(world.running()), world.done(EvictPod)) == (2, [])


def test_what_drains_when_it_is_paused_goes_on() -> None:
    world = shrunk()
    world.until(lambda: phases(world) in (["INITIALIZED"], ["DRAINING"]))
    annotate(world, DISRUPTION_PAUSED, "true")
    world.until(lambda: phases(world) == ["DONE"])
    assert vcpus(world) == 2


def test_where_the_pause_cannot_be_read_nothing_goes_and_it_is_named() -> None:
    world = at_work(8)
    annotate(world, DISRUPTION_PAUSED, "till tomorrow")
    world.scale(2)
    world.seconds(300)
    assert (vcpus(world), phases(world)) == (8, [])
    assert [one for one in world.problems() if one.startswith("Namespace kube-system: metadata.annotations")]


def test_while_launches_are_paused_pods_wait_and_say_why_and_what_is_there_is_used() -> None:
    world = World(node_class(), pool(types=("m5.large",)), deployment(1))
    world.settled(1)
    annotate(world, LAUNCHES_PAUSED, "true by anna")
    world.scale(6)
    world.seconds(180)
    assert len(world.launched) == 1
    assert world.waiting()
    assert any("launches are paused: by anna" in one for one in world.events())
    annotate(world, LAUNCHES_PAUSED, None)
    world.settled(6)


def test_a_claim_that_was_made_before_launches_were_paused_gets_its_node() -> None:
    world = World(node_class(), pool(types=("m5.large",)), deployment(0))
    world.scale(1)
    world.until(world.claims)
    annotate(world, LAUNCHES_PAUSED, "true")
    world.settled(1)


def test_an_interruption_is_followed_though_all_is_paused() -> None:
    world = at_work(2)
    annotate(world, DISRUPTION_PAUSED, "true")
    [one] = world.living()
    world.forfeit.add(one.instance_id)
    world.cloud.kill(one.instance_id)
    world.settled(2, within=600)
    assert world.live.api.get(POOLS, "default")


def test_while_launches_are_paused_nodes_may_go_and_none_is_exchanged() -> None:
    world = at_work(8)
    annotate(world, LAUNCHES_PAUSED, "true")
    world.scale(2)
    world.seconds(300)
    assert (vcpus(world), phases(world), len(world.launched)) == (8, [], 1)
    world.scale(0)
    world.until(lambda: not world.living())
