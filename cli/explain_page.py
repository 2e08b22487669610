"""What is known of one thing, as a page that a person reads, and as a document with stable keys."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cli.explain_look import Look
from cli.explain_told import Happening
from cli.explain_words import Explanation, instant
from cli.text import Palette, clock_text, count, folded
from shared.report.journal import Entry

MOST: Final = 40
"""Lines of a story that is not asked for whole."""
_TITLE: Final = 18
_INDENT: Final = " " * _TITLE


def page(said: Explanation, look: Look, palette: Palette, width: int | None, *, is_whole: bool) -> str:
    """Answer what is told of *said*."""
    lines = [palette.paint("bold", f"{said.kind} {said.name}"), ""]
    for answer in said.answers:
        lines += _entry(answer.question, answer.words, width)
    if said.happened:
        lines += ["", palette.paint("bold", _head(look))]
        lines += _story(said.happened, look.journal.now, palette, width, is_whole=is_whole)
    lines += ["", *(palette.paint("dim", line) for line in folded(covers(look), width, ""))]
    return "\n".join(lines) + "\n"


def _entry(title: str, words: tuple[str, ...], width: int | None) -> Iterator[str]:
    for number, one in enumerate(words):
        first, *rest = folded(one, width, _INDENT, "")
        yield f"{'' if number else title:<{_TITLE}}{first.lstrip()}"
        yield from rest


def _head(look: Look) -> str:
    return f"WHAT HAPPENED, in UTC and before {instant(look.journal.now)}"


def _story(
    happened: tuple[Happening, ...], now: datetime, palette: Palette, width: int | None, *, is_whole: bool
) -> Iterator[str]:
    left_out = 0 if is_whole else max(len(happened) - MOST, 0)
    if left_out:
        yield palette.paint("dim", f"… {count(left_out, 'earlier line')} (--all shows them)")
    shown = happened[left_out:]
    is_long = shown[0].at.date() != now.date()
    for one in shown:
        at = instant(one.at) if is_long else f"{one.at:%H:%M:%S}"
        again = f" ({one.times} times, until {one.until:%H:%M:%S})" if one.times > 1 else ""
        head = f"{at}  {before(now - one.at):>8}  {one.function:<9}  "
        words = f"{one.what}{again}{f': {one.why}' if one.why else ''}"
        first, *rest = folded(words, None if width is None else max(width - len(head), 20), "", "")
        yield palette.paint("red" if one.is_failed else "plain", head + first)
        yield from (" " * len(head) + more for more in rest)


def before(passed: timedelta) -> str:
    """Answer how long ago that was, in hours, minutes and seconds, or in days.

    >>> before(timedelta(minutes=61, seconds=5)), before(timedelta(days=3, hours=2))
    ('-1:01:05', '-3d 2h')
    """
    if passed >= timedelta(days=2):
        return f"-{passed.days}d {passed.seconds // 3600}h"
    return f"-{clock_text(passed)}" if passed >= timedelta() else f"+{clock_text(-passed)}"


def covers(look: Look) -> str:
    """Say which time the journal covers, and how much of it came to nothing."""
    cycles, unread = look.cycles, look.journal.unread
    lost = f"; {count(unread, 'file')} could not be read, or not whole: it may be in what was lost" if unread else ""
    if not cycles:
        return f"no cycle in {look.journal.source}{lost}" if look.journal.source else "no journal was read"
    first, last = cycles[0].entry.at, cycles[-1].entry.at
    text = f"{look.journal.source}: {count(len(cycles), 'cycle')} from {instant(first)} to {instant(last)} UTC"
    failed = _failed(look)
    if failed:
        text += f"; {count(len(failed), 'cycle')} failed, last {failed[-1].function}: {failed[-1].error}"
    return f"{text}{lost}"


def _failed(look: Look) -> list[Entry]:
    return [one.entry for one in look.cycles if one.entry.error]


def document(said: Explanation, look: Look) -> dict[str, Any]:
    """Answer *said* as it is written down: stable keys, instants in UTC, USD."""
    now, cost, failed = look.journal.now, said.cost, _failed(look)
    return {
        "kind": said.kind,
        "name": said.name,
        "answers": [{"question": one.question, "words": list(one.words)} for one in said.answers],
        "cost": None
        if cost is None
        else {"usd": round(cost.usd, 6), "usdPerHour": round(cost.usd_per_hour, 6), "hours": round(cost.hours, 4)},
        "happened": [
            {
                "at": one.at,
                "until": one.until,
                "secondsAgo": round((now - one.at).total_seconds()),
                "times": one.times,
                "function": one.function,
                "what": one.what,
                "why": one.why,
                "failed": one.is_failed,
                "cycle": one.cycle,
            }
            for one in said.happened
        ],
        "journal": {
            "source": look.journal.source,
            "cycles": len(look.cycles),
            "from": look.cycles[0].entry.at if look.cycles else None,
            "to": look.cycles[-1].entry.at if look.cycles else None,
            "now": now,
            "failed": len(failed),
            "lastError": failed[-1].error if failed else "",
            "unreadable": list(look.journal.told),
        },
    }
