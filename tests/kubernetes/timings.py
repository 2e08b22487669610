"""Timings of a deployment on a real control plane, with nodes that are ready at once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from sim.lambda_runtime.stack_template.synthesis import (
    UNLIMITED_LAUNCHES_SETTINGS,
    WATCH_SETTINGS,
    synthesize_template,
)
from sim.world.launch_costs import compute_excess_percent, measure_launch_costs
from sim.world.measurements import compute_percentile, is_running
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.arena import ONE_SECOND, POOLS, Arena, is_ready
from tests.kubernetes.manifests import make_deployment, make_node_pool, make_zone_spread

SETTINGS: Final = WATCH_SETTINGS | UNLIMITED_LAUNCHES_SETTINGS
NODE_SPEED: Final = 1000
"""A real instance joins within a minute: divided by this, its node is ready at once."""
NODE_GRACE_SECONDS: Final = 600
CHECK_INTERVAL: Final = timedelta(seconds=0.25)
REACTION_POD_CPU: Final = "15"
"""Request of a pod that needs a node of its own."""
REACTION_PAUSES: Final = (0.3, 2.1, 1.2, 3.4)
"""Seconds between two pods, in turn: the pods arrive at different times between two polls."""
WEB_POD_CPU: Final = "1500m"


@contextmanager
def start_arena(*, consolidates: bool = False) -> Iterator[Arena]:
    """Start a control plane with a deployment, its system node and a ready NodePool; stop it at the end."""
    with ControlPlane(users=(FUNCTIONS,), node_grace_seconds=NODE_GRACE_SECONDS) as plane:
        template = synthesize_template(settings=SETTINGS)
        arena = Arena(plane, template=template, node_speed=NODE_SPEED, schedule_period=None)
        arena.desk.apply(make_node_pool("default", consolidates=consolidates))
        arena.wait_until(
            lambda: all(is_ready(pool) for pool in arena.desk.list_objects(POOLS)), "the NodePool is ready"
        )
        yield arena


def measure_burst(arena: Arena, pod_count: int, *, spread_count: int = 0) -> float:
    """Return the seconds until *pod_count* new pods run: of two sizes, and *spread_count* of them spread over zones.

    The sizes are those with which Karpenter was measured.
    """
    spread = {"topologySpreadConstraints": [make_zone_spread("spread")]} if spread_count else {}
    small_count = (pod_count - spread_count) // 2
    deployments = [
        make_deployment("small", small_count, "900m", "3100Mi"),
        make_deployment("large", pod_count - spread_count - small_count, "3500m", "28Gi"),
        *([make_deployment("spread", spread_count, "900m", "3100Mi", **spread)] if spread_count else []),
    ]
    arena.desk.apply_all(deployments)
    return arena.wait_until(arena.build_running_check(pod_count), f"{pod_count} pods run", ONE_SECOND)


def measure_cost_excess(arena: Arena) -> float:
    """Return how much more than planned the launched nodes cost, in percent."""
    return compute_excess_percent(measure_launch_costs(arena.reporter.launch_actions, arena.playground.cloud))


def measure_reactions(arena: Arena, pod_count: int) -> list[float]:
    """Return the seconds from Unschedulable to CreateFleet of *pod_count* pods, one after the other, sorted.

    Kubernetes truncates the time of a condition to seconds, so every value is up to one second too long.
    """
    launch_times: list[datetime] = []
    clock = arena.playground.clock

    def record_launch(event: dict[str, Any]) -> None:
        if event["detail"].get("state") == "pending":
            launch_times.append(clock.get_time())

    arena.playground.cloud.events.subscribe(record_launch)
    delays = []
    for number in range(pod_count):
        launch_times.clear()
        delays.append(_measure_reaction(arena, f"single-{number}", launch_times))
        arena.advance(timedelta(seconds=REACTION_PAUSES[number % len(REACTION_PAUSES)]))
    return sorted(delays)


def _measure_reaction(arena: Arena, name: str, launch_times: list[datetime]) -> float:
    unschedulable_times: list[datetime] = []

    def is_node_requested_and_pod_running() -> bool:
        pods = arena.list_pods(name)
        if not unschedulable_times:
            unschedulable_times.extend(_list_unschedulable_times(pods))
        return bool(launch_times) and any(is_running(pod) for pod in pods)

    arena.desk.apply(make_deployment(name, 1, REACTION_POD_CPU, "1Gi"))
    arena.wait_until(is_node_requested_and_pod_running, f"{name} runs", CHECK_INTERVAL)
    assert unschedulable_times, f"{name} was never seen as unschedulable"
    return (launch_times[0] - unschedulable_times[0]).total_seconds()


def _list_unschedulable_times(pods: Iterable[Any]) -> list[datetime]:
    return [
        datetime.fromisoformat(condition["lastTransitionTime"])
        for pod in pods
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]


def measure_scale_down(arena: Arena, replica_counts: tuple[int, ...], quiet_period: timedelta) -> dict[str, float]:
    """Scale `web` through *replica_counts*; return, for each step, the seconds until its last change.

    A step has ended if neither nodes nor pods have changed for *quiet_period*.
    """
    arena.desk.apply(make_deployment("web", replica_counts[0], WEB_POD_CPU, "1Gi"))
    arena.wait_until(arena.build_running_check(replica_counts[0], "web"), "all pods run")
    _wait_until_settled(arena, quiet_period)
    seconds_by_step = {}
    for previous_count, count in pairwise(replica_counts):
        arena.desk.scale("Deployment", "web", count)
        seconds_by_step[f"{previous_count} to {count}"] = _wait_until_settled(arena, quiet_period)
        assert arena.build_running_check(count, "web")(), f"{count} pods should run"
    return seconds_by_step


def _wait_until_settled(arena: Arena, quiet_period: timedelta) -> float:
    """Wait until nodes and pods are unchanged for *quiet_period*; return the seconds until the last change."""
    clock = arena.playground.clock
    started_at = changed_at = clock.get_time()
    state: list[str] = []

    def is_settled() -> bool:
        nonlocal changed_at, state
        current_state = [
            *(node["metadata"]["name"] for node in arena.list_nodes()),
            *(f"{pod['metadata']['name']} {pod['spec'].get('nodeName')}" for pod in arena.list_pods("web")),
        ]
        if current_state != state:
            changed_at, state = clock.get_time(), current_state
        return clock.get_time() - changed_at >= quiet_period

    arena.wait_until(is_settled, "nodes and pods are settled", ONE_SECOND)
    return (changed_at - started_at).total_seconds()


def compute_reaction_percentiles(delays: list[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile of *delays*."""
    return compute_percentile(delays, 0.5) or 0.0, compute_percentile(delays, 0.95) or 0.0
