"""Pods that nobody looks after: those of a node that is gone are removed."""

from datetime import timedelta
from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import is_terminal, with_conditions
from sim.cluster.controllers.informer import Informer, Key, Obj, key_of
from sim.cluster.controllers.queue import Queue

QUARANTINE: Final = timedelta(seconds=40)


class PodCollector:
    """The pod garbage collector; a node must have been missing for the quarantine."""

    def __init__(
        self, clock: Clock, api: ApiServer, nodes: Informer, pods: Informer, quarantine: timedelta = QUARANTINE
    ) -> None:
        """Follow *nodes* and *pods* of *api*."""
        self._clock, self._api, self._nodes, self._pods, self._quarantine = clock, api, nodes, pods, quarantine
        self._queue: Queue[Key] = Queue(clock, self._sync, "pod gc")
        nodes.on_change(self._on_node)
        pods.on_change(self._on_pod)

    def _on_node(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            for pod in self._api.pods_on(new["metadata"]["name"]):
                self._queue.add_after(key_of(pod), self._quarantine)

    def _on_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            return
        name = new["spec"].get("nodeName")
        if name and (old is None or not old["spec"].get("nodeName")) and self._nodes.get(name) is None:
            self._queue.add_after(key_of(new), self._quarantine)

    def _sync(self, key: Key) -> None:
        pod = self._pods.get(key[1], key[0])
        if pod is None or self._nodes.get(pod["spec"].get("nodeName") or "") is not None:
            return
        if not is_terminal(pod):
            fresh = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            conditions = with_conditions(pod, [fresh], self._clock.now())
            self._api.patch("pods", key[1], {"status": {"phase": "Failed", "conditions": conditions}}, key[0], "status")
        self._api.delete("pods", key[1], key[0], grace_period_seconds=0)
