"""`python -m sim.chaos`: plays seeds, says which promises were broken, and how one breaks them again.

How to call it:
  python -m sim.chaos --seeds 200                      seeds 1 to 200
  python -m sim.chaos --seeds 50 --first 1001 --jobs 4
  python -m sim.chaos --replay 1017                    one seed, its whole timeline
  python -m sim.chaos --replay 1017 --shrink           and the fewest events with which it fails
  python -m sim.chaos --script '{"seed": 1017, …}'      a script, as it is told of what fails
  python -m sim.chaos --regressions                    the scripts of regressions.txt

Seeds are played as they are drawn; then some of them again, with a death at every call site that was met and at which
nobody had died before the call, or nobody behind it.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TextIO

import msgspec

from sim.chaos.aimed import AT_ONCE, Sightings
from sim.chaos.draw import script_of
from sim.chaos.draw_faults import SITES, known_sites
from sim.chaos.run import Verdict, play
from sim.chaos.script import Script, decoded, encoded
from sim.chaos.shrink import shrunk
from sim.chaos.sites import Coverage

REGRESSIONS: Final = Path(__file__).with_name("regressions.txt")
EVERY: Final = 25
"""Seeds between two words of progress."""


class Tally(msgspec.Struct, kw_only=True):
    """What many plays came to."""

    plays: int = 0
    aimed: int = 0
    """Of the plays: those of a seed again, for the sake of places at which nobody had died."""
    violations: int = 0
    simulated_seconds: int = 0
    processor_seconds: float = 0.0
    wall_seconds: float = 0.0
    calls: int = 0
    dead_letters: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    sightings: Sightings = msgspec.field(default_factory=Sightings)

    def add(self, verdict: Verdict) -> None:
        """Count one more."""
        self.plays += 1
        self.violations += len(verdict.violations)
        self.simulated_seconds += verdict.simulated_seconds
        self.calls += verdict.calls
        self.dead_letters += verdict.dead_letters
        self.faults += verdict.faults()
        self.coverage.add(verdict.met, verdict.struck)
        self.sightings.add(verdict.script, verdict.met)

    def lines(self) -> Iterator[str]:
        """Say it."""
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        hours = self.simulated_seconds / 3600
        yield f"faults: {faults or 'none'}"
        yield f"{self.dead_letters} messages given up after their last attempt"
        yield (
            f"{hours:.1f} simulated hours, {self.calls} invocations, {self.processor_seconds:.0f} s of processor, "
            f"{self.wall_seconds:.0f} s"
        )


def main(arguments: list[str] | None = None, out: TextIO = sys.stdout) -> int:
    """Run the program; answer 1 if a promise was broken."""
    told = _parser().parse_args(arguments)
    tally = Tally()
    before, began = sum(os.times()[:4]), os.times().elapsed  # children too
    for verdict in _played(told, tally):
        tally.add(verdict)
        if verdict.violations or told.replay is not None:
            _tell(verdict, out, shrink=told.shrink)
        elif tally.plays % EVERY == 0:
            print(f"{tally.plays} plays, {tally.violations} violations", file=out, flush=True)
    tally.processor_seconds, tally.wall_seconds = sum(os.times()[:4]) - before, os.times().elapsed - began
    if told.write_sites:
        SITES.write_text("".join(f"{place}\n" for place in sorted(tally.coverage.places() | set(known_sites()))))
    for line in (*tally.lines(), *_kills(tally, told)):
        print(line, file=out)
    print(f"{tally.plays - tally.aimed} seeds, {tally.violations} violations", file=out)
    return 1 if tally.violations else 0


def _played(told: argparse.Namespace, tally: Tally) -> Iterator[Verdict]:
    """Play what is wanted; then, where seeds were, aim at places at which *tally* says that nobody has died."""
    if told.regressions:
        yield from _verdicts([script for _, script in regressions()], told.jobs)
    elif told.script is not None:
        yield play(decoded(told.script))
    elif told.replay is not None:
        yield play(script_of(told.replay))
    else:
        yield from _verdicts([script_of(seed) for seed in range(told.first, told.first + told.seeds)], told.jobs)
        for at_once in AT_ONCE if told.aim else ():
            aimed = list(tally.sightings.aimed(tally.coverage.missed(), at_once))
            tally.aimed += len(aimed)
            yield from _verdicts(aimed, told.jobs)


def _kills(tally: Tally, told: argparse.Namespace) -> Iterator[str]:
    """Say where somebody died, and what to do where nobody did."""
    missed = tally.coverage.missed()
    unmet = sorted(set(known_sites()) - tally.coverage.places())
    yield f"kills: {tally.coverage.words()}, {tally.aimed} plays were aimed at them"
    if missed and not told.missed:
        yield f"  nobody died at {len(missed)} places: --missed names them, more seeds or --aim reach them"
    if unmet and not told.missed:
        yield f"  {len(unmet)} known call sites were not met: --missed names them, more seeds meet them"
    if told.missed:
        yield from (f"  never killed {when} {place}" for place, when in missed)
        yield from (f"  never met {place}" for place in unmet)


def regressions(path: Path = REGRESSIONS) -> Iterator[tuple[str, Script]]:
    """Iterate over the scripts that once failed, each with why it is kept."""
    why = ""
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            why = line.removeprefix("#").strip()
        elif line:
            yield why, decoded(line)


def _verdicts(scripts: list[Script], jobs: int) -> Iterator[Verdict]:
    """Play *scripts*; verdicts come in their order, whoever is ready first."""
    if jobs <= 1 or len(scripts) <= 1:
        yield from map(play, scripts)
        return
    with get_context("spawn").Pool(min(jobs, len(scripts))) as pool:
        yield from pool.imap(play, scripts)


def _tell(verdict: Verdict, out: TextIO, *, shrink: bool) -> None:
    """Print the timeline, and a script that fails alike, as small as it was found."""
    print(f"seed {verdict.script.seed}: {len(verdict.violations)} violations", file=out)
    print("\n".join(verdict.timeline), file=out)
    if not verdict.violations:
        return
    kinds = verdict.kinds()
    small = verdict.script
    if shrink:
        small = shrunk(small, lambda script: bool(kinds & play(script).kinds()))
    drawn = verdict.script == script_of(verdict.script.seed)
    again = f"--replay {verdict.script.seed}" if drawn else f"--script '{encoded(verdict.script)}'"
    print(f"again: python -m sim.chaos {again}", file=out)
    print(f"{'shrunk' if shrink else 'script'}: {encoded(small)}", file=out, flush=True)


def _parser() -> argparse.ArgumentParser:
    summary, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m sim.chaos",
        description=summary,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play this one only, and print its timeline")
    parser.add_argument("--script", metavar="JSON", help="play this one only, as it was told of what failed")
    parser.add_argument("--aim", action=argparse.BooleanOptionalAction, default=True, help="at missed call sites (yes)")
    parser.add_argument("--regressions", action="store_true", help="play the scripts that once failed instead")
    parser.add_argument("--shrink", action=argparse.BooleanOptionalAction, default=True, help="of what fails (yes)")
    parser.add_argument("--missed", action="store_true", help="list the call sites at which nobody died")
    parser.add_argument("--write-sites", action="store_true", help="write down the call sites that were met")
    return parser


if __name__ == "__main__":
    sys.exit(main())
