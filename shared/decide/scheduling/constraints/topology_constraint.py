"""Topology constraints: spread, affinity and anti-affinity in one form.

A constraint says which pods count, by which label, and where a pod may run.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage, combine_required_terms
from shared.model.core.labels import HOSTNAME, WELL_KNOWN
from shared.model.core.requirements import ANYTHING, Requirement, Requirements
from shared.model.core.selectors import LabelSelector, SelectorExpression
from shared.model.core.taints import Taint, Toleration, find_untolerated_taint
from shared.model.kubernetes.pod import AffinityTerm, Pod, PodSpec, SpreadConstraint
from shared.model.kubernetes.workloads import Namespace

ConstraintKind: TypeAlias = Literal["spread", "affinity", "apart", "inverse"]


class NodeDomains(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The known label requirements of a node, by key; *is_fixed*: the node will get no other labels."""

    by_key: Mapping[str, Requirement]
    taints: tuple[Taint, ...]
    is_fixed: bool
    defined: frozenset[str] = frozenset()
    """Custom label keys that a new node will have."""

    def can_have_label(self, key: str) -> bool:
        """Return whether the node has or will have the label *key*."""
        return key in self.by_key or (not self.is_fixed and (key in WELL_KNOWN or key in self.defined))

    def get_requirement(self, key: str) -> Requirement:
        """Return what is known about the label *key*."""
        return self.by_key.get(key) or Requirement(key=key, complement=True)

    def get_known_labels(self) -> dict[str, str]:
        """Return the labels with a single known value, without the hostname."""
        label_items = ((key, item) for key, item in self.by_key.items() if key != HOSTNAME)
        return {key: min(item.values) for key, item in label_items if len(item.values) == 1 and not item.complement}

    def can_satisfy(self, requirements: Requirements) -> bool:
        """Return whether the node can satisfy *requirements*."""
        return all(self._can_satisfy_requirement(item) for item in requirements)

    def _can_satisfy_requirement(self, item: Requirement) -> bool:
        node_requirement = self.by_key.get(item.key)
        if node_requirement is None:
            return item.is_tolerant() or self.can_have_label(item.key)
        return node_requirement.has_intersection(item) or (node_requirement.is_tolerant() and item.is_tolerant())


class TopologyConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint with everything that makes two constraints equal: they count the same pods in the same domains."""

    kind: ConstraintKind
    key: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    max_skew: int = 0
    min_domains: int | None = None
    terms: tuple[Requirements, ...] = (ANYTHING,)
    """Node requirements of the pod; any one of them is enough."""
    counts_elsewhere: bool = False
    """nodeAffinityPolicy Ignore: domains where the pod cannot run count as well."""
    tolerations: tuple[Toleration, ...] | None = None
    """nodeTaintsPolicy Honor: only nodes with taints that these tolerations tolerate count."""

    def is_selecting(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether the constraint counts the pod, or keeps it away."""
        return self.selector is not None and namespace in self.namespaces and self.selector.is_match(labels)

    @property
    def is_anywhere(self) -> bool:
        """Whether the node requirements of the pod do not restrict the domains."""
        return self.counts_elsewhere or any(not term.items for term in self.terms)

    def is_domain_allowed(self, domain: str) -> bool:
        """Return whether the node requirements of the pod allow *domain*."""
        return self.counts_elsewhere or any(term[self.key].has(domain) for term in self.terms)

    def is_node_counted(self, node_domains: NodeDomains) -> bool:
        """Return whether pods on the node count."""
        if self.kind != "spread":
            return True
        tolerated = self.tolerations is None or not is_blocked(node_domains.taints, self.tolerations)
        return tolerated and (self.counts_elsewhere or any(node_domains.can_satisfy(term) for term in self.terms))

    def __str__(self) -> str:
        """Return the name of the constraint for messages."""
        words = {"spread": "topology spread", "affinity": "pod affinity", "apart": "pod anti-affinity"}
        return f"{words.get(self.kind, 'anti-affinity of another pod')} over {self.key}"


def is_blocked(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    """Return whether kube-scheduler excludes the pod: PreferNoSchedule taints do not count."""
    hard = (taint for taint in taints if taint.effect != "PreferNoSchedule")
    return find_untolerated_taint(hard, tolerations) is not None


def build_topology_constraints(
    pod: Pod, stage: RelaxationStage, namespaces: Iterable[Namespace]
) -> Iterator[TopologyConstraint]:
    """Yield the topology constraints that *pod* declares at *stage*, including preferences that are not relaxed yet."""
    terms = tuple(dict.fromkeys(combine_required_terms(pod.spec)))
    for term in stage.affinity:
        yield _build_affinity_constraint(pod, term, "affinity", namespaces)
    for term in stage.anti_affinity:
        yield _build_affinity_constraint(pod, term, "apart", namespaces)
    for constraint in stage.spread:
        yield _build_spread_constraint(pod, constraint, terms)


def has_label_keys(spec: PodSpec) -> bool:
    """Return whether the topology constraints of a pod depend on its own labels."""
    terms = (
        *spec.pod_affinity,
        *spec.pod_anti_affinity,
        *spec.preferred_pod_affinity,
        *spec.preferred_pod_anti_affinity,
    )
    has_term_keys = any(term.match_label_keys or term.mismatch_label_keys for term in terms)
    return has_term_keys or any(constraint.match_label_keys for constraint in spec.spread)


def build_inverse_constraints(pod: Pod, namespaces: Iterable[Namespace]) -> Iterator[TopologyConstraint]:
    """Yield the constraints by which *pod* keeps other pods away: its required anti-affinity."""
    for term in pod.spec.pod_anti_affinity:
        yield _build_affinity_constraint(pod, term, "inverse", namespaces)


def _build_affinity_constraint(
    pod: Pod, term: AffinityTerm, kind: ConstraintKind, namespaces: Iterable[Namespace]
) -> TopologyConstraint:
    selector = _with_label_keys(term.selector, term.match_label_keys, pod, "In")
    selector = _with_label_keys(selector, term.mismatch_label_keys, pod, "NotIn")
    return TopologyConstraint(
        kind=kind,
        key=term.topology_key,
        namespaces=_find_namespaces(pod, term, namespaces),
        selector=selector,
    )


def _build_spread_constraint(
    pod: Pod, constraint: SpreadConstraint, terms: tuple[Requirements, ...]
) -> TopologyConstraint:
    honor = constraint.node_taints_policy == "Honor"
    return TopologyConstraint(
        kind="spread",
        key=constraint.topology_key,
        namespaces=frozenset((pod.meta.namespace,)),
        selector=_with_label_keys(constraint.selector, constraint.match_label_keys, pod, "In"),
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains,
        terms=terms,
        counts_elsewhere=constraint.node_affinity_policy == "Ignore",
        tolerations=pod.spec.tolerations if honor else None,
    )


def _find_namespaces(pod: Pod, term: AffinityTerm, namespaces: Iterable[Namespace]) -> frozenset[str]:
    namespace_selector = term.namespace_selector
    if namespace_selector is None:
        return frozenset(term.namespaces or (pod.meta.namespace,))
    matching_names = (namespace.name for namespace in namespaces if namespace_selector.is_match(dict(namespace.labels)))
    return frozenset((*matching_names, *term.namespaces))


def _with_label_keys(
    selector: LabelSelector | None, keys: tuple[str, ...], pod: Pod, operator: str
) -> LabelSelector | None:
    if selector is None or not keys:
        return selector
    labels = dict(pod.meta.labels)
    label_expressions = (
        SelectorExpression(key=key, operator=operator, values=(labels[key],)) for key in keys if key in labels
    )
    return LabelSelector(expressions=tuple(sorted({*selector.expressions, *label_expressions})))
