"""`joiner uninstall` in the whole world: what is ours goes in order and with its pods' leave, and nothing else does."""

from datetime import timedelta
from typing import Any

import pytest

from cli.uninstalling import Doomed, delete, doomed, look, pause_launches, resume_launches, wait
from shared.model.action import EvictPod
from shared.model.holds import HOME
from sim.cluster.kube import InMemoryKube
from tests.scenario.worlds import CLASSES, POOLS, Json, World, budget, deployment, node_class, pool

HOUR = timedelta(hours=1)


class Leaving:
    """Somebody who uninstalls."""

    def __init__(self, world: World) -> None:
        """Begin as the command does."""
        self.world, self.kube = world, InMemoryKube(world.live.api)
        self.said: list[str] = []
        self.asked: list[str] = []
        pause_launches(self.kube, "anna", world.clock.now())

    def again(self) -> Doomed:
        left = doomed(look(self.kube, "here"))
        self.asked += delete(self.kube, left)
        return left

    def waits(self, most: timedelta = HOUR) -> Doomed:
        return wait(self.again, self.said.append, self.world.seconds, most)


def at_work(*more: Json, replicas: int = 4, **spec: Any) -> World:
    world = World(node_class(), pool(**spec), *more, deployment(replicas))
    world.settled(replicas)
    return world


def test_nodepools_go_first_then_nodes_by_draining_and_nothing_is_made_anew() -> None:
    world = at_work()
    one = Leaving(world)
    assert one.waits().is_empty
    assert one.asked[0] == "NodePool default"
    assert not world.living()
    assert len(world.launched) == 1
    assert len(world.done(EvictPod)) == 4
    assert world.live.api.list(CLASSES)
    resume_launches(one.kube, world.clock.now())
    assert "joiner.dev/launches-paused" not in world.live.api.get("namespaces", HOME)["metadata"].get("annotations", {})


def test_a_nodepool_that_somebody_makes_meanwhile_goes_too_and_gets_no_node() -> None:
    world = at_work()
    one = Leaving(world)
    one.again()
    world.apply([pool(name="late")])
    assert one.waits().is_empty
    assert len(world.launched) == 1
    assert not world.live.api.list(POOLS)


@pytest.mark.parametrize("interrupted_after", [0, 10, 60])
def test_who_was_interrupted_goes_on(interrupted_after: int) -> None:
    world = at_work()
    first = Leaving(world)
    first.again()
    world.seconds(interrupted_after)
    second = Leaving(world)
    assert second.waits().is_empty
    assert "NodePool default" not in second.asked


def test_what_holds_a_node_is_honoured_and_told() -> None:
    world = at_work(budget(maxUnavailable=0))
    one = Leaving(world)
    left = one.waits(timedelta(minutes=25))
    assert [row.pool for row in left.rows] == ["default"]
    assert len(world.running()) == 4
    assert any("nothing has changed for 10 minutes" in line for line in one.said)
    assert any("pod disruption budget" in line for line in one.said)
