"""Nominated pods: pods without a node that are counted on the node in `status.nominatedNodeName`.

When a pod is scheduled, every node also contains the nominated pods of equal or higher priority. The pod must fit with
them and without them (they can be bound to other nodes), and its own nominated node is tried first.
"""

from collections.abc import Iterator

from sim.cluster.kube_scheduler.inter_pod_constraints import PreFilterState
from sim.cluster.kube_scheduler.node_cache import NodeCache, NodeInfo
from sim.cluster.kube_scheduler.node_filters import FilterRejection, find_node_rejection
from sim.cluster.kube_scheduler.pod_shape import SchedulingShape
from sim.cluster.matching import Obj


def get_nominated_node_name(pod: Obj) -> str:
    """Return the nominated node name in the status of *pod*, "" if there is none."""
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


class NominatedPodsFilter:
    """Filters nodes for one pod with the nominated pods of other pods counted."""

    def __init__(self, nominator: "Nominator", key: str, priority: int, shape: SchedulingShape, node: str) -> None:
        """Filter for the pod with *key*; *node* is its own nominated node, or ""."""
        self._nominator, self._key, self._priority, self._shape = nominator, key, priority, shape
        self.node = node

    def find_rejection(self, node: NodeInfo) -> FilterRejection | None:
        """Return why *node* cannot take the pod in addition to its nominated pods; None if it can."""
        nominated_pods = dict(self._nominator.iterate_nominated_pods(node.name, self._key, self._priority))
        if not nominated_pods:
            return None
        with self._nominator.nodes.assume_pods(node.name, nominated_pods):
            return find_node_rejection(self._shape, node) or self._find_inter_pod_rejection(node)

    def _find_inter_pod_rejection(self, node: NodeInfo) -> FilterRejection | None:
        pre_filter_state = PreFilterState(self._shape, self._nominator.nodes)
        return None if pre_filter_state.is_empty else pre_filter_state.find_rejection(node)


class Nominator:
    """The nominated pods by node."""

    def __init__(self, nodes: NodeCache) -> None:
        """Create a nominator without nominations."""
        self.nodes = nodes
        self._node_by_pod: dict[str, str] = {}
        self._pods_by_node: dict[str, dict[str, tuple[int, SchedulingShape]]] = {}

    def update_nomination(self, key: str, pod: Obj, shape: SchedulingShape) -> bool:
        """Store the nomination of *pod*; return whether the pod left its previous nominated node."""
        old_node, node = self._node_by_pod.get(key, ""), get_nominated_node_name(pod)
        if old_node != node:
            self.remove_nomination(key)
        if node:
            self._node_by_pod[key] = node
            self._pods_by_node.setdefault(node, {})[key] = (pod["spec"].get("priority", 0), shape)
        return old_node not in ("", node)

    def remove_nomination(self, key: str) -> None:
        """Remove the nomination of the pod with *key*, which is bound or deleted."""
        node = self._node_by_pod.pop(key, "")
        if node:
            del self._pods_by_node[node][key]
            if not self._pods_by_node[node]:
                del self._pods_by_node[node]

    def iterate_nominated_pods(self, node: str, key: str, priority: int) -> Iterator[tuple[str, SchedulingShape]]:
        """Yield the pods nominated to *node* that have at least *priority*, except the pod with *key*."""
        for nominated_key, (nominated_priority, shape) in self._pods_by_node.get(node, {}).items():
            if nominated_key != key and nominated_priority >= priority:
                yield nominated_key, shape

    def build_filter(self, key: str, pod: Obj, shape: SchedulingShape) -> NominatedPodsFilter | None:
        """Return the filter for *pod*; None if there are no nominations."""
        if not self._pods_by_node:
            return None
        return NominatedPodsFilter(self, key, pod["spec"].get("priority", 0), shape, self._node_by_pod.get(key, ""))
