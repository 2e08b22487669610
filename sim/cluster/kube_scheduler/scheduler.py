"""Simulated kube-scheduler: binds every pending pod to a node, or reports why no node is feasible.

A pod that cannot be scheduled loses its nominated node name, as in all versions except 1.34.

Known differences: no preemption (its message is that of a cluster without lower priorities), simplified scores (least
and balanced allocation, preferred affinity, PreferNoSchedule taints, preferred inter-pod rules), no service-based
default spreading; ties are resolved by the first node name instead of randomly.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Fault
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.object_conditions import find_condition, is_terminal, with_conditions
from sim.cluster.kube_scheduler.dynamic_resources import DeviceFilter
from sim.cluster.kube_scheduler.node_cache import NodeCache
from sim.cluster.kube_scheduler.node_selection import NodeFinder
from sim.cluster.kube_scheduler.nominator import Nominator, get_nominated_node_name
from sim.cluster.kube_scheduler.pod_shape import ShapeCache
from sim.cluster.kube_scheduler.scheduling_queue import QueuedPodInfo
from sim.cluster.kube_scheduler.volume_binding import (
    SELECTED_NODE_ANNOTATION,
    PodVolumeClaims,
    VolumeFilter,
    list_claim_names,
)
from sim.cluster.matching import Obj
from sim.time.virtual_clock import Clock, Timer

SCHEDULER_NAME: Final = "default-scheduler"
SCHEDULING_DELAY: Final = timedelta(milliseconds=10)


class Scheduler:
    """The default scheduler of one cluster."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Subscribe to the changes of *api*."""
        self._clock, self._api = clock, api
        self.log: Callable[[str], None] = lambda _: None
        """Receives the log lines about unschedulable pods."""
        self.nodes, self.volumes, self._devices = NodeCache(), VolumeFilter(api), DeviceFilter(api)
        self._shapes = ShapeCache()
        self._queued_pods: dict[str, QueuedPodInfo] = {}
        self._binding_pods: dict[str, tuple[str, QueuedPodInfo]] = {}
        self._node_finder, self._nominator = NodeFinder(self.nodes, self.volumes), Nominator(self.nodes)
        self._enqueued_count = 0
        self._requeue_all = self._requeue_inter_pod = False
        self._timer: tuple[datetime, Timer] | None = None
        self._watch()

    def _watch(self) -> None:
        for resource, handler in (
            ("namespaces", self._handle_namespace_event),
            ("nodes", self._handle_node_event),
            ("pods", self._handle_pod_event),
        ):
            for obj in self._api.list(resource):
                handler("ADDED", None, obj)
            self._api.subscribe(resource, handler)
        volumes = self.volumes
        volume_informers = (volumes.claims, volumes.volumes, volumes.storage_classes, volumes.csi_nodes)
        for informer in (*volume_informers, *self._devices.informers):
            informer.add_event_handler(lambda *_: self._request_requeue())

    def list_pending_pods(self) -> list[str]:
        """Return "namespace/name" of the pods that wait for a node, sorted."""
        return sorted(self._queued_pods)

    def _handle_namespace_event(self, _event: str, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.nodes.read_namespace(new)
            self._node_finder.clear_failures()
            self._request_requeue()

    def _handle_node_event(self, event: str, old: Obj | None, new: Obj | None) -> None:
        node: Obj = new or old or {}
        if event == "DELETED":
            self.nodes.remove_node(node["metadata"]["name"])
            self._request_requeue()
        elif self.nodes.read_node(node):
            self._request_requeue()

    def _handle_pod_event(self, event: str, old: Obj | None, new: Obj | None) -> None:
        pod: Obj = new or old or {}
        key = format_pod_key(pod)
        if event == "DELETED" or is_terminal(pod):
            self._remove_pod(key)
        elif old is not None and _has_same_requirements(old, pod) and self._handle_status_update(key, pod):
            return
        elif pod["spec"].get("nodeName"):
            self._add_bound_pod(key, pod)
        else:
            self._enqueue_pod(key, pod)

    def _handle_status_update(self, key: str, pod: Obj) -> bool:
        """Store the new status of *pod*; return whether nothing else has to be done for it.

        Only the status of *pod* has changed.
        """
        queued_pod = self._queued_pods.get(key)
        if queued_pod is not None:
            queued_pod.pod = pod
            self._update_nomination(key, queued_pod)
        return queued_pod is not None or (key in self.nodes.counted_pods and bool(pod["spec"].get("nodeName")))

    def _update_nomination(self, key: str, queued_pod: QueuedPodInfo) -> None:
        """Update the nomination of a queued pod; a nomination that ends can free room for other pods.

        A new nomination is no reason to retry the pod itself.
        """
        if self._nominator.update_nomination(key, queued_pod.pod, queued_pod.shape):
            self._request_requeue()

    def _remove_pod(self, key: str) -> None:
        self._queued_pods.pop(key, None)
        self._binding_pods.pop(key, None)
        self._nominator.remove_nomination(key)
        if self.nodes.remove_pod(key):
            self._request_requeue()

    def _add_bound_pod(self, key: str, pod: Obj) -> None:
        self._queued_pods.pop(key, None)
        self._binding_pods.pop(key, None)
        self._nominator.remove_nomination(key)
        shape = self._shapes.get_shape(pod)
        terminating = bool(pod["metadata"].get("deletionTimestamp"))
        if self.nodes.add_pod(key, pod["spec"]["nodeName"], shape, terminating=terminating):
            self._request_requeue(only_inter_pod=True)

    def _enqueue_pod(self, key: str, pod: Obj) -> None:
        spec = pod["spec"]
        if spec.get("schedulerName", SCHEDULER_NAME) != SCHEDULER_NAME or key in self._binding_pods:
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._queued_pods.pop(key, None)
            return
        if spec.get("schedulingGates"):
            self._clock.call_after(SCHEDULING_DELAY, lambda: self._report_gated(key), f"scheduler {key}")
            return
        self._enqueued_count += 1
        due_at = self._clock.get_time() + SCHEDULING_DELAY
        self._queued_pods[key] = QueuedPodInfo(pod, self._shapes.get_shape(pod), self._enqueued_count, due_at)
        self._update_nomination(key, self._queued_pods[key])
        self._schedule_run(due_at)

    def _report_gated(self, key: str) -> None:
        namespace, name = key.split("/", 1)
        try:
            pod = self._api.get("pods", name, namespace)
            self._record_failure(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
        except Fault:
            return

    def _request_requeue(self, *, only_inter_pod: bool = False) -> None:
        """Requeue unschedulable pods after a cluster change.

        If *only_inter_pod*, only pods with inter-pod rules (spread, affinity) are requeued.
        """
        self._requeue_inter_pod = True
        self._requeue_all = self._requeue_all or not only_inter_pod
        if self._queued_pods or self._binding_pods:
            self._schedule_run(self._clock.get_time() + SCHEDULING_DELAY)

    def _schedule_run(self, run_at: datetime) -> None:
        if self._timer is not None:
            if self._timer[0] <= run_at:
                return
            self._timer[1].cancel()
        self._timer = (run_at, self._clock.call_at(run_at, self._run, "scheduler"))

    def _run(self) -> None:
        self._timer = None
        self._finish_binding()
        self._requeue_unschedulable_pods()
        now = self._clock.get_time()
        due_pods = [entry for entry in self._queued_pods.values() if entry.due is not None and entry.due <= now]
        for queued_pod in sorted(due_pods, key=QueuedPodInfo.get_sort_key):
            self._schedule_pod(queued_pod)
        due_times = [entry.due for entry in self._queued_pods.values() if entry.due is not None]
        if self._requeue_all or self._requeue_inter_pod:
            due_times.append(now + SCHEDULING_DELAY)
        if due_times and self._queued_pods:
            self._schedule_run(min(due_times))

    def _requeue_unschedulable_pods(self) -> None:
        if self._requeue_all or self._requeue_inter_pod:
            for queued_pod in self._queued_pods.values():
                if queued_pod.due is None and (self._requeue_all or queued_pod.shape.has_inter_pod_rules):
                    queued_pod.due = queued_pod.compute_backoff_end()
        self._requeue_all = self._requeue_inter_pod = False

    def _schedule_pod(self, queued_pod: QueuedPodInfo) -> None:
        queued_pod.attempts += 1
        queued_pod.last_attempt = self._clock.get_time()
        queued_pod.due = None
        volume_claims = (
            self.volumes.resolve_claims(queued_pod.pod, queued_pod.shape)
            if queued_pod.shape.claim_names or queued_pod.shape.ephemeral_volume_names
            else None
        )
        nominated_pods_filter = self._nominator.build_filter(
            format_pod_key(queued_pod.pod), queued_pod.pod, queued_pod.shape
        )
        pod_devices = self._devices.resolve_claims(queued_pod.pod)
        node, message = self._node_finder.find_node(
            queued_pod.shape, volume_claims, nominated_pods_filter, self._devices.build_filter(pod_devices)
        )
        try:
            if node is None:
                pod_key = "/".join(format_pod_key(queued_pod.pod))
                self.log(f'"Unable to schedule pod; no fit; waiting" pod="{pod_key}" err="{message}"')
                self._record_failure(queued_pod.pod, "Unschedulable", message)
            else:
                self._devices.reserve_claims(pod_devices, queued_pod.pod, node)
                self._assume_pod(queued_pod, node, volume_claims)
        except Fault:
            queued_pod.due = queued_pod.compute_backoff_end()

    def _record_failure(self, pod: Obj, reason: str, message: str) -> None:
        old_condition = find_condition(pod, "PodScheduled") or {}
        removed_nomination = {"nominatedNodeName": None} if get_nominated_node_name(pod) else {}
        current_condition = (old_condition.get("status"), old_condition.get("reason"), old_condition.get("message"))
        if current_condition == ("False", reason, message) and not removed_nomination:
            return
        new_condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        conditions, metadata = with_conditions(pod, [new_condition], self._clock.get_time()), pod["metadata"]
        patch = {"status": {"conditions": conditions, **removed_nomination}}
        self._api.patch("pods", metadata["name"], patch, metadata["namespace"], "status")

    def _assume_pod(self, queued_pod: QueuedPodInfo, node: str, volume_claims: PodVolumeClaims | None) -> None:
        """Count the pod on *node* at once; bind it, or have its claims bound first."""
        metadata, key = queued_pod.pod["metadata"], format_pod_key(queued_pod.pod)
        self._nominator.remove_nomination(key)
        self.nodes.add_pod(key, node, queued_pod.shape)
        self._request_requeue(only_inter_pod=True)
        try:
            if volume_claims is not None and volume_claims.unbound_claims:
                for claim in volume_claims.unbound_claims:
                    self._patch_selected_node(claim, node)
                self._binding_pods[key] = (node, self._queued_pods.pop(key))
            else:
                self._api.bind(metadata["namespace"], metadata["name"], node)
        except Fault:
            self.nodes.remove_pod(key)
            self._update_nomination(key, queued_pod)
            raise

    def _patch_selected_node(self, claim: Obj, node: str | None) -> None:
        metadata = claim["metadata"]
        patch = {"metadata": {"annotations": {SELECTED_NODE_ANNOTATION: node}}}
        self._api.patch("persistentvolumeclaims", metadata["name"], patch, metadata["namespace"])

    def _finish_binding(self) -> None:
        """Bind the pods whose claims are bound by now; requeue the pods of nodes that were deleted."""
        for key, (node, queued_pod) in sorted(self._binding_pods.items(), key=lambda item: item[0]):
            namespace, name = key.split("/", 1)
            claims = [
                self.volumes.claims.get(claim, namespace)
                for claim in list_claim_names(queued_pod.pod, queued_pod.shape)
            ]
            try:
                if node not in self.nodes.node_infos:
                    self._remove_selected_node(claims)
                    self._requeue_failed_binding(key, queued_pod)
                elif all(claim is not None and claim["status"].get("phase") == "Bound" for claim in claims):
                    self._api.bind(namespace, name, node)
            except Fault:
                self._requeue_failed_binding(key, queued_pod)

    def _remove_selected_node(self, claims: list[Obj | None]) -> None:
        for claim in claims:
            if claim is not None and not claim["spec"].get("volumeName"):
                self._patch_selected_node(claim, None)

    def _requeue_failed_binding(self, key: str, queued_pod: QueuedPodInfo) -> None:
        del self._binding_pods[key]
        self.nodes.remove_pod(key)
        queued_pod.due = queued_pod.compute_backoff_end()
        self._queued_pods[key] = queued_pod
        self._update_nomination(key, queued_pod)


def format_pod_key(pod: Obj) -> str:
    """Return "namespace/name"."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _has_same_requirements(old: Obj, new: Obj) -> bool:
    """Return whether nothing differs that influences the scheduling of the pod."""
    before, after = old["metadata"], new["metadata"]
    return (
        before.get("deletionTimestamp") == after.get("deletionTimestamp")
        and before.get("labels") == after.get("labels")
        and bool(old["spec"] == new["spec"])
    )
