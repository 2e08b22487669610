"""The decisions of a journal: nodes launched and removed, commands, evictions, unschedulable pods, and failures."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from cli.journal.evictions import iterate_evictions
from cli.journal.journal import Cycle
from shared.model.core.formatting import format_count
from shared.model.decisions.action import (
    CreateNodeClaim,
    DeleteObject,
    TerminateInstances,
)
from shared.report.journal.journal import LAUNCHED_VERDICT, ActionResult, DecisionNote

_KIND_BY_DELETION_REASON: Final = {
    "empty": "empty",
    "drifted": "drift",
    "underutilized": "consolidate",
    "expired": "expire",
    "unhealthy": "repair",
}
_KIND_BY_METHOD: Final = {
    "emptiness": "empty",
    "staticdrift": "drift",
    "drift": "drift",
    "multinode": "consolidate",
    "singlenode": "consolidate",
}
_INTERRUPT: Final = "interrupt"


class JournalDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision of a cycle."""

    cycle: Cycle
    kind: str
    """launch, terminate, consolidate, drift, empty, expire, interrupt, repair, refuse, evict, fault or other."""
    summary: str
    step: str = ""
    """created, launched, deleted, terminated or evicted; the phase of a disruption command; "" for other decisions."""
    reason: str = ""
    objects: tuple[tuple[str, str], ...] = ()
    """The objects that it is about, as pairs (kind, name)."""
    saves_usd_per_hour: float | None = None
    is_failed: bool = False
    is_repeated: bool = False
    """Whether the next cycle decides the same if nothing changes."""


def list_journal_decisions(cycles: Iterable[Cycle]) -> tuple[JournalDecision, ...]:
    """Return all decisions, oldest first; a decision that consecutive cycles repeat is returned once."""
    decisions: list[JournalDecision] = []
    last_decisions: dict[str, set[tuple[str, str]]] = {}
    for cycle in cycles:
        current_decisions = set[tuple[str, str]]()
        function = cycle.entry.function
        for decision in _iterate_cycle_decisions(cycle):
            key = (decision.summary, decision.reason)
            current_decisions.add(key)
            if not (decision.is_repeated and key in last_decisions.get(function, ())):
                decisions.append(decision)
        last_decisions[function] = current_decisions
    return tuple(decisions)


def _iterate_cycle_decisions(cycle: Cycle) -> Iterator[JournalDecision]:
    entry = cycle.entry
    if entry.error:
        yield JournalDecision(
            cycle=cycle,
            kind="fault",
            summary=f"{entry.function} failed",
            reason=entry.error,
            is_failed=True,
            is_repeated=True,
        )
    for result in entry.results:
        yield from _iterate_result_decisions(cycle, result)
    yield from _iterate_eviction_decisions(cycle)
    for note in entry.notes:
        yield from _iterate_note_decisions(cycle, note)
    yield from _iterate_unschedulable_pods(cycle)


def _iterate_result_decisions(cycle: Cycle, result: ActionResult) -> Iterator[JournalDecision]:
    action = result.action
    reason = str(getattr(action, "message", ""))
    if result.result == "failed":
        cause = f"; reason of the action: {reason}" if reason else ""
        yield JournalDecision(
            cycle=cycle,
            kind="fault",
            summary=f"{_describe_target(result)} failed",
            reason=f"{result.message}{cause}",
            is_failed=True,
            is_repeated=True,
        )
    elif result.result == "done":
        match action:
            case CreateNodeClaim():
                pods_text = format_count(len(action.pods), "pod")
                yield JournalDecision(
                    cycle=cycle,
                    kind="launch",
                    summary=f"NodeClaim {action.claim.name} created for {pods_text}",
                    step="created",
                    reason=reason,
                    objects=(("NodeClaim", action.claim.name), *(("Pod", pod) for pod in action.pods)),
                )
            case DeleteObject(kind="NodeClaim"):
                yield JournalDecision(
                    cycle=cycle,
                    kind=_classify_deletion(cycle.entry.function, reason),
                    summary=f"NodeClaim {action.name} deleted",
                    step="deleted",
                    reason=reason,
                    objects=(("NodeClaim", action.name),),
                )
            case TerminateInstances():
                yield JournalDecision(
                    cycle=cycle,
                    kind="terminate",
                    summary=f"{', '.join(action.instance_ids)} terminated",
                    step="terminated",
                    reason=reason,
                    objects=tuple(("Instance", instance_id) for instance_id in action.instance_ids),
                )
            case _:
                return


def _classify_deletion(function: str, reason: str) -> str:
    return _INTERRUPT if function == _INTERRUPT else _KIND_BY_DELETION_REASON.get(reason, "terminate")


def _describe_target(result: ActionResult) -> str:
    action = result.action
    name = str(getattr(action, "name", "")) or (action.claim.name if isinstance(action, CreateNodeClaim) else "")
    return f"{type(action).__name__} {name}".rstrip()


def _iterate_eviction_decisions(cycle: Cycle) -> Iterator[JournalDecision]:
    """Yield the evictions from each node for each reason."""
    pods_by_cause: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod, action in iterate_evictions(cycle):
        pods_by_cause[action.node, action.message].append(pod)
    for (node, reason), pods in pods_by_cause.items():
        yield JournalDecision(
            cycle=cycle,
            kind="evict",
            summary=f"{format_count(len(pods), 'pod')} evicted from {node}",
            step="evicted",
            reason=reason,
            objects=(("Node", node), *(("Pod", pod) for pod in pods)),
        )


def _iterate_note_decisions(cycle: Cycle, note: DecisionNote) -> Iterator[JournalDecision]:
    if note.kind == "Command":
        nodes = tuple(("Node", link.partition("/")[2]) for link in note.links if link.startswith("Node/"))
        yield JournalDecision(
            cycle=cycle,
            kind=_KIND_BY_METHOD.get(note.name.partition("-")[0], "other"),
            summary=f"command {note.name} {note.verdict}",
            step=note.verdict,
            reason=note.reason,
            objects=(("Command", note.name), *nodes, *(("NodeClaim", claim) for claim in note.replaced_by)),
            saves_usd_per_hour=note.usd_per_hour or None,
            is_failed=note.verdict == "ROLLED_BACK",
        )
    elif note.kind == "NodePool":
        yield JournalDecision(
            cycle=cycle,
            kind="refuse",
            summary=f"NodePool {note.name} {note.verdict}",
            reason=note.reason,
            objects=(("NodePool", note.name),),
            is_repeated=True,
        )
    elif note.kind == "NodeClaim" and note.verdict == LAUNCHED_VERDICT:
        yield JournalDecision(
            cycle=cycle,
            kind="launch",
            summary=f"NodeClaim {note.name} launched",
            step="launched",
            reason=note.reason,
            objects=(("NodeClaim", note.name),),
        )


def _iterate_unschedulable_pods(cycle: Cycle) -> Iterator[JournalDecision]:
    """Yield the unschedulable pods for each verdict and reason."""
    pods_by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
    for note in cycle.entry.notes:
        if note.kind == "Pod" and "/" not in note.verdict:
            pods_by_reason[note.verdict, note.reason].append(note.name)
    for (verdict, reason), pods in pods_by_reason.items():
        yield JournalDecision(
            cycle=cycle,
            kind="refuse",
            summary=f"{format_count(len(pods), 'pod')} unschedulable: {verdict}",
            reason=reason,
            objects=tuple(("Pod", pod) for pod in pods),
            is_repeated=True,
        )
