"""ReplicaSets: create the desired number of pods, and choose which surplus pods to delete."""

import math
from datetime import datetime
from typing import Any

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import (
    Informer,
    NamespacedName,
    Obj,
    find_controller_reference,
    get_object_key,
    index_by_controller,
)
from sim.cluster.controller_runtime.object_conditions import find_condition, is_active, is_ready, parse_timestamp
from sim.cluster.controller_runtime.templates import build_pod_from_template
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSetController:
    """The ReplicaSet controller."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Watch the ReplicaSets of *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods = clock, api, pods
        self.replica_sets = Informer(api, "replicasets.apps", index_by_controller)
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "replicaset")
        self.replica_sets.enqueue_all(self._queue.add)
        pods.enqueue_controllers("ReplicaSet", self._queue.add)

    def _sync(self, key: NamespacedName) -> None:
        replica_set = self.replica_sets.get(key[1], key[0])
        if replica_set is None:
            return
        active_pods = [pod for pod in self._pods.list_by_index(replica_set["metadata"]["uid"]) if is_active(pod)]
        if not replica_set["metadata"].get("deletionTimestamp"):
            desired_replicas = replica_set["spec"].get("replicas", 1)
            for _ in range(desired_replicas - len(active_pods)):
                self._api.create("pods", build_pod_from_template(replica_set, "ReplicaSet"), key[0])
            if len(active_pods) > desired_replicas:
                for pod in self._select_surplus_pods(replica_set, active_pods, len(active_pods) - desired_replicas):
                    self._api.delete("pods", pod["metadata"]["name"], key[0])
            active_pods = [pod for pod in self._pods.list_by_index(replica_set["metadata"]["uid"]) if is_active(pod)]
        self._update_status(replica_set, active_pods)

    def _select_surplus_pods(self, replica_set: Obj, active_pods: list[Obj], count: int) -> list[Obj]:
        related_pods = self._list_related_pods(replica_set)
        return sort_pods_for_deletion(active_pods, related_pods, self._clock.get_time())[:count]

    def _list_related_pods(self, replica_set: Obj) -> list[Obj]:
        """Return the active pods of all ReplicaSets that the same Deployment owns."""
        owner = find_controller_reference(replica_set)
        siblings = [replica_set] if owner is None else self.replica_sets.list_by_index(owner["uid"])
        return [
            pod
            for sibling in siblings
            for pod in self._pods.list_by_index(sibling["metadata"]["uid"])
            if is_active(pod)
        ]

    def _update_status(self, replica_set: Obj, active_pods: list[Obj]) -> None:
        min_ready_seconds = replica_set["spec"].get("minReadySeconds", 0)
        ready_pods = [pod for pod in active_pods if is_ready(pod)]
        available_count, next_available_at = count_available(ready_pods, min_ready_seconds, self._clock.get_time())
        labels = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
        labeled_pods = [pod for pod in active_pods if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
        status: dict[str, Any] = {
            "replicas": len(active_pods),
            "fullyLabeledReplicas": len(labeled_pods),
            "readyReplicas": len(ready_pods),
            "availableReplicas": available_count,
            "observedGeneration": replica_set["metadata"].get("generation", 0),
        }
        namespace, name = get_object_key(replica_set)
        if next_available_at is not None:
            self._queue.add_after((namespace, name), next_available_at - self._clock.get_time())
        self._api.patch("replicasets.apps", name, {"status": status}, namespace, "status")


def count_available(ready_pods: list[Obj], min_ready_seconds: int, now: datetime) -> tuple[int, datetime | None]:
    """Count the pods of *ready_pods* that have been ready for long enough; also return when the next one will be."""
    if not min_ready_seconds:
        return len(ready_pods), None
    ready_times = sorted(_get_ready_time(pod) for pod in ready_pods)
    recent_ready_times = [instant for instant in ready_times if (now - instant).total_seconds() < min_ready_seconds]
    available_times = [
        datetime.fromtimestamp(instant.timestamp() + min_ready_seconds, tz=now.tzinfo) for instant in recent_ready_times
    ]
    return len(ready_pods) - len(recent_ready_times), min(available_times, default=None)


def sort_pods_for_deletion(pods: list[Obj], related_pods: list[Obj], now: datetime) -> list[Obj]:
    """Return *pods* in the order in which they are deleted.

    Unassigned, pending, not ready, low deletion cost; then pods that share their node with the most of *related_pods*
    (counted once, before any deletion), the most recently ready, the most restarted, the youngest. Ages are compared by
    their power of two, as in kube-controller-manager, so that it is not always the newest pods; then by uid.
    """
    related_count_by_node: dict[str, int] = {}
    for pod in related_pods:
        node = pod["spec"].get("nodeName") or ""
        related_count_by_node[node] = related_count_by_node.get(node, 0) + 1
    return sorted(pods, key=lambda pod: _build_deletion_sort_key(pod, related_count_by_node, now))


def _build_deletion_sort_key(pod: Obj, related_count_by_node: dict[str, int], now: datetime) -> tuple[Any, ...]:
    node = pod["spec"].get("nodeName") or ""
    ready = is_ready(pod)
    status, metadata = pod.get("status") or {}, pod["metadata"]
    restarts = max((entry.get("restartCount", 0) for entry in status.get("containerStatuses") or []), default=0)
    return (
        bool(node),
        _PHASE_ORDER.get(status.get("phase", ""), 0),
        ready,
        _parse_deletion_cost(pod),
        -related_count_by_node.get(node, 0),
        _compute_age_magnitude(_get_ready_time(pod), now) if ready else 0,
        -restarts,
        _compute_age_magnitude(parse_timestamp(metadata["creationTimestamp"]), now),
        metadata["uid"],
        metadata["name"],
    )


def _compute_age_magnitude(since: datetime, now: datetime) -> int:
    nanoseconds = int((now - since).total_seconds() * 1_000_000_000)
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _get_ready_time(pod: Obj) -> datetime:
    ready_condition = find_condition(pod, "Ready") or {}
    return parse_timestamp(ready_condition.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])


def _parse_deletion_cost(pod: Obj) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST_ANNOTATION, "0"))
    except ValueError:
        return 0
