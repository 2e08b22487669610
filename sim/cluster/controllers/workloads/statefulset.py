"""StatefulSets: pods with ordinals, each with its own claims, started and stopped in order."""

from collections.abc import Iterable

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import is_ready, is_terminal
from sim.cluster.controller_runtime.templates import (
    build_owner_reference,
    build_pod_from_template,
    compute_template_hash,
)
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

REVISION_LABEL = "controller-revision-hash"


class StatefulSetController:
    """The StatefulSet controller."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Watch the StatefulSets of *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods = clock, api, pods
        self.stateful_sets = Informer(api, "statefulsets.apps")
        self._claims = Informer(api, "persistentvolumeclaims")
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "statefulset")
        self.stateful_sets.enqueue_all(self._queue.add)
        pods.enqueue_controllers("StatefulSet", self._queue.add)

    def _sync(self, key: NamespacedName) -> None:
        stateful_set = self.stateful_sets.get(key[1], key[0])
        if stateful_set is None:
            return
        revision = compute_template_hash(stateful_set["spec"]["template"])
        if not stateful_set["metadata"].get("deletionTimestamp"):
            self._reconcile_pods(stateful_set, self._index_pods_by_ordinal(stateful_set), revision)
        self._update_status(stateful_set, self._index_pods_by_ordinal(stateful_set), revision)

    def _index_pods_by_ordinal(self, stateful_set: Obj) -> dict[int, Obj]:
        owned = self._pods.list_by_index(stateful_set["metadata"]["uid"])
        return dict(sorted((int(pod["metadata"]["name"].rpartition("-")[2]), pod) for pod in owned))

    def _reconcile_pods(self, stateful_set: Obj, pods: dict[int, Obj], revision: str) -> None:
        """Take the next step: change at most one pod, unless the policy is Parallel."""
        first_ordinal = (stateful_set["spec"].get("ordinals") or {}).get("start", 0)
        desired_ordinals = range(first_ordinal, first_ordinal + stateful_set["spec"].get("replicas", 1))
        is_ordered = stateful_set["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        for ordinal in desired_ordinals:
            pod = pods.get(ordinal)
            if pod is None:
                self._create_pod(stateful_set, ordinal, revision)
            elif is_terminal(pod):
                self._delete_pod(pod)
            if is_ordered and (pod is None or not is_ready(pod) or pod["metadata"].get("deletionTimestamp")):
                return
        surplus_pods = [pods[number] for number in sorted(pods, reverse=True) if number not in desired_ordinals]
        self._delete_surplus_pods(surplus_pods, is_ordered=is_ordered)
        if not surplus_pods:
            self._update_outdated_pod(
                stateful_set, [pods[number] for number in reversed(desired_ordinals) if number in pods], revision
            )

    def _delete_surplus_pods(self, surplus_pods: Iterable[Obj], *, is_ordered: bool) -> None:
        for pod in surplus_pods:
            if not pod["metadata"].get("deletionTimestamp"):
                self._delete_pod(pod)
            if is_ordered:
                return

    def _update_outdated_pod(self, stateful_set: Obj, pods: list[Obj], revision: str) -> None:
        """Replace outdated pods one by one, highest ordinal first, waiting for each to be ready."""
        strategy = stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for pod in pods:
            if int(pod["metadata"]["name"].rpartition("-")[2]) < partition:
                return
            if pod["metadata"].get("deletionTimestamp") or not is_ready(pod):
                return
            if pod["metadata"]["labels"].get(REVISION_LABEL) != revision:
                self._delete_pod(pod)
                return

    def _create_pod(self, stateful_set: Obj, ordinal: int, revision: str) -> None:
        namespace, name = get_object_key(stateful_set)
        pod_name = f"{name}-{ordinal}"
        claim_volumes = []
        for template in stateful_set["spec"].get("volumeClaimTemplates") or []:
            volume = template["metadata"]["name"]
            claim_name = f"{volume}-{pod_name}"
            claim_volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}})
            if self._claims.get(claim_name, namespace) is None:
                self._create_claim(stateful_set, template, claim_name)
        spec = stateful_set["spec"]["template"]["spec"]
        template_volumes = [
            volume for volume in spec.get("volumes") or [] if volume["name"] not in {m["name"] for m in claim_volumes}
        ]
        labels = {
            REVISION_LABEL: revision,
            "statefulset.kubernetes.io/pod-name": pod_name,
            "apps.kubernetes.io/pod-index": str(ordinal),
        }
        spec_overrides: Obj = {"hostname": pod_name}
        if claim_volumes or template_volumes:
            spec_overrides["volumes"] = claim_volumes + template_volumes
        pod = build_pod_from_template(stateful_set, "StatefulSet", name=pod_name, labels=labels, spec=spec_overrides)
        self._api.create("pods", pod, namespace)

    def _create_claim(self, stateful_set: Obj, template: Obj, name: str) -> None:
        metadata = {key: value for key, value in template["metadata"].items() if key in {"labels", "annotations"}}
        metadata["name"] = name
        policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if policy.get("whenDeleted") == "Delete":
            metadata["ownerReferences"] = [build_owner_reference(stateful_set, "StatefulSet")]
        claim = {"metadata": metadata, "spec": template["spec"]}
        self._api.create("persistentvolumeclaims", claim, stateful_set["metadata"]["namespace"])

    def _delete_pod(self, pod: Obj) -> None:
        self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _update_status(self, stateful_set: Obj, pods: dict[int, Obj], revision: str) -> None:
        ready_count = sum(1 for pod in pods.values() if is_ready(pod))
        updated_count = sum(1 for pod in pods.values() if pod["metadata"]["labels"].get(REVISION_LABEL) == revision)
        namespace, name = get_object_key(stateful_set)
        status = {
            "observedGeneration": stateful_set["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": ready_count,
            "availableReplicas": ready_count,
            "updatedReplicas": updated_count,
            "currentReplicas": updated_count,
            "updateRevision": f"{name}-{revision}",
        }
        self._api.patch("statefulsets.apps", name, {"status": status}, namespace, "status")
