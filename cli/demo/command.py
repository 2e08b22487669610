"""`joiner demo`: runs a scenario in the embedded cloud and shows what happens."""

import argparse
import sys
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, get_args

from cli.planning.arguments import OutputFormat
from cli.terminal.output_format import encode_output
from cli.terminal.text import (
    Palette,
    choose_palette,
    format_clock,
    format_seconds,
    format_timeline_row,
    format_usd_cell,
)
from shared.report.journal.journal import JOURNAL_PREFIX
from sim.scenarios.scenario import MEASURE_DESCRIPTIONS, Scenario, ScenarioError, read_scenario

if TYPE_CHECKING:
    from sim.scenarios.runner import ActResult, ScenarioResult, ScenarioRunner, TimelineEntry

CLASSIC_SCENARIO: Final = Path(__file__).resolve().parents[2] / "examples" / "scenarios" / "classic.yaml"
DESCRIPTION: Final = """Run a scenario on a simulated cloud and cluster, with a virtual clock and the deployed function
handlers. The demo prints a timeline and a table of the acts, and writes a page with plots. It works offline;
prices are synthetic."""
COLORS_BY_ACTOR: Final = {"act": "bold", "you": "cyan", "fault": "red", "EC2": "yellow", "cluster": "green"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    measures = "\n".join(f"  {name:14} {description}" for name, description in MEASURE_DESCRIPTIONS.items())
    parser.description = DESCRIPTION
    parser.epilog = (
        f"measures for the expectations of a scenario:\n{measures}\n\nexamples:\n  joiner demo\n"
        "  joiner demo --scenario examples/scenarios/no-capacity.yaml --page none\n  joiner demo -o json > run.json\n"
        "  joiner demo --journal journal && joiner explain nodepool default --journal journal\n\n"
        "exit codes: 0 all expectations met, 1 an expectation not met, or the scenario cannot be read, 2 wrong usage,\n"
        "130 interrupted\n"
    )
    parser.add_argument("--scenario", type=Path, default=CLASSIC_SCENARIO, metavar="FILE", help="scenario file (YAML)")
    parser.add_argument(
        "--page", default="demo.html", metavar="FILE", help="path of the page with plots; `none` writes no page"
    )
    parser.add_argument(
        "--journal", metavar="DIR", help="write the journal to this folder, for `joiner explain`, `replay` and `report`"
    )
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="output format")
    parser.add_argument("--seed", type=int, help="random seed (default: the scenario's)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the scenario; return 0 if every act met its expectations."""
    from sim.lambda_runtime.stack_template.synthesis import SynthesisError  # noqa: PLC0415 - --help needs none of it
    from sim.scenarios.runner import ScenarioRunner  # noqa: PLC0415

    if args.journal is not None and Path(args.journal, JOURNAL_PREFIX).exists():
        return _report_error(f"{args.journal}: already has a journal: remove it, or choose another folder")
    try:
        scenario = read_scenario(args.scenario)
    except ScenarioError as error:
        return _report_error(str(error))
    seed = scenario.seed if args.seed is None else args.seed
    palette = choose_palette(sys.stdout)
    timeline = Timeline(scenario, palette) if args.output == "table" else None
    started_at = perf_counter()
    try:
        stage = ScenarioRunner(scenario, seed, timeline.print_moment if timeline is not None else _ignore_moment)
        played = stage.run_scenario()
    except ScenarioError as error:
        return _report_error(f"{args.scenario}: {error}")
    except SynthesisError as error:
        return _report_error(f"the stack cannot be synthesized: {error}")
    elapsed_seconds = perf_counter() - started_at
    if args.output != "table":
        sys.stdout.write(encode_output(build_play_document(played), args.output))
    else:
        sys.stdout.write(render_act_table(played, elapsed_seconds, palette))
    try:
        _write_files(args, stage, played, announces_files=timeline is not None)
    except OSError as error:
        return _report_error(f"{error.filename}: {error.strerror}")
    return 0 if played.passed else 1


def _write_files(
    args: argparse.Namespace, stage: "ScenarioRunner", played: "ScenarioResult", *, announces_files: bool
) -> None:
    """Write the page, and the bucket with its journal as `aws s3 cp --recursive` would.

    Raises:
        OSError: A file cannot be written.
    """
    messages: list[str] = []
    if args.journal is not None:
        for key in stage.world.bucket.list_keys(""):
            path = Path(args.journal, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stage.world.bucket.get(key))
        messages.append(f"journal: {args.journal}; see `joiner explain --help`\n")
    if args.page != "none":
        from cli.demo.page import render_play_page  # noqa: PLC0415

        Path(args.page).write_text(render_play_page(played), encoding="utf-8")
        messages.append(f"plots: {args.page}\n")
    if announces_files and messages:
        sys.stdout.write("\n" + "".join(messages))


def _report_error(message: str) -> int:
    sys.stderr.write(f"joiner demo: {message}\n")
    return 1


def _ignore_moment(moment: "TimelineEntry") -> None:
    del moment


class Timeline:
    """Prints moments as they happen."""

    def __init__(self, scenario: Scenario, palette: Palette) -> None:
        """Print the header of the table."""
        self._palette = palette
        self._started_at: datetime | None = None
        sys.stdout.write(f"{palette.colorize('bold', scenario.name)}: {scenario.says}\n")
        header = format_timeline_row("time", "source", "event", "nodes", "pods", "$/h")
        sys.stdout.write(palette.colorize("dim", header) + "\n")

    def print_moment(self, moment: "TimelineEntry") -> None:
        """Print one moment."""
        if self._started_at is None:
            self._started_at = moment.at
        state = moment.sample
        nodes = f"{state.joiner_nodes}+{state.managed_nodes}" if state is not None else ""
        pods = (
            f"{state.running_pods}/{state.running_pods + state.pending_pods + state.unreplaced_pods}" if state else ""
        )
        cost = f"{state.cost_usd_per_hour:.3f}" if state is not None else ""
        line = format_timeline_row(
            format_clock(moment.at - self._started_at), moment.source, moment.message, nodes, pods, cost
        )
        color = COLORS_BY_ACTOR.get(moment.source, "")
        sys.stdout.write(
            ("\n" if moment.source == "act" and ":" not in moment.message else "") + self._palette.colorize(color, line)
        )
        if moment.reason:
            sys.stdout.write("\n" + self._palette.colorize("dim", f"{'':22}{moment.reason}"))
        sys.stdout.write("\n")
        sys.stdout.flush()


def render_act_table(played: "ScenarioResult", elapsed_seconds: float, palette: Palette) -> str:
    """Return the table of acts, and the totals of the whole scenario."""
    lines = [
        "",
        palette.colorize(
            "bold", f"{'act':32}{'as expected':>13}{'after':>8}{'nodes':>7}{'pods':>6}{'$/h':>8}  launched  ended"
        ),
    ]
    for act in played.acts:
        lines.append(_render_row(act, palette))
        lines.extend(palette.colorize("red", f"    {failure}") for failure in act.failures)
    launch, running = played.seconds_to_launch, played.seconds_to_running
    simulated_minutes = (played.acts[-1].ended_at - played.started_at).total_seconds() / 60
    run_text = f"{simulated_minutes:.0f} simulated minutes in {elapsed_seconds:.1f} s"
    lines += [
        "",
        f"pending pod to CreateFleet   p50 {format_seconds(launch[0])}  p95 {format_seconds(launch[1])}",
        f"pending pod to Running       p50 {format_seconds(running[0])}  p95 {format_seconds(running[1])}",
        f"{run_text}, {played.invocation_count} function calls; prices are synthetic",
        "",
    ]
    return "\n".join(lines)


def _render_row(act: "ActResult", palette: Palette) -> str:
    measures = act.measures
    verdict = palette.colorize("green", f"{'yes':>13}") if act.passed else palette.colorize("red", f"{'NO':>13}")
    return (
        f"{act.name:32}{verdict}{format_seconds(act.met_after_seconds):>8}{measures['nodes']:7.0f}{measures['running']:6.0f}"
        f"{format_usd_cell(measures['usdPerHour']):>8}{measures['launched']:10.0f}{measures['terminated']:7.0f}"
    )


def build_play_document(played: "ScenarioResult") -> dict[str, Any]:
    """Return the result as a JSON document: stable keys, seconds and USD per hour as numbers."""
    return {
        "scenario": played.scenario.name,
        "passed": played.passed,
        "acts": [
            {
                "name": act.name,
                "passed": act.passed,
                "failures": list(act.failures),
                "metAfterSeconds": act.met_after_seconds,
                "measures": act.measures,
            }
            for act in played.acts
        ],
        "pendingToCreateFleetSeconds": dict(zip(("p50", "p95"), played.seconds_to_launch, strict=True)),
        "pendingToRunningSeconds": dict(zip(("p50", "p95"), played.seconds_to_running, strict=True)),
        "functionCalls": played.invocation_count,
        "pricesAreSynthetic": True,
    }
