"""What nodes and NodePools are told of a sweep, for `kubectl describe`."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from shared.disruption.budgets import REASONS, allowance, counts, unreadable
from shared.disruption.candidates import Blocked
from shared.disruption.complaints import misprotected
from shared.disruption.planned import REASON as PLANNED
from shared.disruption.repair import REASON as UNHEALTHY
from shared.disruption.scenes import Scene
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.lifecycle.events import about, about_machine
from shared.model.action import Action
from shared.model.labels import DO_NOT_DISRUPT
from shared.model.nodepools import NodePool
from shared.model.state import StateNode

MOST: Final = 30
"""Machines that are told something in one cycle: each costs some calls. The journal has them all."""
SILENT: Final = frozenset(
    ("Budget", "Deleting", "Expecting", "Nominated", "NotManaged", "NoNode", "NotInitialized", "NotConsolidatable")
)
"""What is told of the NodePool, or passes by itself."""

_WORDS: Final = {
    (True, False): ("DisruptionBlocked", "Cannot disrupt"),
    (True, True): ("NodeRepairBlocked", "Cannot repair"),
    (False, False): ("Unconsolidatable", "Kept"),
}
"""By whether it is blocked, and from being repaired."""


def describe_verdicts(news: Iterable[Verdict], every: Iterable[Verdict], scene: Scene) -> tuple[Action, ...]:
    """Tell machines the *news*, and NodePools which budgets stand in the way of *every* verdict.

    Pods of nodes that go are told if nobody will make them again.
    """
    states, some = {state.name: state for state in scene.states}, tuple(news)
    machines = [one for one in some if not isinstance(one, Disrupted) and one.reason not in SILENT]
    said = (event for one in islice(machines, MOST) for event in _of_machine(one, states.get(one.node), scene))
    going = (states[one.node] for one in some if isinstance(one, Disrupted) and one.node in states)
    alone = (event for state in going for event in _of_orphans(state, scene))
    return (*said, *islice(alone, MOST), *_of_annotations(scene), *_of_pools(every, states, scene))


def _of_machine(one: Blocked | Kept, state: StateNode | None, scene: Scene) -> tuple[Action, ...]:
    if state is None or state.claim is None:
        return ()
    reason, words = _WORDS[isinstance(one, Blocked), one.reason == UNHEALTHY]
    reason = "DisruptionPlanned" if one.reason == PLANNED else reason
    nodes = () if state.node is None else (state.node,)
    return about_machine(state.claim, nodes, reason, f"{words}: {one.message}", scene.now)


def _of_orphans(state: StateNode, scene: Scene) -> Iterator[Action]:
    words = (
        f"Node {state.name} goes, and nobody makes this pod again: metadata.ownerReferences is empty; give it an "
        f"owner, or annotate it with {DO_NOT_DISRUPT}"
    )
    for pod in state.pods:
        if pod.is_reschedulable() and not pod.meta.owners:
            yield about("Pod", pod.meta, "WillNotComeBack", words, scene.now, type_="Warning")


def _of_annotations(scene: Scene) -> Iterator[Action]:
    for pod in islice(misprotected(scene.states), MOST):
        words = f"{DO_NOT_DISRUPT} is {pod.misprotected()!r} and protects nothing: write 'true', or a duration like 2h"
        yield about("Pod", pod.meta, "InvalidDoNotDisruptAnnotation", words, scene.now, type_="Warning")


def _of_pools(every: Iterable[Verdict], states: dict[str, StateNode], scene: Scene) -> Iterator[Action]:
    stopped = {states[one.node].pool for one in every if one.reason == "Budget" and one.node in states}
    for pool in sorted(scene.cluster.node_pools, key=lambda one: one.name):
        if pool.name in stopped or unreadable(pool, scene.now):
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
