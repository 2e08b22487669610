"""A self-contained page about a simulation: plots of pods, nodes and cost over time, the acts, the timeline."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from cli.terminal.charts import Chart, TimeAxis, draw_line_chart
from cli.terminal.html import render_template
from cli.terminal.text import format_clock, format_seconds, format_usd_cell
from sim.scenarios.runner import ScenarioResult
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
    return render_template(
        "demo/demo.html.jinja",
        played=played,
        charts=list(_draw_plots(played)),
        format_clock=format_clock,
        format_seconds=format_seconds,
        format_usd_cell=format_usd_cell,
    )


def _draw_plots(played: ScenarioResult) -> Iterator[Chart]:
    samples = [sample for sample in played.samples if sample.sampled_at >= played.started_at]
    if not samples:
        return
    span = TimeAxis(
        began=played.started_at,
        ended=samples[-1].sampled_at,
        label=lambda at: f"{(at - played.started_at).total_seconds() / 60:.0f} min",
    )
    acts = [(act.started_at, str(number)) for number, act in enumerate(played.acts, 1)]
    for title, plot in _PLOTS:
        series = [(name, [(sample.sampled_at, value(sample)) for sample in samples]) for name, value in plot]
        yield draw_line_chart(title, series, span, acts)
