"""Deployments: one ReplicaSet per template, and the way from one to the next."""

from typing import Any, Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import with_conditions
from sim.cluster.controllers.informer import Informer, Key, Obj, controller_of, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.controllers.templates import owner_reference, scaled_value, template_hash

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = 10


class Deployments:
    """The Deployment controller."""

    def __init__(self, clock: Clock, api: ApiServer, replica_sets: Informer) -> None:
        """Follow *api*; *replica_sets* are indexed by controller."""
        self._clock, self._api, self._sets = clock, api, replica_sets
        self.deployments = Informer(api, "deployments.apps")
        self._queue: Queue[Key] = Queue(clock, self._sync, "deployment")
        self.deployments.on_change(lambda _event, _old, new: self._queue.add(key_of(new)))
        replica_sets.on_change(self._on_set)
        for obj in self.deployments.all():
            self._queue.add(key_of(obj))

    def _on_set(self, _event: str, _old: Obj | None, new: Obj) -> None:
        owner = controller_of(new)
        if owner is not None and owner["kind"] == "Deployment":
            self._queue.add((new["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: Key) -> None:
        deployment = self.deployments.get(key[1], key[0])
        if deployment is None or deployment["metadata"].get("deletionTimestamp"):
            return
        revision = template_hash(deployment["spec"]["template"])
        sets = self._owned(deployment)
        new = next((each for each in sets if _hash_of(each) == revision), None)
        old = [each for each in sets if _hash_of(each) != revision]
        if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            self._recreate(deployment, revision, new, old)
        elif not deployment["spec"].get("paused"):
            self._roll(deployment, revision, new, old)
        elif new is not None:
            self._scale(new, _replicas(deployment))
        self._trim(deployment, revision)
        self._report(deployment, revision)

    def _owned(self, deployment: Obj) -> list[Obj]:
        """Answer its sets, the oldest first."""
        found = self._sets.of(deployment["metadata"]["uid"])
        return sorted(found, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))

    def _recreate(self, deployment: Obj, revision: str, new: Obj | None, old: list[Obj]) -> None:
        for each in old:
            self._scale(each, 0)
        if any((each.get("status") or {}).get("replicas", 0) for each in old):
            return
        if new is None:
            self._create(deployment, revision, _replicas(deployment), old)
        else:
            self._scale(new, _replicas(deployment))

    def _roll(self, deployment: Obj, revision: str, new: Obj | None, old: list[Obj]) -> None:
        replicas = _replicas(deployment)
        surge, unavailable = allowances(deployment)
        total = sum(_replicas(each) for each in old)
        if new is None:
            new = self._create(deployment, revision, min(replicas, max(0, replicas + surge - total)), old)
        else:
            room = max(0, replicas + surge - total - _replicas(new))
            current = _replicas(new)
            new = self._scale(new, replicas if replicas < current else min(replicas, current + room))
        self._scale_down(old, new, replicas - unavailable)

    def _scale_down(self, old: list[Obj], new: Obj, least: int) -> None:
        """Take pods from *old*: first those that are not available, then as many as leave *least* available."""
        everything = [*old, new]
        missing = _replicas(new) - _available(new)
        spare = sum(_replicas(each) for each in everything) - least - missing
        if spare <= 0:
            return
        left = {key_of(each): _replicas(each) for each in old}
        for each in old:
            broken = min(spare, left[key_of(each)] - _available(each))
            if broken > 0:
                left[key_of(each)] -= broken
                spare -= broken
        extra = sum(_available(each) for each in everything) - least
        for each in old:
            going = min(extra, left[key_of(each)])
            if going > 0:
                left[key_of(each)] -= going
                extra -= going
            self._scale(each, left[key_of(each)])

    def _scale(self, replica_set: Obj, replicas: int) -> Obj:
        namespace, name = key_of(replica_set)
        return self._api.patch("replicasets.apps", name, {"spec": {"replicas": replicas}}, namespace)

    def _create(self, deployment: Obj, revision: str, replicas: int, old: list[Obj]) -> Obj:
        spec, metadata = deployment["spec"], deployment["metadata"]
        template = spec["template"]
        label = {HASH: revision}
        labels = {**((template.get("metadata") or {}).get("labels") or {}), **label}
        selector = {**(spec.get("selector") or {})}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **label}
        number = (
            max((int((each["metadata"].get("annotations") or {}).get(REVISION, "0")) for each in old), default=0) + 1
        )
        wanted: dict[str, Any] = {
            "metadata": {
                "name": f"{metadata['name']}-{revision}",
                "labels": labels,
                "annotations": {REVISION: str(number)},
                "ownerReferences": [owner_reference(deployment, "Deployment")],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": selector,
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        }
        return self._api.create("replicasets.apps", wanted, metadata["namespace"])

    def _trim(self, deployment: Obj, revision: str) -> None:
        keep = deployment["spec"].get("revisionHistoryLimit", _HISTORY)
        idle = [
            s
            for s in self._owned(deployment)
            if _hash_of(s) != revision and not _replicas(s) and not _count(s, "replicas")
        ]
        for each in idle[: max(0, len(idle) - keep)]:
            self._api.delete("replicasets.apps", each["metadata"]["name"], each["metadata"]["namespace"])

    def _report(self, deployment: Obj, revision: str) -> None:
        sets = self._owned(deployment)
        total, available = (sum(_count(each, field) for each in sets) for field in ("replicas", "availableReplicas"))
        updated = sum(_count(each, "replicas") for each in sets if _hash_of(each) == revision)
        replicas = _replicas(deployment)
        enough = available >= replicas - allowances(deployment)[1]
        done = updated == replicas == total and available >= replicas
        fresh = (_available_condition(enough=enough), _progress_condition(done=done))
        status = {
            "observedGeneration": deployment["metadata"].get("generation", 0),
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": sum(_count(each, "readyReplicas") for each in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, max(total, replicas) - available),
            "conditions": with_conditions(deployment, fresh, self._clock.now()),
        }
        namespace, name = key_of(deployment)
        self._api.patch("deployments.apps", name, {"status": status}, namespace, "status")


def allowances(deployment: Obj) -> tuple[int, int]:
    """Answer how many pods more, and how many fewer, a roll-out may have; never zero of both."""
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    replicas = _replicas(deployment)
    surge = scaled_value(rolling.get("maxSurge"), replicas, up=True, default="25%")
    unavailable = scaled_value(rolling.get("maxUnavailable"), replicas, up=False, default="25%")
    return surge, unavailable if surge or unavailable else 1


def _available_condition(*, enough: bool) -> Obj:
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    return {"type": "Available", "status": "True" if enough else "False", "reason": reason}


def _progress_condition(*, done: bool) -> Obj:
    return {
        "type": "Progressing",
        "status": "True",
        "reason": "NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
    }


def _hash_of(replica_set: Obj) -> str:
    return str((replica_set["metadata"].get("labels") or {}).get(HASH, ""))


def _replicas(obj: Obj) -> int:
    return int(obj["spec"].get("replicas", 1))


def _count(obj: Obj, field: str) -> int:
    return int((obj.get("status") or {}).get(field, 0))


def _available(obj: Obj) -> int:
    return _count(obj, "availableReplicas")
