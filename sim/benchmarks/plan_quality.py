"""How good and how fast plans are: `python -m sim.benchmarks.plan_quality CATALOGUE [WORKLOAD …] [--write FOLDER]`.

Workloads as documents; with a folder, each is written there, for a judge that is not ours. Each has a process of its
own, whose peak of memory is that of decoding and planning. What a plan costs is set against a lower bound, which is
computed outside the measured time. A plan that costs more than its goal above the bound is an error. The catalogue
`made-up` has the 400 types of Karpenter's own benchmark, whose mix of pods *diverse* is; with --greedy no cheaper plan
is sought.
"""

import argparse
import math
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from timeit import default_timer
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.scheduling.scheduler import solve
from shared.model.decisions.placement import SchedulingOptions
from shared.state.cluster_state import ClusterState
from shared.store.catalog_format import decode_catalog
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from sim.benchmarks.benchmark_workloads import (
    WORKLOADS,
    build_diverse_pods,
    build_karpenter_catalog,
    build_preferring_pods,
    build_workload_documents,
)
from sim.benchmarks.plan_goals import get_goal

KARPENTER_BENCHMARK_CATALOG: Final = "made-up"
SNAPSHOT_TIME: Final = datetime(2026, 11, 21, tzinfo=UTC)


class PlanMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """Duration and memory of planning a workload, and the cost of its plan."""

    decode_seconds: float
    plan_seconds: float
    pods: int
    peak_memory_mib: float
    nodes: int
    price_usd_per_hour: float
    greedy_usd_per_hour: float
    lower_bound_usd_per_hour: float

    @property
    def price_ratio(self) -> float:
        """Price divided by the lower bound; 0 if there is no bound."""
        return self.price_usd_per_hour / self.lower_bound_usd_per_hour if self.lower_bound_usd_per_hour else 0.0

    def format_row(self, workload_name: str) -> str:
        """Return the measurement as a row of the table."""
        goal = get_goal(workload_name)
        price_ratio = f"{self.price_ratio:8.3f}{goal.max_price_ratio:6.2f}" if self.price_ratio else f"{'-':>8}{'-':>6}"
        return (
            f"{workload_name:20}{self.decode_seconds:9.2f}{self.plan_seconds:8.2f}{self.pods / self.plan_seconds:9.0f}"
            f"{goal.format_speedup(self.plan_seconds)}{self.peak_memory_mib:10.0f}{self.nodes:7}"
            f"{self.price_usd_per_hour:10.3f}{self.greedy_usd_per_hour:10.3f}{self.lower_bound_usd_per_hour:10.3f}{price_ratio}\n"
        )


TABLE_HEADER: Final = (
    f"{'workload':20}{'decode s':>9}{'plan s':>8}{'pods/s':>9}{'Karpenter÷':>11}{'goal':>6}{'peak MiB':>10}{'nodes':>7}"
    f"{'$/h':>10}{'greedy':>10}{'bound':>10}{'÷ bound':>8}{'goal':>6}\n"
)


def main() -> None:
    """Plan each workload, print its duration and cost next to the goals, and exit with 1 if a plan is too expensive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("catalogue", help="a file, or made-up")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--greedy", action="store_const", const="Greedy", default="Priced")
    arguments = parser.parse_args()
    plan_seconds_by_workload: dict[str, float] = {}
    expensive_workloads: list[str] = []
    sys.stdout.write(TABLE_HEADER)
    for name in arguments.workloads or list_default_workloads(arguments.catalogue):
        if arguments.write is not None:
            (arguments.write / f"{name}.json").write_bytes(encode_workload(name))
        measurement = measure_in_process(name, arguments.catalogue, arguments.greedy)
        sys.stdout.write(measurement.format_row(name))
        sys.stdout.flush()
        plan_seconds_by_workload[name] = measurement.plan_seconds
        if arguments.greedy == "Priced" and get_goal(name).is_missed_by(measurement.price_ratio):
            expensive_workloads.append(name)
    for workload_kind, exponent in estimate_growth_exponents(plan_seconds_by_workload):
        sys.stdout.write(f"{workload_kind}: seconds grow as pods to the power of {exponent:.2f}\n")
    if expensive_workloads:
        sys.exit(f"price above the lower bound misses its goal by more than noise: {', '.join(expensive_workloads)}")


def list_default_workloads(catalog_path: str) -> list[str]:
    """Return the default workloads for *catalog_path*.

    Karpenter's catalog has the workloads of Karpenter's benchmark; every other catalog has the typical workloads.
    """
    return [
        name
        for name, (build_pods, _) in WORKLOADS.items()
        if (build_pods in (build_diverse_pods, build_preferring_pods)) == (catalog_path == KARPENTER_BENCHMARK_CATALOG)
    ]


def encode_workload(name: str) -> bytes:
    """Return a workload as an API server sends it."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": build_workload_documents(name)})


def measure_in_process(name: str, catalog_path: str, packing: str) -> PlanMeasurement:
    """Measure a workload in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process_pool:
        return process_pool.submit(measure_workload, name, catalog_path, packing).result()


def measure_workload(name: str, catalog_path: str, packing: str) -> PlanMeasurement:
    """Decode and plan a workload; measure time and memory."""
    instance_catalog = (
        build_karpenter_catalog()
        if catalog_path == KARPENTER_BENCHMARK_CATALOG
        else decode_catalog(Path(catalog_path).read_bytes())
    )
    options = msgspec.convert({"readiness": "Assumed", "packing": packing}, SchedulingOptions)
    encoded_documents = encode_workload(name)
    started_at = default_timer()
    cluster = replace(build_snapshot_from_documents([encoded_documents], SNAPSHOT_TIME), catalog=instance_catalog)
    decoded_at = default_timer()
    with pause_garbage_collection():
        placement = solve(ClusterState(cluster), options=options)
    plan_seconds = default_timer() - decoded_at
    peak_memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    from sim.lower_bound.integer_program import compute_lower_bound  # noqa: PLC0415 - its libraries are no part of the peak

    return PlanMeasurement(
        decode_seconds=decoded_at - started_at,
        plan_seconds=plan_seconds,
        pods=len(cluster.pods),
        peak_memory_mib=peak_memory_mib,
        nodes=len(placement.new_nodes),
        price_usd_per_hour=placement.price_usd_per_hour,
        greedy_usd_per_hour=placement.greedy_usd_per_hour,
        lower_bound_usd_per_hour=compute_lower_bound(cluster, placement, options),
    )


def estimate_growth_exponents(plan_seconds_by_workload: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Yield, by kind of workload, the growth exponent between its smallest and its largest size."""
    measurements_by_kind: dict[str, list[tuple[int, float]]] = {}
    for name, duration in plan_seconds_by_workload.items():
        workload_kind, _, pod_count = name.rpartition("-")
        measurements_by_kind.setdefault(workload_kind, []).append((int(pod_count), duration))
    for workload_kind, measurements in sorted(measurements_by_kind.items()):
        (fewest_pods, shortest_duration), (most_pods, longest_duration) = min(measurements), max(measurements)
        if most_pods > fewest_pods:
            yield workload_kind, math.log(longest_duration / shortest_duration) / math.log(most_pods / fewest_pods)


if __name__ == "__main__":
    main()
