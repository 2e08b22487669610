"""A self-contained page about a simulation: plots of pods, nodes and cost over time, the acts, the timeline."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from cli.terminal.charts import TimeAxis, render_line_chart
from cli.terminal.html import (
    Markup,
    TableColumn,
    join_markup,
    render_html_page,
    render_html_table,
    render_tag,
    render_with_reason,
)
from cli.terminal.text import format_clock, format_seconds, format_usd_cell
from sim.scenarios.runner import ActResult, ScenarioResult, TimelineEntry
from sim.world.measurements import ClusterSample

PlotSeries: TypeAlias = tuple[str, Callable[[ClusterSample], float]]
_PLOTS: Final[Sequence[tuple[str, Sequence[PlotSeries]]]] = (
    ("Pods", (("running", lambda sample: sample.running_pods), ("pending", lambda sample: sample.pending_pods))),
    (
        "Nodes",
        (
            ("Joiner", lambda sample: sample.joiner_nodes),
            ("managed", lambda sample: sample.managed_nodes),
            ("vCPUs of Joiner", lambda sample: sample.vcpus),
        ),
    ),
    ("Cost, synthetic $/h", (("instances of Joiner", lambda sample: sample.cost_usd_per_hour),)),
)


def render_play_page(played: ScenarioResult) -> str:
    """Return the page as HTML."""
    scenario = played.scenario
    title = f"Joiner: {scenario.name}"
    return render_html_page(
        title,
        render_tag("h1", title),
        render_tag("p", scenario.says),
        _render_latencies(played),
        *_render_plots(played),
        render_tag("h2", "Acts"),
        _render_acts(played.acts),
        render_tag("h2", "What happened, and why"),
        render_html_table(
            "The play",
            (
                TableColumn(title="time", is_number=True),
                TableColumn(title="source"),
                TableColumn(title="event and reason"),
            ),
            (_build_moment_row(moment, played) for moment in played.timeline),
        ),
    )


def _render_latencies(played: ScenarioResult) -> Markup:
    columns = (
        TableColumn(title="from, to"),
        TableColumn(title="p50", is_number=True),
        TableColumn(title="p95", is_number=True),
    )
    rows = (
        ("pending pod to CreateFleet", *map(format_seconds, played.seconds_to_launch)),
        ("pending pod to Running", *map(format_seconds, played.seconds_to_running)),
    )
    return render_html_table("Latency", columns, rows)


def _render_plots(played: ScenarioResult) -> Iterable[Markup]:
    samples = [sample for sample in played.samples if sample.sampled_at >= played.started_at]
    if not samples:
        return
    span = TimeAxis(
        began=played.started_at,
        ended=samples[-1].sampled_at,
        label=lambda at: f"{(at - played.started_at).total_seconds() / 60:.0f} min",
    )
    acts = [(act.started_at, str(number)) for number, act in enumerate(played.acts, 1)]
    for title, series in _PLOTS:
        yield render_line_chart(
            title,
            [(name, [(sample.sampled_at, value(sample)) for sample in samples]) for name, value in series],
            span,
            acts,
        )


def _render_acts(acts: Iterable[ActResult]) -> Markup:
    titles = ("#", "act", "as expected", "after", "nodes", "pods", "$/h")
    columns = [TableColumn(title=title, is_number=title not in ("act", "as expected")) for title in titles]
    return render_html_table("Results", columns, (_render_act(number, act) for number, act in enumerate(acts, 1)))


def _render_act(number: int, act: ActResult) -> Sequence[str]:
    measures = act.measures
    numbers = (f"{measures['nodes']:.0f}", f"{measures['running']:.0f}", format_usd_cell(measures["usdPerHour"]))
    return (
        str(number),
        render_with_reason(act.name, act.description),
        _render_act_verdict(act),
        format_seconds(act.met_after_seconds),
        *numbers,
    )


def _render_act_verdict(act: ActResult) -> Markup:
    if act.passed:
        return render_tag("span", "yes", class_="yes")
    return join_markup(
        (render_tag("span", "no", class_="no"), render_tag("div", "; ".join(act.failures), class_="why"))
    )


def _build_moment_row(moment: TimelineEntry, played: ScenarioResult) -> Sequence[str]:
    return format_clock(moment.at - played.started_at), moment.source, render_with_reason(moment.message, moment.reason)
