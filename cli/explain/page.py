"""An explanation rendered for people, and as a document with stable keys."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cli.explain.evidence import Evidence
from cli.explain.history import HistoryEntry
from cli.explain.phrases import Explanation, format_instant
from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_count, format_elapsed
from shared.report.journal.journal import JournalEntry

MAX_HISTORY_LINES: Final = 40
"""Number of history lines that are shown without --all."""
_TITLE_WIDTH: Final = 18
_INDENT: Final = " " * _TITLE_WIDTH


def render_explanation(
    explanation: Explanation, evidence: Evidence, palette: Palette, width: int | None, *, is_whole: bool
) -> str:
    """Return *explanation* as text for the terminal."""
    lines = [palette.colorize("bold", f"{explanation.kind} {explanation.name}"), ""]
    for answer in explanation.answers:
        for number, sentence in enumerate(answer.sentences):
            first, *continuation_lines = wrap_text(sentence, width, _INDENT, "")
            lines += [f"{'' if number else answer.question:<{_TITLE_WIDTH}}{first.lstrip()}", *continuation_lines]
    if explanation.history:
        heading = f"HISTORY (UTC, until {format_instant(evidence.journal.now)})"
        lines += ["", palette.colorize("bold", heading)]
        lines += _render_history(explanation.history, evidence.journal.now, palette, width, is_whole=is_whole)
    coverage_lines = wrap_text(describe_journal_coverage(evidence), width, "")
    lines += ["", *(palette.colorize("dim", line) for line in coverage_lines)]
    return "\n".join(lines) + "\n"


def _render_history(
    history: tuple[HistoryEntry, ...], now: datetime, palette: Palette, width: int | None, *, is_whole: bool
) -> Iterator[str]:
    omitted_count = 0 if is_whole else max(len(history) - MAX_HISTORY_LINES, 0)
    if omitted_count:
        yield palette.colorize("dim", f"… {format_count(omitted_count, 'earlier line')} (--all shows them)")
    visible_entries = history[omitted_count:]
    has_dates = visible_entries[0].at.date() != now.date()
    for entry in visible_entries:
        at = format_instant(entry.at) if has_dates else f"{entry.at:%H:%M:%S}"
        repetition = f" ({entry.times} times until {entry.last_at:%H:%M:%S})" if entry.times > 1 else ""
        head = f"{at}  {format_time_before(now - entry.at):>10}  {entry.function:<9}  "
        words = f"{entry.text}{repetition}{f': {entry.reason}' if entry.reason else ''}"
        first, *continuation_lines = wrap_text(words, None if width is None else max(width - len(head), 20), "", "")
        yield palette.colorize("red" if entry.is_failed else "", head + first)
        yield from (" " * len(head) + more for more in continuation_lines)


def format_time_before(elapsed: timedelta) -> str:
    """Return how long ago that was.

    >>> format_time_before(timedelta(minutes=61, seconds=5)), format_time_before(-timedelta(minutes=2))
    ('1h1m ago', 'in 2m')
    """
    return f"{format_elapsed(elapsed)} ago" if elapsed >= timedelta() else f"in {format_elapsed(-elapsed)}"


def describe_journal_coverage(evidence: Evidence) -> str:
    """Return which period the journal covers, how many cycles failed, and how many files could not be read."""
    cycles, unread_count = evidence.cycles, evidence.journal.unreadable_count
    files_text = f"{format_count(unread_count, 'file')} could not be read completely: information may be missing"
    unread_text = f"; {files_text}" if unread_count else ""
    source = evidence.journal.source
    if not cycles:
        return f"no cycle in {source}{unread_text}" if source else "no journal was read"
    period_text = f"from {format_instant(cycles[0].entry.at)} to {format_instant(cycles[-1].entry.at)} UTC"
    text = f"{source}: {format_count(len(cycles), 'cycle')} {period_text}"
    failed_entries = _list_failed_entries(evidence)
    if failed_entries:
        last_entry = failed_entries[-1]
        failures_text = f"{format_count(len(failed_entries), 'cycle')} failed"
        text += f"; {failures_text}, most recently {last_entry.function}: {last_entry.error}"
    return f"{text}{unread_text}"


def _list_failed_entries(evidence: Evidence) -> list[JournalEntry]:
    return [cycle.entry for cycle in evidence.cycles if cycle.entry.error]


def build_explanation_document(explanation: Explanation, evidence: Evidence) -> dict[str, Any]:
    """Return *explanation* as a document: stable keys, instants in UTC, prices in USD."""
    now, cost, failed_entries = evidence.journal.now, explanation.cost, _list_failed_entries(evidence)
    return {
        "kind": explanation.kind,
        "name": explanation.name,
        "answers": [
            {"question": answer.question, "sentences": list(answer.sentences)} for answer in explanation.answers
        ],
        "cost": cost
        and {"usd": round(cost.usd, 6), "usdPerHour": round(cost.usd_per_hour, 6), "hours": round(cost.hours, 4)},
        "history": [
            {
                "at": entry.at,
                "until": entry.last_at,
                "secondsAgo": round((now - entry.at).total_seconds()),
                "times": entry.times,
                "function": entry.function,
                "message": entry.text,
                "reason": entry.reason,
                "failed": entry.is_failed,
                "cycle": entry.cycle_key,
            }
            for entry in explanation.history
        ],
        "journal": {
            "source": evidence.journal.source,
            "cycles": len(evidence.cycles),
            "from": evidence.cycles[0].entry.at if evidence.cycles else None,
            "to": evidence.cycles[-1].entry.at if evidence.cycles else None,
            "now": now,
            "failed": len(failed_entries),
            "lastError": failed_entries[-1].error if failed_entries else "",
            "unreadable": list(evidence.journal.messages),
        },
    }
