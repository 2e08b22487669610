"""Spread, affinity and anti-affinity as rules: which pods are counted, by which label, and where a pod may be."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from shared.model.cluster import Namespace
from shared.model.labels import HOSTNAME, WELL_KNOWN
from shared.model.pods import AffinityTerm, Pod, PodSpec, SpreadConstraint
from shared.model.requirements import ANYTHING, Requirement, Requirements
from shared.model.selectors import Expression, LabelSelector
from shared.model.taints import Taint, Toleration, first_untolerated
from shared.scheduling.daemons import terms_of
from shared.scheduling.relaxation import Stage

Kind: TypeAlias = Literal["spread", "affinity", "apart", "inverse"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a node, by key; *is_fixed*: no other label will come."""

    by_key: Mapping[str, Requirement]
    taints: tuple[Taint, ...]
    is_fixed: bool
    defined: frozenset[str] = frozenset()
    """Custom keys that a node to be will have."""

    def may_have(self, key: str) -> bool:
        """Whether the node has or will have a label *key*."""
        return key in self.by_key or (not self.is_fixed and (key in WELL_KNOWN or key in self.defined))

    def on(self, key: str) -> Requirement:
        """Answer what is known of the label *key*."""
        return self.by_key.get(key) or Requirement(key=key, complement=True)

    def single(self) -> dict[str, str]:
        """Answer the labels of which the value is known, the hostname aside."""
        some = ((key, item) for key, item in self.by_key.items() if key != HOSTNAME)
        return {key: min(item.values) for key, item in some if len(item.values) == 1 and not item.complement}

    def may_be(self, wanted: Requirements) -> bool:
        """Whether the node can satisfy *wanted*."""
        return all(self._may_be(item) for item in wanted)

    def _may_be(self, item: Requirement) -> bool:
        own = self.by_key.get(item.key)
        if own is None:
            return item.is_tolerant() or self.may_have(item.key)
        return own.intersects(item) or (own.is_tolerant() and item.is_tolerant())


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What makes two constraints the same: they count the same pods in the same domains."""

    kind: Kind
    key: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    max_skew: int = 0
    min_domains: int | None = None
    terms: tuple[Requirements, ...] = (ANYTHING,)
    """Where the pod may be at all: any one of these."""
    counts_elsewhere: bool = False
    """nodeAffinityPolicy Ignore: domains count where the pod may not be."""
    tolerations: tuple[Toleration, ...] | None = None
    """nodeTaintsPolicy Honor: only nodes whose taints these tolerate count."""

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of those that are counted, or kept away."""
        return self.selector is not None and namespace in self.namespaces and self.selector.matches(labels)

    @property
    def is_anywhere(self) -> bool:
        """Whether the pod's own requirements are silent."""
        return self.counts_elsewhere or any(not term.items for term in self.terms)

    def allows(self, domain: str) -> bool:
        """Whether the pod's own requirements let it be in *domain*."""
        return self.counts_elsewhere or any(term[self.key].has(domain) for term in self.terms)

    def counts_on(self, place: Place) -> bool:
        """Whether pods on such a node count."""
        if self.kind != "spread":
            return True
        tolerated = self.tolerations is None or not is_blocked(place.taints, self.tolerations)
        return tolerated and (self.counts_elsewhere or any(place.may_be(term) for term in self.terms))

    def __str__(self) -> str:
        """As a person would name it."""
        words = {"spread": "topology spread", "affinity": "pod affinity", "apart": "pod anti-affinity"}
        return f"{words.get(self.kind, 'anti-affinity of another pod')} over {self.key}"


def is_blocked(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    """Whether kube-scheduler keeps a pod off: taints that only discourage do not count."""
    hard = (taint for taint in taints if taint.effect != "PreferNoSchedule")
    return first_untolerated(hard, tolerations) is not None


def own_rules(pod: Pod, stage: Stage, namespaces: Iterable[Namespace]) -> Iterator[Rule]:
    """Answer the rules that *pod* sets itself at *stage*, preferences that are still held among them."""
    terms = tuple(dict.fromkeys(terms_of(pod.spec)))
    for one in stage.affinity:
        yield _affinity(pod, one, "affinity", namespaces)
    for one in stage.anti_affinity:
        yield _affinity(pod, one, "apart", namespaces)
    for constraint in stage.spread:
        yield _spread(pod, constraint, terms)


def reads_labels(spec: PodSpec) -> bool:
    """Whether the rules of a pod depend on its own labels."""
    terms = (
        *spec.pod_affinity,
        *spec.pod_anti_affinity,
        *spec.preferred_pod_affinity,
        *spec.preferred_pod_anti_affinity,
    )
    reading = any(one.match_label_keys or one.mismatch_label_keys for one in terms)
    return reading or any(one.match_label_keys for one in spec.spread)


def inverse_rules(pod: Pod, namespaces: Iterable[Namespace]) -> Iterator[Rule]:
    """Answer the rules by which *pod* keeps others away: its required anti-affinity."""
    for one in pod.spec.pod_anti_affinity:
        yield _affinity(pod, one, "inverse", namespaces)


def _affinity(pod: Pod, term: AffinityTerm, kind: Kind, namespaces: Iterable[Namespace]) -> Rule:
    selector = _with_label_keys(term.selector, term.match_label_keys, pod, "In")
    selector = _with_label_keys(selector, term.mismatch_label_keys, pod, "NotIn")
    return Rule(
        kind=kind,
        key=term.topology_key,
        namespaces=_namespaces(pod, term, namespaces),
        selector=selector,
    )


def _spread(pod: Pod, constraint: SpreadConstraint, terms: tuple[Requirements, ...]) -> Rule:
    honor = constraint.node_taints_policy == "Honor"
    return Rule(
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


def _namespaces(pod: Pod, term: AffinityTerm, namespaces: Iterable[Namespace]) -> frozenset[str]:
    chosen = term.namespace_selector
    if chosen is None:
        return frozenset(term.namespaces or (pod.meta.namespace,))
    matched = (one.name for one in namespaces if chosen.matches(dict(one.labels)))
    return frozenset((*matched, *term.namespaces))


def _with_label_keys(
    selector: LabelSelector | None, keys: tuple[str, ...], pod: Pod, operator: str
) -> LabelSelector | None:
    if selector is None or not keys:
        return selector
    labels = dict(pod.meta.labels)
    more = (Expression(key=key, operator=operator, values=(labels[key],)) for key in keys if key in labels)
    return LabelSelector(expressions=tuple(sorted({*selector.expressions, *more})))
