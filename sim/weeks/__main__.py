"""Play simulated weeks, with consolidation and without: `python -m sim.weeks --days 7 --plot docs/weeks.svg`."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from sim.weeks.figures import figures, lines
from sim.weeks.plot import plot
from sim.weeks.week import Sample, Week, play


def main(arguments: list[str] | None = None) -> int:
    """Play, print, and answer 0 if nothing happened that must not."""
    parser = argparse.ArgumentParser(prog="python -m sim.weeks", description=__doc__)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the usual pods that there are")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json has every sample")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where an SVG goes")
    chosen = parser.parse_args(arguments)
    with_, without = both(chosen.days, chosen.seed, chosen.size)
    said = figures(with_, without)
    if chosen.output == "json":
        whole = {"figures": said, "with": with_, "without": without}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(whole)).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in (*lines(said), *with_.violations, *without.violations))
    if chosen.plot is not None:
        chosen.plot.write_text(plot(with_, without))
    return int(bool(said.violations or said.back or said.failed_calls))


def both(days: float, seed: int, size: float = 1.0) -> tuple[Week, Week]:
    """Play the week with consolidation, and beside it the one without."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        without = pool.submit(play, days, seed, size=size, consolidates=False, has_ideal=False)
        return play(days, seed, size=size, told=told), without.result()


def told(sample: Sample) -> None:
    """Say every hour how far it has come."""
    if sample.ideal is not None:
        text = f"{sample.at:%a %d %H:%M}  {sample.nodes:3} nodes {sample.running:4} pods ${sample.usd_per_hour:7.3f}/h"
        sys.stderr.write(f"{text}  ideal ${sample.ideal.repacked:7.3f}\n")


if __name__ == "__main__":
    sys.exit(main())
