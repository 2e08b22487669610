"""`make bench`: duration of a snapshot, a scheduling decision and a provisioning cycle; peak memory.

The pods are documents as an API server sends them, in pages of 500; everything else is the simulated cloud and cluster
in memory, whose own time is part of the cycle. Nothing is asserted: the numbers depend on the computer.
"""

import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from time import perf_counter
from typing import Final, TypeVar

import msgspec

from shared.cycles.catalog import run_catalog
from shared.cycles.lifecycle import run_lifecycle
from shared.cycles.provision import run_provision
from shared.cycles.setup.options_from_settings import build_scheduling_options
from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.scheduling.scheduler import solve
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.placement import Placement
from shared.ports.world import World
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from shared.take.snapshot import PLANNING_REQUEST, take_snapshot
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2, CloudEks, CloudParameters, CloudPricing
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.api_server.pages import ListOptions
from sim.time.virtual_clock import Clock
from sim.world import manifests
from sim.world.memory_ports import MemoryBucket, MemoryTable

Result = TypeVar("Result")
POD_COUNTS: Final = (1_000, 5_000, 20_000)
CLUSTER_NAME: Final = "joiner"
PODS_PER_PAGE: Final = 500
PODS_PATH: Final = "/api/v1/pods"
POD_CPU_REQUESTS: Final = ("100m", "250m", "500m", "1", "2")
POD_MEMORY_REQUESTS: Final = ("128Mi", "512Mi", "1Gi", "4Gi")
"""The pods use these sizes in turn."""


class PendingPodsKube(InMemoryKube):
    """An in-memory Kubernetes API with many pending pods that never change."""

    def __init__(self, api: ApiServer, pod_count: int) -> None:
        """Encode the pages of *count* pods."""
        super().__init__(api)
        self._pages = tuple(_encode_pod_pages(pod_count))

    def list_with(self, path: str, options: ListOptions) -> bytes:
        """Return a page of pods for the pod collection; for other paths, the page of the in-memory API."""
        if path == PODS_PATH:
            return self._pages[int(options.continue_token or 0)]
        return super().list_with(path, options)


class DiscardingMessageQueue:
    """A message queue without a receiver."""

    def add(self, function: str, body: str, after: timedelta) -> None:
        """Discard the message."""

    def add_batch(self, function: str, body: str, delays: Sequence[timedelta]) -> None:
        """Discard the messages."""


def build_benchmark_world(pod_count: int) -> World:
    """Return a world with a ready node class, a catalog and *count* pending pods."""
    clock = Clock()
    cloud, api = Cloud(clock, cluster=CLUSTER_NAME), ApiServer(clock)
    api.create("ec2nodeclasses.karpenter.k8s.aws", manifests.build_node_class(discovery=CLUSTER_NAME))
    template = manifests.build_node_template({"kubernetes.io/arch": ["amd64"]})
    api.create("nodepools.karpenter.sh", manifests.build_node_pool("default", template))
    world = World(
        settings=Settings(
            cluster_name=CLUSTER_NAME,
            region=cloud.region,
            instance_profile="joiner-node",
            launch_nodes_per_minute=0,
            launch_usd_per_hour=0,
            launch_pool_nodes_per_minute=0,
            launch_pool_usd_per_hour=0,
        ),
        kube=PendingPodsKube(api, pod_count),
        ec2=CloudEc2(cloud),
        parameters=CloudParameters(cloud),
        prices=CloudPricing(cloud),
        eks=CloudEks(cloud),
        mailbox=DiscardingMessageQueue(),
        table=MemoryTable(),
        bucket=MemoryBucket(),
        clock=clock.get_time,
        emit=lambda _: None,
    )
    run_catalog(world, "bench")
    run_lifecycle(world, "bench")
    return world


def format_benchmark_row(pod_count: int) -> str:
    """Return a row of the table for *count* pods: seconds, nodes and MiB."""
    world = build_benchmark_world(pod_count)
    snapshot_seconds, cluster = _measure_time(lambda: take_snapshot(world, PLANNING_REQUEST))
    solve_seconds, placement = _measure_time(lambda: _solve_cluster(world, cluster))
    cycle_seconds, cycle_report = _measure_time(lambda: run_provision(world, "bench"))
    launched = sum(len(outcome.group.claims) for outcome in cycle_report.outcomes if outcome.group is not None)
    return (
        f"{pod_count:>6}{snapshot_seconds:>9.2f}{solve_seconds:>9.2f}{cycle_seconds:>9.2f}{len(placement.new_nodes):>8}{launched:>10}"
        f"{len(placement.unschedulable):>8}{_get_peak_memory_mib():>10.0f}\n"
    )


def _solve_cluster(world: World, cluster: ClusterSnapshot) -> Placement:
    with pause_garbage_collection():
        return solve(ClusterState(cluster), options=build_scheduling_options(world.settings))


def _measure_time(function: Callable[[], Result]) -> tuple[float, Result]:
    started_at = perf_counter()
    result = function()
    return perf_counter() - started_at, result


def _get_peak_memory_mib() -> float:
    """Return the peak resident memory of this process in MiB; ru_maxrss has KiB on Linux, bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def _encode_pod_pages(pod_count: int) -> Iterator[bytes]:
    start_indexes = range(0, pod_count, PODS_PER_PAGE)
    for page_number, start_index in enumerate(start_indexes, 1):
        metadata = {"continue": str(page_number)} if page_number < len(start_indexes) else {}
        pods = [_build_pod(index) for index in range(start_index, min(start_index + PODS_PER_PAGE, pod_count))]
        yield msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": pods})


def _build_pod(number: int) -> dict[str, object]:
    requests = {
        "cpu": POD_CPU_REQUESTS[number % len(POD_CPU_REQUESTS)],
        "memory": POD_MEMORY_REQUESTS[number // len(POD_CPU_REQUESTS) % len(POD_MEMORY_REQUESTS)],
    }
    unschedulable_condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/0 nodes are available.",
    }
    return {
        "metadata": {
            "name": f"pod-{number:05}",
            "namespace": "default",
            "uid": f"uid-{number:05}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-11-21T08:00:00Z",
            "labels": {"app": f"app-{number % 50}"},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "registry/main:1", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Pending", "conditions": [unschedulable_condition]},
    }


if __name__ == "__main__":
    sys.stdout.write("  pods   decode    solve    cycle   nodes  launched  failed  peak MiB\n")
    for benchmark_pod_count in POD_COUNTS:
        sys.stdout.write(format_benchmark_row(benchmark_pod_count))
        sys.stdout.flush()
