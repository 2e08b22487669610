"""`joiner demo`: runs a scenario in the embedded cloud and shows what happens."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, get_args

from cli.demo.timeline import show_timeline
from cli.planning.arguments import OutputFormat
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.text import (
    Palette,
    choose_palette,
    format_seconds,
    format_usd_cell,
)
from shared.report.journal.journal import JOURNAL_PREFIX
from sim.scenarios.scenario import MEASURE_DESCRIPTIONS, Scenario, ScenarioError, read_scenario

if TYPE_CHECKING:
    from cli.demo.fleet_recording import SimulationRecorder
    from sim.scenarios.runner import ActResult, ScenarioResult, ScenarioRunner, TimelineEntry

CLASSIC_SCENARIO: Final = Path(__file__).resolve().parents[2] / "examples" / "scenarios" / "classic.yaml"
DESCRIPTION: Final = """Run a scenario on a simulated cloud and cluster, with a virtual clock and the deployed function
handlers. The demo prints a timeline and a table of the acts, and writes a page that plays them like a film:
nodes, pods, prices and the reason of each decision. It works offline; prices are synthetic."""
NO_PAGE: Final = "none"


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
        "--page",
        default="demo.html",
        metavar="FILE",
        help="path of the page, which plays the scenario in a browser; `none` writes no page",
    )
    parser.add_argument(
        "--journal", metavar="DIR", help="write the journal to this folder, for `joiner explain`, `replay` and `report`"
    )
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="output format")
    parser.add_argument("--seed", type=int, help="random seed (default: the scenario's)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the scenario; return 0 if every act met its expectations."""
    if args.journal is not None and Path(args.journal, JOURNAL_PREFIX).exists():
        return _report_error(f"{args.journal}: already has a journal: remove it, or choose another folder")
    try:
        scenario = read_scenario(args.scenario)
    except ScenarioError as error:
        return _report_error(str(error))
    palette = choose_palette(sys.stdout)
    started_at = perf_counter()
    try:
        stage, recorder, played = _run_scenario(args, scenario, palette)
    except InputError as error:
        return _report_error(str(error))
    elapsed_seconds = perf_counter() - started_at
    if args.output != "table":
        sys.stdout.write(encode_output(build_play_document(played), args.output))
    else:
        sys.stdout.write(render_act_table(played, elapsed_seconds, palette))
    messages: list[str] = []
    try:
        messages += _write_journal(args, stage)
        if recorder is not None:
            messages += _write_page(args, recorder, played)
    except OSError as error:
        return _report_error(f"{error.filename}: {error.strerror}")
    except InputError as error:
        return _report_error(f"{args.page} was not written: {error}; `--page none` writes no page")
    if args.output == "table" and messages:
        sys.stdout.write("\n" + "".join(messages))
    return 0 if played.passed else 1


def _run_scenario(
    args: argparse.Namespace, scenario: Scenario, palette: Palette
) -> "tuple[ScenarioRunner, SimulationRecorder | None, ScenarioResult]":
    """Run *scenario*, show its timeline, and record it for the page.

    Raises:
        InputError: A step cannot be executed, or the stack cannot be synthesized.
    """
    from sim.lambda_runtime.stack_template.synthesis import SynthesisError  # noqa: PLC0415 - --help needs none of it
    from sim.scenarios.runner import ScenarioRunner  # noqa: PLC0415

    seed = scenario.seed if args.seed is None else args.seed
    try:
        with show_timeline(scenario, palette) if args.output == "table" else nullcontext() as timeline:
            stage = ScenarioRunner(scenario, seed, timeline.print_moment if timeline is not None else _ignore_moment)
            recorder = None if args.page == NO_PAGE else _start_recorder(stage)
            return stage, recorder, stage.run_scenario()
    except ScenarioError as error:
        raise InputError(f"{args.scenario}: {error}") from None
    except SynthesisError as error:
        raise InputError(f"the stack cannot be synthesized: {error}") from None


def _start_recorder(stage: "ScenarioRunner") -> "SimulationRecorder":
    from cli.demo.fleet_recording import SimulationRecorder  # noqa: PLC0415 - a demo without a page needs none of it

    return SimulationRecorder(stage)


def _write_journal(args: argparse.Namespace, stage: "ScenarioRunner") -> Iterator[str]:
    """Write the bucket with its journal as `aws s3 cp --recursive` would; yield a message.

    Raises:
        OSError: A file cannot be written.
    """
    if args.journal is None:
        return
    for key in stage.world.bucket.list_keys(""):
        path = Path(args.journal, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stage.world.bucket.get(key))
    yield f"journal: {args.journal}; see `joiner explain --help`\n"


def _write_page(args: argparse.Namespace, recorder: "SimulationRecorder", played: "ScenarioResult") -> Iterator[str]:
    """Write the page, which plays the simulation; yield a message.

    Raises:
        OSError: The page cannot be written.
        InputError: The script of the page is not built.
    """
    from cli.fleet.document.json_format import encode_fleet_document  # noqa: PLC0415
    from cli.ui.page import render_fleet_page  # noqa: PLC0415

    document = recorder.build_document(played, args.journal or "", datetime.now(UTC))
    page = render_fleet_page(f"Joiner: {played.scenario.name}", encode_fleet_document(document))
    Path(args.page).write_text(page, encoding="utf-8")
    yield f"page: {args.page}; open it in a browser to watch the {len(played.acts)} acts\n"


def _report_error(message: str) -> int:
    sys.stderr.write(f"joiner demo: {message}\n")
    return 1


def _ignore_moment(moment: "TimelineEntry") -> None:
    del moment


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
