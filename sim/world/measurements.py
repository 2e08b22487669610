"""The measurements of a scenario run: current counts, counts of an act, and how long pods waited."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.model.core.labels import NODEPOOL
from shared.model.core.units import parse_instant
from sim.cloud.cloud import Cloud
from sim.cluster.controller_runtime.object_conditions import find_condition, is_ready
from sim.world.embedded_world import EmbeddedWorld

MEASURED_NAMESPACE: Final = "default"


class ClusterSample(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of pods and nodes, and the cost, at one time."""

    sampled_at: datetime
    running_pods: int
    pending_pods: int
    joiner_nodes: int
    managed_nodes: int
    vcpus: int
    """Of the instances of Joiner's nodes."""
    cost_usd_per_hour: float
    """At synthetic prices."""
    unreplaced_pods: int = 0
    """Evicted pods that have no replacement yet: their controller creates it a moment after the eviction."""


class ActCounts(msgspec.Struct, kw_only=True):
    """Events counted since the start of an act."""

    launched: int = 0
    terminated: int = 0
    evicted: int = 0
    failed_calls: int = 0
    problems: set[str] = msgspec.field(default_factory=set)


class PodWaitTimes:
    """How long unschedulable pods waited: seconds from creation to the launch for them, and to running."""

    def __init__(self, world: EmbeddedWorld) -> None:
        """Subscribe to all pods."""
        self.seconds_to_launch: dict[str, float] = {}
        self.seconds_to_running: dict[str, float] = {}
        self._world = world
        self._unschedulable_uids: set[str] = set()
        world.cluster.api.subscribe("pods", self._handle_pod)

    def record_launch(self, pod_names: Iterable[str]) -> None:
        """Record that a launch for the pods *pod_names* (``shop/cart``) was sent now.

        Pods that have a node are skipped.
        """
        now = self._world.clock.get_time()
        for pod in self._world.cluster.list_pods():
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if name in pod_names and "nodeName" not in pod["spec"]:
                self.seconds_to_launch.setdefault(pod["metadata"]["uid"], _compute_age_seconds(pod, now))

    def _handle_pod(self, event_type: str, _old_pod: Mapping[str, Any] | None, pod: Mapping[str, Any] | None) -> None:
        if pod is None or event_type == "DELETED":
            return
        uid = pod["metadata"]["uid"]
        if any(condition.get("reason") == "Unschedulable" for condition in pod.get("status", {}).get("conditions", [])):
            self._unschedulable_uids.add(uid)
        if uid in self._unschedulable_uids and is_running(pod):
            self.seconds_to_running.setdefault(uid, _compute_age_seconds(pod, self._world.clock.get_time()))


def take_sample(world: EmbeddedWorld) -> ClusterSample:
    """Return the sample of the current time."""
    return build_sample(world.cluster.list_pods(MEASURED_NAMESPACE), world.cluster.api.list("nodes"), world.cloud)


def build_sample(pods: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]], cloud: Cloud) -> ClusterSample:
    """Return the counts of *pods* and *nodes*, and the current hourly cost of *cloud*."""
    pod_list, node_list = list(pods), list(nodes)
    running_count = sum(is_running(pod) for pod in pod_list)
    joiner_node_list = [node for node in node_list if is_joiner_node(node)]
    return ClusterSample(
        sampled_at=cloud.clock.get_time(),
        running_pods=running_count,
        pending_pods=sum(not is_finished(pod) for pod in pod_list) - running_count,
        joiner_nodes=len(joiner_node_list),
        managed_nodes=len(node_list) - len(joiner_node_list),
        vcpus=sum(get_vcpus(node) for node in joiner_node_list),
        cost_usd_per_hour=round(cloud.compute_hourly_cost(), 4),
        unreplaced_pods=count_unreplaced_pods(pod_list),
    )


def count_unreplaced_pods(pods: Iterable[Mapping[str, Any]]) -> int:
    """Return how many evicted pods their controllers have not replaced yet."""
    pod_list = list(pods)
    evicted_at_by_owner: dict[str, list[str]] = {}
    for pod in pod_list:
        target = find_condition(pod, "DisruptionTarget")
        if target is not None and "deletionTimestamp" in pod["metadata"]:
            evicted_at_by_owner.setdefault(_get_owner_uid(pod), []).append(target["lastTransitionTime"])
    unreplaced_count = 0
    for owner_uid, eviction_times in evicted_at_by_owner.items():
        replacement_count = sum(
            _get_owner_uid(pod) == owner_uid and pod["metadata"]["creationTimestamp"] >= min(eviction_times)
            for pod in pod_list
            if not is_finished(pod)
        )
        unreplaced_count += max(0, len(eviction_times) - replacement_count) if owner_uid else 0
    return unreplaced_count


def _get_owner_uid(pod: Mapping[str, Any]) -> str:
    """Return the UID of the controller of *pod*; "" if it has none."""
    references = pod["metadata"].get("ownerReferences", ())
    return next((str(reference["uid"]) for reference in references if reference.get("controller")), "")


def compute_measures(world: EmbeddedWorld, act_counts: ActCounts) -> dict[str, float]:
    """Return all measures for which a scenario can have expectations, by name."""
    sample = take_sample(world)
    nodes = world.cluster.api.list("nodes")
    other_node_names = {node["metadata"]["name"] for node in nodes if not is_joiner_node(node)}
    vcpu_counts = [get_vcpus(node) for node in nodes if is_joiner_node(node)] or [0]
    pods = world.cluster.list_pods(MEASURED_NAMESPACE)
    return {
        "running": sample.running_pods,
        "pending": sample.pending_pods,
        "nodes": sample.joiner_nodes,
        "managedNodes": sample.managed_nodes,
        "launched": act_counts.launched,
        "terminated": act_counts.terminated,
        "evicted": act_counts.evicted,
        "onManaged": sum(is_running(pod) and pod["spec"].get("nodeName") in other_node_names for pod in pods),
        "largestVcpus": max(vcpu_counts),
        "smallestVcpus": min(vcpu_counts),
        "usdPerHour": sample.cost_usd_per_hour,
        "claims": len(world.cluster.api.list("nodeclaims.karpenter.sh")),
        "problems": len(act_counts.problems),
        "failedCalls": act_counts.failed_calls,
    }


def is_running(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod is running, ready and not terminating."""
    is_alive = pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    return is_alive and is_ready(pod)


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod has ended or is terminating."""
    ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return ended or "deletionTimestamp" in pod["metadata"]


def is_joiner_node(node: Mapping[str, Any]) -> bool:
    """Return whether the node belongs to a NodePool."""
    return NODEPOOL in node["metadata"].get("labels", {})


def get_vcpus(node: Mapping[str, Any]) -> int:
    """Return the vCPUs of a node."""
    return int(node["status"]["capacity"]["cpu"])


def compute_percentile(values: Iterable[float], share: float) -> float | None:
    """Return the value below which *share* of *values* lie (nearest rank); None if there are no values.

    >>> compute_percentile([1, 2, 3, 4], 0.5), compute_percentile([], 0.5)
    (2, None)
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def _compute_age_seconds(pod: Mapping[str, Any], now: datetime) -> float:
    return (now - parse_instant(pod["metadata"]["creationTimestamp"])).total_seconds()
