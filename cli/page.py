"""One self-contained page about a play: plots of pods, nodes and cost over time, the acts, the timeline."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from cli.charts import Span, plot
from cli.html import Column, Markup, document, joined, table, tag, words
from cli.text import clock_text, dollars, seconds
from sim.measure import Sample
from sim.play import Judged, Moment, Played

Series: TypeAlias = tuple[str, Callable[[Sample], float]]
_PLOTS: Final[Sequence[tuple[str, Sequence[Series]]]] = (
    ("Pods", (("running", lambda one: one.running), ("pending", lambda one: one.pending))),
    (
        "Nodes",
        (("ours", lambda one: one.nodes), ("managed", lambda one: one.managed), ("our vCPUs", lambda one: one.vcpus)),
    ),
    ("Cost, synthetic $/h", (("our instances", lambda one: one.cost_usd_per_hour),)),
)


def page(played: Played) -> str:
    """Answer the HTML."""
    scenario = played.scenario
    title = f"Joiner: {scenario.name}"
    return document(
        title,
        tag("h1", title),
        tag("p", scenario.says),
        _numbers(played),
        *_plots(played),
        tag("h2", "Acts"),
        _acts(played.acts),
        tag("h2", "What happened, and why"),
        table(
            "The play",
            (Column(title="time", is_number=True), Column(title="who"), Column(title="what, and why")),
            (_moment(one, played) for one in played.moments),
        ),
    )


def _numbers(played: Played) -> Markup:
    columns = (Column(title="from, to"), Column(title="p50", is_number=True), Column(title="p95", is_number=True))
    rows = (
        ("pending pod to CreateFleet", *map(seconds, played.to_launch)),
        ("pending pod to Running", *map(seconds, played.to_running)),
    )
    return table("How soon", columns, rows)


def _plots(played: Played) -> Iterable[Markup]:
    samples = [one for one in played.samples if one.at >= played.began]
    if not samples:
        return
    span = Span(
        began=played.began,
        ended=samples[-1].at,
        label=lambda at: f"{(at - played.began).total_seconds() / 60:.0f} min",
    )
    acts = [(act.began, str(number)) for number, act in enumerate(played.acts, 1)]
    for title, series in _PLOTS:
        yield plot(title, [(name, [(one.at, value(one)) for one in samples]) for name, value in series], span, acts)


def _acts(acts: Iterable[Judged]) -> Markup:
    titles = ("#", "act", "as expected", "after", "nodes", "pods", "$/h")
    columns = [Column(title=one, is_number=one not in ("act", "as expected")) for one in titles]
    return table("As they were expected", columns, (_act(number, act) for number, act in enumerate(acts, 1)))


def _act(number: int, act: Judged) -> Sequence[str]:
    measures = act.measures
    numbers = (f"{measures['nodes']:.0f}", f"{measures['running']:.0f}", dollars(measures["costPerHour"]))
    return str(number), words(act.name, act.says), _verdict(act), seconds(act.held_after), *numbers


def _verdict(act: Judged) -> Markup:
    if act.passed:
        return tag("span", "yes", class_="yes")
    return joined((tag("span", "no", class_="no"), tag("div", "; ".join(act.failures), class_="why")))


def _moment(one: Moment, played: Played) -> Sequence[str]:
    return clock_text(one.at - played.began), one.who, words(one.what, one.why)
