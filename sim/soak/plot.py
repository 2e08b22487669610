"""Chart of a simulated week: one SVG that follows the reader's light or dark mode."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from math import ceil, floor, log10
from typing import Final

import msgspec

from sim.soak.soak_run import SoakResult

WIDTH_PX: Final = 960
LEFT_MARGIN_PX: Final = 56
RIGHT_MARGIN_PX: Final = 16
STYLE_SHEET: Final = """
svg{font:12px system-ui,sans-serif;--paper:#fff;--ink:#222;--faint:#ddd;--ours:#0a6ebd;--without:#b3421b;
--ideal:#2a8a3e;--bound:#888;--pods:#cfe3f3;--evicted:#8a4fb3}
@media(prefers-color-scheme:dark){svg{--paper:#15181c;--ink:#ddd;--faint:#333;--ours:#5db2f5;--without:#f0875c;
--ideal:#6fcf83;--bound:#999;--pods:#24394a;--evicted:#c59be6}}
.paper{fill:var(--paper)}text{fill:var(--ink)}.grid{stroke:var(--faint)}.line{fill:none;stroke-width:1.5}
.ours{stroke:var(--ours)}.without{stroke:var(--without)}.ideal{stroke:var(--ideal)}
.bound{stroke:var(--bound);fill:var(--bound);stroke-width:3}.pods{fill:var(--pods)}.evicted{fill:var(--evicted)}
.mark{stroke:var(--ink);stroke-dasharray:2 3}
"""
ONE_DAY: Final = timedelta(days=1)


class ChartPanel(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle with axes."""

    top: int
    height: int
    start: datetime
    end: datetime
    max_value: float
    title: str

    def scale_x(self, at: datetime) -> float:
        """Return the x coordinate of an instant."""
        return LEFT_MARGIN_PX + (WIDTH_PX - LEFT_MARGIN_PX - RIGHT_MARGIN_PX) * (
            (at - self.start) / (self.end - self.start)
        )

    def scale_y(self, value: float) -> float:
        """Return the y coordinate of a value."""
        return self.top + self.height * (1 - value / self.max_value)

    def render_path(self, points: Iterable[tuple[datetime, float]], kind: str) -> str:
        """Return a line through *points*."""
        coordinates = " ".join(f"{self.scale_x(at):.1f},{self.scale_y(value):.1f}" for at, value in points)
        return f'<polyline class="line {kind}" points="{coordinates}"/>'

    def render_area(self, points: Sequence[tuple[datetime, float]], kind: str) -> str:
        """Return the area below *points*."""
        coordinates = " ".join(f"{self.scale_x(at):.1f},{self.scale_y(value):.1f}" for at, value in points)
        first_x, last_x, base_y = self.scale_x(points[0][0]), self.scale_x(points[-1][0]), self.scale_y(0)
        corners = f"{last_x:.1f},{base_y:.1f} {first_x:.1f},{base_y:.1f}"
        return f'<polygon class="{kind}" points="{coordinates} {corners}"/>'

    def render_frame(self) -> Iterator[str]:
        """Yield grid, scale and title."""
        yield f'<text x="{LEFT_MARGIN_PX}" y="{self.top - 8}">{escape(self.title)}</text>'
        for tick in range(5):
            value = self.max_value * tick / 4
            right, height = WIDTH_PX - RIGHT_MARGIN_PX, f"{self.scale_y(value):.1f}"
            yield f'<line class="grid" x1="{LEFT_MARGIN_PX}" x2="{right}" y1="{height}" y2="{height}"/>'
            yield f'<text x="{LEFT_MARGIN_PX - 6}" y="{self.scale_y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'


def render_chart(consolidated_week: SoakResult, unconsolidated_week: SoakResult) -> str:
    """Return the SVG: costs above, pods and evictions below."""
    start, end = consolidated_week.samples[0].at, consolidated_week.samples[-1].at
    max_cost = max(sample.usd_per_hour for sample in (*consolidated_week.samples, *unconsolidated_week.samples))
    cost_panel = ChartPanel(top=56, height=260, start=start, end=end, max_value=_round_up(max_cost), title="$ per hour")
    evictions_by_hour = _count_evictions_by_hour(consolidated_week)
    max_pods = max(sample.running for sample in consolidated_week.samples)
    title = "pods that run (area), and evictions that we chose, per hour (bars)"
    pod_panel = ChartPanel(
        top=372,
        height=120,
        start=start,
        end=end,
        max_value=_round_up(max(max_pods, *(count for _, count in evictions_by_hour))),
        title=title,
    )
    height = pod_panel.top + pod_panel.height + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height}" role="img">',
        "<title>What a simulated week costs with consolidation and without</title>",
        f"<style>{STYLE_SHEET}</style>",
        f'<rect class="paper" width="{WIDTH_PX}" height="{height}"/>',
        *_render_legend(),
        *cost_panel.render_frame(),
        *_render_cost_lines(cost_panel, consolidated_week, unconsolidated_week),
        *pod_panel.render_frame(),
        pod_panel.render_area([(sample.at, float(sample.running)) for sample in consolidated_week.samples], "pods"),
        *_render_bars(pod_panel, evictions_by_hour),
        *_render_marks(cost_panel, pod_panel, consolidated_week),
        *_render_days(pod_panel),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _render_cost_lines(
    cost_panel: ChartPanel, consolidated_week: SoakResult, unconsolidated_week: SoakResult
) -> Iterator[str]:
    ideals = [(sample.at, sample.ideal) for sample in consolidated_week.samples if sample.ideal is not None]
    for at, bound in ((at, ideal.bound) for at, ideal in ideals if ideal.bound is not None):
        yield f'<circle class="bound" cx="{cost_panel.scale_x(at):.1f}" cy="{cost_panel.scale_y(bound):.1f}" r="3"/>'
    yield cost_panel.render_path(((at, ideal.repacked) for at, ideal in ideals), "ideal")
    yield cost_panel.render_path(
        ((sample.at, sample.usd_per_hour) for sample in unconsolidated_week.samples), "without"
    )
    yield cost_panel.render_path(((sample.at, sample.usd_per_hour) for sample in consolidated_week.samples), "ours")


def _render_legend() -> Iterator[str]:
    entries = (
        ("ours", "with consolidation"),
        ("without", "without"),
        ("ideal", "ideal repacking"),
        ("bound", "lower bound"),
    )
    for entry_index, (kind, text) in enumerate(entries):
        x = LEFT_MARGIN_PX + entry_index * 190
        yield f'<line class="line {kind}" x1="{x}" x2="{x + 24}" y1="18" y2="18"/>'
        yield f'<text x="{x + 30}" y="22">{text}</text>'


def _render_bars(panel: ChartPanel, hourly: Sequence[tuple[datetime, int]]) -> Iterator[str]:
    for at, count in hourly:
        if count:
            x, width = panel.scale_x(at), panel.scale_x(at + timedelta(hours=1)) - panel.scale_x(at)
            y = panel.scale_y(count)
            height = panel.scale_y(0) - y
            yield f'<rect class="evicted" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _render_marks(cost_panel: ChartPanel, pod_panel: ChartPanel, week: SoakResult) -> Iterator[str]:
    for at, kind, _ in week.events:
        if kind == "release":
            x, bottom = f"{cost_panel.scale_x(at):.1f}", pod_panel.top + pod_panel.height
            yield f'<line class="mark" x1="{x}" x2="{x}" y1="{cost_panel.top}" y2="{bottom}"/>'
            yield f'<text x="{cost_panel.scale_x(at) + 4:.1f}" y="{cost_panel.top + 12}">new images</text>'
        elif kind == "interrupt":
            x, y = f"{cost_panel.scale_x(at):.1f}", cost_panel.top + cost_panel.height + 12
            yield f'<text x="{x}" y="{y}" text-anchor="middle">&#215;</text>'


def _render_days(panel: ChartPanel) -> Iterator[str]:
    step = ONE_DAY if panel.end - panel.start > ONE_DAY * 2 else timedelta(hours=3)
    at = panel.start.replace(hour=0, minute=0)
    while at < panel.end:
        if at >= panel.start:
            x = panel.scale_x(at)
            text = f"{at:%a %d}" if step == ONE_DAY else f"{at:%H:%M}"
            yield f'<text x="{x:.1f}" y="{panel.top + panel.height + 18}" text-anchor="middle">{text}</text>'
        at += step


def _count_evictions_by_hour(week: SoakResult) -> list[tuple[datetime, int]]:
    """Return how many voluntary evictions each hour has."""
    counts: dict[datetime, int] = {}
    at = week.samples[0].at.replace(minute=0, second=0, microsecond=0)
    while at <= week.samples[-1].at:
        counts[at] = 0
        at += timedelta(hours=1)
    for eviction in week.evictions:
        hour = eviction.at.replace(minute=0, second=0, microsecond=0)
        if eviction.reason and hour in counts:
            counts[hour] += 1
    return sorted(counts.items())


def _round_up(value: float) -> float:
    """Return a number with few digits that is at least *value*, which is positive."""
    step = 10.0 ** floor(log10(value)) / 2.5
    return float(ceil(value / step) * step)
