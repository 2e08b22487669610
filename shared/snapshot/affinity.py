"""Where a pod wants to be: node selector, affinity and spread, wire -> model."""

from collections.abc import Iterable
from typing import TypedDict

import msgspec

from shared.model.labels import normalised
from shared.model.objects import Pairs
from shared.model.pods import AffinityTerm, PodSpec, PreferredTerm, SpreadConstraint
from shared.model.requirements import Requirements
from shared.snapshot import wire_pods as wire
from shared.snapshot.core import requirements_from_wire, selector_from_wire
from shared.snapshot.wire_core import NodeSelector

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class AffinityParts(TypedDict):
    """Those fields of a PodSpec that say where it wants to be."""

    node_selector: Pairs
    required_terms: tuple[Requirements, ...]
    preferred_terms: tuple[PreferredTerm, ...]
    pod_affinity: tuple[AffinityTerm, ...]
    pod_anti_affinity: tuple[AffinityTerm, ...]
    preferred_pod_affinity: tuple[AffinityTerm, ...]
    preferred_pod_anti_affinity: tuple[AffinityTerm, ...]
    spread: tuple[SpreadConstraint, ...]
    has_match_fields: bool


def affinity_parts(shape: wire.PodShape) -> AffinityParts:
    """Read where a pod wants to be; preferences heaviest first, otherwise in the order that they are written.

    Raises:
        ValueError: an operator is unknown, or no node can satisfy a node selector.
    """
    nodes, pods, anti = shape.affinity.node_affinity, shape.affinity.pod_affinity, shape.affinity.pod_anti_affinity
    required = nodes.required
    return AffinityParts(
        node_selector=tuple(sorted({(normalised(key), value) for key, value in shape.node_selector.items()})),
        required_terms=terms_from_wire(f"spec.affinity.nodeAffinity.{_REQUIRED}", required) if required else (),
        preferred_terms=_preferred_terms(nodes.preferred),
        pod_affinity=_terms("podAffinity", pods.required),
        pod_anti_affinity=_terms("podAntiAffinity", anti.required),
        preferred_pod_affinity=_weighted_terms("podAffinity", pods.preferred),
        preferred_pod_anti_affinity=_weighted_terms("podAntiAffinity", anti.preferred),
        spread=tuple(_spread(number, one) for number, one in enumerate(shape.spread)),
        has_match_fields=required is not None and any(term.match_fields for term in required.node_selector_terms),
    )


def without_preferences(spec: PodSpec) -> PodSpec:
    """Answer *spec* with what it must have only."""
    return msgspec.structs.replace(
        spec,
        preferred_terms=(),
        preferred_pod_affinity=(),
        preferred_pod_anti_affinity=(),
        spread=tuple(one for one in spec.spread if one.when_unsatisfiable == "DoNotSchedule"),
    )


def terms_from_wire(path: str, selector: NodeSelector) -> tuple[Requirements, ...]:
    """Read terms of which any one must hold; an empty term holds nowhere and is left out.

    Raises:
        ValueError: an operator is unknown, or every term is empty.
    """
    terms = [term for term in selector.node_selector_terms if term.match_expressions or term.match_fields]
    if not terms:
        raise ValueError(f"{path}.nodeSelectorTerms: every term is empty, and no node matches that; write or remove it")
    return tuple(
        requirements_from_wire(f"{path}.nodeSelectorTerms[{number}]", term.match_expressions)
        for number, term in enumerate(terms)
    )


def _preferred_terms(preferred: Iterable[wire.PreferredNodeTerm]) -> tuple[PreferredTerm, ...]:
    path = f"spec.affinity.nodeAffinity.{_PREFERRED}"
    some = [
        PreferredTerm(
            weight=one.weight,
            requirements=requirements_from_wire(f"{path}[{number}]", one.preference.match_expressions),
        )
        for number, one in enumerate(preferred)
    ]
    return tuple(sorted(some, key=lambda term: -term.weight))


def _terms(kind: str, terms: Iterable[wire.PodTerm]) -> tuple[AffinityTerm, ...]:
    path = f"spec.affinity.{kind}.{_REQUIRED}"
    return tuple(_term(f"{path}[{number}]", one, 0) for number, one in enumerate(terms))


def _weighted_terms(kind: str, terms: Iterable[wire.WeightedPodTerm]) -> tuple[AffinityTerm, ...]:
    path = f"spec.affinity.{kind}.{_PREFERRED}"
    some = [_term(f"{path}[{number}]", one.pod_affinity_term, one.weight) for number, one in enumerate(terms)]
    return tuple(sorted(some, key=lambda term: -term.weight))


def _term(path: str, term: wire.PodTerm, weight: int) -> AffinityTerm:
    return AffinityTerm(
        topology_key=term.topology_key,
        selector=selector_from_wire(f"{path}.labelSelector", term.label_selector),
        namespaces=tuple(sorted(set(term.namespaces))),
        namespace_selector=selector_from_wire(f"{path}.namespaceSelector", term.namespace_selector),
        match_label_keys=tuple(sorted(set(term.match_label_keys))),
        mismatch_label_keys=tuple(sorted(set(term.mismatch_label_keys))),
        weight=weight,
    )


def _spread(number: int, spread: wire.Spread) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=spread.topology_key,
        max_skew=spread.max_skew,
        when_unsatisfiable=spread.when_unsatisfiable,
        selector=selector_from_wire(f"spec.topologySpreadConstraints[{number}].labelSelector", spread.label_selector),
        min_domains=spread.min_domains,
        match_label_keys=tuple(sorted(set(spread.match_label_keys))),
        node_affinity_policy=spread.node_affinity_policy,
        node_taints_policy=spread.node_taints_policy,
    )
