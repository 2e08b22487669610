"""Nominations: pods that have no node yet and are counted on one all the same, because their status names it.

A pod that is looked for a node sees, on every node, the nominated pods that matter at least as much as itself. It must
fit with them and without them (they may end up elsewhere), and its own node is tried before all others.
"""

from collections.abc import Iterator

from sim.cluster.scheduler_around import Surroundings
from sim.cluster.scheduler_filter import Refusal, refusal
from sim.cluster.scheduler_match import Obj
from sim.cluster.scheduler_nodes import NodeInfo, Nodes
from sim.cluster.scheduler_shape import Shape


def nominated_node(pod: Obj) -> str:
    """Answer the name of the node that the status of *pod* names, "" if none."""
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


class Asking:
    """One pod that looks for a node among nominations."""

    def __init__(self, nominator: "Nominator", key: str, priority: int, shape: Shape, node: str) -> None:
        """Look for pod *key*, which is nominated to *node* itself, if to any."""
        self._nominator, self._key, self._priority, self._shape = nominator, key, priority, shape
        self.node = node

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Answer why *node* cannot take the pod besides those that are nominated there; None if it can."""
        others = dict(self._nominator.others(node.name, self._key, self._priority))
        if not others:
            return None
        with self._nominator.nodes.supposing(node.name, others):
            return refusal(self._shape, node) or self._misplaced(node)

    def _misplaced(self, node: NodeInfo) -> Refusal | None:
        around = Surroundings(self._shape, self._nominator.nodes)
        return None if around.is_empty else around.refusal(node)


class Nominator:
    """Who is nominated where."""

    def __init__(self, nodes: Nodes) -> None:
        """Begin with nobody."""
        self.nodes = nodes
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, tuple[int, Shape]]] = {}

    def note(self, key: str, pod: Obj, shape: Shape) -> bool:
        """Take over what *pod* says; answer whether it gave up a node."""
        before, node = self._node_of.get(key, ""), nominated_node(pod)
        if before != node:
            self.forget(key)
        if node:
            self._node_of[key] = node
            self._on.setdefault(node, {})[key] = (pod["spec"].get("priority", 0), shape)
        return before not in ("", node)

    def forget(self, key: str) -> None:
        """Pod *key* has a node, or is gone."""
        node = self._node_of.pop(key, "")
        if node:
            del self._on[node][key]
            if not self._on[node]:
                del self._on[node]

    def others(self, node: str, key: str, priority: int) -> Iterator[tuple[str, Shape]]:
        """Answer the pods nominated to *node* that a pod *key* of *priority* yields to."""
        for other, (theirs, shape) in self._on.get(node, {}).items():
            if other != key and theirs >= priority:
                yield other, shape

    def asking(self, key: str, pod: Obj, shape: Shape) -> Asking | None:
        """Answer *pod* as one that looks for a node; None if nominations do not matter."""
        if not self._on:
            return None
        return Asking(self, key, pod["spec"].get("priority", 0), shape, self._node_of.get(key, ""))
