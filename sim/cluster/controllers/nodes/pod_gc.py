"""Pod garbage collection: pods of nodes that no longer exist are deleted."""

from datetime import timedelta
from typing import Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import is_terminal, with_conditions
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

QUARANTINE_DELAY: Final = timedelta(seconds=40)


class PodGarbageCollector:
    """The pod garbage collector; a node must have been missing for the quarantine time."""

    def __init__(
        self, clock: Clock, api: ApiServer, nodes: Informer, pods: Informer, quarantine: timedelta = QUARANTINE_DELAY
    ) -> None:
        """Watch *nodes* and *pods* of *api*."""
        self._clock, self._api, self._nodes, self._pods, self._quarantine = clock, api, nodes, pods, quarantine
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "pod gc")
        nodes.add_event_handler(self._handle_node)
        pods.add_event_handler(self._handle_pod)

    def _handle_node(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            for pod in self._api.list_pods_on_node(new["metadata"]["name"]):
                self._queue.add_after(get_object_key(pod), self._quarantine)

    def _handle_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            return
        node_name = new["spec"].get("nodeName")
        if node_name and (old is None or not old["spec"].get("nodeName")) and self._nodes.get(node_name) is None:
            self._queue.add_after(get_object_key(new), self._quarantine)

    def _sync(self, key: NamespacedName) -> None:
        pod = self._pods.get(key[1], key[0])
        if pod is None or self._nodes.get(pod["spec"].get("nodeName") or "") is not None:
            return
        if not is_terminal(pod):
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            conditions = with_conditions(pod, [condition], self._clock.get_time())
            self._api.patch("pods", key[1], {"status": {"phase": "Failed", "conditions": conditions}}, key[0], "status")
        self._api.delete("pods", key[1], key[0], grace_period_seconds=0)
