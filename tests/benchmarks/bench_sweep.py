"""Measure a full disruption sweep over a large cluster, in invocations with a time limit.

``python -m tests.benchmarks.bench_sweep [nodes] [--limit SECONDS]`` (default 5,000 nodes with 30 pods each, 35s of CPU
time): running pods of Deployments on half-full nodes of several instance types, in ten NodePools with a budget
of 10 %. Each invocation starts at the cursor of the one before, until every node has been evaluated. The catalog is
that of Karpenter's benchmark (400 instance types). Nothing is disrupted between two invocations.
"""

import argparse
import resource
import sys
from datetime import timedelta
from functools import lru_cache, partial
from time import perf_counter, process_time
from typing import Final

from msgspec.structs import replace

from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.disruption.disruption_controller import decide_node_disruption
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODEPOOL
from shared.model.core.metadata import OwnerReference, build_pairs
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.state.cluster_state import ClusterState
from sim.benchmarks.benchmark_workloads import build_karpenter_catalog, choose_value
from tests.support.catalogues import NOW, make_node_pool, make_pod, make_requests
from tests.support.disruption_fleet import Machine, make_fleet, make_node_with_pods

POD_CPU_MILLI: Final = (100, 100, 250, 250, 500, 1000)
PODS_PER_NODE: Final = 30
PODS_PER_DEPLOYMENT: Final = 100
POOL_COUNT: Final = 10


def build_cluster(node_count: int) -> ClusterSnapshot:
    """Return a cluster of *node_count* nodes whose pods have not changed for a day."""
    types = [
        instance_type
        for instance_type in build_karpenter_catalog().instance_types
        if 8000 <= instance_type.allocatable["cpu"] <= 40_000
    ]
    machines: list[Machine] = []
    for number in range(node_count):
        pods = [_build_pod(number * PODS_PER_NODE + place, node_count) for place in range(PODS_PER_NODE)]
        requested = sum(pod.spec.requests["cpu"] for pod in pods)
        fitting = [item for item in types if item.allocatable["cpu"] >= requested * 1.1]
        instance_type = fitting[choose_value(tuple(range(min(len(fitting), 60))), "type", number)]
        machines.append(
            make_node_with_pods(
                f"node-{number:05d}",
                *pods,
                cpu=instance_type.allocatable["cpu"] // 1000,
                kind=instance_type.name,
                zone=next(iter(sorted(offering.zone for offering in instance_type.offerings))),
                capacity_type="on-demand",
                pool=f"pool-{number % POOL_COUNT}",
            )
        )
    pools = tuple(_build_pool(number) for number in range(POOL_COUNT))
    cluster = make_fleet(*machines, pools=pools)
    return replace(cluster, catalog=build_karpenter_catalog(), taken_at=NOW + timedelta(days=1))


def _build_pod(number: int, node_count: int) -> Pod:
    deployment = number * 7919 % (node_count * PODS_PER_NODE) // PODS_PER_DEPLOYMENT
    cpu = choose_value(POD_CPU_MILLI, "cpu", deployment)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=f"app-{deployment}", uid=f"rs-{deployment}")
    labels = {"app": f"app-{deployment}"}
    pod = make_pod(f"app-{deployment}-{number}", owners=(owner,), labels=labels)
    return replace(pod, spec=_build_spec(cpu))


@lru_cache
def _build_spec(cpu_milli: int) -> PodSpec:
    """Return the one spec of pods with *cpu_milli*, as decoded pods share it."""
    return PodSpec(requests=make_requests(f"{cpu_milli}m", f"{cpu_milli * 2}Mi"))


def _build_pool(number: int) -> NodePool:
    pool = make_node_pool(f"pool-{number}", budgets=(DisruptionBudget(nodes="10%"),))
    return replace(pool, labels=build_pairs({NODEPOOL: pool.name}))


def is_later_than(cpu_seconds: float) -> bool:
    """Return whether this process has used more than *cpu_seconds* of CPU time."""
    return process_time() > cpu_seconds


def main() -> None:
    """Run the benchmark that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", type=int, nargs="?", default=5_000)
    parser.add_argument("--limit", type=float, default=35.0, help="CPU seconds of an invocation (default: 35)")
    args = parser.parse_args()
    cluster = build_cluster(args.nodes)
    sys.stdout.write(f"{len(cluster.nodes)} nodes, {len(cluster.pods)} pods\n")
    cursor, invocations, evaluated = "", 0, set[str]()
    while not invocations or cursor:
        began, wall_began = process_time(), perf_counter()
        with pause_garbage_collection():
            decision = decide_node_disruption(
                ClusterState(cluster),
                options=SchedulingOptions(),
                cursor=cursor,
                is_time_over=partial(is_later_than, began + args.limit),
            )
        invocations, cursor = invocations + 1, decision.cursor
        evaluated |= {verdict.node for verdict in decision.verdicts}
        targets = sum(len(command.targets) for command in decision.commands)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        duration = f"{process_time() - began:.1f} s of CPU time ({perf_counter() - wall_began:.1f} s)"
        sys.stdout.write(
            f"invocation {invocations}: {duration}, {len(decision.commands)} commands for {targets} nodes, "
            f"{len(decision.verdicts)} verdicts, {len(evaluated)} nodes so far, {peak:.0f} MiB\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
