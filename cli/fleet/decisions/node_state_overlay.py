"""States that only the journal knows: interrupted nodes, and nodes that are blocked from disruption."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias

from cli.explain.evidence import Evidence
from shared.model.decisions.action import DeleteObject, TaintNode
from shared.model.decisions.disruption_verdict import SILENT_REASONS

StateChanges: TypeAlias = Sequence[tuple[datetime, str]]
_TRANSIENT_REASONS: Final = SILENT_REASONS | {"Gone", "NotReached"}
"""Reasons of blocked verdicts that are not a property of the node or its pods."""
_STATES_OF_INTERRUPTED_NODES: Final = ("ready", "blocked", "cordoned", "draining")


def find_interruptions(evidence: Evidence) -> dict[str, datetime]:
    """Return when nodes were interrupted, by the name of their NodeClaim or Node."""
    interrupted_at: dict[str, datetime] = {}
    for cycle in evidence.cycles:
        if cycle.entry.function != "interrupt":
            continue
        for result in cycle.entry.results:
            action = result.action
            if result.result == "done" and isinstance(action, TaintNode | DeleteObject):
                interrupted_at.setdefault(action.name, cycle.entry.at)
    return interrupted_at


def find_block_changes(evidence: Evidence) -> dict[str, list[tuple[datetime, bool]]]:
    """Return when nodes became blocked from disruption (True) and were not any more (False), by the Node's name."""
    changes_by_node: dict[str, list[tuple[datetime, bool]]] = {}
    for at, note in evidence.iterate_notes("Node"):
        is_blocked = note.verdict == "blocked" and note.reason.partition(":")[0] not in _TRANSIENT_REASONS
        changes = changes_by_node.setdefault(note.name, [])
        if is_blocked != (bool(changes) and changes[-1][1]):
            changes.append((at, is_blocked))
    return changes_by_node


def merge_states(
    states: StateChanges, interrupted_at: datetime | None, block_changes: Sequence[tuple[datetime, bool]]
) -> list[tuple[datetime, str]]:
    """Return *states* with the states `interrupted` and `blocked` added.

    An interrupted node stays interrupted until it is gone. Only a ready node can be blocked.
    """
    events = sorted(
        [*((at, 0, state) for at, state in states), *((at, 1, str(is_blocked)) for at, is_blocked in block_changes)]
        + ([(interrupted_at, 2, "interrupted")] if interrupted_at is not None else []),
        key=lambda event: event[:2],
    )
    result: list[tuple[datetime, str]] = []
    state, is_blocked, is_interrupted = "", False, False
    for at, kind, value in events:
        state = value if kind == 0 else state
        is_blocked = value == "True" if kind == 1 else is_blocked
        is_interrupted |= kind == 2  # noqa: PLR2004 - the third kind of event
        visible_state = _choose_state(state, is_blocked=is_blocked, is_interrupted=is_interrupted)
        if result and result[-1][0] == at:
            result.pop()
        if visible_state and (not result or result[-1][1] != visible_state):
            result.append((at, visible_state))
    return result


def _choose_state(state: str, *, is_blocked: bool, is_interrupted: bool) -> str:
    if is_interrupted and state in _STATES_OF_INTERRUPTED_NODES:
        return "interrupted"
    return "blocked" if is_blocked and state == "ready" else state
