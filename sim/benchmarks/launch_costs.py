"""How much more nodes cost than planned: `python -m sim.benchmarks.launch_costs [--seeds 20] [--tolerances 0,15]`.

For each seed, made-up Deployments (some of them spread over zones) start in an embedded world with all instance types.
Each launch has a planned price, that of its cheapest offering, and a realized price, that of the offering that the
simulated EC2 chooses. EC2's real choice is not public: the simulation weighs price against a made-up capacity.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from statistics import median
from typing import Any, Final

import msgspec

from shared.model.core.labels import ARCH, CAPACITY_TYPE, ZONE
from shared.model.decisions.action import LaunchInstances
from shared.ports.world import World
from shared.report.journal.journal import JournalEntry
from sim.cloud.seeded_random import draw_fraction
from sim.world import manifests
from sim.world.embedded_world import EmbeddedWorld
from sim.world.launch_costs import LaunchCost, compute_excess_percent, measure_launch_costs
from sim.world.measurements import is_running

MAX_DURATION: Final = timedelta(minutes=10)
WARM_UP_DURATION: Final = timedelta(seconds=90)
MAX_DEPLOYMENTS: Final = 6
REPLICAS: Final = (1, 3, 8, 20, 50)
CPU_MILLI: Final = (100, 250, 500, 900, 1500, 3500)
MEMORY_MIB_PER_CPU_MILLI: Final = (1, 2, 2, 4, 8)
SPREAD_RATIO: Final = 0.4
TOLERANCE_VARIABLE: Final = "JOINER_SPOT_PRICE_TOLERANCE_PERCENT"


class CostSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The launches of all seeds with one value of `spot-price-tolerance-percent`."""

    tolerance_percent: int
    launches: int
    planned_usd_per_hour: float
    realized_usd_per_hour: float
    excess_percent: float
    """Realized above planned."""
    worst_seed_percent: float
    median_instance_types: float
    median_offerings: float


class _TolerantWorld(EmbeddedWorld):
    """An embedded world that records its launches."""

    def __init__(self, seed: int, tolerance_percent: int) -> None:
        """Deploy with the setting *tolerance_percent*."""
        self._tolerance_percent = tolerance_percent
        super().__init__(seed)
        self.launches: list[LaunchInstances] = []
        self.on_journal_entry = self._record_launches

    def _build_world(self, function: str, environment: dict[str, str]) -> World:
        return super()._build_world(function, environment | {TOLERANCE_VARIABLE: str(self._tolerance_percent)})

    def _record_launches(self, entry: JournalEntry) -> None:
        for result in entry.results:
            if result.result == "done" and isinstance(result.action, LaunchInstances):
                self.launches.append(result.action)


def main() -> None:
    """Measure every tolerance with the same seeds, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds (default: 20; about 20 s for each)")
    parser.add_argument("--first", type=int, default=1, help="first seed (default: 1)")
    parser.add_argument("--tolerances", default="0,15", help="values of spot-price-tolerance-percent (default: 0,15)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="output format")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    summaries = [measure_tolerance(int(text), seeds) for text in arguments.tolerances.split(",")]
    if arguments.output == "json":
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(summaries)) + b"\n")
        return
    sys.stdout.write(f"{'tolerance':>9}{'launches':>10}{'planned':>10}{'realized':>10}{'excess':>8}{'worst':>8}")
    sys.stdout.write(f"{'types':>7}{'offerings':>11}\n")
    for summary in summaries:
        sys.stdout.write(
            f"{summary.tolerance_percent:8}%{summary.launches:10}{summary.planned_usd_per_hour:10.3f}"
            f"{summary.realized_usd_per_hour:10.3f}{summary.excess_percent:7.1f}%{summary.worst_seed_percent:7.1f}%"
            f"{summary.median_instance_types:7.0f}{summary.median_offerings:11.0f}\n"
        )


def measure_tolerance(tolerance_percent: int, seeds: range) -> CostSummary:
    """Run the workloads of *seeds* with one tolerance; print progress to standard error."""
    costs_by_seed: list[list[LaunchCost]] = []
    for seed in seeds:
        sys.stderr.write(f"tolerance {tolerance_percent} %: seed {seed} of {seeds[-1]}\n")
        costs_by_seed.append(measure_seed(seed, tolerance_percent))
    launch_costs = [cost for costs in costs_by_seed for cost in costs]
    return CostSummary(
        tolerance_percent=tolerance_percent,
        launches=len(launch_costs),
        planned_usd_per_hour=sum(cost.planned_usd_per_hour for cost in launch_costs),
        realized_usd_per_hour=sum(cost.realized_usd_per_hour for cost in launch_costs),
        excess_percent=compute_excess_percent(launch_costs),
        worst_seed_percent=max(compute_excess_percent(costs) for costs in costs_by_seed if costs),
        median_instance_types=median(cost.instance_type_count for cost in launch_costs),
        median_offerings=median(cost.offering_count for cost in launch_costs),
    )


def measure_seed(seed: int, tolerance_percent: int) -> list[LaunchCost]:
    """Return the launches for the Deployments of *seed*.

    Raises:
        RuntimeError: some pods do not run after `MAX_DURATION`.
    """
    world = _TolerantWorld(seed, tolerance_percent)
    world.apply(_list_infrastructure())
    world.run(WARM_UP_DURATION)
    deployments = list(_draw_deployments(seed))
    world.apply(deployments)
    pod_count = sum(deployment["spec"]["replicas"] for deployment in deployments)
    if not world.run_until(
        lambda: sum(is_running(pod) for pod in world.cluster.list_pods("default")) == pod_count, MAX_DURATION
    ):
        raise RuntimeError(f"seed {seed}: some of {pod_count} pods do not run after {MAX_DURATION}")
    return measure_launch_costs(world.launches, world.cloud)


@cache
def _list_infrastructure() -> tuple[manifests.Json, ...]:
    requirements = {
        ARCH: ["amd64"],
        CAPACITY_TYPE: ["spot", "on-demand"],
        "karpenter.k8s.aws/instance-category": ["c", "m", "r"],
    }
    node_pool = manifests.build_node_pool("default", manifests.build_node_template(requirements))
    return (manifests.build_node_class(), node_pool)


def _draw_deployments(seed: int) -> Iterator[manifests.Json]:
    for number in range(1 + int(draw_fraction(seed, "deployments") * MAX_DEPLOYMENTS)):
        cpu_milli = _draw_value(CPU_MILLI, seed, number, "cpu")
        memory_mib = cpu_milli * _draw_value(MEMORY_MIB_PER_CPU_MILLI, seed, number, "memory")
        name, replicas = f"app-{number}", _draw_value(REPLICAS, seed, number, "replicas")
        spec: dict[str, Any] = {}
        if draw_fraction(seed, number, "spread") < SPREAD_RATIO:
            spec["topologySpreadConstraints"] = [manifests.build_spread_constraint(ZONE, {"app": name})]
        spec["containers"] = [manifests.build_container(f"{cpu_milli}m", f"{memory_mib}Mi")]
        yield manifests.build_workload("Deployment", name, spec, replicas=replicas)


def _draw_value(values: tuple[int, ...], *seed_parts: object) -> int:
    return values[int(draw_fraction(*seed_parts) * len(values))]


if __name__ == "__main__":
    main()
