"""The decisions of a report, one line each: nodes launched, nodes removed, commands, and failures."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from cli.journal.journal import Cycle
from cli.journal.journal_decisions import JournalDecision, list_journal_decisions

_UNREPORTED_OBJECT_KINDS: Final = ("Pod", "Node")
"""Decisions about these objects first are reported elsewhere: evictions by node, unschedulable pods by reason."""


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
    decisions = (decision for decision in list_journal_decisions(cycles) if _is_reported(decision))
    return tuple(reversed([_build_reported_decision(decision) for decision in decisions]))


def _is_reported(decision: JournalDecision) -> bool:
    """Return whether the report lists *decision*: a launch is reported when its NodeClaim is created."""
    is_launch_result = (decision.kind, decision.step) == ("launch", "launched")
    return not is_launch_result and not any(kind in _UNREPORTED_OBJECT_KINDS for kind, _ in decision.objects[:1])


def _build_reported_decision(decision: JournalDecision) -> ReportedDecision:
    return ReportedDecision(
        at=decision.cycle.entry.at,
        function=decision.cycle.entry.function,
        summary=decision.summary,
        reason=decision.reason,
        is_failed=decision.is_failed,
        cycle=decision.cycle.key,
    )
