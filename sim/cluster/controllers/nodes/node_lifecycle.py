"""Node lifecycle: conditions become taints, and nodes without heartbeats become Unknown."""

from datetime import datetime, timedelta
from typing import Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.heartbeats import Heartbeats
from sim.cluster.controller_runtime.informer import Informer, Obj
from sim.cluster.controller_runtime.object_conditions import find_condition, format_timestamp, with_conditions
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

NODE_MONITOR_GRACE_PERIOD: Final = timedelta(seconds=40)
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_TAINT_KEY_BY_CONDITION: Final = {
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
_MANAGED_TAINT_KEYS: Final = frozenset({NOT_READY, UNREACHABLE, _UNSCHEDULABLE, *_TAINT_KEY_BY_CONDITION.values()})
_KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")

TaintKeyEffect = tuple[str, str]


def compute_expected_taints(node: Obj) -> list[TaintKeyEffect]:
    """Return the (key, effect) pairs required by the conditions and the cordon of *node*, in a fixed order."""
    expected_taints = []
    ready_status = (find_condition(node, "Ready") or {}).get("status", "Unknown")
    if ready_status != "True":
        key = NOT_READY if ready_status == "False" else UNREACHABLE
        expected_taints += [(key, "NoSchedule"), (key, "NoExecute")]
    for condition_type, key in sorted(_TAINT_KEY_BY_CONDITION.items()):
        if (find_condition(node, condition_type) or {}).get("status") == "True":
            expected_taints.append((key, "NoSchedule"))
    if (node.get("spec") or {}).get("unschedulable"):
        expected_taints.append((_UNSCHEDULABLE, "NoSchedule"))
    return expected_taints


class NodeLifecycleController:
    """The node lifecycle controller. A node without a Ready condition is not changed."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, heartbeats: Heartbeats) -> None:
        """Watch *nodes* of *api* and *heartbeats*."""
        self._clock, self._api, self._nodes, self._heartbeats = clock, api, nodes, heartbeats
        self._silent_since: dict[str, datetime] = {}
        self._queue: WorkQueue[str] = WorkQueue(clock, self._sync, "node lifecycle")
        nodes.add_event_handler(lambda _event, _old, new: self._queue.add(new["metadata"]["name"]))
        heartbeats.add_listener(self._handle_heartbeat)
        for node in nodes.list_all():
            self._queue.add(node["metadata"]["name"])

    def _handle_heartbeat(self, node: str) -> None:
        if self._heartbeats.is_silent(node):
            self._silent_since.setdefault(node, self._clock.get_time())
            self._queue.add_after(node, NODE_MONITOR_GRACE_PERIOD)
        else:
            self._silent_since.pop(node, None)

    def _sync(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        silent_since = self._silent_since.get(name)
        if silent_since is not None and (find_condition(node, "Ready") or {}).get("status") != "Unknown":
            remaining_time = silent_since + NODE_MONITOR_GRACE_PERIOD - self._clock.get_time()
            if remaining_time > timedelta():
                self._queue.add_after(name, remaining_time)
            else:
                self._mark_unreachable(name, node)
                return
        if find_condition(node, "Ready") is not None:
            self._update_taints(name, node)

    def _mark_unreachable(self, name: str, node: Obj) -> None:
        message = "Kubelet stopped posting node status."
        unknown_status = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": message}
        conditions = [
            {**(find_condition(node, kind) or {}), "type": kind, **unknown_status} for kind in _KUBELET_CONDITIONS
        ]
        status = {"conditions": with_conditions(node, conditions, self._clock.get_time())}
        self._api.patch("nodes", name, {"status": status}, "", "status")
        for pod in self._api.list_pods_on_node(name):
            if (find_condition(pod, "Ready") or {}).get("status") == "True":
                not_ready = {"type": "Ready", "status": "False"}
                patch = {"status": {"conditions": with_conditions(pod, [not_ready], self._clock.get_time())}}
                self._api.patch("pods", pod["metadata"]["name"], patch, pod["metadata"]["namespace"], "status")

    def _update_taints(self, name: str, node: Obj) -> None:
        current_taints = (node.get("spec") or {}).get("taints") or []
        expected_taints = compute_expected_taints(node)
        retained_taints = [
            t
            for t in current_taints
            if t["key"] not in _MANAGED_TAINT_KEYS or (t["key"], t.get("effect")) in expected_taints
        ]
        retained_keys = {(taint["key"], taint.get("effect")) for taint in retained_taints}
        now = format_timestamp(self._clock.get_time())
        added_taints = [
            {"key": key, "effect": effect, "timeAdded": now}
            for key, effect in expected_taints
            if (key, effect) not in retained_keys
        ]
        if added_taints or retained_taints != current_taints:
            # A JSON merge patch replaces the list: resourceVersion ensures that no taint of another writer is lost.
            version = node["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": retained_taints + added_taints}}
            self._api.patch("nodes", name, patch)
