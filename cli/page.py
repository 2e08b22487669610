"""One self-contained page about a play: plots of pods, nodes and cost over time, the acts, the timeline.

No script from elsewhere, no font, no network: it opens from a mail. Light and dark as the reader's system is.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final

from cli.text import clock_text, dollars, seconds
from sim.measure import Sample
from sim.play import Judged, Moment, Played

WIDTH: Final = 960
HEIGHT: Final = 150
LEFT: Final = 44
_STYLE: Final = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")

Series = tuple[str, Callable[[Sample], float]]


def page(played: Played) -> str:
    """Answer the HTML."""
    scenario = played.scenario
    plots = (
        ("Pods", (("running", lambda one: one.running), ("pending", lambda one: one.pending))),
        (
            "Nodes",
            (
                ("ours", lambda one: one.nodes),
                ("managed", lambda one: one.managed),
                ("our vCPUs", lambda one: one.vcpus),
            ),
        ),
        ("Cost, synthetic $/h", (("our instances", lambda one: one.cost_usd_per_hour),)),
    )
    body = [f"<h1>Joiner: {escape(scenario.name)}</h1><p>{escape(scenario.says)}</p>", _numbers(played)]
    body += [_plot(title, series, played) for title, series in plots]
    body += ["<h2>Acts</h2>", _acts(played.acts), "<h2>What happened, and why</h2>", _timeline(played)]
    head = f"<title>Joiner: {escape(scenario.name)}</title><style>{_STYLE}</style>"
    viewport = '<meta name="viewport" content="width=device-width">'
    return f'<!doctype html><html lang="en"><meta charset="utf-8">{viewport}{head}<body>{"".join(body)}</body></html>\n'


def _numbers(played: Played) -> str:
    launch, running = played.to_launch, played.to_running
    rows = (
        ("pending pod to CreateFleet", launch),
        ("pending pod to Running", running),
    )
    cells = "".join(
        f"<tr><td>{name}<td class=n>p50 {seconds(some[0])}<td class=n>p95 {seconds(some[1])}" for name, some in rows
    )
    return f"<table>{cells}</table>"


def _plot(title: str, series: Iterable[Series], played: Played) -> str:
    samples = [one for one in played.samples if one.at >= played.began]
    if not samples:
        return ""
    some = tuple(series)
    top = max([value(one) for _, value in some for one in samples] + [0]) or 1.0
    end = max((samples[-1].at - played.began).total_seconds(), 1.0)

    def across(at: datetime) -> float:
        return LEFT + (at - played.began).total_seconds() / end * (WIDTH - LEFT - 8)

    def up(value: float) -> float:
        return HEIGHT - 22 - value / top * (HEIGHT - 40)

    marks = "".join(
        f'<line class=act x1="{across(act.began):.1f}" x2="{across(act.began):.1f}" y1=14 y2="{HEIGHT - 22}"/>'
        f'<text x="{across(act.began) + 3:.1f}" y=11>{number}</text>'
        for number, act in enumerate(played.acts, 1)
    )
    grid = "".join(
        f'<line class=grid x1={LEFT} x2={WIDTH - 8} y1="{up(top * part):.1f}" y2="{up(top * part):.1f}"/>'
        f'<text x=2 y="{up(top * part) + 4:.1f}">{top * part:.3g}</text>'
        for part in (0, 0.5, 1)
    )
    minutes = "".join(
        f'<text x="{LEFT + share * (WIDTH - LEFT - 40):.0f}" y={HEIGHT - 6}>{end * share / 60:.0f} min</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    lines = "".join(
        f'<path class={colour} d="{_steps(samples, value, across, up)}"/>'
        for colour, (_, value) in zip("abc", some, strict=False)
    )
    legend = "".join(f"<i class={colour}>{name}</i>" for colour, (name, _) in zip("abc", some, strict=False))
    picture = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img aria-label="{title}">{grid}{marks}{minutes}{lines}</svg>'
    return f"<h2>{title}</h2><div>{legend}</div>{picture}"


def _steps(
    samples: list[Sample],
    value: Callable[[Sample], float],
    across: Callable[[datetime], float],
    up: Callable[[float], float],
) -> str:
    parts = [f"M{across(samples[0].at):.1f} {up(value(samples[0])):.1f}"]
    for before, one in pairwise(samples):
        if value(one) != value(before):
            parts.append(f"H{across(one.at):.1f}V{up(value(one)):.1f}")
    return "".join([*parts, f"H{across(samples[-1].at):.1f}"])


def _acts(acts: Iterable[Judged]) -> str:
    rows = "".join(
        f"<tr><td class=n>{number}<td>{escape(act.name)}<div class=why>{escape(act.says)}</div>"
        f"<td>{_verdict(act)}<td class=n>{seconds(act.held_after)}<td class=n>{act.measures['nodes']:.0f}"
        f"<td class=n>{act.measures['running']:.0f}<td class=n>{dollars(act.measures['costPerHour'])}"
        for number, act in enumerate(acts, 1)
    )
    return f"<table><tr><th>#<th>act<th>as expected<th>after<th>nodes<th>pods<th>$/h{rows}</table>"


def _verdict(act: Judged) -> str:
    if act.passed:
        return "<span class=yes>yes</span>"
    return f"<span class=no>no</span><div class=why>{escape('; '.join(act.failures))}</div>"


def _timeline(played: Played) -> str:
    return f"<table>{''.join(_moment(one, played) for one in played.moments)}</table>"


def _moment(one: Moment, played: Played) -> str:
    why = f"<div class=why>{escape(one.why)}</div>" if one.why else ""
    return f"<tr><td class=n>{clock_text(one.at - played.began)}<td>{escape(one.who)}<td>{escape(one.what)}{why}"
