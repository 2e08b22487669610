"""Nodes: their conditions become taints, and who is silent for too long becomes Unknown."""

from datetime import datetime, timedelta
from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import condition, text_of, with_conditions
from sim.cluster.controllers.heartbeats import Heartbeats
from sim.cluster.controllers.informer import Informer, Obj
from sim.cluster.controllers.queue import Queue

GRACE: Final = timedelta(seconds=40)
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_PRESSURES: Final = {
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
_OURS: Final = frozenset({NOT_READY, UNREACHABLE, _UNSCHEDULABLE, *_PRESSURES.values()})
_LOST: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")

Wanted = tuple[str, str]


def wanted_taints(node: Obj) -> list[Wanted]:
    """Answer the (key, effect) that the conditions and the cordon of *node* ask for, in a fixed order."""
    wanted = []
    ready = (condition(node, "Ready") or {}).get("status", "Unknown")
    if ready != "True":
        key = NOT_READY if ready == "False" else UNREACHABLE
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    for kind, key in sorted(_PRESSURES.items()):
        if (condition(node, kind) or {}).get("status") == "True":
            wanted.append((key, "NoSchedule"))
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    return wanted


class NodeLifecycle:
    """The node lifecycle controller. A node without a Ready condition is left as it was made."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, heartbeats: Heartbeats) -> None:
        """Follow *nodes* of *api* and *heartbeats*."""
        self._clock, self._api, self._nodes, self._heartbeats = clock, api, nodes, heartbeats
        self._silent_since: dict[str, datetime] = {}
        self._queue: Queue[str] = Queue(clock, self._sync, "node lifecycle")
        nodes.on_change(lambda _event, _old, new: self._queue.add(new["metadata"]["name"]))
        heartbeats.on_change(self._on_heartbeat)
        for node in nodes.all():
            self._queue.add(node["metadata"]["name"])

    def _on_heartbeat(self, node: str) -> None:
        if self._heartbeats.is_silent(node):
            self._silent_since.setdefault(node, self._clock.now())
            self._queue.add_after(node, GRACE)
        else:
            self._silent_since.pop(node, None)

    def _sync(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        since = self._silent_since.get(name)
        if since is not None and (condition(node, "Ready") or {}).get("status") != "Unknown":
            left = since + GRACE - self._clock.now()
            if left > timedelta():
                self._queue.add_after(name, left)
            else:
                self._lose(name, node)
                return
        if condition(node, "Ready") is not None:
            self._taint(name, node)

    def _lose(self, name: str, node: Obj) -> None:
        silent = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        fresh = [{**(condition(node, kind) or {}), "type": kind, **silent} for kind in _LOST]
        self._api.patch(
            "nodes", name, {"status": {"conditions": with_conditions(node, fresh, self._clock.now())}}, "", "status"
        )
        for pod in self._api.pods_on(name):
            if (condition(pod, "Ready") or {}).get("status") == "True":
                lost = {"type": "Ready", "status": "False"}
                patch = {"status": {"conditions": with_conditions(pod, [lost], self._clock.now())}}
                self._api.patch("pods", pod["metadata"]["name"], patch, pod["metadata"]["namespace"], "status")

    def _taint(self, name: str, node: Obj) -> None:
        present = (node.get("spec") or {}).get("taints") or []
        wanted = wanted_taints(node)
        kept = [t for t in present if t["key"] not in _OURS or (t["key"], t.get("effect")) in wanted]
        have = {(taint["key"], taint.get("effect")) for taint in kept}
        now = text_of(self._clock.now())
        added = [
            {"key": key, "effect": effect, "timeAdded": now} for key, effect in wanted if (key, effect) not in have
        ]
        if added or kept != present:
            # A JSON merge patch replaces the list: the version makes sure that nobody else's taint is lost.
            version = node["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": kept + added}}
            self._api.patch("nodes", name, patch)
