"""Filter plugins that depend on one node only, with cached results per pod shape.

The filters run in kube-scheduler's order; the first that rejects determines the reason. Results are cached per shape
and computed again only for changed nodes, so that scheduling thousands of equal pods costs one heap look-up each.
"""

import heapq
from collections import Counter
from typing import Final

import msgspec

from sim.cluster.kube_scheduler.node_cache import NodeCache, NodeInfo
from sim.cluster.kube_scheduler.node_scores import score_node
from sim.cluster.kube_scheduler.pod_shape import SchedulingShape
from sim.cluster.matching import find_untolerated_taint

HARD_TAINT_EFFECTS: Final = ("NoSchedule", "NoExecute")


class FilterRejection(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node cannot take a pod; *unresolvable*: evicting other pods from the node would not help."""

    reasons: tuple[str, ...]
    unresolvable: bool


def build_rejection(reason: str, *, unresolvable: bool = False) -> FilterRejection:
    """Return a rejection with one reason."""
    return FilterRejection(reasons=(reason,), unresolvable=unresolvable)


PRE_FILTER_REJECTION: Final = build_rejection("node(s) didn't satisfy plugin(s) [NodeAffinity]", unresolvable=True)
_UNSCHEDULABLE_REJECTION: Final = build_rejection("node(s) were unschedulable", unresolvable=True)
_NODE_AFFINITY_REJECTION: Final = build_rejection(
    "node(s) didn't match Pod's node affinity/selector", unresolvable=True
)
_PORTS_REJECTION: Final = build_rejection("node(s) didn't have free ports for the requested pod ports")


def find_node_rejection(shape: SchedulingShape, node: NodeInfo) -> FilterRejection | None:
    """Return why *node* cannot take a pod of *shape*, regardless of pods elsewhere; None if it can."""
    return (
        _find_taint_or_affinity_rejection(shape, node)
        or (_PORTS_REJECTION if any(node.has_port(port) for port in shape.host_ports) else None)
        or _find_resources_rejection(shape, node)
    )


def _find_taint_or_affinity_rejection(shape: SchedulingShape, node: NodeInfo) -> FilterRejection | None:
    if node.unschedulable and find_untolerated_taint(
        node.get_effective_taints()[-1:], shape.tolerations, HARD_TAINT_EFFECTS
    ):
        return _UNSCHEDULABLE_REJECTION
    taint = find_untolerated_taint(node.taints, shape.tolerations, HARD_TAINT_EFFECTS)
    if taint is not None:
        text = f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"
        return build_rejection(text, unresolvable=True)
    return None if shape.is_required_node(node.name, node.labels) else _NODE_AFFINITY_REJECTION


def _find_resources_rejection(shape: SchedulingShape, node: NodeInfo) -> FilterRejection | None:
    allocatable, used = node.allocatable, node.used
    reasons = []
    unresolvable = False
    if len(node.pods) + 1 > allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, requested in shape.nonzero_requests:
        total = allocatable.get(name, 0)
        if requested > total - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            unresolvable = unresolvable or requested > total
    return FilterRejection(reasons=tuple(reasons), unresolvable=unresolvable) if reasons else None


class FilterResults:
    """Scores and rejections of all nodes for one shape, updated from the change log of the nodes."""

    def __init__(self, shape: SchedulingShape, nodes: NodeCache) -> None:
        """Evaluate every node, or only the nodes that the shape names."""
        self.shape, self.nodes = shape, nodes
        self.score_by_node: dict[str, int] = {}
        self.rejection_by_node: dict[str, FilterRejection] = {}
        self._reason_counts: Counter[str] = Counter()
        self._unresolvable_count = 0
        self._score_version_by_node: dict[str, int] = {}
        self._heap: list[tuple[int, str, int]] = []
        self._change_log_position = len(nodes.change_log)
        for name in nodes.node_infos if shape.named_nodes is None else shape.named_nodes:
            self._evaluate_node(name)

    def refresh(self) -> None:
        """Evaluate the nodes again that changed since the last call."""
        change_log = self.nodes.change_log
        if self._change_log_position < len(change_log):
            changed = set(change_log[self._change_log_position :])
            self._change_log_position = len(change_log)
            for name in changed if self.shape.named_nodes is None else changed & self.shape.named_nodes:
                self._evaluate_node(name)

    def find_best_node(self) -> str | None:
        """Return the feasible node with the best score, the first by name on ties; None if there is none."""
        while self._heap:
            _, name, score_version = self._heap[0]
            if self._score_version_by_node.get(name) == score_version and name in self.score_by_node:
                return name
            heapq.heappop(self._heap)
        return None

    def count_rejections(self) -> tuple[Counter[str], int]:
        """Return how many nodes have each reason, and how many rejections are unresolvable."""
        reason_counts = self._reason_counts.copy()
        not_evaluated_count = len(self.nodes.node_infos) - len(self.score_by_node) - len(self.rejection_by_node)
        if not_evaluated_count:
            reason_counts[PRE_FILTER_REJECTION.reasons[0]] += not_evaluated_count
        return reason_counts, self._unresolvable_count + not_evaluated_count

    def _evaluate_node(self, name: str) -> None:
        self.score_by_node.pop(name, None)
        old = self.rejection_by_node.pop(name, None)
        if old is not None:
            self._reason_counts.subtract(old.reasons)
            self._unresolvable_count -= old.unresolvable
        node = self.nodes.node_infos.get(name)
        if node is None:
            return
        rejection = find_node_rejection(self.shape, node)
        if rejection is None:
            self.score_by_node[name] = score_node(self.shape, node)
            self._score_version_by_node[name] = self._score_version_by_node.get(name, 0) + 1
            heapq.heappush(self._heap, (-self.score_by_node[name], name, self._score_version_by_node[name]))
        else:
            self.rejection_by_node[name] = rejection
            self._reason_counts.update(rejection.reasons)
            self._unresolvable_count += rejection.unresolvable
