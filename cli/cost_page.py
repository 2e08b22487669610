"""What nodes cost, added up, for people and for programs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from cli.tables import Look
from cli.text import Palette, aligned, count, cut, folded
from shared.report.days import Day, Dear, is_whole
from shared.report.parts import Part, parts_of

BAR: Final = 20
"""Columns of the longest."""
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_DEAREST: Final = 5


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Some days."""

    days: tuple[Day, ...]
    """Oldest first, at least one."""
    by: str
    label: str
    parts: tuple[Part, ...]
    """Dearest first."""

    def total(self, amount: Callable[[Day], float]) -> float:
        """Answer the sum of *amount* over the days."""
        return round(sum(map(amount, self.days)), 6)


def totals(days: tuple[Day, ...], by: str) -> Totals:
    """Add *days* up, told apart *by* one of `NAMES`."""
    return Totals(days=days, by=by, label=days[-1].label, parts=parts_of(days, by))


def document(found: Totals) -> dict[str, Any]:
    """Answer what a program reads."""
    return {
        "from": found.days[0].day,
        "to": found.days[-1].day,
        **_sums(found),
        "days": [
            {"day": one.day, "isWhole": is_whole(one), **_sums(msgspec.structs.replace(found, days=(one,)))}
            for one in found.days
        ],
        "by": found.by,
        "label": found.label,
        "parts": [msgspec.to_builtins(one) for one in found.parts],
        "dearest": [msgspec.to_builtins(one) for one in found.days[-1].dearest],
    }


def _sums(found: Totals) -> dict[str, Any]:
    return {
        "usd": found.total(lambda one: one.usd),
        "nodeHours": found.total(lambda one: one.node_hours),
        "savedBySpotUsd": found.total(lambda one: one.saved_by_spot_usd),
        "savedByCommandsUsd": found.total(lambda one: one.saved_by_commands_usd),
        "commands": sum(one.commands for one in found.days),
        "idleUsd": found.total(lambda one: one.idle_usd),
        "unpricedHours": found.total(_unpriced),
    }


def _unpriced(one: Day) -> float:
    return sum(share.unpriced_hours for share in one.shares)


def page(found: Totals, palette: Palette, look: Look) -> str:
    """Answer what a person reads."""
    parts = (_summary(found, palette, look), _parts(found, palette, look), _days(found, palette, look))
    blocks = [lines for part in (*parts, _dearest(found.days[-1], palette, look)) if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _summary(found: Totals, palette: Palette, look: Look) -> Iterator[str]:
    sums, first, last = _sums(found), found.days[0].day, found.days[-1].day
    when = first if first == last else f"{count(len(found.days), 'day')}, {first} to {last}"
    first_line, *rest = folded(f"{when}: {_usd(sums['usd'])} for {sums['nodeHours']:,.0f} node hours", look.width, "")
    yield from (palette.paint("bold", first_line), *rest)
    said = [
        f"{_usd(sums['savedBySpotUsd'])} less than on demand",
        f"{_usd(sums['savedByCommandsUsd'])} saved by {count(sums['commands'], 'command')}",
        f"{_usd(sums['idleUsd'])} for what no pod requested{_percent(sums['idleUsd'], sums['usd'])}",
    ]
    if sums["unpricedHours"] >= 1:
        said.append(f"{sums['unpricedHours']:,.0f} node hours have no known price")
    yield from folded("; ".join(said), look.width, "")
    if not is_whole(found.days[-1]):
        yield palette.paint("dim", f"{last} counts until {found.days[-1].until:%H:%M} UTC")


def _parts(found: Totals, palette: Palette, look: Look) -> Iterator[str]:
    most = max((one.usd for one in found.parts), default=0.0)
    title = (found.label or "label") if found.by == "label" else found.by
    rows = [
        (title.upper(), "", "NODE HOURS", "USD", "SHARE", "SAVED", "IDLE"),
        *(
            (
                one.name or "-",
                bar(one.usd, most),
                f"{one.node_hours:,.0f}",
                f"{one.usd:,.2f}",
                _percent(one.usd, found.total(lambda day: day.usd)).strip(" ()") or "-",
                f"{one.on_demand_usd - one.usd:,.2f}",
                f"{one.idle_usd:,.2f}{_percent(one.idle_usd, one.usd)}",
            )
            for one in found.parts[: look.most]
        ),
    ]
    yield from _table(rows, palette, look)
    if look.most is not None and len(found.parts) > look.most:
        others = found.parts[look.most :]
        rest = f"… and {len(others):,} more, {_usd(sum(one.usd for one in others))} together (--all shows them)"
        yield palette.paint("dim", rest)


def _days(found: Totals, palette: Palette, look: Look) -> Iterator[str]:
    if len(found.days) == 1:
        return
    most = max(one.usd for one in found.days)
    rows = [
        ("DAY", "", "NODE HOURS", "USD", "SAVED", "BY COMMANDS", "IDLE"),
        *(
            (
                one.day,
                bar(one.usd, most),
                f"{one.node_hours:,.0f}",
                f"{one.usd:,.2f}",
                f"{one.saved_by_spot_usd:,.2f}",
                f"{one.saved_by_commands_usd:,.2f}",
                f"{one.idle_usd:,.2f}{_percent(one.idle_usd, one.usd)}",
            )
            for one in found.days
        ),
    ]
    yield from _table(rows, palette, look)


def _dearest(last: Day, palette: Palette, look: Look) -> Iterator[str]:
    some: tuple[Dear, ...] = last.dearest if look.most is None else last.dearest[:_DEAREST]
    if not some:
        return
    rows = [
        (f"DEAREST OF {last.day}", "TYPE", "POOL", "HOURS", "USD", "IDLE"),
        *(
            (
                one.claim,
                f"{one.instance_type} {one.capacity_type}",
                one.pool,
                f"{one.hours:.1f}",
                f"{one.usd:.2f}",
                f"{one.idle_usd:.2f}{_percent(one.idle_usd, one.usd)}",
            )
            for one in some
        ),
    ]
    yield from _table(rows, palette, look, left=3)


def _table(rows: Sequence[tuple[str, ...]], palette: Palette, look: Look, left: int = 2) -> Iterator[str]:
    head, *lines = (cut(line, look.width) for line in aligned(rows, left=left))
    yield palette.paint("bold", head)
    yield from lines


def bar(amount: float, most: float) -> str:
    """Draw *amount*, where *most* is `BAR` columns long.

    >>> bar(1.0, 4.0), bar(0.0, 4.0), bar(1.0, 0.0)
    ('█████', '', '')
    """
    eighths = round(8 * BAR * amount / most) if most > 0 else 0
    whole, part = divmod(max(eighths, 0), 8)
    return "█" * whole + (_BLOCKS[part] if part else "")


def _usd(amount: float) -> str:
    return f"${amount:,.2f}"


def _percent(part: float, whole: float) -> str:
    return f" ({100 * part / whole:.0f}%)" if whole else ""
