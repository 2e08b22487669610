"""Pod latency metrics: how long pods waited for the launch of their node, and until they were running."""

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.decisions.action import CreateNodeClaim
from shared.model.kubernetes.pod import Pod
from shared.report.journal.journal import ActionResult

TICK_INTERVAL: Final = timedelta(minutes=1)
"""Between two scheduled cycles: each pod that starts is counted by one of them."""


def compute_launch_waits(cluster: ClusterSnapshot, results: Iterable[ActionResult]) -> dict[str, float]:
    """Return percentiles of the age of the pods for which claims were created in a cycle; empty if there are none."""
    pods_with_claims = {
        pod
        for result in results
        if isinstance(result.action, CreateNodeClaim) and result.result == "done"
        for pod in result.action.pods
    }
    wait_seconds = [
        (cluster.taken_at - pod.meta.created_at).total_seconds()
        for pod in cluster.pods
        if pod.name in pods_with_claims and pod.meta.created_at is not None
    ]
    return _compute_percentiles("PodLaunchSeconds", wait_seconds)


def compute_start_times(cluster: ClusterSnapshot) -> dict[str, float]:
    """Return percentiles of the start time of the pods that became ready in the last minute on a newer node."""
    created_by_node = {node.name: node.meta.created_at for node in cluster.nodes}
    start_times: list[float] = []
    for pod in cluster.pods:
        start_seconds, node_created = _compute_start_seconds(pod, cluster), created_by_node.get(pod.node_name)
        pod_created = pod.meta.created_at
        if (
            start_seconds is not None
            and pod_created is not None
            and node_created is not None
            and node_created > pod_created
        ):
            start_times.append(start_seconds)
    return (
        {"StartedPods": float(len(start_times)), **_compute_percentiles("PodStartupSeconds", start_times)}
        if start_times
        else {}
    )


def _compute_start_seconds(pod: Pod, cluster: ClusterSnapshot) -> float | None:
    ready = find_condition(pod.conditions, "Ready")
    if (
        ready is None
        or not is_condition_true(pod.conditions, "Ready")
        or ready.since is None
        or pod.meta.created_at is None
    ):
        return None
    is_recent = cluster.taken_at - TICK_INTERVAL < ready.since <= cluster.taken_at
    return (ready.since - pod.meta.created_at).total_seconds() if is_recent else None


def _compute_percentiles(name: str, values: Sequence[float]) -> dict[str, float]:
    ranked = sorted(values)
    return {f"{name}P{share}": ranked[math.ceil(len(ranked) * share / 100) - 1] for share in (50, 95) if ranked}
