"""Scenarios in which the cluster does not change while functions run: reading it, and a burst of pods."""

from collections.abc import Callable
from typing import Final

from tests.benchmarks.scale.container import Call
from tests.benchmarks.scale.disruption_scenarios import MAX_SWEEP_INVOCATIONS, has_cursor
from tests.benchmarks.scale.results import Measure
from tests.benchmarks.scale.scale_world import MeteredInvocation, ScaleWorld, get_seconds
from tests.benchmarks.scale.seeding import PODS_PER_NODE, build_pod, list_replica_sets

CYCLE_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt")
BURST_PODS_PER_NODE: Final = 2
"""With 5,000 nodes, a burst of 10,000 pods."""
MAX_BURST_INVOCATIONS: Final = 10


def measure_cold_snapshot(world: ScaleWorld) -> tuple[Measure, ...]:
    """Run each function in a new container: it lists the cluster."""
    world.restart_containers()
    lifecycle = [world.invoke(function) for function in CYCLE_FUNCTIONS][1]
    return (
        Measure(name="snapshot of lifecycle", value=get_seconds(lifecycle), unit="s", goal=8, kind="seconds"),
        Measure(name="peak memory of lifecycle", value=_get_peak_mib(lifecycle), unit="MiB", goal=1024),
    )


def measure_quiet_tick(world: ScaleWorld) -> tuple[Measure, ...]:
    """Run each function again after a full sweep, and after another writer has written an unrelated object."""
    for function in CYCLE_FUNCTIONS:
        world.invoke(function)
    for _ in range(MAX_SWEEP_INVOCATIONS):
        if not has_cursor(world):
            break
        world.invoke("disrupt")
    world.invocations.clear()
    world.cluster.api.create("configmaps", {"metadata": {"name": "other"}}, "default")
    measures: list[Measure] = []
    for function in CYCLE_FUNCTIONS:
        invocation = world.invoke(function)
        measures += [
            Measure(name=f"{function}: duration", value=get_seconds(invocation), unit="s", goal=0.3, kind="seconds"),
            Measure(name=f"{function}: bytes from Kubernetes", value=invocation.kube_bytes / 1e3, unit="KB", goal=300),
        ]
    return tuple(measures)


def measure_burst(world: ScaleWorld) -> tuple[Measure, ...]:
    """Create pending pods of existing Deployments, and run provision until all of them have a NodeClaim."""
    node_count = len(world.cluster.api.list("nodes"))
    world.invoke("provision")
    world.invocations.clear()
    replica_sets = list_replica_sets(world)
    first_number = node_count * PODS_PER_NODE
    pod_count = node_count * BURST_PODS_PER_NODE
    for number in range(first_number, first_number + pod_count):
        world.cluster.api.restore("pods", build_pod(replica_sets[number % len(replica_sets)], number))
    fleet_seconds: list[float] = []
    world.on_call = _record_fleets(world, fleet_seconds)
    for _ in range(MAX_BURST_INVOCATIONS):
        fleets_before = len(fleet_seconds)
        world.invoke("provision")
        if len(fleet_seconds) == fleets_before:
            break
    fleets = sum(invocation.calls["ec2.create_fleet"] for invocation in world.invocations)
    return (
        Measure(name="pods", value=pod_count),
        Measure(name="first CreateFleet after", value=min(fleet_seconds), unit="s", kind="seconds"),
        Measure(name="last CreateFleet after", value=max(fleet_seconds), unit="s", goal=10, kind="seconds"),
        Measure(name="CreateFleet calls", value=fleets),
        Measure(name="NodeClaims", value=len(world.cluster.api.list("nodeclaims.karpenter.sh")) - node_count),
    )


def _record_fleets(world: ScaleWorld, fleet_seconds: list[float]) -> Callable[[str, Call, float], None]:
    """Return a listener that records when each CreateFleet was sent, counted over all invocations of the burst."""

    def record(function: str, call: Call, elapsed_seconds: float) -> None:
        if function == "provision" and call[:2] == ("ec2", "create_fleet"):
            usages = (invocation.usage for invocation in world.invocations)
            fleet_seconds.append(sum(usage.lambda_seconds for usage in usages if usage is not None) + elapsed_seconds)

    return record


def _get_peak_mib(invocation: MeteredInvocation) -> float:
    return 0.0 if invocation.usage is None else invocation.usage.peak_mib
