"""Draw the user actions of a script."""

from collections.abc import Callable, Iterator
from typing import Final

from sim.fault_simulation.drawing.random_draws import RandomDraws
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_events import (
    AnyEvent,
    Batch,
    Drift,
    ErasableResource,
    Erase,
    Recreate,
    Release,
    Remove,
    Restaff,
    Retag,
    Scale,
)
from sim.fault_simulation.events.script_manifests import INSTANCE_TYPES, WORKLOADS

RESOURCES: Final[tuple[ErasableResource, ...]] = ("nodes", "nodeclaims.karpenter.sh")
ActionDrawer = Callable[[RandomDraws, ScriptSetup, int, int], AnyEvent]
"""Draws the event of a number and a start second."""


def draw_user_actions(draws: RandomDraws, length: int, setup: ScriptSetup) -> Iterator[AnyEvent]:
    """Yield the user actions of *length* seconds in the order of drawing."""
    action_drawers = (
        *_COMMON_ACTIONS,
        *(_SECOND_POOL_ACTIONS if setup.second_pool_cpu else ()),
        *(_STATIC_POOL_ACTIONS if setup.has_static else ()),
    )
    for index in range(draws.draw_integer(3, 6, "work")):
        at = draws.draw_integer(10, length - 240, "work", index)
        yield draws.choose(action_drawers, "work", index, "kind")(draws, setup, index, at)


def _draw_scale(draws: RandomDraws, setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    name, _ = draws.choose(setup.replicas, "work", number, "name")
    return Scale(at=at, name=name, replicas=draws.draw_integer(0, WORKLOADS[name][0], "scale", number))


def _draw_recreate(draws: RandomDraws, setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    return Recreate(at=at, name=draws.choose(setup.replicas, "work", number, "name")[0])


def _draw_drift(draws: RandomDraws, _setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    return Drift(at=at, release=f"r{number}", excluded_type=draws.choose(("", "", *INSTANCE_TYPES), "without", number))


def _draw_retag(_draws: RandomDraws, _setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    return Retag(at=at, owner=f"team-{number}")


def _draw_release(_draws: RandomDraws, _setup: ScriptSetup, _number: int, at: int) -> AnyEvent:
    return Release(at=at)


def _draw_batch(draws: RandomDraws, _setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    pods, seconds = draws.draw_integer(1, 3, "pods", number), draws.draw_integer(30, 300, "seconds", number)
    return Batch(at=at, name=f"batch-{number}", pods=pods, seconds=seconds)


def _draw_erase(draws: RandomDraws, _setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    resource = draws.choose(RESOURCES, "erase", number)
    return Erase(at=at, resource=resource, position=draws.draw_position("which", number, "erase"))


def _draw_remove(draws: RandomDraws, _setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    return Remove(
        at=at,
        lasts=draws.draw_integer(30, 300, "gone", number),
        with_node_class=draws.choose((True, False), "whole", number),
    )


def _draw_restaff(draws: RandomDraws, _setup: ScriptSetup, number: int, at: int) -> AnyEvent:
    return Restaff(at=at, replicas=draws.draw_integer(0, 3, "staff", number))


_COMMON_ACTIONS: Final[tuple[ActionDrawer, ...]] = (
    *(_draw_scale, _draw_scale, _draw_scale, _draw_scale, _draw_scale, _draw_recreate),
    *(_draw_drift, _draw_retag, _draw_release, _draw_batch, _draw_erase),
)
_SECOND_POOL_ACTIONS: Final[tuple[ActionDrawer, ...]] = (_draw_remove, _draw_remove)
_STATIC_POOL_ACTIONS: Final[tuple[ActionDrawer, ...]] = (_draw_restaff, _draw_restaff)
