"""StatefulSets: numbered pods, each with its own claims, started and stopped in order."""

from collections.abc import Iterable

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import is_ready, is_terminal
from sim.cluster.controllers.informer import Informer, Key, Obj, controller_of, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.controllers.templates import owner_reference, pod_from_template, template_hash

REVISION = "controller-revision-hash"


class StatefulSets:
    """The StatefulSet controller."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Follow *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods = clock, api, pods
        self.sets = Informer(api, "statefulsets.apps")
        self._claims = Informer(api, "persistentvolumeclaims")
        self._queue: Queue[Key] = Queue(clock, self._sync, "statefulset")
        self.sets.on_change(lambda _event, _old, new: self._queue.add(key_of(new)))
        pods.on_change(self._on_pod)
        for obj in self.sets.all():
            self._queue.add(key_of(obj))

    def _on_pod(self, _event: str, _old: Obj | None, new: Obj) -> None:
        owner = controller_of(new)
        if owner is not None and owner["kind"] == "StatefulSet":
            self._queue.add((new["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: Key) -> None:
        stateful_set = self.sets.get(key[1], key[0])
        if stateful_set is None:
            return
        revision = template_hash(stateful_set["spec"]["template"])
        if not stateful_set["metadata"].get("deletionTimestamp"):
            self._settle(stateful_set, self._numbered(stateful_set), revision)
        self._report(stateful_set, self._numbered(stateful_set), revision)

    def _numbered(self, stateful_set: Obj) -> dict[int, Obj]:
        owned = self._pods.of(stateful_set["metadata"]["uid"])
        return dict(sorted((int(pod["metadata"]["name"].rpartition("-")[2]), pod) for pod in owned))

    def _settle(self, stateful_set: Obj, pods: dict[int, Obj], revision: str) -> None:
        """Take the next step: at most one pod, unless the policy is Parallel."""
        first = (stateful_set["spec"].get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + stateful_set["spec"].get("replicas", 1))
        in_order = stateful_set["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        for number in wanted:
            pod = pods.get(number)
            if pod is None:
                self._start(stateful_set, number, revision)
            elif is_terminal(pod):
                self._delete(pod)
            if in_order and (pod is None or not is_ready(pod) or pod["metadata"].get("deletionTimestamp")):
                return
        surplus = [pods[number] for number in sorted(pods, reverse=True) if number not in wanted]
        self._delete_some(surplus, in_order=in_order)
        if not surplus:
            self._update(stateful_set, [pods[number] for number in reversed(wanted) if number in pods], revision)

    def _delete_some(self, surplus: Iterable[Obj], *, in_order: bool) -> None:
        for pod in surplus:
            if not pod["metadata"].get("deletionTimestamp"):
                self._delete(pod)
            if in_order:
                return

    def _update(self, stateful_set: Obj, pods: list[Obj], revision: str) -> None:
        """Replace outdated pods one by one, the highest number first, waiting for each to be ready."""
        strategy = stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for pod in pods:
            if int(pod["metadata"]["name"].rpartition("-")[2]) < partition:
                return
            if pod["metadata"].get("deletionTimestamp") or not is_ready(pod):
                return
            if pod["metadata"]["labels"].get(REVISION) != revision:
                self._delete(pod)
                return

    def _start(self, stateful_set: Obj, number: int, revision: str) -> None:
        namespace, name = key_of(stateful_set)
        pod_name = f"{name}-{number}"
        mounted = []
        for template in stateful_set["spec"].get("volumeClaimTemplates") or []:
            volume = template["metadata"]["name"]
            claim_name = f"{volume}-{pod_name}"
            mounted.append({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}})
            if self._claims.get(claim_name, namespace) is None:
                self._claim(stateful_set, template, claim_name)
        spec = stateful_set["spec"]["template"]["spec"]
        theirs = [volume for volume in spec.get("volumes") or [] if volume["name"] not in {m["name"] for m in mounted}]
        labels = {
            REVISION: revision,
            "statefulset.kubernetes.io/pod-name": pod_name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        laid_over: Obj = {"hostname": pod_name}
        if mounted or theirs:
            laid_over["volumes"] = mounted + theirs
        self._api.create(
            "pods",
            pod_from_template(stateful_set, "StatefulSet", name=pod_name, labels=labels, spec=laid_over),
            namespace,
        )

    def _claim(self, stateful_set: Obj, template: Obj, name: str) -> None:
        metadata = {key: value for key, value in template["metadata"].items() if key in {"labels", "annotations"}}
        metadata["name"] = name
        policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if policy.get("whenDeleted") == "Delete":
            metadata["ownerReferences"] = [owner_reference(stateful_set, "StatefulSet")]
        wanted = {"metadata": metadata, "spec": template["spec"]}
        self._api.create("persistentvolumeclaims", wanted, stateful_set["metadata"]["namespace"])

    def _delete(self, pod: Obj) -> None:
        self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _report(self, stateful_set: Obj, pods: dict[int, Obj], revision: str) -> None:
        ready = sum(1 for pod in pods.values() if is_ready(pod))
        updated = sum(1 for pod in pods.values() if pod["metadata"]["labels"].get(REVISION) == revision)
        namespace, name = key_of(stateful_set)
        status = {
            "observedGeneration": stateful_set["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": updated,
            "currentReplicas": updated,
            "updateRevision": f"{name}-{revision}",
        }
        self._api.patch("statefulsets.apps", name, {"status": status}, namespace, "status")
