"""A function stands still at a call until its lease is over and others have done its work; then it goes on.

Nothing comes of that: no instance too many, none ended that is needed, nobody evicted who must not be. Between plays
the world comes to rest; each stops the function some calls later than the one before.
"""

import json
from datetime import timedelta
from typing import Final

from functions.interrupt import handler as interrupt
from functions.lifecycle import handler as lifecycle
from functions.provision import handler as provision
from shared.actions.lease import LASTS
from shared.ports import World as Outside
from sim.faults import Call, Tap, tapped_world
from tests.property.test_actions_laws import Process
from tests.scenario.worlds import CLAIMS, World, deployment, node_class, notice, pool

LATE: Final = LASTS + timedelta(seconds=5)
STEP: Final = 9
"""Calls between two stops, before and after counted apart."""
PLAYS: Final = 8
HANDLERS: Final = {"provision": provision.handle, "lifecycle": lifecycle.handle, "interrupt": interrupt.handle}


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


def overtaken(world: World, function: str, event: dict[str, object], stop: int) -> bool:
    """Let *function* be overtaken at its *stop*th step, and go on; answer whether it was at its end."""
    name = f"paused-{stop}"
    handle = HANDLERS[function]

    def body(outside: Outside) -> None:
        handle(event, outside)

    paused = Process(Paused(world, function), name, body)
    for _ in range(stop):
        paused.resume()
    was_over = paused.over
    world.pass_time(LATE)
    paused.finish()
    return was_over


def one_pod_a_node(replicas: int) -> World:
    world = World(node_class(), pool(capacity=("spot",), after="Never"), deployment(replicas, cpu="3"))
    world.settled(replicas)
    world.seconds(90)
    return world


def test_a_planner_that_lost_its_lease_launches_nothing_more() -> None:
    world, ended = one_pod_a_node(1), 0
    for play in range(PLAYS):
        world.scale(play + 2)
        world.seconds(2)
        ended += overtaken(world, "provision", {"source": "schedule"}, play * STEP)
        world.settled(play + 2)
        world.seconds(30)
        assert len(world.living()) == len(world.claims()) == len(world.launched) == play + 2, f"play {play}"
    assert ended < PLAYS


def test_a_keeper_that_lost_its_lease_ends_nothing_that_is_needed() -> None:
    world, ended = one_pod_a_node(2), 0
    for play in range(PLAYS):
        world.live.api.delete(CLAIMS, world.claims()[0]["metadata"]["name"])
        world.seconds(1 + 6 * (play % 3))
        ended += overtaken(world, "lifecycle", {"source": "schedule"}, play * STEP)
        world.settled(2)
        world.until(lambda: len(world.living()) == len(world.claims()) == len(world.nodes()) == 2)
        assert len(world.launched) == play + 3, f"play {play}"
    assert ended < PLAYS


def test_an_interruption_that_is_finished_late_plans_nothing_twice() -> None:
    world, ended = one_pod_a_node(2), 0
    for play in range(PLAYS):
        node = world.nodes()[0]
        body = notice("EC2 Spot Instance Interruption Warning", world.instance_of(node).instance_id)
        event: dict[str, object] = {"Records": [{"messageId": "1", "body": body}]}
        world.interrupt(body) if play % 2 else world.live.api.delete(CLAIMS, owner_of(node))
        ended += overtaken(world, "interrupt", event, play * STEP)
        world.settled(2)
        world.until(lambda: len(world.living()) == len(world.claims()) == len(world.nodes()) == 2)
        assert len(world.launched) == play + 3, f"play {play}"
    assert ended < PLAYS


def owner_of(node: dict[str, object]) -> str:
    found: str = json.loads(json.dumps(node))["metadata"]["ownerReferences"][0]["name"]
    return found


def _unseen(call: Call) -> None:
    del call
