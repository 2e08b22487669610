"""Charts as SVG: step lines, and bars above and below an axis."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from cli.terminal.html import Markup, Text, join_markup, render_tag

CHART_WIDTH_PX: Final = 960
CHART_HEIGHT_PX: Final = 150
LEFT_MARGIN_PX: Final = 44
_RIGHT_MARGIN_PX: Final = 8
_BOTTOM_MARGIN_PX: Final = 22
_VERTICAL_MARGINS_PX: Final = 40
_COLOR_CLASSES: Final = "abc"
_TICK_POSITIONS: Final = (0, 0.25, 0.5, 0.75, 1)

Points: TypeAlias = Sequence[tuple[datetime, float]]
"""Oldest first; each value is valid until the next point."""
NamedSeries: TypeAlias = tuple[str, Points]


class TimeAxis(msgspec.Struct, frozen=True, kw_only=True):
    """The time range of a chart, from left to right."""

    began: datetime
    ended: datetime
    label: Callable[[datetime], str]
    """Formats the label below an instant."""

    @property
    def seconds(self) -> float:
        """The length of the range in seconds, at least 1."""
        return max((self.ended - self.began).total_seconds(), 1.0)

    def compute_x(self, at: datetime) -> float:
        """Return the horizontal position of *at* in pixels."""
        elapsed_seconds = min(max((at - self.began).total_seconds(), 0.0), self.seconds)
        return LEFT_MARGIN_PX + elapsed_seconds / self.seconds * (CHART_WIDTH_PX - LEFT_MARGIN_PX - _RIGHT_MARGIN_PX)


def render_line_chart(
    title: str, series: Sequence[NamedSeries], time_axis: TimeAxis, marks: Iterable[tuple[datetime, str]] = ()
) -> Markup:
    """Return a heading, a legend and up to three lines of *series*; *marks* are labelled instants."""
    max_value = max([value for _, points in series for _, value in points] + [0]) or 1.0

    def compute_y(value: float) -> float:
        return CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX - value / max_value * (CHART_HEIGHT_PX - _VERTICAL_MARGINS_PX)

    lines = [
        Markup(f'<path class="{color}" d="{_build_step_path(points, time_axis, compute_y)}"/>')
        for color, (_, points) in zip(_COLOR_CLASSES, series, strict=False)
        if points
    ]
    grid = [_render_grid_line(f"{max_value * part:.3g}", compute_y(max_value * part)) for part in (0, 0.5, 1)]
    description = "; ".join(f"{name} {points[-1][1]:.4g} at the end" for name, points in series if points)
    picture = _render_svg(
        f"{title}: {description}",
        (*grid, *(_render_mark(at, label, time_axis) for at, label in marks), *_render_time_labels(time_axis), *lines),
    )
    legend = [render_tag("i", name, class_=color) for color, (name, _) in zip(_COLOR_CLASSES, series, strict=False)]
    return join_markup((render_tag("h2", title), render_tag("div", *legend), picture))


def render_bar_chart(
    title: str, upper_series: NamedSeries, lower_series: NamedSeries, time_axis: TimeAxis, seconds_per_bar: float
) -> Markup:
    """Return a bar chart: *upper_series* above the axis, *lower_series* below; a bar is *seconds_per_bar* wide."""
    max_value = max([value for _, points in (upper_series, lower_series) for _, value in points] + [0]) or 1.0
    middle, max_bar_height = (
        (CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX + 14) / 2,
        (CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX - 14) / 2,
    )
    width = max(seconds_per_bar / time_axis.seconds * (CHART_WIDTH_PX - LEFT_MARGIN_PX - _RIGHT_MARGIN_PX) - 1, 1.0)
    bar_elements: list[Text] = []
    for color, (_, points), sign in (("a", upper_series, -1), ("b", lower_series, 1)):
        for at, value in points:
            if value:
                height = value / max_value * max_bar_height
                y = middle - height if sign < 0 else middle
                attributes = f'x="{time_axis.compute_x(at):.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
                bar_elements.append(Markup(f'<rect class="{color}" {attributes}/>'))
    rules = [
        _render_grid_line(f"{max_value:.3g}", middle - max_bar_height),
        _render_grid_line("0", middle),
        _render_grid_line(f"{max_value:.3g}", middle + max_bar_height),
    ]
    description = "; ".join(
        f"{name} {sum(value for _, value in points):.0f}" for name, points in (upper_series, lower_series)
    )
    legend = [render_tag("i", name, class_=colour) for colour, name in (("a", upper_series[0]), ("b", lower_series[0]))]
    return join_markup(
        (
            render_tag("h2", title),
            render_tag("div", *legend),
            _render_svg(f"{title}: {description}", (*rules, *_render_time_labels(time_axis), *bar_elements)),
        )
    )


def _render_svg(description: str, parts: Iterable[Text]) -> Markup:
    return render_tag(
        "svg", *parts, viewBox=f"0 0 {CHART_WIDTH_PX} {CHART_HEIGHT_PX}", role="img", aria_label=description
    )


def _render_grid_line(label: str, y: float) -> Markup:
    line = (
        f'<line class="grid" x1="{LEFT_MARGIN_PX}" x2="{CHART_WIDTH_PX - _RIGHT_MARGIN_PX}" y1="{y:.1f}" y2="{y:.1f}"/>'
    )
    return Markup(f"{line}{render_tag('text', label, x='2', y=f'{y + 4:.1f}')}")


def _render_mark(at: datetime, label: str, time_axis: TimeAxis) -> Markup:
    x = time_axis.compute_x(at)
    line = f'<line class="act" x1="{x:.1f}" x2="{x:.1f}" y1="14" y2="{CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX}"/>'
    return Markup(f"{line}{render_tag('text', label, x=f'{x + 3:.1f}', y='11')}")


def _render_time_labels(time_axis: TimeAxis) -> list[Markup]:
    duration = time_axis.ended - time_axis.began
    return [
        render_tag(
            "text",
            time_axis.label(time_axis.began + duration * share),
            x=f"{LEFT_MARGIN_PX + share * (CHART_WIDTH_PX - LEFT_MARGIN_PX - _RIGHT_MARGIN_PX):.0f}",
            y=f"{CHART_HEIGHT_PX - 6}",
            text_anchor="start" if share == 0 else "end" if share == 1 else "middle",
        )
        for share in _TICK_POSITIONS
    ]


def _build_step_path(points: Points, time_axis: TimeAxis, compute_y: Callable[[float], float]) -> str:
    parts = [f"M{time_axis.compute_x(points[0][0]):.1f} {compute_y(points[0][1]):.1f}"]
    for (_, before), (at, value) in pairwise(points):
        if value != before:
            parts.append(f"H{time_axis.compute_x(at):.1f}V{compute_y(value):.1f}")
    return "".join([*parts, f"H{time_axis.compute_x(time_axis.ended):.1f}"])
