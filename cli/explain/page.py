"""An explanation rendered for people, and as a document with stable keys."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cli.explain.evidence import Evidence
from cli.explain.history import HistoryEntry
from cli.explain.phrases import Explanation, format_instant
from cli.terminal.text import Palette, format_clock, wrap_text
from shared.model.core.formatting import format_count
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
        lines += _render_answer(answer.question, answer.sentences, width)
    if explanation.history:
        lines += ["", palette.colorize("bold", _render_history_heading(evidence))]
        lines += _render_history(explanation.history, evidence.journal.now, palette, width, is_whole=is_whole)
    lines += [
        "",
        *(palette.colorize("dim", line) for line in wrap_text(describe_journal_coverage(evidence), width, "")),
    ]
    return "\n".join(lines) + "\n"


def _render_answer(title: str, sentences: tuple[str, ...], width: int | None) -> Iterator[str]:
    for number, sentence in enumerate(sentences):
        first, *continuation_lines = wrap_text(sentence, width, _INDENT, "")
        yield f"{'' if number else title:<{_TITLE_WIDTH}}{first.lstrip()}"
        yield from continuation_lines


def _render_history_heading(evidence: Evidence) -> str:
    return f"WHAT HAPPENED, in UTC and before {format_instant(evidence.journal.now)}"


def _render_history(
    history: tuple[HistoryEntry, ...], now: datetime, palette: Palette, width: int | None, *, is_whole: bool
) -> Iterator[str]:
    left_out = 0 if is_whole else max(len(history) - MAX_HISTORY_LINES, 0)
    if left_out:
        yield palette.colorize("dim", f"… {format_count(left_out, 'earlier line')} (--all shows them)")
    visible_entries = history[left_out:]
    is_long = visible_entries[0].at.date() != now.date()
    for entry in visible_entries:
        at = format_instant(entry.at) if is_long else f"{entry.at:%H:%M:%S}"
        repetition = f" ({entry.times} times, until {entry.last_at:%H:%M:%S})" if entry.times > 1 else ""
        head = f"{at}  {format_time_before(now - entry.at):>8}  {entry.function:<9}  "
        words = f"{entry.text}{repetition}{f': {entry.reason}' if entry.reason else ''}"
        first, *continuation_lines = wrap_text(words, None if width is None else max(width - len(head), 20), "", "")
        yield palette.colorize("red" if entry.is_failed else "plain", head + first)
        yield from (" " * len(head) + more for more in continuation_lines)


def format_time_before(elapsed: timedelta) -> str:
    """Return how long ago that was: in hours, minutes and seconds, or in days and hours.

    >>> format_time_before(timedelta(minutes=61, seconds=5)), format_time_before(timedelta(days=3, hours=2))
    ('-1:01:05', '-3d 2h')
    """
    if elapsed >= timedelta(days=2):
        return f"-{elapsed.days}d {elapsed.seconds // 3600}h"
    return f"-{format_clock(elapsed)}" if elapsed >= timedelta() else f"+{format_clock(-elapsed)}"


def describe_journal_coverage(evidence: Evidence) -> str:
    """Return which period the journal covers, how many cycles failed, and how many files could not be read."""
    cycles, unread_count = evidence.cycles, evidence.journal.unreadable_count
    unread_text = (
        f"; {format_count(unread_count, 'file')} could not be read, or not whole: it may be in what was lost"
        if unread_count
        else ""
    )
    if not cycles:
        return (
            f"no cycle in {evidence.journal.source}{unread_text}" if evidence.journal.source else "no journal was read"
        )
    first, last = cycles[0].entry.at, cycles[-1].entry.at
    period_text = f"from {format_instant(first)} to {format_instant(last)} UTC"
    text = f"{evidence.journal.source}: {format_count(len(cycles), 'cycle')} {period_text}"
    failed_entries = _list_failed_entries(evidence)
    if failed_entries:
        last_entry = failed_entries[-1]
        text += f"; {format_count(len(failed_entries), 'cycle')} failed, last {last_entry.function}: {last_entry.error}"
    return f"{text}{unread_text}"


def _list_failed_entries(evidence: Evidence) -> list[JournalEntry]:
    return [cycle.entry for cycle in evidence.cycles if cycle.entry.error]


def build_explanation_document(explanation: Explanation, evidence: Evidence) -> dict[str, Any]:
    """Return *explanation* as a document: stable keys, instants in UTC, prices in USD."""
    now, cost, failed_entries = evidence.journal.now, explanation.cost, _list_failed_entries(evidence)
    return {
        "kind": explanation.kind,
        "name": explanation.name,
        "answers": [{"question": answer.question, "words": list(answer.sentences)} for answer in explanation.answers],
        "cost": None
        if cost is None
        else {"usd": round(cost.usd, 6), "usdPerHour": round(cost.usd_per_hour, 6), "hours": round(cost.hours, 4)},
        "happened": [
            {
                "at": entry.at,
                "until": entry.last_at,
                "secondsAgo": round((now - entry.at).total_seconds()),
                "times": entry.times,
                "function": entry.function,
                "what": entry.text,
                "why": entry.reason,
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
