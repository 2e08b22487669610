"""Play simulated weeks, with consolidation and without: `python -m sim.soak --days 7 --plot docs/weeks.svg`."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from sim.soak.plot import render_chart
from sim.soak.soak_run import SoakResult, SoakSample, run_week
from sim.soak.summary import build_summary, format_lines


def main(arguments: list[str] | None = None) -> int:
    """Run the simulation, print the results, and return 1 if it failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m sim.soak", description=__doc__)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the usual pods that there are")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json has every sample")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where an SVG goes")
    options = parser.parse_args(arguments)
    consolidated_week, unconsolidated_week = run_both_weeks(options.days, options.seed, options.size)
    summary = build_summary(consolidated_week, unconsolidated_week)
    if options.output == "json":
        document = {"figures": summary, "with": consolidated_week, "without": unconsolidated_week}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
    else:
        sys.stdout.writelines(
            f"{line}\n"
            for line in (*format_lines(summary), *consolidated_week.violations, *unconsolidated_week.violations)
        )
    if options.plot is not None:
        options.plot.write_text(render_chart(consolidated_week, unconsolidated_week))
    return int(summary.has_failed)


def run_both_weeks(days: float, seed: int, size: float = 1.0) -> tuple[SoakResult, SoakResult]:
    """Run the week with consolidation, and in parallel the same week without."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        unconsolidated_future = pool.submit(run_week, days, seed, size=size, consolidates=False, has_ideal=False)
        return run_week(days, seed, size=size, on_sample=print_progress), unconsolidated_future.result()


def print_progress(sample: SoakSample) -> None:
    """Print the progress once per simulated hour."""
    if sample.ideal is not None:
        text = f"{sample.at:%a %d %H:%M}  {sample.nodes:3} nodes {sample.running:4} pods ${sample.usd_per_hour:7.3f}/h"
        sys.stderr.write(f"{text}  ideal ${sample.ideal.repacked:7.3f}\n")


if __name__ == "__main__":
    sys.exit(main())
