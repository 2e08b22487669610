"""NoExecute taints: pods that do not tolerate them go at once, those that do for a while go after it."""

from datetime import datetime, timedelta

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import instant_of, is_active
from sim.cluster.controllers.informer import Informer, Key, Obj, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.scheduler_match import tolerates


def tolerated_for(pod: Obj, taints: list[Obj]) -> timedelta | None:
    """Answer how long *pod* may stay under the NoExecute *taints*; none: for ever."""
    tolerations = pod["spec"].get("tolerations") or []
    used: list[Obj] = []
    for taint in taints:
        first = next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)
        if first is None:
            return timedelta()
        used.append(first)
    limits = [
        max(0, toleration["tolerationSeconds"])
        for toleration in used
        if toleration.get("tolerationSeconds") is not None
    ]
    return timedelta(seconds=min(limits)) if limits else None


class TaintEviction:
    """The taint eviction controller."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, pods: Informer) -> None:
        """Follow *nodes* and *pods* of *api*."""
        self._clock, self._api, self._nodes, self._pods = clock, api, nodes, pods
        self._since: dict[Key, datetime] = {}
        self._queue: Queue[Key] = Queue(clock, self._sync, "taint eviction")
        nodes.on_change(self._on_node)
        pods.on_change(self._on_pod)

    def _on_node(self, event: str, old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            return
        if no_execute(new) != (no_execute(old) if old is not None else []):
            for pod in self._api.pods_on(new["metadata"]["name"]):
                self._queue.add(key_of(pod))

    def _on_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        key = key_of(new)
        if event == "DELETED":
            self._since.pop(key, None)
            self._queue.forget(key)
        elif new["spec"].get("nodeName") and (old is None or not old["spec"].get("nodeName")):
            node = self._nodes.get(new["spec"]["nodeName"])
            if node is not None and no_execute(node):
                self._queue.add(key)

    def _sync(self, key: Key) -> None:
        pod = self._pods.get(key[1], key[0])
        node = None if pod is None else self._nodes.get(pod["spec"].get("nodeName") or "")
        if pod is None or node is None or not is_active(pod):
            return
        taints = no_execute(node)
        limit = tolerated_for(pod, taints) if taints else None
        if limit is None:
            self._since.pop(key, None)
            return
        end = self._since.setdefault(key, self._begin(taints)) + limit
        if end > self._clock.now():
            self._queue.add_after(key, end - self._clock.now())
        else:
            self._since.pop(key, None)
            self._api.delete("pods", key[1], key[0])

    def _begin(self, taints: list[Obj]) -> datetime:
        now = self._clock.now()
        return max((instant_of(taint["timeAdded"]) for taint in taints if taint.get("timeAdded")), default=now)


def no_execute(node: Obj) -> list[Obj]:
    """Answer the NoExecute taints of *node*."""
    return [taint for taint in (node.get("spec") or {}).get("taints") or [] if taint.get("effect") == "NoExecute"]
