"""Plots as SVG: lines that change by steps, and bars up and down."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from cli.html import Markup, Text, joined, tag

WIDTH: Final = 960
HEIGHT: Final = 150
LEFT: Final = 44
_RIGHT: Final = 8
_FOOT: Final = 22
_ROOM: Final = 40
_COLOURS: Final = "abc"
_TICKS: Final = (0, 0.25, 0.5, 0.75, 1)

Points: TypeAlias = Sequence[tuple[datetime, float]]
"""Oldest first; each holds until the next."""
Named: TypeAlias = tuple[str, Points]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """What a plot shows, from left to right."""

    began: datetime
    ended: datetime
    label: Callable[[datetime], str]
    """What stands under an instant."""

    @property
    def seconds(self) -> float:
        """How long it is, 1 at the least."""
        return max((self.ended - self.began).total_seconds(), 1.0)

    def across(self, at: datetime) -> float:
        """Answer the place of *at*."""
        passed = min(max((at - self.began).total_seconds(), 0.0), self.seconds)
        return LEFT + passed / self.seconds * (WIDTH - LEFT - _RIGHT)


def plot(title: str, series: Sequence[Named], span: Span, marks: Iterable[tuple[datetime, str]] = ()) -> Markup:
    """Answer a heading, a legend and the lines of *series*, three at most; *marks* are instants with a word each."""
    top = max([value for _, points in series for _, value in points] + [0]) or 1.0

    def up(value: float) -> float:
        return HEIGHT - _FOOT - value / top * (HEIGHT - _ROOM)

    lines = [
        Markup(f'<path class="{colour}" d="{_steps(points, span, up)}"/>')
        for colour, (_, points) in zip(_COLOURS, series, strict=False)
        if points
    ]
    grid = [_rule(f"{top * part:.3g}", up(top * part)) for part in (0, 0.5, 1)]
    said = "; ".join(f"{name} {points[-1][1]:.4g} at the end" for name, points in series if points)
    picture = _picture(
        f"{title}: {said}", (*grid, *(_mark(at, word, span) for at, word in marks), *_feet(span), *lines)
    )
    legend = [tag("i", name, class_=colour) for colour, (name, _) in zip(_COLOURS, series, strict=False)]
    return joined((tag("h2", title), tag("div", *legend), picture))


def bars(title: str, ups: Named, downs: Named, span: Span, each: float) -> Markup:
    """Answer bars of *each* seconds' width: *ups* above a line, *downs* below."""
    top = max([value for _, points in (ups, downs) for _, value in points] + [0]) or 1.0
    middle, reach = (HEIGHT - _FOOT + 14) / 2, (HEIGHT - _FOOT - 14) / 2
    width = max(each / span.seconds * (WIDTH - LEFT - _RIGHT) - 1, 1.0)
    drawn: list[Text] = []
    for colour, (_, points), sign in (("a", ups, -1), ("b", downs, 1)):
        for at, value in points:
            if value:
                tall = value / top * reach
                y = middle - tall if sign < 0 else middle
                place = f'x="{span.across(at):.1f}" y="{y:.1f}" width="{width:.1f}" height="{tall:.1f}"'
                drawn.append(Markup(f'<rect class="{colour}" {place}/>'))
    rules = [_rule(f"{top:.3g}", middle - reach), _rule("0", middle), _rule(f"{top:.3g}", middle + reach)]
    said = "; ".join(f"{name} {sum(value for _, value in points):.0f}" for name, points in (ups, downs))
    legend = [tag("i", name, class_=colour) for colour, name in (("a", ups[0]), ("b", downs[0]))]
    return joined((tag("h2", title), tag("div", *legend), _picture(f"{title}: {said}", (*rules, *_feet(span), *drawn))))


def _picture(said: str, parts: Iterable[Text]) -> Markup:
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=said)


def _rule(label: str, y: float) -> Markup:
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return Markup(f"{line}{tag('text', label, x='2', y=f'{y + 4:.1f}')}")


def _mark(at: datetime, word: str, span: Span) -> Markup:
    x = span.across(at)
    line = f'<line class="act" x1="{x:.1f}" x2="{x:.1f}" y1="14" y2="{HEIGHT - _FOOT}"/>'
    return Markup(f"{line}{tag('text', word, x=f'{x + 3:.1f}', y='11')}")


def _feet(span: Span) -> list[Markup]:
    whole = span.ended - span.began
    return [
        tag(
            "text",
            span.label(span.began + whole * share),
            x=f"{LEFT + share * (WIDTH - LEFT - _RIGHT):.0f}",
            y=f"{HEIGHT - 6}",
            text_anchor="start" if share == 0 else "end" if share == 1 else "middle",
        )
        for share in _TICKS
    ]


def _steps(points: Points, span: Span, up: Callable[[float], float]) -> str:
    parts = [f"M{span.across(points[0][0]):.1f} {up(points[0][1]):.1f}"]
    for (_, before), (at, value) in pairwise(points):
        if value != before:
            parts.append(f"H{span.across(at):.1f}V{up(value):.1f}")
    return "".join([*parts, f"H{span.across(span.ended):.1f}"])
