"""AWS call budgets: how often a cycle called AWS, and how often it should at most, to avoid throttling."""

from collections.abc import Mapping
from typing import Final

from shared.model.core.metadata import Problem
from shared.ports.world import World

MAX_CALLS_PER_CYCLE: Final = {
    "catalog": 150,
    "disrupt": 30,
    "interrupt": 40,
    "lifecycle": 60,
    "provision": 60,
    "watch": 10,
}
"""Calls of a cycle that performs no action; catalog reads every page of types and prices twice a day."""
MAX_CALLS_PER_ACTION: Final = 10
"""Calls of one action, including its table rows and retries."""


def get_call_counts(world: World) -> Mapping[str, int]:
    """Return the number of calls by operation since the container started; empty if calls are not counted."""
    return world.calls() if world.calls is not None else {}


def count_calls_since(before: Mapping[str, int], world: World) -> dict[str, int]:
    """Return the number of calls by operation since *before*, sorted by name."""
    now = get_call_counts(world)
    return {name: count - before.get(name, 0) for name, count in sorted(now.items()) if count > before.get(name, 0)}


def find_call_overrun(function: str, calls: Mapping[str, int], actions: int) -> tuple[Problem, ...]:
    """Return a problem if *calls* exceed the budget of *function* with this many *actions*."""
    call_count, max_calls = sum(calls.values()), MAX_CALLS_PER_CYCLE[function] + MAX_CALLS_PER_ACTION * actions
    if call_count <= max_calls:
        return ()
    name, top_count = max(calls.items(), key=lambda name_count: (name_count[1], name_count[0]))
    message = f"{call_count} AWS calls in one cycle, more than the limit of {max_calls}; {top_count} calls of {name}"
    return (Problem(kind="Calls", name=function, message=message),)
