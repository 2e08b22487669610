"""Plot of cost and evictions: one panel for each world, as an SVG that follows the reader's light or dark mode.

A point is a policy, a line connects the values of one setting. Faint points are single seeds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final

import msgspec

from sim.soak.policies import CURVE_LABELS
from sim.soak.report.results import SoakRecord
from sim.soak.report.table import PolicyRow, build_rows

PANEL_WIDTH_PX: Final = 400
PANEL_HEIGHT_PX: Final = 240
LEFT_MARGIN_PX: Final = 64
TOP_MARGIN_PX: Final = 34
PANEL_GAP_PX: Final = 84
LEGEND_HEIGHT_PX: Final = 34
LEGEND_SPACING_PX: Final = 192
MIN_TICK_COUNT: Final = 4
TICK_STEPS: Final = (1, 2, 2.5, 5, 10)
COLUMN_COUNT: Final = 2
MARKER_RADIUS_PX: Final = 5
STYLE_SHEET: Final = """
svg{font:13px system-ui,sans-serif;--paper:#fff;--ink:#1b1b1b;--faint:#dcdcdc;--curve:#0a6ebd;--default:#0a6ebd;
--karpenter:#b3421b;--balanced:#8a4fb3;--never:#2f7d32;--other:#555}
@media(prefers-color-scheme:dark){svg{--paper:#15181c;--ink:#e4e4e4;--faint:#353a40;--curve:#5db2f5;--default:#5db2f5;
--karpenter:#f0875c;--balanced:#c59be6;--never:#6fcf83;--other:#aaa}}
.paper{fill:var(--paper)}text{fill:var(--ink)}.title{font-weight:600}.small{font-size:11px}
.grid{stroke:var(--faint)}.axis{stroke:var(--ink)}.line{fill:none;stroke:var(--curve);stroke-width:2}
.curve{fill:var(--curve)}.default{fill:var(--default);stroke:var(--ink);stroke-width:1.5}
.karpenter{fill:var(--karpenter)}.balanced{fill:var(--balanced)}.never{fill:var(--never)}.other{fill:var(--other)}
.seed{opacity:.3}
"""
MARKER_SHAPES: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "karpenter": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "balanced": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "never": ((0, -1.2), (1.2, 1), (-1.2, 1)),
}
"""Corners of the markers that are no circles, in radii."""
NAMED_POLICIES: Final = ("default", "karpenter", "balanced", "never")


class PlotPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the seeds of one policy."""

    kind: str
    """Class of the style sheet."""
    policy: str
    label: str
    x: float
    """Evictions per pod and day by consolidation."""
    y: float
    seeds: tuple[tuple[float, float], ...]
    """The same for each seed, if there are several."""


class PlotPanel(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle with axes that start at 0."""

    x_origin: int
    top: int
    title: str
    y_title: str
    x_ticks: tuple[float, ...]
    y_ticks: tuple[float, ...]
    points: tuple[PlotPoint, ...]

    def scale_x(self, value: float) -> float:
        """Return the x coordinate of a value."""
        return self.x_origin + PANEL_WIDTH_PX * value / self.x_ticks[-1]

    def scale_y(self, value: float) -> float:
        """Return the y coordinate of a value."""
        return self.top + PANEL_HEIGHT_PX * (1 - value / self.y_ticks[-1])

    def render(self) -> Iterator[str]:
        """Yield the elements of the panel."""
        yield f'<text class="title" x="{self.x_origin}" y="{self.top - 12}">{escape(self.title)}</text>'
        yield from self._render_axes()
        curve_points = sorted((point for point in self.points if point.kind == "curve"), key=_get_curve_value)
        if len(curve_points) > 1:
            coordinates = " ".join(f"{self.scale_x(point.x):.1f},{self.scale_y(point.y):.1f}" for point in curve_points)
            yield f'<polyline class="line" points="{coordinates}"/>'
        for point in self.points:
            for x, y in point.seeds:
                yield _render_marker(f"{point.kind} seed", self.scale_x(x), self.scale_y(y), 3)
        for point in self.points:
            x, y = self.scale_x(point.x), self.scale_y(point.y)
            yield _render_marker(point.kind, x, y, MARKER_RADIUS_PX, f"{point.label}: {point.x:.2f}, {point.y:.1f}")
        for number, point in enumerate(curve_points):
            x, y = self.scale_x(point.x) + 6, self.scale_y(point.y) + (16 if number % 2 else -8)
            yield f'<text class="small" x="{x:.1f}" y="{y:.1f}">${point.policy.partition("=")[2]}</text>'

    def _render_axes(self) -> Iterator[str]:
        right, bottom = self.x_origin + PANEL_WIDTH_PX, self.top + PANEL_HEIGHT_PX
        for value in self.y_ticks:
            y = f"{self.scale_y(value):.1f}"
            yield f'<line class="{"grid" if value else "axis"}" x1="{self.x_origin}" x2="{right}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{self.x_origin - 7}" y="{self.scale_y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        for value in self.x_ticks:
            x = f"{self.scale_x(value):.1f}"
            yield f'<line class="{"grid" if value else "axis"}" x1="{x}" x2="{x}" y1="{self.top}" y2="{bottom}"/>'
            yield f'<text x="{x}" y="{bottom + 17}" text-anchor="middle">{value:g}</text>'
        x_title = "evictions per pod and day by consolidation"
        yield f'<text x="{self.x_origin + PANEL_WIDTH_PX / 2}" y="{bottom + 36}" text-anchor="middle">{x_title}</text>'
        center = f"{self.x_origin - 46} {self.top + PANEL_HEIGHT_PX / 2}"
        yield f'<text transform="translate({center}) rotate(-90)" text-anchor="middle">{escape(self.y_title)}</text>'


def render_plot(records: Iterable[SoakRecord]) -> str:
    """Return the SVG of the weeks in *records*; the vertical axis is the cost above the ideal repacking if known."""
    rows = build_rows(records)
    worlds = list(dict.fromkeys(row.weeks[0].world for row in rows))
    panels = [
        _build_panel(number, world, [row for row in rows if row.weeks[0].world == world])
        for number, world in enumerate(worlds)
    ]
    line_count = -(-len(panels) // COLUMN_COUNT)
    width = COLUMN_COUNT * (LEFT_MARGIN_PX + PANEL_WIDTH_PX) + (COLUMN_COUNT + 1) * 16
    height = LEGEND_HEIGHT_PX + line_count * (TOP_MARGIN_PX + PANEL_HEIGHT_PX) + line_count * PANEL_GAP_PX // 2 + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Cost and evictions of simulated weeks, by policy</title>",
        f"<style>{STYLE_SHEET}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *_render_legend(panels),
        *(element for panel in panels for element in panel.render()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _build_panel(number: int, world: str, rows: Sequence[PolicyRow]) -> PlotPanel:
    has_ideal = all(row.over_ideal_percent is not None for row in rows)
    points = tuple(_build_point(row, has_ideal=has_ideal) for row in rows)
    values = [(point.x, point.y) for point in points] + [pair for point in points for pair in point.seeds]
    line, column = divmod(number, COLUMN_COUNT)
    return PlotPanel(
        x_origin=LEFT_MARGIN_PX + column * (LEFT_MARGIN_PX + PANEL_WIDTH_PX + 16),
        top=LEGEND_HEIGHT_PX + TOP_MARGIN_PX + line * (TOP_MARGIN_PX + PANEL_HEIGHT_PX + PANEL_GAP_PX // 2),
        title=world,
        y_title="cost above ideal repacking, %" if has_ideal else "mean cost, $/h",
        x_ticks=_build_ticks(1.06 * max([x for x, _ in values] + [0.1])),
        y_ticks=_build_ticks(1.06 * max([y for _, y in values] + [0.1])),
        points=points,
    )


def _build_point(row: PolicyRow, *, has_ideal: bool) -> PlotPoint:
    week = row.weeks[0]
    factor = 100 / row.ideal_usd_per_hour if has_ideal else 1.0
    offset = 100.0 if has_ideal else 0.0
    base_kind = next((name for name in NAMED_POLICIES if week.policy == name), "other")
    seeds = [
        (single_week.evictions_per_pod_day["Underutilized"], max(0.0, single_week.usd_per_hour * factor - offset))
        for single_week in row.weeks
    ]
    return PlotPoint(
        kind="curve" if week.curve else base_kind,
        policy=week.policy,
        label=week.label,
        x=row.compute_evictions("Underutilized"),
        y=max(0.0, row.usd_per_hour * factor - offset),
        seeds=tuple(seeds) if len(seeds) > 1 and not week.curve else (),
    )


def _render_legend(panels: Sequence[PlotPanel]) -> Iterator[str]:
    labels: dict[str, str] = {}
    for panel in panels:
        for point in panel.points:
            text = CURVE_LABELS[point.policy.partition("=")[0]] if point.kind == "curve" else point.label
            labels.setdefault(text, point.kind)
    for number, (text, kind) in enumerate(labels.items()):
        x = LEFT_MARGIN_PX + number * LEGEND_SPACING_PX
        yield _render_marker(kind, x, 20, MARKER_RADIUS_PX)
        yield f'<text x="{x + 11}" y="24">{escape(text)}</text>'


def _render_marker(kind: str, x: float, y: float, radius: float, title: str = "") -> str:
    """Return a marker whose shape tells the policies apart without colours."""
    title_element = f"<title>{escape(title)}</title>" if title else ""
    points = MARKER_SHAPES.get(kind.partition(" ")[0])
    if points is None:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{title_element}</circle>'
    coordinates = " ".join(f"{x + radius * dx:.1f},{y + radius * dy:.1f}" for dx, dy in points)
    return f'<polygon class="{kind}" points="{coordinates}">{title_element}</polygon>'


def _get_curve_value(point: PlotPoint) -> float:
    return float(point.policy.partition("=")[2].split()[0])


def _build_ticks(max_value: float) -> tuple[float, ...]:
    """Return round numbers from 0 to at least *max_value*, which is positive."""
    magnitude = 10.0 ** floor(log10(max_value / MIN_TICK_COUNT))
    step = next(step * magnitude for step in TICK_STEPS if max_value / (step * magnitude) <= MIN_TICK_COUNT + 1)
    return tuple(round(number * step, 6) for number in range(ceil(max_value / step) + 1))
