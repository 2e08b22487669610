"""`joiner demo`: play a scenario in the embedded world and show it."""

import argparse
import json
import sys
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from cli.page import page
from cli.text import Palette, clock_text, columns, dollars, palette_of, seconds
from shared.report.journal import PREFIX
from sim.lambdas.template import SynthesisError
from sim.play import Judged, Moment, Played, Stage
from sim.scenario import MEASURES, Scenario, ScenarioError, read_scenario

CLASSIC: Final = Path(__file__).resolve().parent.parent / "examples" / "scenarios" / "classic.yaml"
DESCRIPTION: Final = """Play a scenario on an embedded cloud and cluster, on a virtual clock, by the very handlers that
would be deployed. Prints a live timeline and a table of the acts, writes one self-contained page with plots.
Nothing is contacted; prices are synthetic."""
COLOURS: Final = {"act": "bold", "you": "cyan", "fate": "red", "EC2": "yellow", "cluster": "green"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    measures = "\n".join(f"  {name:14} {says}" for name, says in MEASURES.items())
    parser.description = DESCRIPTION
    parser.epilog = (
        f"what a scenario may expect:\n{measures}\n\nexamples:\n  joiner demo\n"
        "  joiner demo --scenario examples/scenarios/no-capacity.yaml --page none\n  joiner demo -o json > run.json\n"
        "  joiner demo --journal journal && joiner explain nodepool default --journal journal\n\n"
        "exit codes: 0 all that was expected came true, 1 something did not, or the scenario cannot be read,\n"
        "2 wrong usage, 130 interrupted\n"
    )
    parser.add_argument("--scenario", type=Path, default=CLASSIC, metavar="FILE", help="another play (YAML)")
    parser.add_argument("--page", default="demo.html", metavar="FILE", help="where the page goes; `none` for no page")
    parser.add_argument(
        "--journal", metavar="DIR", help="keep its bucket there, for `joiner explain`, `replay` and `report`"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="what is printed")
    parser.add_argument("--seed", type=int, help="another seed than the scenario's")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Play, and answer 0 if every act met its expectation."""
    if chosen.journal is not None and Path(chosen.journal, PREFIX).exists():
        return _refuse(f"{chosen.journal}: holds a journal already: remove it, or name another folder")
    try:
        scenario = read_scenario(chosen.scenario)
    except ScenarioError as error:
        return _refuse(str(error))
    seed = scenario.seed if chosen.seed is None else chosen.seed
    palette = palette_of(sys.stdout)
    shown = Timeline(scenario, palette) if chosen.output == "text" else None
    began = perf_counter()
    try:
        stage = Stage(scenario, seed, shown.tell if shown is not None else _unheard)
        played = stage.play()
    except ScenarioError as error:
        return _refuse(f"{chosen.scenario}: {error}")
    except SynthesisError as error:
        return _refuse(f"the stack cannot be synthesised: {error}")
    took = perf_counter() - began
    if chosen.output == "json":
        sys.stdout.write(json.dumps(summary(played), indent=1) + "\n")
    else:
        sys.stdout.write(table(played, took, palette))
    try:
        _leave(chosen, stage, played, is_told=shown is not None)
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}")
    return 0 if played.passed else 1


def _leave(chosen: argparse.Namespace, stage: Stage, played: Played, *, is_told: bool) -> None:
    """Write the page, and the bucket with its journal as `aws s3 cp --recursive` would.

    Raises:
        OSError: one of them cannot be written.
    """
    told: list[str] = []
    if chosen.journal is not None:
        for key in stage.world.bucket.keys(""):
            path = Path(chosen.journal, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stage.world.bucket.get(key))
        told.append(f"journal: {chosen.journal}; `joiner explain --help` tells how to ask it\n")
    if chosen.page != "none":
        Path(chosen.page).write_text(page(played), encoding="utf-8")
        told.append(f"plots: {chosen.page}\n")
    if is_told and told:
        sys.stdout.write("\n" + "".join(told))


def _refuse(why: str) -> int:
    sys.stderr.write(f"joiner demo: {why}\n")
    return 1


def _unheard(moment: Moment) -> None:
    del moment


class Timeline:
    """Prints moments as they happen."""

    def __init__(self, scenario: Scenario, palette: Palette) -> None:
        """Print the head of the table."""
        self._palette = palette
        self._began: datetime | None = None
        sys.stdout.write(f"{palette.paint('bold', scenario.name)}: {scenario.says}\n")
        head = columns("time", "who", "what", "nodes", "pods", "$/h")
        sys.stdout.write(palette.paint("dim", head) + "\n")

    def tell(self, moment: Moment) -> None:
        """Print one."""
        if self._began is None:
            self._began = moment.at
        state = moment.state
        nodes = f"{state.nodes}+{state.managed}" if state is not None else ""
        pods = f"{state.running}/{state.running + state.pending}" if state is not None else ""
        cost = f"{state.cost_usd_per_hour:.3f}" if state is not None else ""
        line = columns(clock_text(moment.at - self._began), moment.who, moment.what, nodes, pods, cost)
        colour = COLOURS.get(moment.who, "plain")
        sys.stdout.write(
            ("\n" if moment.who == "act" and ":" not in moment.what else "") + self._palette.paint(colour, line)
        )
        if moment.why:
            sys.stdout.write("\n" + self._palette.paint("dim", f"{'':22}{moment.why}"))
        sys.stdout.write("\n")
        sys.stdout.flush()


def table(played: Played, took: float, palette: Palette) -> str:
    """Answer the table per act and the numbers of the whole play."""
    lines = [
        "",
        palette.paint(
            "bold", f"{'act':32}{'as expected':>13}{'after':>8}{'nodes':>7}{'pods':>6}{'$/h':>8}  launched  ended"
        ),
    ]
    for act in played.acts:
        lines.append(_row(act, palette))
        lines.extend(palette.paint("red", f"    {failure}") for failure in act.failures)
    launch, running = played.to_launch, played.to_running
    simulated = (played.acts[-1].ended - played.began).total_seconds() / 60
    lines += [
        "",
        f"pending pod to CreateFleet   p50 {seconds(launch[0])}  p95 {seconds(launch[1])}",
        f"pending pod to Running       p50 {seconds(running[0])}  p95 {seconds(running[1])}",
        f"{simulated:.0f} simulated minutes in {took:.1f} s, {played.calls} function calls; prices are synthetic",
        "",
    ]
    return "\n".join(lines)


def _row(act: Judged, palette: Palette) -> str:
    measures = act.measures
    verdict = palette.paint("green", f"{'yes':>13}") if act.passed else palette.paint("red", f"{'NO':>13}")
    return (
        f"{act.name:32}{verdict}{seconds(act.held_after):>8}{measures['nodes']:7.0f}{measures['running']:6.0f}"
        f"{dollars(measures['costPerHour']):>8}{measures['launched']:10.0f}{measures['terminated']:7.0f}"
    )


def summary(played: Played) -> dict[str, Any]:
    """Answer the play as JSON: stable keys, seconds and USD per hour as numbers."""
    return {
        "scenario": played.scenario.name,
        "passed": played.passed,
        "acts": [
            {
                "name": act.name,
                "passed": act.passed,
                "failures": list(act.failures),
                "heldAfterSeconds": act.held_after,
                "measures": act.measures,
            }
            for act in played.acts
        ],
        "pendingToCreateFleetSeconds": dict(zip(("p50", "p95"), played.to_launch, strict=True)),
        "pendingToRunningSeconds": dict(zip(("p50", "p95"), played.to_running, strict=True)),
        "functionCalls": played.calls,
        "pricesAreSynthetic": True,
    }
