"""Inter-pod rules of the scheduler: PodTopologySpread and InterPodAffinity.

A `PreFilterState` is computed for one pod at one moment; filtering a node then needs only a few look-ups.
"""

from collections import Counter
from typing import Final

from sim.cluster.kube_scheduler.node_cache import NodeCache, NodeInfo
from sim.cluster.kube_scheduler.node_filters import HARD_TAINT_EFFECTS, FilterRejection, build_rejection
from sim.cluster.kube_scheduler.pod_shape import CompiledAffinityTerm, CompiledSpreadConstraint, SchedulingShape
from sim.cluster.matching import Labels, find_untolerated_taint

_SPREAD_REJECTION: Final = build_rejection("node(s) didn't match pod topology spread constraints")
_MISSING_LABEL_REJECTION: Final = build_rejection(
    "node(s) didn't match pod topology spread constraints (missing required label)", unresolvable=True
)
_AFFINITY_REJECTION: Final = build_rejection("node(s) didn't match pod affinity rules", unresolvable=True)
_ANTI_AFFINITY_REJECTION: Final = build_rejection("node(s) didn't match pod anti-affinity rules")
_EXISTING_ANTI_AFFINITY_REJECTION: Final = build_rejection("node(s) didn't satisfy existing pods anti-affinity rules")

_INTER_POD_SCORE_WEIGHT: Final = 2


class _SpreadCounts:
    """A required topology spread constraint with its pod counts per domain."""

    def __init__(
        self, spread: CompiledSpreadConstraint, shape: SchedulingShape, nodes: NodeCache, spread_keys: frozenset[str]
    ) -> None:
        self.key, self.max_skew = spread.topology_key, spread.max_skew
        by_node = nodes.get_match_counts((spread.term,), terminating=False).count_by_node
        self.counts_by_domain: dict[str, int] = {}
        for name, node in nodes.node_infos.items():
            if spread_keys <= node.labels.keys() and _is_eligible(spread, shape, node):
                value = node.labels[self.key]
                self.counts_by_domain[value] = self.counts_by_domain.get(value, 0) + by_node.get(name, 0)
        has_min_domains = len(self.counts_by_domain) >= spread.min_domains
        self.min_count = min(self.counts_by_domain.values(), default=0) if has_min_domains else 0
        self.self_match_count = int(spread.selects(shape.labels))

    def is_satisfied(self, labels: Labels) -> bool:
        return self.counts_by_domain.get(labels[self.key], 0) + self.self_match_count - self.min_count <= self.max_skew


def _is_eligible(spread: CompiledSpreadConstraint, shape: SchedulingShape, node: NodeInfo) -> bool:
    if spread.honors_affinity and not shape.is_required_node(node.name, node.labels):
        return False
    return not (
        spread.honors_taints
        and find_untolerated_taint(node.get_effective_taints(), shape.tolerations, HARD_TAINT_EFFECTS)
    )


class PreFilterState:
    """Pod counts and topology domains that decide the inter-pod rules of pods with one shape."""

    def __init__(self, shape: SchedulingShape, nodes: NodeCache) -> None:
        """Count the pods now; any later change of a node invalidates the state."""
        self._shape, self._nodes = shape, nodes
        self._spread_keys = frozenset(spread.topology_key for spread in shape.spread_constraints)
        self._spread_counts = [
            _SpreadCounts(spread, shape, nodes, self._spread_keys) for spread in shape.spread_constraints
        ]
        self._affinity_domains = self._find_domains(
            shape.affinity_terms, [term.topology_key for term in shape.affinity_terms]
        )
        self._is_first_of_group = not self._affinity_domains and all(
            term.is_match(shape, nodes.get_namespace_labels) for term in shape.affinity_terms
        )
        self._anti_affinity_domains: set[tuple[str, str]] = set()
        for term in shape.anti_affinity_terms:
            self._anti_affinity_domains |= self._find_domains((term,), [term.topology_key])
        self._existing_anti_affinity_domains = nodes.find_anti_affinity_domains(shape)
        self.is_empty = not (self._existing_anti_affinity_domains or shape.has_inter_pod_rules)

    def _find_domains(self, terms: tuple[CompiledAffinityTerm, ...], keys: list[str]) -> set[tuple[str, str]]:
        domains: set[tuple[str, str]] = set()
        if terms:
            for name in self._nodes.get_match_counts(terms, terminating=True).count_by_node:
                node = self._nodes.node_infos.get(name)
                if node is not None:
                    domains |= {(key, node.labels[key]) for key in keys if key in node.labels}
        return domains

    def find_rejection(self, node: NodeInfo) -> FilterRejection | None:
        """Return why the inter-pod rules reject *node*; None if they accept it."""
        labels = node.labels
        if not self._spread_keys <= labels.keys():
            return _MISSING_LABEL_REJECTION
        if not all(spread_counts.is_satisfied(labels) for spread_counts in self._spread_counts):
            return _SPREAD_REJECTION
        if not self._is_affinity_satisfied(labels):
            return _AFFINITY_REJECTION
        if any(
            (key, labels.get(key)) in self._anti_affinity_domains
            for key in {term.topology_key for term in self._shape.anti_affinity_terms}
        ):
            return _ANTI_AFFINITY_REJECTION
        if any(labels.get(key) == value for key, value in self._existing_anti_affinity_domains):
            return _EXISTING_ANTI_AFFINITY_REJECTION
        return None

    def _is_affinity_satisfied(self, labels: Labels) -> bool:
        terms = self._shape.affinity_terms
        if not all(term.topology_key in labels for term in terms):
            return False
        return self._is_first_of_group or all(
            (term.topology_key, labels[term.topology_key]) in self._affinity_domains for term in terms
        )

    def compute_scores(self, node_names: list[str]) -> dict[str, int]:
        """Return the score that preferred inter-pod rules add for each of *node_names*, from -200 to 200."""
        total = dict.fromkeys(node_names, 0)
        for spread in self._shape.preferred_spread_constraints:
            _add_scaled(
                total,
                self._scale_to_100(self._count_by_node(spread.term, node_names, terminating=False)),
                -_INTER_POD_SCORE_WEIGHT,
            )
        signed_terms = [(term, 1) for term in self._shape.preferred_affinity_terms] + [
            (term, -1) for term in self._shape.preferred_anti_affinity_terms
        ]
        for term, sign in signed_terms:
            _add_scaled(
                total,
                self._scale_to_100(self._count_by_node(term, node_names, terminating=True)),
                sign * _INTER_POD_SCORE_WEIGHT * term.weight // 100 or sign,
            )
        return total

    def _count_by_node(self, term: CompiledAffinityTerm, node_names: list[str], *, terminating: bool) -> dict[str, int]:
        count_by_domain: Counter[str] = Counter()
        node_infos = self._nodes.node_infos
        for name, count in self._nodes.get_match_counts((term,), terminating=terminating).count_by_node.items():
            if name in node_infos and term.topology_key in node_infos[name].labels:
                count_by_domain[node_infos[name].labels[term.topology_key]] += count
        return {name: count_by_domain[node_infos[name].labels.get(term.topology_key, "")] for name in node_names}

    @staticmethod
    def _scale_to_100(counts: dict[str, int]) -> dict[str, int]:
        max_count = max(counts.values(), default=0)
        return {name: count * 100 // max_count if max_count else 0 for name, count in counts.items()}


def _add_scaled(total: dict[str, int], addends: dict[str, int], factor: int) -> None:
    for name, value in addends.items():
        total[name] += factor * value
