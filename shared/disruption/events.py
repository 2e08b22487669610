"""What nodes and NodePools are told of a sweep, for `kubectl describe`."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from shared.disruption.budgets import allowance, counts
from shared.disruption.candidates import Blocked
from shared.disruption.pauses import REASONS
from shared.disruption.scenes import Scene
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.lifecycle.events import about, about_machine
from shared.model.action import Action
from shared.model.nodepools import NodePool
from shared.model.state import StateNode

MOST: Final = 30
"""Machines that are told something in one cycle: each costs some calls. The journal has them all."""
SILENT: Final = frozenset(("Budget", "Deleting", "NotManaged", "NoNode", "NotInitialized", "NotConsolidatable"))
"""What is told of the NodePool, or passes by itself."""


def describe_verdicts(news: Iterable[Verdict], every: Iterable[Verdict], scene: Scene) -> tuple[Action, ...]:
    """Tell machines the *news*, and NodePools which budgets stand in the way of *every* verdict."""
    states = {state.name: state for state in scene.states}
    machines = [one for one in news if not isinstance(one, Disrupted) and one.reason not in SILENT]
    said = (event for one in islice(machines, MOST) for event in _of_machine(one, states.get(one.node), scene))
    return (*said, *_of_pools(every, states, scene))


def _of_machine(one: Blocked | Kept, state: StateNode | None, scene: Scene) -> tuple[Action, ...]:
    if state is None or state.claim is None:
        return ()
    reason, words = (
        ("DisruptionBlocked", "Cannot disrupt") if isinstance(one, Blocked) else ("Unconsolidatable", "Kept")
    )
    nodes = () if state.node is None else (state.node,)
    return about_machine(state.claim, nodes, reason, f"{words}: {one.message}", scene.now)


def _of_pools(every: Iterable[Verdict], states: dict[str, StateNode], scene: Scene) -> Iterator[Action]:
    stopped = {states[one.node].pool for one in every if one.reason == "Budget" and one.node in states}
    for pool in sorted(scene.cluster.node_pools, key=lambda one: one.name):
        if pool.name in stopped:
            total = sum(counts(state) for state in scene.states if state.pool == pool.name)
            yield from _of_budgets(pool, total, scene)


def _of_budgets(pool: NodePool, total: int, scene: Scene) -> Iterator[Action]:
    for reason in REASONS:
        allowed = allowance(pool, reason, total, scene.now)
        if allowed.problem:
            words = f"No disruption is allowed: {allowed.problem}"
            yield about("NodePool", pool.meta, "DisruptionBlocked", words, scene.now, type_="Warning")
            return
        if total and allowed.count == 0:
            words = f"No allowed disruptions for disruption reason {reason} due to blocking budget"
            yield about("NodePool", pool.meta, "DisruptionBlocked", words, scene.now)
