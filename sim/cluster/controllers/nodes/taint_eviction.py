"""NoExecute taints: pods without a toleration are deleted at once, others when their toleration time is over."""

from datetime import datetime, timedelta

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import is_active, parse_timestamp
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.matching import is_taint_tolerated
from sim.time.virtual_clock import Clock


def compute_toleration_time(pod: Obj, taints: list[Obj]) -> timedelta | None:
    """Return how long *pod* may stay under the NoExecute *taints*; None: forever."""
    tolerations = pod["spec"].get("tolerations") or []
    used_tolerations: list[Obj] = []
    for taint in taints:
        matching_toleration = next(
            (toleration for toleration in tolerations if is_taint_tolerated(toleration, taint)), None
        )
        if matching_toleration is None:
            return timedelta()
        used_tolerations.append(matching_toleration)
    limits = [
        max(0, toleration["tolerationSeconds"])
        for toleration in used_tolerations
        if toleration.get("tolerationSeconds") is not None
    ]
    return timedelta(seconds=min(limits)) if limits else None


class TaintEvictionController:
    """The taint eviction controller."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, pods: Informer) -> None:
        """Watch *nodes* and *pods* of *api*."""
        self._clock, self._api, self._nodes, self._pods = clock, api, nodes, pods
        self._tainted_since: dict[NamespacedName, datetime] = {}
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "taint eviction")
        nodes.add_event_handler(self._handle_node)
        pods.add_event_handler(self._handle_pod)

    def _handle_node(self, event: str, old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            return
        if filter_no_execute_taints(new) != (filter_no_execute_taints(old) if old is not None else []):
            for pod in self._api.list_pods_on_node(new["metadata"]["name"]):
                self._queue.add(get_object_key(pod))

    def _handle_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        key = get_object_key(new)
        if event == "DELETED":
            self._tainted_since.pop(key, None)
            self._queue.discard(key)
        elif new["spec"].get("nodeName") and (old is None or not old["spec"].get("nodeName")):
            node = self._nodes.get(new["spec"]["nodeName"])
            if node is not None and filter_no_execute_taints(node):
                self._queue.add(key)

    def _sync(self, key: NamespacedName) -> None:
        pod = self._pods.get(key[1], key[0])
        node = None if pod is None else self._nodes.get(pod["spec"].get("nodeName") or "")
        if pod is None or node is None or not is_active(pod):
            return
        taints = filter_no_execute_taints(node)
        toleration_time = compute_toleration_time(pod, taints) if taints else None
        if toleration_time is None:
            self._tainted_since.pop(key, None)
            return
        delete_at = self._tainted_since.setdefault(key, self._compute_taint_start(taints)) + toleration_time
        if delete_at > self._clock.get_time():
            self._queue.add_after(key, delete_at - self._clock.get_time())
        else:
            self._tainted_since.pop(key, None)
            self._api.delete("pods", key[1], key[0])

    def _compute_taint_start(self, taints: list[Obj]) -> datetime:
        now = self._clock.get_time()
        return max((parse_timestamp(taint["timeAdded"]) for taint in taints if taint.get("timeAdded")), default=now)


def filter_no_execute_taints(node: Obj) -> list[Obj]:
    """Return the NoExecute taints of *node*."""
    return [taint for taint in (node.get("spec") or {}).get("taints") or [] if taint.get("effect") == "NoExecute"]
