"""How often a cycle called AWS, and how often it should at most: whoever asks too much is throttled, all of it."""

from collections.abc import Mapping
from typing import Final

from shared.model.objects import Problem
from shared.ports import World

BUDGET: Final = {"catalog": 150, "disrupt": 30, "interrupt": 40, "lifecycle": 60, "provision": 60, "watch": 10}
"""Calls of a cycle in which nothing had to be done; catalog reads every page of types and prices twice a day."""
PER_ACTION: Final = 10
"""Calls that one action may take, its rows in the table and repeated attempts included."""


def so_far(world: World) -> Mapping[str, int]:
    """Answer how often each call went out since the container began; nothing where nobody counts."""
    return world.calls() if world.calls is not None else {}


def since(before: Mapping[str, int], world: World) -> dict[str, int]:
    """Answer how often each call went out since *before*, sorted by name."""
    now = so_far(world)
    return {name: count - before.get(name, 0) for name, count in sorted(now.items()) if count > before.get(name, 0)}


def overrun(function: str, calls: Mapping[str, int], actions: int) -> tuple[Problem, ...]:
    """Answer that *calls* are more than *function* with so many *actions* may make, and what most of them were."""
    made, allowed = sum(calls.values()), BUDGET[function] + PER_ACTION * actions
    if made <= allowed:
        return ()
    name, most = max(calls.items(), key=lambda one: (one[1], one[0]))
    message = f"{made} calls to AWS in one cycle, where {allowed} are allowed; {most} were {name}"
    return (Problem(kind="Calls", name=function, message=message),)
