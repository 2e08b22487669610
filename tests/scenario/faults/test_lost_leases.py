"""A function pauses at a call until its lease has expired and other functions have done its work; then it resumes.

No harm results: no instance too many, no needed instance terminated, no protected pod evicted. Between plays the world
settles; each play stops the function one call later than the previous one, until the function ends before it.
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
from shared.ports.world import World as Outside
from shared.store.lease import LEASE_TTL
from sim.fault_tap import PortCall, Tap, tap_world
from tests.property.lifecycle.test_actions_laws import Process
from tests.scenario.worlds import (
    CLAIMS,
    Json,
    World,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
)

LATE: Final = LEASE_TTL + timedelta(seconds=5)
TICK: Final[dict[str, object]] = {"source": "schedule"}
PLAYS_PER_WORLD: Final = 8
"""Plays of one world: what has ended is remembered for a while, and makes it slow."""
FINAL_PLAYS: Final = 2
"""So many plays in a row in which the function was at its end were the last: no two are of the same length."""
MIN_STOPS: Final = 30
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

    def build_world(self, name: str = "paused", *, tap: Tap | None = None) -> Outside:
        """Build the ports that the function uses, with *tap* at every call."""
        call_tap = tap if tap is not None else _ignore_call
        environment = dict(self._world.wiring.get_function(self._function).environment)
        return tap_world(self._world._build_world(name, environment), call_tap)  # noqa: SLF001 - as Lambda would


def run_overtaken(world: World, function: str, event: dict[str, object], stop: int, extra_steps: int = 0) -> bool:
    """Let *function* be overtaken at its *stop*th step, and go on; answer whether it was at its end.

    After *extra_steps* steps it stands still once more, for as long.
    """
    name = f"paused-{stop}"
    handle = HANDLERS[function]

    def call_handler(outside: Outside) -> None:
        handle(event, outside)

    paused = Process(Paused(world, function), name, call_handler)
    for _ in range(stop):
        paused.resume()
    was_over = paused.over
    world.advance_time(LATE)
    if extra_steps:
        for _ in range(extra_steps):
            paused.resume()
        world.advance_time(LATE)
    paused.finish()
    return was_over


def play_at_every_stop(begin_world: Callable[[], World], play: Callable[[World, int, int], bool]) -> None:
    """Call *play* at every stop, several times per world, with the number of plays of the world so far."""
    ended, world = 0, begin_world()
    for stop in count():
        if stop and stop % PLAYS_PER_WORLD == 0:
            world = begin_world()
        ended = ended + 1 if play(world, stop % PLAYS_PER_WORLD, stop) else 0
        if ended == FINAL_PLAYS:
            assert stop > MIN_STOPS
            return


def build_one_pod_per_node_world(replicas: int, after: str = "Never") -> World:
    world = World(
        make_node_class(), make_node_pool(capacity=("spot",), after=after), make_deployment(replicas, cpu="3")
    )
    world.wait_until_settled(replicas)
    world.advance_seconds(90)
    return world


def assert_settles_with(world: World, count: int) -> None:
    world.wait_until_settled(count)
    world.wait_until(
        lambda: len(world.list_active_instances()) == len(world.list_claims()) == len(world.list_nodes()) == count
    )


def test_provision_that_lost_its_lease_launches_no_extra_instance() -> None:
    def play(world: World, number: int, stop: int) -> bool:
        world.scale(number + 2)
        world.advance_seconds(2)
        ended = run_overtaken(world, "provision", TICK, stop)
        assert_settles_with(world, number + 2)
        assert len(world.list_active_instances()) == len(world.list_claims()) == len(world.launched) == number + 2, (
            f"stop {stop}"
        )
        return ended

    play_at_every_stop(lambda: build_one_pod_per_node_world(1), play)


@pytest.mark.parametrize("since", [1, 13])
def test_lifecycle_that_lost_its_lease_terminates_no_needed_instance(since: int) -> None:
    def play(world: World, number: int, stop: int) -> bool:
        world.cluster.api.delete(CLAIMS, world.list_claims()[0]["metadata"]["name"])
        world.advance_seconds(since)
        ended = run_overtaken(world, "lifecycle", TICK, stop)
        assert_settles_with(world, 2)
        assert len(world.launched) == number + 3, f"stop {stop}"
        return ended

    play_at_every_stop(lambda: build_one_pod_per_node_world(2), play)


def test_interruption_of_an_already_terminating_node_launches_no_extra_replacement() -> None:
    def play(world: World, number: int, stop: int) -> bool:
        node = world.list_nodes()[0]
        world.cluster.api.delete(CLAIMS, get_owner_name(node))
        ended = run_overtaken(world, "interrupt", build_interruption_event(world, node), stop)
        assert_settles_with(world, 2)
        assert len(world.launched) == number + 3, f"stop {stop}"
        return ended

    play_at_every_stop(lambda: build_one_pod_per_node_world(2), play)


@pytest.mark.parametrize("extra_steps", [0, 2])
def test_delayed_interruption_handling_launches_no_extra_replacement(extra_steps: int) -> None:
    """Nothing is fenced between the lease check and the claim: another function has claimed a node for the pods."""

    def play(world: World, number: int, stop: int) -> bool:
        del number
        node, before = world.list_nodes()[0], len(world.launched)
        event = build_interruption_event(world, node)
        world.interrupt(event["Records"][0]["body"])
        ended = run_overtaken(world, "interrupt", event, stop, extra_steps)
        assert_settles_with(world, 2)
        assert len(world.launched) - before == 1, f"stop {stop}"
        return ended

    play_at_every_stop(lambda: build_one_pod_per_node_world(2, after="30s"), play)


@pytest.mark.parametrize("since", [1, 50])
def test_delayed_disruption_decision_disrupts_no_other_node(since: int) -> None:
    def play(world: World, number: int, stop: int) -> bool:
        world.apply([make_node_pool(capacity=("spot",), after="Never", labels={"release": f"r{stop}"})])
        world.advance_seconds(since)
        ended = run_overtaken(world, "disrupt", TICK, stop)
        world.wait_until(lambda: len(world.launched) == number + 2)
        assert_settles_with(world, 1)
        assert len(world.launched) == number + 2, f"stop {stop}"
        return ended

    play_at_every_stop(lambda: build_one_pod_per_node_world(1), play)


def build_interruption_event(world: World, node: Json) -> Json:
    body = make_ec2_message("EC2 Spot Instance Interruption Warning", world.find_instance(node).instance_id)
    return {"Records": [{"messageId": "1", "body": body}]}


def get_owner_name(node: Json) -> str:
    return str(node["metadata"]["ownerReferences"][0]["name"])


def _ignore_call(call: PortCall) -> None:
    del call
