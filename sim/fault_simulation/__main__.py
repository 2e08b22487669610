"""`python -m sim.fault_simulation`: run simulated clusters with random faults, and report violated invariants.

Examples:
  python -m sim.fault_simulation --seeds 200                      seeds 1 to 200
  python -m sim.fault_simulation --seeds 50 --first 1001 --jobs 4
  python -m sim.fault_simulation --seeds 200 --feature gangs      the first 200 seeds that use a feature
  python -m sim.fault_simulation --replay 1017                    one seed, with its whole timeline
  python -m sim.fault_simulation --replay 1017 --shrink           the same, and the fewest events with which it fails
  python -m sim.fault_simulation --script '{"seed": 1017, …}'      a script, as printed for a seed that failed
  python -m sim.fault_simulation --regressions                    the scripts of regressions.txt

A seed determines the cluster, its settings, what users do, and the faults. After all seeds, some of them run again:
then a function is killed before and after each call at which no function was killed so far.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Final, TextIO

import msgspec

from sim.fault_simulation.drawing.draw_faults import SITES_FILE, load_known_sites
from sim.fault_simulation.drawing.draw_features import FEATURE_SITES_FILE, load_feature_sites
from sim.fault_simulation.drawing.draw_script import draw_script
from sim.fault_simulation.events.call_sites import KillCoverage
from sim.fault_simulation.events.script import Script, decode_script, encode_script
from sim.fault_simulation.features.feature_setup import FEATURE_NAMES
from sim.fault_simulation.run import RunResult, run_script
from sim.fault_simulation.shrink import shrink_script
from sim.fault_simulation.targeted_kills import TARGETS_PER_RUN, SiteSightings
from sim.fault_simulation.worker_pool import run_scripts

REGRESSIONS: Final = Path(__file__).with_name("regressions.txt")
ANY_FEATURE: Final = "any"
RUNS_PER_PROGRESS_LINE: Final = 25
"""Number of runs between two progress lines."""


class RunTotals(msgspec.Struct, kw_only=True):
    """Totals of many runs."""

    runs: int = 0
    targeted_runs: int = 0
    """How many of the runs repeat a seed to kill handlers at call sites without a kill."""
    violations: int = 0
    simulated_seconds: int = 0
    processor_seconds: float = 0.0
    wall_seconds: float = 0.0
    calls: int = 0
    dead_letters: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    coverage: KillCoverage = msgspec.field(default_factory=KillCoverage)
    sightings: SiteSightings = msgspec.field(default_factory=SiteSightings)

    def add(self, result: RunResult) -> None:
        """Add one run."""
        self.runs += 1
        self.violations += len(result.violations)
        self.simulated_seconds += result.simulated_seconds
        self.calls += result.invocations
        self.dead_letters += result.dead_letters
        self.faults += result.count_events()
        self.coverage.add(result.reached_targets, result.killed_targets)
        self.sightings.add(result.script, result.reached_targets)

    def format_lines(self) -> Iterator[str]:
        """Yield the totals as text."""
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        hours = self.simulated_seconds / 3600
        yield f"faults: {faults or 'none'}"
        yield f"{self.dead_letters} messages given up after their last attempt"
        yield (
            f"{hours:.1f} simulated hours, {self.calls} invocations, {self.processor_seconds:.0f} s of processor, "
            f"{self.wall_seconds:.0f} s"
        )


def main(arguments: list[str] | None = None, out: TextIO = sys.stdout) -> int:
    """Run the program; return 1 if an invariant was violated."""
    options = _build_parser().parse_args(arguments)
    totals = RunTotals()
    cpu_seconds_before, started_at = sum(os.times()[:4]), os.times().elapsed  # includes child processes
    for result in _run_selected(options, totals):
        totals.add(result)
        if result.violations or options.replay is not None:
            _print_result(result, out, shrink=options.shrink)
        elif totals.runs % RUNS_PER_PROGRESS_LINE == 0:
            print(f"{totals.runs} runs, {totals.violations} violations", file=out, flush=True)
    totals.processor_seconds = sum(os.times()[:4]) - cpu_seconds_before
    totals.wall_seconds = os.times().elapsed - started_at
    if options.write_sites:
        _write_sites(totals.coverage.list_sites(), options.feature)
    for line in (*totals.format_lines(), *_report_kills(totals, options)):
        print(line, file=out)
    print(f"{totals.runs - totals.targeted_runs} seeds, {totals.violations} violations", file=out)
    return 1 if totals.violations else 0


def _run_selected(options: argparse.Namespace, totals: RunTotals) -> Iterator[RunResult]:
    """Run the selected scripts; after seeds, also run scripts that kill at call sites where *tally* has no kill."""
    if options.regressions:
        yield from run_scripts([script for _, script in load_regressions()], options.jobs)
    elif options.script is not None:
        yield run_script(decode_script(options.script))
    elif options.replay is not None:
        yield run_script(draw_script(options.replay))
    else:
        yield from run_scripts(list(islice(_draw_scripts(options.first, options.feature), options.seeds)), options.jobs)
        for targets_per_run in TARGETS_PER_RUN if options.aim else ():
            targeted_scripts = list(
                totals.sightings.build_targeted_scripts(totals.coverage.find_missed_targets(), targets_per_run)
            )
            totals.targeted_runs += len(targeted_scripts)
            yield from run_scripts(targeted_scripts, options.jobs)


def _draw_scripts(first: int, feature: str) -> Iterator[Script]:
    """Yield the scripts of the seeds from *first* that use *feature* (empty: all scripts), without end."""
    for seed in count(first):
        script = draw_script(seed)
        names = script.setup.features.list_names()
        if feature in ("", *names) or (feature == ANY_FEATURE and names):
            yield script


def _write_sites(sites: set[str], feature: str) -> None:
    """Add *sites* to the known call sites: new ones of seeds with *feature* to those that only features reach."""
    known_sites, feature_sites = set(load_known_sites()), set(load_feature_sites())
    if feature:
        feature_sites |= sites - known_sites
    else:
        known_sites |= sites - feature_sites
    for path, lines in ((SITES_FILE, known_sites), (FEATURE_SITES_FILE, feature_sites)):
        path.write_text("".join(f"{site}\n" for site in sorted(lines)))


def _report_kills(totals: RunTotals, options: argparse.Namespace) -> Iterator[str]:
    """Yield where handlers were killed, and how to cover the remaining call sites."""
    missed_targets = totals.coverage.find_missed_targets()
    known_sites = {*load_known_sites(), *load_feature_sites()}
    unmet_sites = sorted(known_sites - totals.coverage.list_sites())
    yield f"kills: {totals.coverage.format_summary()}, {totals.targeted_runs} of the runs were for further call sites"
    if missed_targets and not options.missed:
        yield f"  no function was killed at {len(missed_targets)} call sites: --missed lists them"
    if unmet_sites and not options.missed:
        yield f"  {len(unmet_sites)} known call sites were not reached: --missed lists them, more seeds reach them"
    if options.missed:
        yield from (f"  never killed {when} {site}" for site, when in missed_targets)
        yield from (f"  never reached {site}" for site in unmet_sites)


def load_regressions(path: Path = REGRESSIONS) -> Iterator[tuple[str, Script]]:
    """Yield the scripts that failed in the past, each with the reason why it is kept."""
    reason = ""
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line:
            yield reason, decode_script(line)


def _print_result(result: RunResult, out: TextIO, *, shrink: bool) -> None:
    """Print the timeline, and a script that fails in the same way, as small as was found."""
    print(f"seed {result.script.seed}: {len(result.violations)} violations", file=out)
    print("\n".join(result.timeline), file=out)
    if not result.violations:
        return
    violated_kinds = result.list_violated_kinds()
    smallest_script = result.script
    if shrink:
        smallest_script = shrink_script(
            smallest_script, lambda script: bool(violated_kinds & run_script(script).list_violated_kinds())
        )
    is_drawn = result.script == draw_script(result.script.seed)
    replay_arguments = f"--replay {result.script.seed}" if is_drawn else f"--script '{encode_script(result.script)}'"
    print(f"again: python -m sim.fault_simulation {replay_arguments}", file=out)
    print(f"{'shrunk' if shrink else 'script'}: {encode_script(smallest_script)}", file=out, flush=True)


def _build_parser() -> argparse.ArgumentParser:
    summary, _, epilog = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m sim.fault_simulation",
        description=summary,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=200, help="number of seeds (200)")
    parser.add_argument("--first", type=int, default=1, help="first seed (1)")
    names = (ANY_FEATURE, *FEATURE_NAMES)
    parser.add_argument("--feature", choices=names, default="", help="only seeds that use this optional feature")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (2)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run only this seed, and print its timeline")
    parser.add_argument("--script", metavar="JSON", help="run only this script, as printed for a seed that failed")
    parser.add_argument(
        "--aim",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run seeds again to kill functions at call sites without a kill (yes)",
    )
    parser.add_argument("--regressions", action="store_true", help="run the scripts that failed in the past instead")
    parser.add_argument(
        "--shrink",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="find the fewest events with which a seed fails (yes)",
    )
    parser.add_argument("--missed", action="store_true", help="list the call sites at which no function was killed")
    parser.add_argument(
        "--write-sites",
        action="store_true",
        help="write the call sites that were reached to the files of known call sites",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
