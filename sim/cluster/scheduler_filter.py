"""What one node says to one shape of pod, and the nodes that say yes, best first.

Filters stand in kube-scheduler's order; the first that refuses gives the reason. The verdicts are kept per shape and
looked at again only for nodes that changed, so that thousands of equal pods cost one look each at a heap.
"""

import heapq
from collections import Counter
from typing import Final

import msgspec

from sim.cluster.scheduler_match import untolerated
from sim.cluster.scheduler_nodes import NodeInfo, Nodes
from sim.cluster.scheduler_shape import Shape

HARD: Final = ("NoSchedule", "NoExecute")
_SCORED: Final = ("cpu", "memory")
_AFFINITY_WEIGHT: Final = 2
_TAINT_WEIGHT: Final = 3


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node cannot take a pod; *for_good*: evicting others from it would not help."""

    reasons: tuple[str, ...]
    for_good: bool


ELSEWHERE: Final = Refusal(reasons=("node(s) didn't satisfy plugin(s) [NodeAffinity]",), for_good=True)
_UNSCHEDULABLE: Final = Refusal(reasons=("node(s) were unschedulable",), for_good=True)
_AFFINITY: Final = Refusal(reasons=("node(s) didn't match Pod's node affinity/selector",), for_good=True)
_PORTS: Final = Refusal(reasons=("node(s) didn't have free ports for the requested pod ports",), for_good=False)


def refusal(shape: Shape, node: NodeInfo) -> Refusal | None:
    """Answer why *node* cannot take a pod of *shape* whatever runs elsewhere; None if it can."""
    return _unwelcome(shape, node) or _occupied(shape, node) or _unfit(shape, node)


def _unwelcome(shape: Shape, node: NodeInfo) -> Refusal | None:
    if node.unschedulable and untolerated(node.all_taints()[-1:], shape.tolerations, HARD):
        return _UNSCHEDULABLE
    taint = untolerated(node.taints, shape.tolerations, HARD)
    if taint is not None:
        text = f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"
        return Refusal(reasons=(text,), for_good=True)
    return None if shape.wanted(node.name, node.labels) else _AFFINITY


def _occupied(shape: Shape, node: NodeInfo) -> Refusal | None:
    return _PORTS if any(node.has_port(port) for port in shape.ports) else None


def _unfit(shape: Shape, node: NodeInfo) -> Refusal | None:
    allocatable, used = node.allocatable, node.used
    reasons = []
    for_good = False
    if len(node.pods) + 1 > allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, needed in shape.needs:
        total = allocatable.get(name, 0)
        if needed > total - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            for_good = for_good or needed > total
    return Refusal(reasons=tuple(reasons), for_good=for_good) if reasons else None


def score(shape: Shape, node: NodeInfo) -> int:
    """Answer how much *node* is liked by *shape*: free cpu and memory, their balance, affinity, taints to avoid."""
    free = [_free_percent(node, position, shape.scored[position]) for position in (0, 1)]
    liked = sum(weight for weight, matches in shape.preferred if matches(node.name, node.labels))
    total = sum(weight for weight, _ in shape.preferred) or 1
    avoided = untolerated(node.taints, shape.tolerations, ("PreferNoSchedule",)) is not None
    return (
        sum(free) // 2
        + _balanced(shape, node)
        + _AFFINITY_WEIGHT * 100 * liked // total
        - _TAINT_WEIGHT * 100 * avoided
    )


def _balanced(shape: Shape, node: NodeInfo) -> int:
    """Answer how much better the parts of cpu and memory that are taken agree with the pod than without it."""
    asked = tuple(shape.requests.get(name, 0) for name in _SCORED)
    if not any(asked):
        return 0
    before = _balance(node, (0, 0))
    change = 50 + _balance(node, asked) - before
    return 50 + (change // 2 if change >= 0 else -(-change // 2))


def _balance(node: NodeInfo, more: tuple[int, ...]) -> int:
    parts = [
        min(1.0, (node.used.get(name, 0) + extra) / node.allocatable[name])
        for name, extra in zip(_SCORED, more, strict=True)
        if node.allocatable.get(name)
    ]
    deviation = abs((parts[0] - parts[1]) / 2) if len(parts) == len(_SCORED) else 0.0
    return int((1 - deviation) * 100)


def _free_percent(node: NodeInfo, position: int, needed: int) -> int:
    total = node.allocatable.get(_SCORED[position], 0)
    return max(0, total - node.used_scored[position] - needed) * 100 // total if total else 0


class Candidates:
    """The verdicts of all nodes on one shape, kept up to date by the log."""

    def __init__(self, shape: Shape, nodes: Nodes) -> None:
        """Ask every node, or those that the shape names."""
        self.shape, self.nodes = shape, nodes
        self.scores: dict[str, int] = {}
        self.refused: dict[str, Refusal] = {}
        self._reasons: Counter[str] = Counter()
        self._for_good = 0
        self._stamp: dict[str, int] = {}
        self._heap: list[tuple[int, str, int]] = []
        self._seen = len(nodes.log)
        for name in nodes.known if shape.only_nodes is None else shape.only_nodes:
            self._look(name)

    def refresh(self) -> None:
        """Ask those nodes again that changed since."""
        log = self.nodes.log
        if self._seen < len(log):
            changed = set(log[self._seen :])
            self._seen = len(log)
            for name in changed if self.shape.only_nodes is None else changed & self.shape.only_nodes:
                self._look(name)

    def best(self) -> str | None:
        """Answer the best node, the first by name among equals; None if all refuse."""
        while self._heap:
            _, name, stamp = self._heap[0]
            if self._stamp.get(name) == stamp and name in self.scores:
                return name
            heapq.heappop(self._heap)
        return None

    def histogram(self) -> tuple[Counter[str], int]:
        """Answer how often each reason was given, and how many nodes refuse for good."""
        reasons = self._reasons.copy()
        elsewhere = len(self.nodes.known) - len(self.scores) - len(self.refused)
        if elsewhere:
            reasons[ELSEWHERE.reasons[0]] += elsewhere
        return reasons, self._for_good + elsewhere

    def _look(self, name: str) -> None:
        self.scores.pop(name, None)
        old = self.refused.pop(name, None)
        if old is not None:
            self._reasons.subtract(old.reasons)
            self._for_good -= old.for_good
        node = self.nodes.known.get(name)
        if node is None:
            return
        why = refusal(self.shape, node)
        if why is None:
            self.scores[name] = score(self.shape, node)
            self._stamp[name] = self._stamp.get(name, 0) + 1
            heapq.heappush(self._heap, (-self.scores[name], name, self._stamp[name]))
        else:
            self.refused[name] = why
            self._reasons.update(why.reasons)
            self._for_good += why.for_good
