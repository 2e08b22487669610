"""Timings on a real control plane with nodes that are ready at once: `python -m tests.benchmarks.bench_kubernetes`.

The control plane is built from source the first time, which needs Go and takes minutes. The cloud is simulated, the
functions run in this process, and kwok simulates the kubelets. Every group of rows has a control plane of its own. The
values of Karpenter are from its own measurement on two idle cores; compare with them only on an idle computer.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from datetime import timedelta
from os import cpu_count, getloadavg
from typing import Final

import msgspec

from tests.controlplane.binaries import read_kubernetes_version
from tests.kubernetes import timings

QUIET_PERIOD: Final = timedelta(seconds=150)
"""Longer than the time until consolidation acts: the minute of its schedule, `consolidateAfter`, validation."""
REPLICA_COUNTS: Final = (20, 10, 5, 0)


class TimingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    value: float
    unit: str
    goal: float
    karpenter: float | None = None

    def is_met(self) -> bool:
        """Return whether the value is not above the goal."""
        return self.value <= self.goal

    def format_row(self) -> str:
        """Return the row as text."""
        karpenter = "-" if self.karpenter is None else f"{self.karpenter:.1f} {self.unit}"
        verdict = "met" if self.is_met() else "missed"
        return (
            f"{self.name:48}{self.value:8.1f} {self.unit:2}{self.goal:7.0f} {self.unit:2}{karpenter:>10}  {verdict}\n"
        )


TABLE_HEADER: Final = f"{'measurement':48}{'result':>10} {'goal':>9}{'Karpenter':>10}\n"


def measure_burst() -> Iterator[TimingRow]:
    """Measure 1,000 pods of two sizes, and the cost of their nodes."""
    with timings.start_arena() as arena:
        seconds = timings.measure_burst(arena, 1000)
        yield TimingRow(name="1,000 pods until all run", value=seconds, unit="s", goal=10, karpenter=14.4)
        excess = timings.measure_cost_excess(arena)
        yield TimingRow(name="1,000 pods: realized cost above planned cost", value=excess, unit="%", goal=3)


def measure_spread() -> Iterator[TimingRow]:
    """Measure 5,000 pods, half of them spread over zones."""
    with timings.start_arena() as arena:
        seconds = timings.measure_burst(arena, 5000, spread_count=2500)
        yield TimingRow(
            name="5,000 pods, half spread over zones, until all run", value=seconds, unit="s", goal=60, karpenter=98
        )


def measure_scale_down() -> Iterator[TimingRow]:
    """Measure a Deployment that is scaled down in three steps."""
    karpenter_seconds = (327, 84, 53)
    with timings.start_arena(consolidates=True) as arena:
        seconds_by_step = timings.measure_scale_down(arena, REPLICA_COUNTS, QUIET_PERIOD)
        for (step, seconds), karpenter in zip(seconds_by_step.items(), karpenter_seconds, strict=True):
            name = f"{step} pods until the nodes are settled"
            yield TimingRow(name=name, value=seconds, unit="s", goal=60, karpenter=karpenter)


def measure_reactions() -> Iterator[TimingRow]:
    """Measure pods that arrive one after the other."""
    with timings.start_arena() as arena:
        median, late = timings.compute_reaction_percentiles(timings.measure_reactions(arena, 20))
        yield TimingRow(name="Unschedulable to CreateFleet, p50", value=median, unit="s", goal=2)
        yield TimingRow(name="Unschedulable to CreateFleet, p95", value=late, unit="s", goal=5)


MEASUREMENTS: Final[dict[str, Callable[[], Iterator[TimingRow]]]] = {
    "burst": measure_burst,
    "spread": measure_spread,
    "reaction": measure_reactions,
    "scale-down": measure_scale_down,
}


def main() -> int:
    """Print the rows; return 1 if a goal is missed and --check is set."""
    arguments = parse_arguments()
    names = arguments.measurements or [*MEASUREMENTS]
    rows: list[TimingRow] = []
    if arguments.output == "table":
        sys.stdout.write(f"Kubernetes {read_kubernetes_version()}, {cpu_count()} cores, load {getloadavg()[0]:.1f}\n")
        sys.stdout.write(TABLE_HEADER)
    for number, name in enumerate(names, 1):
        sys.stderr.write(f"{number} of {len(names)}: {name}, load {getloadavg()[0]:.1f}\n")
        for row in MEASUREMENTS[name]():
            rows.append(row)
            if arguments.output == "table":
                sys.stdout.write(row.format_row())
                sys.stdout.flush()
    if arguments.output == "json":
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
    return 1 if arguments.check and not all(row.is_met() for row in rows) else 0


def parse_arguments() -> Namespace:
    """Return the arguments of the command."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    names = ", ".join(MEASUREMENTS)
    parser.add_argument(
        "measurements", nargs="*", metavar="MEASUREMENT", help=f"of {names}; without a name: all (25 min on two cores)"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="output format")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    unknown_names = sorted({*arguments.measurements} - {*MEASUREMENTS})
    if unknown_names:
        parser.error(f"{unknown_names[0]}: there is no such measurement: choose from {names}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
