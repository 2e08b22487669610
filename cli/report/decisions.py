"""The decisions of a journal, one line each: nodes launched, nodes removed, commands, and failures."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from cli.journal.journal import Cycle
from shared.model.core.formatting import format_count
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, TerminateInstances
from shared.report.journal.journal import ActionResult, DecisionNote, JournalEntry


class ReportedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, as a line of the report."""

    at: datetime
    function: str
    summary: str = msgspec.field(name="message")
    reason: str = msgspec.field(default="", name="reason")
    is_failed: bool = msgspec.field(default=False, name="failed")
    cycle: str
    """Key of the cycle's journal entry."""


def list_decisions(cycles: Iterable[Cycle]) -> tuple[ReportedDecision, ...]:
    """Return all decisions, newest first; a decision that consecutive cycles repeat is returned once."""
    reported_decisions: list[ReportedDecision] = []
    last_decisions: dict[str, set[tuple[str, str]]] = {}
    for cycle in cycles:
        entry, current_decisions = cycle.entry, set[tuple[str, str]]()
        for summary, reason, is_failed, is_repeated in _iterate_entry_decisions(entry):
            current_decisions.add((summary, reason))
            if is_repeated and (summary, reason) in last_decisions.get(entry.function, ()):
                continue
            reported_decision = ReportedDecision(
                at=entry.at,
                function=entry.function,
                summary=summary,
                reason=reason,
                is_failed=is_failed,
                cycle=cycle.key,
            )
            reported_decisions.append(reported_decision)
        last_decisions[entry.function] = current_decisions
    return tuple(reversed(reported_decisions))


def _iterate_entry_decisions(entry: JournalEntry) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield the summary, the reason, whether it failed, and whether the next cycle repeats it if nothing changes."""
    if entry.error:
        yield f"{entry.function} failed", entry.error, True, True
    for result in entry.results:
        yield from _iterate_result_decisions(result)
    for note in entry.notes:
        yield from _iterate_note_decisions(note)


def _iterate_result_decisions(result: ActionResult) -> Iterator[tuple[str, str, bool, bool]]:
    action, has_failed = result.action, result.result == "failed"
    reason = str(getattr(action, "message", ""))
    if has_failed:
        cause = f"; reason of the action: {reason}" if reason else ""
        yield f"{_describe_target(result)} failed", f"{result.message}{cause}", True, True
    elif result.result == "done":
        match action:
            case CreateNodeClaim():
                pods_text = format_count(len(action.pods), "pod")
                yield f"NodeClaim {action.claim.name} created for {pods_text}", reason, False, False
            case DeleteObject(kind="NodeClaim"):
                yield f"NodeClaim {action.name} deleted", reason, False, False
            case TerminateInstances():
                yield f"{', '.join(action.instance_ids)} terminated", reason, False, False
            case _:
                return


def _describe_target(result: ActionResult) -> str:
    action = result.action
    name = str(getattr(action, "name", "")) or (action.claim.name if isinstance(action, CreateNodeClaim) else "")
    return f"{type(action).__name__} {name}".rstrip()


def _iterate_note_decisions(note: DecisionNote) -> Iterator[tuple[str, str, bool, bool]]:
    if note.kind == "Command":
        yield f"command {note.name} {note.verdict}", note.reason, note.verdict == "ROLLED_BACK", False
    elif note.kind == "NodePool":
        yield f"NodePool {note.name} {note.verdict}", note.reason, False, True
