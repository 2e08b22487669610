"""DaemonSets: one pod on every node that will have it."""

from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import is_active, is_ready, is_terminal
from sim.cluster.controllers.informer import Informer, Key, Obj, controller_of, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.controllers.templates import pod_from_template, scaled_value, template_hash
from sim.cluster.scheduler_match import required_terms, untolerated, wanted_node

REVISION: Final = "controller-revision-hash"
_EVERYWHERE: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK: Final = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


def daemon_tolerations(spec: Obj) -> list[Obj]:
    """Answer the tolerations of *spec* with those that every pod of a DaemonSet gets."""
    tolerations = list(spec.get("tolerations") or [])
    for key, effect in _EVERYWHERE + (_HOST_NETWORK if spec.get("hostNetwork") else ()):
        extra = {"key": key, "operator": "Exists", "effect": effect}
        if extra not in tolerations:
            tolerations.append(extra)
    return tolerations


def pinned_affinity(spec: Obj, node: str) -> Obj:
    """Answer the affinity of *spec* with its required node terms replaced by the one that names *node*."""
    affinity = spec.get("affinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), "requiredDuringSchedulingIgnoredDuringExecution": required}
    return {**affinity, "nodeAffinity": node_affinity}


def placement(daemon_set: Obj, node: Obj) -> tuple[bool, bool]:
    """Answer whether a pod should be started on *node*, and whether one that runs there may stay."""
    spec = daemon_set["spec"]["template"]["spec"]
    metadata, node_spec = node["metadata"], node.get("spec") or {}
    if not wanted_node(spec)(metadata["name"], metadata.get("labels") or {}):
        return False, False
    if spec.get("nodeName", metadata["name"]) != metadata["name"]:
        return False, False
    tolerations, taints = daemon_tolerations(spec), node_spec.get("taints") or []
    stays = untolerated(taints, tolerations, ("NoExecute",)) is None
    return stays and untolerated(taints, tolerations, ("NoSchedule",)) is None, stays


class DaemonSets:
    """The DaemonSet controller."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer, nodes: Informer) -> None:
        """Follow *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods, self._nodes = clock, api, pods, nodes
        self.sets = Informer(api, "daemonsets.apps")
        self._queue: Queue[Key] = Queue(clock, self._sync, "daemonset")
        self._verdicts: dict[tuple[str, str], dict[str, tuple[bool, bool]]] = {}
        self.sets.on_change(lambda _event, _old, new: self._queue.add(key_of(new)))
        pods.on_change(self._on_pod)
        nodes.on_change(self._on_node)
        for obj in self.sets.all():
            self._queue.add(key_of(obj))

    def _on_pod(self, _event: str, _old: Obj | None, new: Obj) -> None:
        owner = controller_of(new)
        if owner is not None and owner["kind"] == "DaemonSet":
            self._queue.add((new["metadata"]["namespace"], owner["name"]))

    def _on_node(self, event: str, old: Obj | None, new: Obj) -> None:
        if event != "MODIFIED" or old is None or _relevant(old) != _relevant(new):
            for verdicts in self._verdicts.values():
                verdicts.pop(new["metadata"]["name"], None)
            for daemon_set in self.sets.all():
                self._queue.add(key_of(daemon_set))

    def _sync(self, key: Key) -> None:
        daemon_set = self.sets.get(key[1], key[0])
        if daemon_set is None or daemon_set["metadata"].get("deletionTimestamp"):
            return
        revision = template_hash(daemon_set["spec"]["template"])
        owned: dict[str, list[Obj]] = {}
        for pod in self._pods.of(daemon_set["metadata"]["uid"]):
            owned.setdefault(_target(pod), []).append(pod)
        verdicts = self._verdicts_of(daemon_set, revision)
        wanted = []
        for node in self._nodes.all():
            verdict = verdicts.get(node["metadata"]["name"])
            if verdict is None:
                verdict = verdicts[node["metadata"]["name"]] = placement(daemon_set, node)
            here = owned.get(node["metadata"]["name"], [])
            wanted += [node["metadata"]["name"]] if verdict[0] else []
            self._settle(daemon_set, node["metadata"]["name"], here, verdict, revision)
        self._replace_outdated(daemon_set, owned, wanted, revision)
        self._report(daemon_set, owned, wanted, revision)

    def _verdicts_of(self, daemon_set: Obj, revision: str) -> dict[str, tuple[bool, bool]]:
        """Answer what is known of the nodes; a node that changes is forgotten, a new template forgets them all."""
        uid = daemon_set["metadata"]["uid"]
        for key in [key for key in self._verdicts if key[0] == uid and key[1] != revision]:
            del self._verdicts[key]
        return self._verdicts.setdefault((uid, revision), {})

    def _settle(self, daemon_set: Obj, node: str, here: list[Obj], verdict: tuple[bool, bool], revision: str) -> None:
        should_run, may_stay = verdict
        alive = [pod for pod in here if is_active(pod)]
        if not may_stay:
            self._delete(alive)
        elif any(is_terminal(pod) for pod in here):
            self._delete([pod for pod in here if is_terminal(pod)])
        elif should_run and not here:
            spec = daemon_set["spec"]["template"]["spec"]
            laid_over = {"affinity": pinned_affinity(spec, node), "tolerations": daemon_tolerations(spec)}
            pod = pod_from_template(daemon_set, "DaemonSet", labels={REVISION: revision}, spec=laid_over)
            self._api.create("pods", pod, daemon_set["metadata"]["namespace"])
        elif len(alive) > 1:
            self._delete(
                sorted(alive, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))[1:]
            )

    def _replace_outdated(self, daemon_set: Obj, owned: dict[str, list[Obj]], wanted: list[str], revision: str) -> None:
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        limit = (strategy.get("rollingUpdate") or {}).get("maxUnavailable")
        allowed = max(1, scaled_value(limit, len(wanted), up=True, default=1))
        pods = [pod for name in wanted for pod in owned.get(name, [])]
        outdated = [pod for pod in pods if is_active(pod) and pod["metadata"]["labels"].get(REVISION) != revision]
        broken = [pod for pod in outdated if not is_ready(pod)]
        available = sum(1 for pod in pods if is_active(pod) and is_ready(pod))
        spare = max(0, allowed - (len(wanted) - available))
        self._delete(broken + [pod for pod in outdated if is_ready(pod)][:spare])

    def _delete(self, pods: list[Obj]) -> None:
        for pod in pods:
            self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _report(self, daemon_set: Obj, owned: dict[str, list[Obj]], wanted: list[str], revision: str) -> None:
        current = [pod for name in wanted for pod in owned.get(name, [])[:1]]
        ready = sum(1 for pod in current if is_active(pod) and is_ready(pod))
        status = {
            "observedGeneration": daemon_set["metadata"].get("generation", 0),
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(current),
            "numberMisscheduled": sum(1 for name in owned if name not in set(wanted)),
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(wanted) - ready,
            "updatedNumberScheduled": sum(1 for p in current if p["metadata"]["labels"].get(REVISION) == revision),
        }
        namespace, name = key_of(daemon_set)
        self._api.patch("daemonsets.apps", name, {"status": status}, namespace, "status")


def _relevant(node: Obj) -> tuple[Obj | None, list[Obj] | None]:
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")


def _target(pod: Obj) -> str:
    """Answer the node that *pod* is on, or is meant for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    for term in required_terms(pod["spec"]) or []:
        for field in term.get("matchFields") or []:
            return str(field["values"][0])
    return ""
