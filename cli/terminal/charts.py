"""Charts as SVG: step lines, and bars above and below an axis; `parts.html.jinja` draws them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

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


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What a chart draws, at positions in pixels."""

    title: str
    description: str
    legend: Sequence[tuple[str, str]]
    """Color class and name."""
    grid: Sequence[tuple[str, float]]
    """Label and vertical position."""
    time_labels: Sequence[tuple[str, str, str]]
    """Label, horizontal position and anchor."""
    marks: Sequence[tuple[str, float]] = ()
    """Label and horizontal position."""
    lines: Sequence[tuple[str, str]] = ()
    """Color class and path."""
    bars: Sequence[tuple[str, str, str, str, str]] = ()
    """Color class, position, width and height."""
    width: int = CHART_WIDTH_PX
    height: int = CHART_HEIGHT_PX
    left_edge: int = LEFT_MARGIN_PX
    right_edge: int = CHART_WIDTH_PX - _RIGHT_MARGIN_PX
    bottom_edge: int = CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX


def draw_line_chart(
    title: str, series: Sequence[NamedSeries], time_axis: TimeAxis, marks: Iterable[tuple[datetime, str]] = ()
) -> Chart:
    """Return a chart with up to three lines of *series*; *marks* are labelled instants."""
    max_value = max([value for _, points in series for _, value in points] + [0]) or 1.0

    def compute_y(value: float) -> float:
        return CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX - value / max_value * (CHART_HEIGHT_PX - _VERTICAL_MARGINS_PX)

    return Chart(
        title=title,
        description="; ".join(f"{name} {points[-1][1]:.4g} at the end" for name, points in series if points),
        legend=[(color, name) for color, (name, _) in zip(_COLOR_CLASSES, series, strict=False)],
        grid=[(f"{max_value * part:.3g}", round(compute_y(max_value * part), 1)) for part in (0, 0.5, 1)],
        time_labels=_list_time_labels(time_axis),
        marks=[(label, round(time_axis.compute_x(at), 1)) for at, label in marks],
        lines=[
            (color, _build_step_path(points, time_axis, compute_y))
            for color, (_, points) in zip(_COLOR_CLASSES, series, strict=False)
            if points
        ],
    )


def draw_bar_chart(
    title: str, upper_series: NamedSeries, lower_series: NamedSeries, time_axis: TimeAxis, seconds_per_bar: float
) -> Chart:
    """Return a bar chart: *upper_series* above the axis, *lower_series* below; a bar is *seconds_per_bar* wide."""
    both_series = (upper_series, lower_series)
    max_value = max([value for _, points in both_series for _, value in points] + [0]) or 1.0
    middle, max_bar_height = (
        (CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX + 14) / 2,
        (CHART_HEIGHT_PX - _BOTTOM_MARGIN_PX - 14) / 2,
    )
    width = max(seconds_per_bar / time_axis.seconds * (CHART_WIDTH_PX - LEFT_MARGIN_PX - _RIGHT_MARGIN_PX) - 1, 1.0)
    bars = []
    for color, (_, points), is_upper in (("a", upper_series, True), ("b", lower_series, False)):
        for at, value in points:
            height = value / max_value * max_bar_height
            x, y = time_axis.compute_x(at), middle - height if is_upper else middle
            if value:
                bars.append((color, f"{x:.1f}", f"{y:.1f}", f"{width:.1f}", f"{height:.1f}"))
    label = f"{max_value:.3g}"
    return Chart(
        title=title,
        description="; ".join(f"{name} {sum(value for _, value in points):.0f}" for name, points in both_series),
        legend=[("a", upper_series[0]), ("b", lower_series[0])],
        grid=[(label, middle - max_bar_height), ("0", middle), (label, middle + max_bar_height)],
        time_labels=_list_time_labels(time_axis),
        bars=bars,
    )


def _list_time_labels(time_axis: TimeAxis) -> list[tuple[str, str, str]]:
    duration = time_axis.ended - time_axis.began
    return [
        (
            time_axis.label(time_axis.began + duration * share),
            f"{LEFT_MARGIN_PX + share * (CHART_WIDTH_PX - LEFT_MARGIN_PX - _RIGHT_MARGIN_PX):.0f}",
            "start" if share == 0 else "end" if share == 1 else "middle",
        )
        for share in _TICK_POSITIONS
    ]


def _build_step_path(points: Points, time_axis: TimeAxis, compute_y: Callable[[float], float]) -> str:
    parts = [f"M{time_axis.compute_x(points[0][0]):.1f} {compute_y(points[0][1]):.1f}"]
    for (_, before), (at, value) in pairwise(points):
        if value != before:
            parts.append(f"H{time_axis.compute_x(at):.1f}V{compute_y(value):.1f}")
    return "".join([*parts, f"H{time_axis.compute_x(time_axis.ended):.1f}"])
