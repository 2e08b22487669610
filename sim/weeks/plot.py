"""The plot of a simulated week: one SVG that follows the reader's light or dark."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from math import ceil, floor, log10
from typing import Final

import msgspec

from sim.weeks.week import Week

WIDTH: Final = 960
LEFT: Final = 56
RIGHT: Final = 16
STYLE: Final = """
svg{font:12px system-ui,sans-serif;--paper:#fff;--ink:#222;--faint:#ddd;--ours:#0a6ebd;--without:#b3421b;
--ideal:#2a8a3e;--bound:#888;--pods:#cfe3f3;--evicted:#8a4fb3}
@media(prefers-color-scheme:dark){svg{--paper:#15181c;--ink:#ddd;--faint:#333;--ours:#5db2f5;--without:#f0875c;
--ideal:#6fcf83;--bound:#999;--pods:#24394a;--evicted:#c59be6}}
.paper{fill:var(--paper)}text{fill:var(--ink)}.grid{stroke:var(--faint)}.line{fill:none;stroke-width:1.5}
.ours{stroke:var(--ours)}.without{stroke:var(--without)}.ideal{stroke:var(--ideal)}
.bound{stroke:var(--bound);fill:var(--bound);stroke-width:3}.pods{fill:var(--pods)}.evicted{fill:var(--evicted)}
.mark{stroke:var(--ink);stroke-dasharray:2 3}
"""
DAY: Final = timedelta(days=1)


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle with a scale."""

    top: int
    height: int
    start: datetime
    end: datetime
    most: float
    title: str

    def x(self, at: datetime) -> float:
        """Answer where an instant is."""
        return LEFT + (WIDTH - LEFT - RIGHT) * ((at - self.start) / (self.end - self.start))

    def y(self, value: float) -> float:
        """Answer where a value is."""
        return self.top + self.height * (1 - value / self.most)

    def path(self, points: Iterable[tuple[datetime, float]], kind: str) -> str:
        """Answer a line through *points*."""
        some = " ".join(f"{self.x(at):.1f},{self.y(value):.1f}" for at, value in points)
        return f'<polyline class="line {kind}" points="{some}"/>'

    def area(self, points: Sequence[tuple[datetime, float]], kind: str) -> str:
        """Answer what lies below *points*."""
        some = " ".join(f"{self.x(at):.1f},{self.y(value):.1f}" for at, value in points)
        ends = f"{self.x(points[-1][0]):.1f},{self.y(0):.1f} {self.x(points[0][0]):.1f},{self.y(0):.1f}"
        return f'<polygon class="{kind}" points="{some} {ends}"/>'

    def frame(self) -> Iterator[str]:
        """Iterate over grid, scale and title."""
        yield f'<text x="{LEFT}" y="{self.top - 8}">{escape(self.title)}</text>'
        for part in range(5):
            value = self.most * part / 4
            height = f"{self.y(value):.1f}"
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height}" y2="{height}"/>'
            yield f'<text x="{LEFT - 6}" y="{self.y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'


def plot(with_: Week, without: Week) -> str:
    """Answer the SVG: money above, pods and evictions below."""
    start, end = with_.samples[0].at, with_.samples[-1].at
    dearest = max(one.usd_per_hour for one in (*with_.samples, *without.samples))
    money = Panel(top=56, height=260, start=start, end=end, most=_round(dearest), title="$ per hour")
    evicted = _hourly(with_)
    pods = max(one.running for one in with_.samples)
    title = "pods that run (area), and evictions that we chose, per hour (bars)"
    below = Panel(
        top=372,
        height=120,
        start=start,
        end=end,
        most=_round(max(pods, *(count for _, count in evicted))),
        title=title,
    )
    height = below.top + below.height + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>What a simulated week costs with consolidation and without</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        *_legend(),
        *money.frame(),
        *_lines(money, with_, without),
        *below.frame(),
        below.area([(one.at, float(one.running)) for one in with_.samples], "pods"),
        *_bars(below, evicted),
        *_marks(money, below, with_),
        *_days(below),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _lines(money: Panel, with_: Week, without: Week) -> Iterator[str]:
    ideals = [(one.at, one.ideal) for one in with_.samples if one.ideal is not None]
    for at, bound in ((at, one.bound) for at, one in ideals if one.bound is not None):
        yield f'<circle class="bound" cx="{money.x(at):.1f}" cy="{money.y(bound):.1f}" r="3"/>'
    yield money.path(((at, one.repacked) for at, one in ideals), "ideal")
    yield money.path(((one.at, one.usd_per_hour) for one in without.samples), "without")
    yield money.path(((one.at, one.usd_per_hour) for one in with_.samples), "ours")


def _legend() -> Iterator[str]:
    words = (
        ("ours", "with consolidation"),
        ("without", "without"),
        ("ideal", "ideal repacking"),
        ("bound", "lower bound"),
    )
    for place, (kind, text) in enumerate(words):
        x = LEFT + place * 190
        yield f'<line class="line {kind}" x1="{x}" x2="{x + 24}" y1="18" y2="18"/>'
        yield f'<text x="{x + 30}" y="22">{text}</text>'


def _bars(panel: Panel, hourly: Sequence[tuple[datetime, int]]) -> Iterator[str]:
    for at, count in hourly:
        if count:
            x, width = panel.x(at), panel.x(at + timedelta(hours=1)) - panel.x(at)
            y = panel.y(count)
            yield f'<rect class="evicted" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{panel.y(0) - y:.1f}"/>'


def _marks(money: Panel, below: Panel, week: Week) -> Iterator[str]:
    for at, kind, _ in week.happened:
        if kind == "release":
            x = f"{money.x(at):.1f}"
            yield f'<line class="mark" x1="{x}" x2="{x}" y1="{money.top}" y2="{below.top + below.height}"/>'
            yield f'<text x="{money.x(at) + 4:.1f}" y="{money.top + 12}">new images</text>'
        elif kind == "interrupt":
            yield f'<text x="{money.x(at):.1f}" y="{money.top + money.height + 12}" text-anchor="middle">&#215;</text>'


def _days(panel: Panel) -> Iterator[str]:
    step = DAY if panel.end - panel.start > DAY * 2 else timedelta(hours=3)
    at = panel.start.replace(hour=0, minute=0)
    while at < panel.end:
        if at >= panel.start:
            x = panel.x(at)
            text = f"{at:%a %d}" if step == DAY else f"{at:%H:%M}"
            yield f'<text x="{x:.1f}" y="{panel.top + panel.height + 18}" text-anchor="middle">{text}</text>'
        at += step


def _hourly(week: Week) -> list[tuple[datetime, int]]:
    """Answer how many evictions were chosen in each hour."""
    counts: dict[datetime, int] = {}
    at = week.samples[0].at.replace(minute=0, second=0, microsecond=0)
    while at <= week.samples[-1].at:
        counts[at] = 0
        at += timedelta(hours=1)
    for one in week.evictions:
        hour = one.at.replace(minute=0, second=0, microsecond=0)
        if one.reason and hour in counts:
            counts[hour] += 1
    return sorted(counts.items())


def _round(value: float) -> float:
    """Answer a number with few digits that is no less than *value*, which is positive."""
    step = 10.0 ** floor(log10(value)) / 2.5
    return float(ceil(value / step) * step)
