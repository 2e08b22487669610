"""ReplicaSets: as many pods as they say, and which pods go when there are too many."""

import math
from datetime import datetime
from typing import Any

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import condition, instant_of, is_active, is_ready
from sim.cluster.controllers.informer import Informer, Key, Obj, by_controller, controller_of, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.controllers.templates import pod_from_template

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSets:
    """The ReplicaSet controller."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Follow *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods = clock, api, pods
        self.sets = Informer(api, "replicasets.apps", by_controller)
        self._queue: Queue[Key] = Queue(clock, self._sync, "replicaset")
        self.sets.on_change(lambda _event, _old, new: self._queue.add(key_of(new)))
        pods.on_change(self._on_pod)
        for obj in self.sets.all():
            self._queue.add(key_of(obj))

    def _on_pod(self, _event: str, _old: Obj | None, new: Obj) -> None:
        owner = controller_of(new)
        if owner is not None and owner["kind"] == "ReplicaSet":
            self._queue.add((new["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: Key) -> None:
        replica_set = self.sets.get(key[1], key[0])
        if replica_set is None:
            return
        active = [pod for pod in self._pods.of(replica_set["metadata"]["uid"]) if is_active(pod)]
        if not replica_set["metadata"].get("deletionTimestamp"):
            wanted = replica_set["spec"].get("replicas", 1)
            for _ in range(wanted - len(active)):
                self._api.create("pods", pod_from_template(replica_set, "ReplicaSet"), key[0])
            if len(active) > wanted:
                for pod in self._surplus(replica_set, active, len(active) - wanted):
                    self._api.delete("pods", pod["metadata"]["name"], key[0])
            active = [pod for pod in self._pods.of(replica_set["metadata"]["uid"]) if is_active(pod)]
        self._report(replica_set, active)

    def _surplus(self, replica_set: Obj, active: list[Obj], count: int) -> list[Obj]:
        related = self._related(replica_set)
        return deletion_order(active, related, self._clock.now())[:count]

    def _related(self, replica_set: Obj) -> list[Obj]:
        """Answer the active pods of all sets that the same Deployment owns."""
        owner = controller_of(replica_set)
        siblings = [replica_set] if owner is None else self.sets.of(owner["uid"])
        return [pod for each in siblings for pod in self._pods.of(each["metadata"]["uid"]) if is_active(pod)]

    def _report(self, replica_set: Obj, active: list[Obj]) -> None:
        seconds = replica_set["spec"].get("minReadySeconds", 0)
        ready = [pod for pod in active if is_ready(pod)]
        available, wait = count_available(ready, seconds, self._clock.now())
        labels = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
        labelled = [pod for pod in active if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
        status: dict[str, Any] = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(labelled),
            "readyReplicas": len(ready),
            "availableReplicas": available,
            "observedGeneration": replica_set["metadata"].get("generation", 0),
        }
        namespace, name = key_of(replica_set)
        if wait is not None:
            self._queue.add_after((namespace, name), wait - self._clock.now())
        self._api.patch("replicasets.apps", name, {"status": status}, namespace, "status")


def count_available(ready: list[Obj], min_ready_seconds: int, now: datetime) -> tuple[int, datetime | None]:
    """Count those of *ready* that have been so for long enough; answer also when the next will have been."""
    if not min_ready_seconds:
        return len(ready), None
    since = sorted(_ready_since(pod) for pod in ready)
    young = [instant for instant in since if (now - instant).total_seconds() < min_ready_seconds]
    later = [datetime.fromtimestamp(instant.timestamp() + min_ready_seconds, tz=now.tzinfo) for instant in young]
    return len(ready) - len(young), min(later, default=None)


def deletion_order(pods: list[Obj], related: list[Obj], now: datetime) -> list[Obj]:
    """Answer *pods*, those that are to go first first.

    Unassigned, pending, not ready, cheap by annotation; then those that share their node with the most of *related*
    (counted once, before anything is deleted), the most recently ready, the most restarted, the youngest. Ages are
    compared by their power of two, as the real controller does, so that not always the newest ones suffer; then uid.
    """
    crowd: dict[str, int] = {}
    for pod in related:
        node = pod["spec"].get("nodeName") or ""
        crowd[node] = crowd.get(node, 0) + 1
    return sorted(pods, key=lambda pod: _rank(pod, crowd, now))


def _rank(pod: Obj, crowd: dict[str, int], now: datetime) -> tuple[Any, ...]:
    node = pod["spec"].get("nodeName") or ""
    ready = is_ready(pod)
    status, metadata = pod.get("status") or {}, pod["metadata"]
    restarts = max((entry.get("restartCount", 0) for entry in status.get("containerStatuses") or []), default=0)
    return (
        bool(node),
        _PHASES.get(status.get("phase", ""), 0),
        ready,
        _deletion_cost(pod),
        -crowd.get(node, 0),
        _age(_ready_since(pod), now) if ready else 0,
        -restarts,
        _age(instant_of(metadata["creationTimestamp"]), now),
        metadata["uid"],
        metadata["name"],
    )


def _age(since: datetime, now: datetime) -> int:
    nanoseconds = int((now - since).total_seconds() * 1_000_000_000)
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _ready_since(pod: Obj) -> datetime:
    found = condition(pod, "Ready") or {}
    return instant_of(found.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])


def _deletion_cost(pod: Obj) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0"))
    except ValueError:
        return 0
