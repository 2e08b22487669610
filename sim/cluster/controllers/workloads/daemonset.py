"""DaemonSets: one pod on every eligible node."""

from typing import Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import is_active, is_ready, is_terminal
from sim.cluster.controller_runtime.templates import (
    build_pod_from_template,
    compute_scaled_value,
    compute_template_hash,
)
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.matching import compile_required_node_affinity, find_untolerated_taint, get_required_node_terms
from sim.time.virtual_clock import Clock

REVISION_LABEL: Final = "controller-revision-hash"
_DAEMON_TOLERATIONS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATIONS: Final = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


def build_daemon_tolerations(spec: Obj) -> list[Obj]:
    """Return the tolerations of *spec* and those that every pod of a DaemonSet gets."""
    tolerations = list(spec.get("tolerations") or [])
    for key, effect in _DAEMON_TOLERATIONS + (_HOST_NETWORK_TOLERATIONS if spec.get("hostNetwork") else ()):
        extra = {"key": key, "operator": "Exists", "effect": effect}
        if extra not in tolerations:
            tolerations.append(extra)
    return tolerations


def build_pinned_affinity(spec: Obj, node_name: str) -> Obj:
    """Return the affinity of *spec* with the required node terms replaced by one that selects *node_name*."""
    affinity = spec.get("affinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), "requiredDuringSchedulingIgnoredDuringExecution": required}
    return {**affinity, "nodeAffinity": node_affinity}


def compute_daemon_placement(daemon_set: Obj, node: Obj) -> tuple[bool, bool]:
    """Return whether a pod should be created on *node*, and whether a running pod may stay there."""
    spec = daemon_set["spec"]["template"]["spec"]
    metadata, node_spec = node["metadata"], node.get("spec") or {}
    if not compile_required_node_affinity(spec)(metadata["name"], metadata.get("labels") or {}):
        return False, False
    if spec.get("nodeName", metadata["name"]) != metadata["name"]:
        return False, False
    tolerations, taints = build_daemon_tolerations(spec), node_spec.get("taints") or []
    may_stay = find_untolerated_taint(taints, tolerations, ("NoExecute",)) is None
    return may_stay and find_untolerated_taint(taints, tolerations, ("NoSchedule",)) is None, may_stay


class DaemonSetController:
    """The DaemonSet controller."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer, nodes: Informer) -> None:
        """Watch the DaemonSets of *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods, self._nodes = clock, api, pods, nodes
        self.daemon_sets = Informer(api, "daemonsets.apps")
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "daemonset")
        self._placements_by_revision: dict[tuple[str, str], dict[str, tuple[bool, bool]]] = {}
        self.daemon_sets.enqueue_all(self._queue.add)
        pods.enqueue_controllers("DaemonSet", self._queue.add)
        nodes.add_event_handler(self._handle_node)

    def _handle_node(self, event: str, old: Obj | None, new: Obj) -> None:
        if event != "MODIFIED" or old is None or _get_scheduling_fields(old) != _get_scheduling_fields(new):
            for placements in self._placements_by_revision.values():
                placements.pop(new["metadata"]["name"], None)
            for daemon_set in self.daemon_sets.list_all():
                self._queue.add(get_object_key(daemon_set))

    def _sync(self, key: NamespacedName) -> None:
        daemon_set = self.daemon_sets.get(key[1], key[0])
        if daemon_set is None or daemon_set["metadata"].get("deletionTimestamp"):
            return
        revision = compute_template_hash(daemon_set["spec"]["template"])
        pods_by_node: dict[str, list[Obj]] = {}
        for pod in self._pods.list_by_index(daemon_set["metadata"]["uid"]):
            pods_by_node.setdefault(_get_target_node(pod), []).append(pod)
        placements = self._get_placements(daemon_set, revision)
        node_names = []
        for node in self._nodes.list_all():
            placement = placements.get(node["metadata"]["name"])
            if placement is None:
                placement = placements[node["metadata"]["name"]] = compute_daemon_placement(daemon_set, node)
            node_pods = pods_by_node.get(node["metadata"]["name"], [])
            node_names += [node["metadata"]["name"]] if placement[0] else []
            self._reconcile_node(daemon_set, node["metadata"]["name"], node_pods, placement, revision)
        self._replace_outdated_pods(daemon_set, pods_by_node, node_names, revision)
        self._update_status(daemon_set, pods_by_node, node_names, revision)

    def _get_placements(self, daemon_set: Obj, revision: str) -> dict[str, tuple[bool, bool]]:
        """Return the cached placements by node name.

        A node's entry is dropped when the node changes; a new template revision drops all entries.
        """
        uid = daemon_set["metadata"]["uid"]
        for key in [key for key in self._placements_by_revision if key[0] == uid and key[1] != revision]:
            del self._placements_by_revision[key]
        return self._placements_by_revision.setdefault((uid, revision), {})

    def _reconcile_node(
        self, daemon_set: Obj, node_name: str, node_pods: list[Obj], placement: tuple[bool, bool], revision: str
    ) -> None:
        should_run, may_stay = placement
        active_pods = [pod for pod in node_pods if is_active(pod)]
        if not may_stay:
            self._delete_pods(active_pods)
        elif any(is_terminal(pod) for pod in node_pods):
            self._delete_pods([pod for pod in node_pods if is_terminal(pod)])
        elif should_run and not node_pods:
            spec = daemon_set["spec"]["template"]["spec"]
            spec_overrides = {
                "affinity": build_pinned_affinity(spec, node_name),
                "tolerations": build_daemon_tolerations(spec),
            }
            pod = build_pod_from_template(
                daemon_set, "DaemonSet", labels={REVISION_LABEL: revision}, spec=spec_overrides
            )
            self._api.create("pods", pod, daemon_set["metadata"]["namespace"])
        elif len(active_pods) > 1:
            self._delete_pods(
                sorted(active_pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))[1:]
            )

    def _replace_outdated_pods(
        self, daemon_set: Obj, pods_by_node: dict[str, list[Obj]], node_names: list[str], revision: str
    ) -> None:
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        max_unavailable = (strategy.get("rollingUpdate") or {}).get("maxUnavailable")
        allowed_unavailable = max(1, compute_scaled_value(max_unavailable, len(node_names), up=True, default=1))
        pods = [pod for name in node_names for pod in pods_by_node.get(name, [])]
        outdated_pods = [
            pod for pod in pods if is_active(pod) and pod["metadata"]["labels"].get(REVISION_LABEL) != revision
        ]
        unready_pods = [pod for pod in outdated_pods if not is_ready(pod)]
        available_count = sum(1 for pod in pods if is_active(pod) and is_ready(pod))
        max_deletions = max(0, allowed_unavailable - (len(node_names) - available_count))
        self._delete_pods(unready_pods + [pod for pod in outdated_pods if is_ready(pod)][:max_deletions])

    def _delete_pods(self, pods: list[Obj]) -> None:
        for pod in pods:
            self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _update_status(
        self, daemon_set: Obj, pods_by_node: dict[str, list[Obj]], node_names: list[str], revision: str
    ) -> None:
        current_pods = [pod for name in node_names for pod in pods_by_node.get(name, [])[:1]]
        ready_count = sum(1 for pod in current_pods if is_active(pod) and is_ready(pod))
        status = {
            "observedGeneration": daemon_set["metadata"].get("generation", 0),
            "desiredNumberScheduled": len(node_names),
            "currentNumberScheduled": len(current_pods),
            "numberMisscheduled": sum(1 for name in pods_by_node if name not in set(node_names)),
            "numberReady": ready_count,
            "numberAvailable": ready_count,
            "numberUnavailable": len(node_names) - ready_count,
            "updatedNumberScheduled": sum(
                1 for p in current_pods if p["metadata"]["labels"].get(REVISION_LABEL) == revision
            ),
        }
        namespace, name = get_object_key(daemon_set)
        self._api.patch("daemonsets.apps", name, {"status": status}, namespace, "status")


def _get_scheduling_fields(node: Obj) -> tuple[Obj | None, list[Obj] | None]:
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")


def _get_target_node(pod: Obj) -> str:
    """Return the name of the node that *pod* runs on or is pinned to."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    for term in get_required_node_terms(pod["spec"]) or []:
        for field in term.get("matchFields") or []:
            return str(field["values"][0])
    return ""
