"""Deployments: one ReplicaSet per template, and the rollout from one to the next."""

from typing import Any, Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import with_conditions
from sim.cluster.controller_runtime.templates import build_owner_reference, compute_scaled_value, compute_template_hash
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
REVISION_ANNOTATION: Final = "deployment.kubernetes.io/revision"
_DEFAULT_REVISION_HISTORY_LIMIT: Final = 10


class DeploymentController:
    """The Deployment controller."""

    def __init__(self, clock: Clock, api: ApiServer, replica_sets: Informer) -> None:
        """Watch the Deployments of *api*; *replica_sets* are indexed by controller."""
        self._clock, self._api, self._replica_sets = clock, api, replica_sets
        self.deployments = Informer(api, "deployments.apps")
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "deployment")
        self.deployments.enqueue_all(self._queue.add)
        replica_sets.enqueue_controllers("Deployment", self._queue.add)

    def _sync(self, key: NamespacedName) -> None:
        deployment = self.deployments.get(key[1], key[0])
        if deployment is None or deployment["metadata"].get("deletionTimestamp"):
            return
        revision = compute_template_hash(deployment["spec"]["template"])
        replica_sets = self._list_replica_sets(deployment)
        new = next((replica_set for replica_set in replica_sets if _get_template_hash(replica_set) == revision), None)
        old = [replica_set for replica_set in replica_sets if _get_template_hash(replica_set) != revision]
        if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            self._recreate_pods(deployment, revision, new, old)
        elif not deployment["spec"].get("paused"):
            self._roll_out(deployment, revision, new, old)
        elif new is not None:
            self._scale(new, _get_replicas(deployment))
        self._clean_up_history(deployment, revision)
        self._update_status(deployment, revision)

    def _list_replica_sets(self, deployment: Obj) -> list[Obj]:
        """Return the ReplicaSets of *deployment*, oldest first."""
        replica_sets = self._replica_sets.list_by_index(deployment["metadata"]["uid"])
        return sorted(
            replica_sets,
            key=lambda replica_set: (replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]),
        )

    def _recreate_pods(self, deployment: Obj, revision: str, new: Obj | None, old: list[Obj]) -> None:
        for replica_set in old:
            self._scale(replica_set, 0)
        if any((replica_set.get("status") or {}).get("replicas", 0) for replica_set in old):
            return
        if new is None:
            self._create_replica_set(deployment, revision, _get_replicas(deployment), old)
        else:
            self._scale(new, _get_replicas(deployment))

    def _roll_out(self, deployment: Obj, revision: str, new: Obj | None, old: list[Obj]) -> None:
        replicas = _get_replicas(deployment)
        max_surge, max_unavailable = compute_rollout_limits(deployment)
        old_replicas = sum(_get_replicas(replica_set) for replica_set in old)
        if new is None:
            new = self._create_replica_set(
                deployment, revision, min(replicas, max(0, replicas + max_surge - old_replicas)), old
            )
        else:
            allowed_increase = max(0, replicas + max_surge - old_replicas - _get_replicas(new))
            current_replicas = _get_replicas(new)
            new = self._scale(
                new, replicas if replicas < current_replicas else min(replicas, current_replicas + allowed_increase)
            )
        self._scale_down(old, new, replicas - max_unavailable)

    def _scale_down(self, old: list[Obj], new: Obj, min_available: int) -> None:
        """Scale down *old*: first its unavailable pods, then as many as leave *min_available* pods available."""
        replica_sets = [*old, new]
        unavailable_replicas = _get_replicas(new) - _get_available_replicas(new)
        max_removals = (
            sum(_get_replicas(replica_set) for replica_set in replica_sets) - min_available - unavailable_replicas
        )
        if max_removals <= 0:
            return
        replicas_by_key = {get_object_key(replica_set): _get_replicas(replica_set) for replica_set in old}
        for replica_set in old:
            unavailable_removals = min(
                max_removals, replicas_by_key[get_object_key(replica_set)] - _get_available_replicas(replica_set)
            )
            if unavailable_removals > 0:
                replicas_by_key[get_object_key(replica_set)] -= unavailable_removals
                max_removals -= unavailable_removals
        available_surplus = sum(_get_available_replicas(replica_set) for replica_set in replica_sets) - min_available
        for replica_set in old:
            available_removals = min(available_surplus, replicas_by_key[get_object_key(replica_set)])
            if available_removals > 0:
                replicas_by_key[get_object_key(replica_set)] -= available_removals
                available_surplus -= available_removals
            self._scale(replica_set, replicas_by_key[get_object_key(replica_set)])

    def _scale(self, replica_set: Obj, replicas: int) -> Obj:
        namespace, name = get_object_key(replica_set)
        return self._api.patch("replicasets.apps", name, {"spec": {"replicas": replicas}}, namespace)

    def _create_replica_set(self, deployment: Obj, revision: str, replicas: int, old: list[Obj]) -> Obj:
        spec, metadata = deployment["spec"], deployment["metadata"]
        template = spec["template"]
        hash_label = {TEMPLATE_HASH_LABEL: revision}
        labels = {**((template.get("metadata") or {}).get("labels") or {}), **hash_label}
        selector = {**(spec.get("selector") or {})}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **hash_label}
        annotations = [replica_set["metadata"].get("annotations") or {} for replica_set in old]
        revision_number = 1 + max((int(values.get(REVISION_ANNOTATION, "0")) for values in annotations), default=0)
        manifest: dict[str, Any] = {
            "metadata": {
                "name": f"{metadata['name']}-{revision}",
                "labels": labels,
                "annotations": {REVISION_ANNOTATION: str(revision_number)},
                "ownerReferences": [build_owner_reference(deployment, "Deployment")],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": selector,
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        }
        return self._api.create("replicasets.apps", manifest, metadata["namespace"])

    def _clean_up_history(self, deployment: Obj, revision: str) -> None:
        history_limit = deployment["spec"].get("revisionHistoryLimit", _DEFAULT_REVISION_HISTORY_LIMIT)
        idle_replica_sets = [
            candidate
            for candidate in self._list_replica_sets(deployment)
            if _get_template_hash(candidate) != revision
            and not _get_replicas(candidate)
            and not _get_status_count(candidate, "replicas")
        ]
        for replica_set in idle_replica_sets[: max(0, len(idle_replica_sets) - history_limit)]:
            self._api.delete("replicasets.apps", replica_set["metadata"]["name"], replica_set["metadata"]["namespace"])

    def _update_status(self, deployment: Obj, revision: str) -> None:
        replica_sets = self._list_replica_sets(deployment)
        total, available = (
            sum(_get_status_count(replica_set, field) for replica_set in replica_sets)
            for field in ("replicas", "availableReplicas")
        )
        updated = sum(
            _get_status_count(replica_set, "replicas")
            for replica_set in replica_sets
            if _get_template_hash(replica_set) == revision
        )
        replicas = _get_replicas(deployment)
        has_minimum_availability = available >= replicas - compute_rollout_limits(deployment)[1]
        is_complete = updated == replicas == total and available >= replicas
        conditions = (
            {
                "type": "Available",
                "status": str(has_minimum_availability),
                "reason": "MinimumReplicasAvailable" if has_minimum_availability else "MinimumReplicasUnavailable",
            },
            {
                "type": "Progressing",
                "status": "True",
                "reason": "NewReplicaSetAvailable" if is_complete else "ReplicaSetUpdated",
            },
        )
        status = {
            "observedGeneration": deployment["metadata"].get("generation", 0),
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": sum(_get_status_count(replica_set, "readyReplicas") for replica_set in replica_sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, max(total, replicas) - available),
            "conditions": with_conditions(deployment, conditions, self._clock.get_time()),
        }
        namespace, name = get_object_key(deployment)
        self._api.patch("deployments.apps", name, {"status": status}, namespace, "status")


def compute_rollout_limits(deployment: Obj) -> tuple[int, int]:
    """Return how many pods a rollout may have above and below the desired number; never zero for both."""
    rolling_update = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    replicas = _get_replicas(deployment)
    max_surge = compute_scaled_value(rolling_update.get("maxSurge"), replicas, up=True, default="25%")
    max_unavailable = compute_scaled_value(rolling_update.get("maxUnavailable"), replicas, up=False, default="25%")
    return max_surge, max_unavailable if max_surge or max_unavailable else 1


def _get_template_hash(replica_set: Obj) -> str:
    return str((replica_set["metadata"].get("labels") or {}).get(TEMPLATE_HASH_LABEL, ""))


def _get_replicas(obj: Obj) -> int:
    return int(obj["spec"].get("replicas", 1))


def _get_status_count(obj: Obj, field: str) -> int:
    return int((obj.get("status") or {}).get(field, 0))


def _get_available_replicas(obj: Obj) -> int:
    return _get_status_count(obj, "availableReplicas")
