"""Node cache of the scheduler: nodes, their pods, and incrementally updated sums.

Every change of a node is appended to a change log; code that derives data from all nodes updates it only for the nodes
in the log since its last update.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sim.cluster.kube_scheduler.pod_shape import CompiledAffinityTerm, Resources, SchedulingShape, parse_resources
from sim.cluster.matching import UNSCHEDULABLE_TAINT, Labels, Obj

_WILDCARD_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - the address a host port without address has


class NodeInfo:
    """One node, and the sums over its pods."""

    __slots__ = (
        *("allocatable", "claims", "labels", "name", "node", "pods"),
        *("ports", "taints", "unschedulable", "used", "used_scored"),
    )

    def __init__(self, name: str) -> None:
        """Create an entry without a Node object and without pods."""
        self.name = name
        self.node: Obj | None = None
        self.labels: Labels = {}
        self.taints: list[Obj] = []
        self.unschedulable = False
        self.allocatable: Resources = {}
        self.pods: dict[str, SchedulingShape] = {}
        self.used: Resources = {}
        self.used_scored = (0, 0)
        self.ports: dict[tuple[str, str, int], int] = {}
        self.claims: dict[str, int] = {}

    def read(self, node: Obj) -> bool:
        """Copy the scheduling fields of *node*; return whether any of them changed."""
        spec = node.get("spec") or {}
        new_fields = (
            node["metadata"].get("labels") or {},
            spec.get("taints") or [],
            bool(spec.get("unschedulable")),
            parse_resources((node.get("status") or {}).get("allocatable")),
        )
        if self.node is not None and new_fields == (self.labels, self.taints, self.unschedulable, self.allocatable):
            self.node = node
            return False
        self.node = node
        self.labels, self.taints, self.unschedulable, self.allocatable = new_fields
        return True

    def get_effective_taints(self) -> list[Obj]:
        """Return the taints that a pod must tolerate on this node, including the taint of a cordoned node."""
        return [*self.taints, UNSCHEDULABLE_TAINT] if self.unschedulable else self.taints

    def count_pod(self, shape: SchedulingShape, sign: int) -> None:
        """Add (*sign* = 1) or remove (*sign* = -1) one pod of *shape*."""
        for name, requested in shape.nonzero_requests:
            self.used[name] = self.used.get(name, 0) + sign * requested
        self.used_scored = (
            self.used_scored[0] + sign * shape.score_requests[0],
            self.used_scored[1] + sign * shape.score_requests[1],
        )
        for port in shape.host_ports:
            self.ports[port] = self.ports.get(port, 0) + sign
        for claim in shape.claim_names:
            key = f"{shape.namespace}/{claim}"
            self.claims[key] = self.claims.get(key, 0) + sign

    def has_port(self, host_port: tuple[str, str, int]) -> bool:
        """Return whether a pod on this node uses *host_port*; the unspecified address conflicts with all addresses."""
        address, protocol, number = host_port
        return any(
            count
            and (protocol, number) == (used_port[1], used_port[2])
            and (_WILDCARD_ADDRESS in (address, used_port[0]) or address == used_port[0])
            for used_port, count in self.ports.items()
        )


class MatchCounts:
    """The number of pods per node that match all of a tuple of affinity terms."""

    def __init__(
        self, terms: tuple[CompiledAffinityTerm, ...], *, terminating: bool, namespace_labels: Callable[[str], Labels]
    ) -> None:
        """Count the pods that match *terms*; pods that are being deleted only if *terminating*."""
        self.terms, self.terminating = terms, terminating
        self.count_by_node: dict[str, int] = {}
        self._namespace_labels = namespace_labels
        self._is_counted_by_shape: dict[SchedulingShape, bool] = {}

    def is_counted(self, shape: SchedulingShape) -> bool:
        """Return whether pods of *shape* are counted."""
        is_match = self._is_counted_by_shape.get(shape)
        if is_match is None:
            is_match = all(term.is_match(shape, self._namespace_labels) for term in self.terms)
            self._is_counted_by_shape[shape] = is_match
        return is_match

    def count_pod(self, node: str, shape: SchedulingShape, sign: int) -> None:
        """Add or remove one pod of *shape* on *node*, if it is counted."""
        if self.is_counted(shape):
            total = self.count_by_node.get(node, 0) + sign
            if total:
                self.count_by_node[node] = total
            else:
                del self.count_by_node[node]


class CountedPod:
    """A pod on a node, with the values it was counted with."""

    __slots__ = ("node", "shape", "terminating")

    def __init__(self, node: str, shape: SchedulingShape, *, terminating: bool) -> None:
        """Store the values that the pod is counted with."""
        self.node, self.shape, self.terminating = node, shape, terminating


class NodeCache:
    """All nodes, the log of their changes, and the match counts over their pods."""

    def __init__(self) -> None:
        """Create an empty cache."""
        self.node_infos: dict[str, NodeInfo] = {}
        self.change_log: list[str] = []
        self.counted_pods: dict[str, CountedPod] = {}
        self._deleted_nodes: dict[str, NodeInfo] = {}
        self._match_counts: dict[tuple[tuple[str, ...], bool], MatchCounts] = {}
        self._anti_affinity_counts: dict[tuple[str, str], tuple[CompiledAffinityTerm, dict[str, int]]] = {}
        self._labels_by_namespace: dict[str, Labels] = {}

    def get_namespace_labels(self, name: str) -> Labels:
        """Return the labels of namespace *name*; for an unknown namespace only its name label."""
        return self._labels_by_namespace.get(name, {"kubernetes.io/metadata.name": name})

    def read_namespace(self, namespace: Obj) -> None:
        """Update the labels of *namespace*; match counts are discarded, because they can depend on them."""
        self._labels_by_namespace[namespace["metadata"]["name"]] = namespace["metadata"].get("labels") or {}
        self._match_counts.clear()

    def read_node(self, node: Obj) -> bool:
        """Update *node*; return whether a field changed that influences scheduling."""
        name = node["metadata"]["name"]
        info = self.node_infos.get(name) or self._deleted_nodes.pop(name, None) or NodeInfo(name)
        self.node_infos[name] = info
        changed = info.read(node)
        if changed:
            self.change_log.append(name)
        return changed

    def remove_node(self, name: str) -> None:
        """Remove the Node; its pods stay counted until they are removed."""
        info = self.node_infos.pop(name, None)
        if info is not None:
            info.node = None
            self.change_log.append(name)
            if info.pods:
                self._deleted_nodes[name] = info

    def add_pod(self, key: str, node: str, shape: SchedulingShape, *, terminating: bool = False) -> bool:
        """Count the pod with *key* on *node*; return False if it was already counted with the same values."""
        old_pod = self.counted_pods.get(key)
        if old_pod is not None and (old_pod.node, old_pod.shape, old_pod.terminating) == (node, shape, terminating):
            return False
        if old_pod is not None:
            self.remove_pod(key)
        self.counted_pods[key] = CountedPod(node, shape, terminating=terminating)
        info = self._get_or_add_node_info(node)
        info.pods[key] = shape
        self._count_pod(info, shape, 1, terminating=terminating)
        return True

    def remove_pod(self, key: str) -> bool:
        """Remove the pod with *key* from its node; return whether it was on a node."""
        old_pod = self.counted_pods.pop(key, None)
        if old_pod is None:
            return False
        info = self._get_or_add_node_info(old_pod.node)
        del info.pods[key]
        self._count_pod(info, old_pod.shape, -1, terminating=old_pod.terminating)
        if not info.pods:
            self._deleted_nodes.pop(old_pod.node, None)
        return True

    @contextmanager
    def assume_pods(self, node: str, pods: Mapping[str, SchedulingShape]) -> Iterator[None]:
        """Count *pods*, by key, on *node* inside a `with` block; the change log is restored afterwards."""
        change_log_length = len(self.change_log)
        for key, shape in pods.items():
            self.add_pod(key, node, shape)
        try:
            yield
        finally:
            for key in pods:
                self.remove_pod(key)
            del self.change_log[change_log_length:]

    def _get_or_add_node_info(self, name: str) -> NodeInfo:
        return self.node_infos.get(name) or self._deleted_nodes.setdefault(name, NodeInfo(name))

    def _count_pod(self, info: NodeInfo, shape: SchedulingShape, sign: int, *, terminating: bool) -> None:
        info.count_pod(shape, sign)
        self.change_log.append(info.name)
        for match_counts in self._match_counts.values():
            if match_counts.terminating or not terminating:
                match_counts.count_pod(info.name, shape, sign)
        for term in shape.anti_affinity_terms:
            _, count_by_node = self._anti_affinity_counts.setdefault((term.id, term.topology_key), (term, {}))
            count_by_node[info.name] = count_by_node.get(info.name, 0) + sign

    def get_match_counts(self, terms: tuple[CompiledAffinityTerm, ...], *, terminating: bool) -> MatchCounts:
        """Return the running counts of the pods that match *terms*."""
        key = (tuple(term.id for term in terms), terminating)
        match_counts = self._match_counts.get(key)
        if match_counts is None:
            match_counts = self._match_counts[key] = MatchCounts(
                terms, terminating=terminating, namespace_labels=self.get_namespace_labels
            )
            for counted_pod in self.counted_pods.values():
                if terminating or not counted_pod.terminating:
                    match_counts.count_pod(counted_pod.node, counted_pod.shape, 1)
        return match_counts

    def find_anti_affinity_domains(self, shape: SchedulingShape) -> set[tuple[str, str]]:
        """Return the (topology key, value) pairs that anti-affinity of pods on nodes forbids to *shape*."""
        domains = set()
        for (_, key), (term, count_by_node) in self._anti_affinity_counts.items():
            if count_by_node and term.is_match(shape, self.get_namespace_labels):
                domains |= {
                    (key, value)
                    for value in self._list_domain_values(
                        key, (node_name for node_name, count in count_by_node.items() if count)
                    )
                }
        return domains

    def _list_domain_values(self, key: str, node_names: Iterable[str]) -> set[str]:
        infos = (self.node_infos[name] for name in node_names if name in self.node_infos)
        return {info.labels[key] for info in infos if key in info.labels}
