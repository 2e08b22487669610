"""What depends on the pods elsewhere: topology spread, pod affinity and anti-affinity.

A `Surroundings` is built for one pod at one moment; asking it about a node is then a few look-ups.
"""

from collections import Counter
from typing import Final

from sim.cluster.scheduler_filter import HARD, Refusal
from sim.cluster.scheduler_match import Labels, untolerated
from sim.cluster.scheduler_nodes import NodeInfo, Nodes
from sim.cluster.scheduler_shape import Shape, Spread, Term

_SKEWED: Final = Refusal(reasons=("node(s) didn't match pod topology spread constraints",), for_good=False)
_UNLABELLED: Final = Refusal(
    reasons=("node(s) didn't match pod topology spread constraints (missing required label)",), for_good=True
)
_ALONE: Final = Refusal(reasons=("node(s) didn't match pod affinity rules",), for_good=True)
_TOO_CLOSE: Final = Refusal(reasons=("node(s) didn't match pod anti-affinity rules",), for_good=False)
_GUARDED: Final = Refusal(reasons=("node(s) didn't satisfy existing pods anti-affinity rules",), for_good=False)

_SOFT_WEIGHT: Final = 2


class _Skew:
    """One hard constraint with its counts."""

    def __init__(self, spread: Spread, shape: Shape, nodes: Nodes, keys: frozenset[str]) -> None:
        self.key, self.max_skew = spread.topology_key, spread.max_skew
        by_node = nodes.tally((spread.term,), terminating=False).by_node
        self.counts: dict[str, int] = {}
        for name, node in nodes.known.items():
            if keys <= node.labels.keys() and _takes_part(spread, shape, node):
                value = node.labels[self.key]
                self.counts[value] = self.counts.get(value, 0) + by_node.get(name, 0)
        enough = len(self.counts) >= spread.min_domains
        self.least = min(self.counts.values(), default=0) if enough else 0
        self.itself = int(spread.selects(shape.labels))

    def allows(self, labels: Labels) -> bool:
        return self.counts.get(labels[self.key], 0) + self.itself - self.least <= self.max_skew


def _takes_part(spread: Spread, shape: Shape, node: NodeInfo) -> bool:
    if spread.honors_affinity and not shape.wanted(node.name, node.labels):
        return False
    return not (spread.honors_taints and untolerated(node.all_taints(), shape.tolerations, HARD))


class Surroundings:
    """Where the pods are that matter to a pod of one shape."""

    def __init__(self, shape: Shape, nodes: Nodes) -> None:
        """Count now; any later change of a node makes this stale."""
        self._shape, self._nodes = shape, nodes
        self._keys = frozenset(spread.topology_key for spread in shape.spreads)
        self._skews = [_Skew(spread, shape, nodes, self._keys) for spread in shape.spreads]
        self._near = self._domains(shape.affinity, [term.topology_key for term in shape.affinity])
        self._first = not self._near and all(term.covers(shape, nodes.namespace_labels) for term in shape.affinity)
        self._far: set[tuple[str, str]] = set()
        for term in shape.anti_affinity:
            self._far |= self._domains((term,), [term.topology_key])
        self._guarded = nodes.guarded_domains(shape)
        self.is_empty = not (self._guarded or shape.looks_around)

    def _domains(self, terms: tuple[Term, ...], keys: list[str]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        if terms:
            for name in self._nodes.tally(terms, terminating=True).by_node:
                node = self._nodes.known.get(name)
                if node is not None:
                    found |= {(key, node.labels[key]) for key in keys if key in node.labels}
        return found

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Answer why *node* is in the wrong place; None if it is not."""
        labels = node.labels
        if not self._keys <= labels.keys():
            return _UNLABELLED
        if not all(skew.allows(labels) for skew in self._skews):
            return _SKEWED
        if not self._near_enough(labels):
            return _ALONE
        if any(
            (key, labels.get(key)) in self._far for key in {term.topology_key for term in self._shape.anti_affinity}
        ):
            return _TOO_CLOSE
        if any(labels.get(key) == value for key, value in self._guarded):
            return _GUARDED
        return None

    def _near_enough(self, labels: Labels) -> bool:
        terms = self._shape.affinity
        if not all(term.topology_key in labels for term in terms):
            return False
        return self._first or all((term.topology_key, labels[term.topology_key]) in self._near for term in terms)

    def scores(self, names: list[str]) -> dict[str, int]:
        """Answer what the soft rules add to the score of each of *names*, from -200 to 200."""
        total = dict.fromkeys(names, 0)
        for spread in self._shape.soft_spreads:
            _add(total, self._scaled(self._counts(spread.term, names, terminating=False)), -_SOFT_WEIGHT)
        wishes = [(term, 1) for term in self._shape.soft_affinity] + [
            (term, -1) for term in self._shape.soft_anti_affinity
        ]
        for term, sign in wishes:
            _add(
                total,
                self._scaled(self._counts(term, names, terminating=True)),
                sign * _SOFT_WEIGHT * term.weight // 100 or sign,
            )
        return total

    def _counts(self, term: Term, names: list[str], *, terminating: bool) -> dict[str, int]:
        domains: Counter[str] = Counter()
        known = self._nodes.known
        for name, count in self._nodes.tally((term,), terminating=terminating).by_node.items():
            if name in known and term.topology_key in known[name].labels:
                domains[known[name].labels[term.topology_key]] += count
        return {name: domains[known[name].labels.get(term.topology_key, "")] for name in names}

    @staticmethod
    def _scaled(counts: dict[str, int]) -> dict[str, int]:
        most = max(counts.values(), default=0)
        return {name: count * 100 // most if most else 0 for name, count in counts.items()}


def _add(total: dict[str, int], more: dict[str, int], factor: int) -> None:
    for name, value in more.items():
        total[name] += factor * value
