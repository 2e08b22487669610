"""A function stands still at a call until its lease is over and others have done its work; then it goes on.

Nothing comes of that: no instance too many, none ended that is needed, nobody evicted who must not be. Between plays
the world comes to rest; each stops the function one call later than the one before, until it is at its end by then.
"""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Final

import pytest

from functions.disrupt import handler as disrupt
from functions.interrupt import handler as interrupt
from functions.lifecycle import handler as lifecycle
from functions.provision import handler as provision
from shared.actions.lease import LASTS
from shared.ports import World as Outside
from sim.faults import Call, Tap, tapped_world
from tests.property.test_actions_laws import Process
from tests.scenario.worlds import CLAIMS, Json, World, deployment, node_class, notice, pool

LATE: Final = LASTS + timedelta(seconds=5)
TICK: Final[dict[str, object]] = {"source": "schedule"}
LIFE: Final = 8
"""Plays of one world: what has ended is remembered for a while, and makes it slow."""
LAST: Final = 2
"""So many plays in a row in which the function was at its end were the last: no two are of the same length."""
LEAST: Final = 30
"""Stops, at the least: a lease, a snapshot, and what is done."""
HANDLERS: Final = {
    "disrupt": disrupt.handle,
    "interrupt": interrupt.handle,
    "lifecycle": lifecycle.handle,
    "provision": provision.handle,
}


class Paused:
    """A deployed function that stands still at its calls; what `Process` wants of a world."""

    def __init__(self, world: World, function: str) -> None:
        """Be *function* of *world*."""
        self._world, self._function = world, function

    def world(self, name: str = "paused", *, tap: Tap | None = None) -> Outside:
        """Answer what the function reaches, with *tap* at every call of it."""
        shown = tap if tap is not None else _unseen
        environment = dict(self._world.wiring.function(self._function).environment)
        return tapped_world(self._world._world(name, environment), shown)  # noqa: SLF001 - as Lambda would


def overtaken(world: World, function: str, event: dict[str, object], stop: int, more: int = 0) -> bool:
    """Let *function* be overtaken at its *stop*th step, and go on; answer whether it was at its end.

    *more* steps later it stands still once more, for as long.
    """
    name = f"paused-{stop}"
    handle = HANDLERS[function]

    def body(outside: Outside) -> None:
        handle(event, outside)

    paused = Process(Paused(world, function), name, body)
    for _ in range(stop):
        paused.resume()
    was_over = paused.over
    world.pass_time(LATE)
    if more:
        for _ in range(more):
            paused.resume()
        world.pass_time(LATE)
    paused.finish()
    return was_over


def everywhere(begun: Callable[[], World], play: Callable[[World, int, int], bool]) -> None:
    """Play at every stop, several times in one world: *play* hears how often that was, and answers `overtaken`."""
    ended, world = 0, begun()
    for stop in count():
        if stop and stop % LIFE == 0:
            world = begun()
        ended = ended + 1 if play(world, stop % LIFE, stop) else 0
        if ended == LAST:
            assert stop > LEAST
            return


def one_pod_a_node(replicas: int, after: str = "Never") -> World:
    world = World(node_class(), pool(capacity=("spot",), after=after), deployment(replicas, cpu="3"))
    world.settled(replicas)
    world.seconds(90)
    return world


def rests_with(world: World, count: int) -> None:
    world.settled(count)
    world.until(lambda: len(world.living()) == len(world.claims()) == len(world.nodes()) == count)


def test_a_planner_that_lost_its_lease_launches_nothing_more() -> None:
    def play(world: World, number: int, stop: int) -> bool:
        world.scale(number + 2)
        world.seconds(2)
        ended = overtaken(world, "provision", TICK, stop)
        rests_with(world, number + 2)
        assert len(world.living()) == len(world.claims()) == len(world.launched) == number + 2, f"stop {stop}"
        return ended

    everywhere(lambda: one_pod_a_node(1), play)


@pytest.mark.parametrize("since", [1, 13])
def test_a_keeper_that_lost_its_lease_ends_nothing_that_is_needed(since: int) -> None:
    def play(world: World, number: int, stop: int) -> bool:
        world.live.api.delete(CLAIMS, world.claims()[0]["metadata"]["name"])
        world.seconds(since)
        ended = overtaken(world, "lifecycle", TICK, stop)
        rests_with(world, 2)
        assert len(world.launched) == number + 3, f"stop {stop}"
        return ended

    everywhere(lambda: one_pod_a_node(2), play)


def test_an_interruption_of_a_machine_that_goes_already_plans_nothing_more() -> None:
    def play(world: World, number: int, stop: int) -> bool:
        node = world.nodes()[0]
        world.live.api.delete(CLAIMS, owner_of(node))
        ended = overtaken(world, "interrupt", interruption(world, node), stop)
        rests_with(world, 2)
        assert len(world.launched) == number + 3, f"stop {stop}"
        return ended

    everywhere(lambda: one_pod_a_node(2), play)


@pytest.mark.parametrize("more", [0, 2])
def test_an_interruption_that_is_finished_late_launches_nothing_more(more: int) -> None:
    """Between the look at the lease and the claim nothing can be fenced: others have made one for the pod's heir."""

    def play(world: World, number: int, stop: int) -> bool:
        del number
        node, before = world.nodes()[0], len(world.launched)
        event = interruption(world, node)
        world.interrupt(event["Records"][0]["body"])
        ended = overtaken(world, "interrupt", event, stop, more)
        rests_with(world, 2)
        assert len(world.launched) - before == 1, f"stop {stop}"
        return ended

    everywhere(lambda: one_pod_a_node(2, after="30s"), play)


@pytest.mark.parametrize("since", [1, 50])
def test_a_disruption_that_is_decided_late_takes_no_other_node(since: int) -> None:
    def play(world: World, number: int, stop: int) -> bool:
        world.apply([pool(capacity=("spot",), after="Never", labels={"release": f"r{stop}"})])
        world.seconds(since)
        ended = overtaken(world, "disrupt", TICK, stop)
        world.until(lambda: len(world.launched) == number + 2)
        rests_with(world, 1)
        assert len(world.launched) == number + 2, f"stop {stop}"
        return ended

    everywhere(lambda: one_pod_a_node(1), play)


def interruption(world: World, node: Json) -> Json:
    body = notice("EC2 Spot Instance Interruption Warning", world.instance_of(node).instance_id)
    return {"Records": [{"messageId": "1", "body": body}]}


def owner_of(node: Json) -> str:
    return str(node["metadata"]["ownerReferences"][0]["name"])


def _unseen(call: Call) -> None:
    del call
