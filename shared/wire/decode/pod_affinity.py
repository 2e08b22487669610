"""Scheduling constraints of a pod (node selector, affinity, topology spread): wire JSON -> model."""

from collections.abc import Iterable
from typing import TypedDict

import msgspec

from shared.model.core.labels import normalize_label_key
from shared.model.core.metadata import Pairs
from shared.model.core.requirements import Requirements
from shared.model.kubernetes.pod import AffinityTerm, PodSpec, PreferredTerm, SpreadConstraint
from shared.wire.decode.core import parse_label_selector_json, parse_requirements
from shared.wire.schema import pods as wire
from shared.wire.schema.core import NodeSelectorJson
from shared.wire.schema.pods import PREFERRED, REQUIRED


class AffinityParts(TypedDict):
    """The PodSpec fields that constrain the nodes a pod can run on."""

    node_selector: Pairs
    required_terms: tuple[Requirements, ...]
    preferred_terms: tuple[PreferredTerm, ...]
    pod_affinity: tuple[AffinityTerm, ...]
    pod_anti_affinity: tuple[AffinityTerm, ...]
    preferred_pod_affinity: tuple[AffinityTerm, ...]
    preferred_pod_anti_affinity: tuple[AffinityTerm, ...]
    spread: tuple[SpreadConstraint, ...]
    has_match_fields: bool


def parse_affinity(spec_key: wire.PodSpecKey) -> AffinityParts:
    """Parse the scheduling constraints of a pod.

    Preferences are sorted by descending weight; everything else keeps the order in which it is written.

    Raises:
        ValueError: an operator is unknown, or no node can satisfy a node selector.
    """
    node_affinity, pod_affinity, anti_affinity = (
        spec_key.affinity.node_affinity,
        spec_key.affinity.pod_affinity,
        spec_key.affinity.pod_anti_affinity,
    )
    required = node_affinity.required
    return AffinityParts(
        node_selector=tuple(
            sorted({(normalize_label_key(key), value) for key, value in spec_key.node_selector.items()})
        ),
        required_terms=parse_node_selector_terms(f"spec.affinity.nodeAffinity.{REQUIRED}", required)
        if required
        else (),
        preferred_terms=_parse_preferred_node_terms(node_affinity.preferred),
        pod_affinity=_parse_required_pod_terms("podAffinity", pod_affinity.required),
        pod_anti_affinity=_parse_required_pod_terms("podAntiAffinity", anti_affinity.required),
        preferred_pod_affinity=_parse_preferred_pod_terms("podAffinity", pod_affinity.preferred),
        preferred_pod_anti_affinity=_parse_preferred_pod_terms("podAntiAffinity", anti_affinity.preferred),
        spread=tuple(_parse_spread_constraint(number, constraint) for number, constraint in enumerate(spec_key.spread)),
        has_match_fields=required is not None and any(term.match_fields for term in required.node_selector_terms),
    )


def without_preferences(spec: PodSpec) -> PodSpec:
    """Return *spec* with required constraints only."""
    return msgspec.structs.replace(
        spec,
        preferred_terms=(),
        preferred_pod_affinity=(),
        preferred_pod_anti_affinity=(),
        spread=tuple(constraint for constraint in spec.spread if constraint.when_unsatisfiable == "DoNotSchedule"),
    )


def parse_node_selector_terms(path: str, selector: NodeSelectorJson) -> tuple[Requirements, ...]:
    """Parse node selector terms, of which at least one must match. An empty term matches no node and is left out.

    Raises:
        ValueError: an operator is unknown, or every term is empty.
    """
    terms = [term for term in selector.node_selector_terms if term.match_expressions or term.match_fields]
    if not terms:
        raise ValueError(
            f"{path}.nodeSelectorTerms: every term is empty and matches no node; add expressions or remove it"
        )
    return tuple(
        parse_requirements(f"{path}.nodeSelectorTerms[{number}]", term.match_expressions)
        for number, term in enumerate(terms)
    )


def _parse_preferred_node_terms(preferred: Iterable[wire.PreferredNodeTermJson]) -> tuple[PreferredTerm, ...]:
    path = f"spec.affinity.nodeAffinity.{PREFERRED}"
    preferred_terms = [
        PreferredTerm(
            weight=preferred_term.weight,
            requirements=parse_requirements(f"{path}[{number}]", preferred_term.preference.match_expressions),
        )
        for number, preferred_term in enumerate(preferred)
    ]
    return tuple(sorted(preferred_terms, key=lambda term: -term.weight))


def _parse_required_pod_terms(kind: str, terms: Iterable[wire.PodAffinityTermJson]) -> tuple[AffinityTerm, ...]:
    path = f"spec.affinity.{kind}.{REQUIRED}"
    return tuple(_parse_pod_term(f"{path}[{number}]", term, 0) for number, term in enumerate(terms))


def _parse_preferred_pod_terms(
    kind: str, terms: Iterable[wire.WeightedPodAffinityTermJson]
) -> tuple[AffinityTerm, ...]:
    path = f"spec.affinity.{kind}.{PREFERRED}"
    affinity_terms = [
        _parse_pod_term(f"{path}[{number}]", weighted_term.pod_affinity_term, weighted_term.weight)
        for number, weighted_term in enumerate(terms)
    ]
    return tuple(sorted(affinity_terms, key=lambda term: -term.weight))


def _parse_pod_term(path: str, term: wire.PodAffinityTermJson, weight: int) -> AffinityTerm:
    return AffinityTerm(
        topology_key=term.topology_key,
        selector=parse_label_selector_json(f"{path}.labelSelector", term.label_selector),
        namespaces=tuple(sorted(set(term.namespaces))),
        namespace_selector=parse_label_selector_json(f"{path}.namespaceSelector", term.namespace_selector),
        match_label_keys=tuple(sorted(set(term.match_label_keys))),
        mismatch_label_keys=tuple(sorted(set(term.mismatch_label_keys))),
        weight=weight,
    )


def _parse_spread_constraint(number: int, spread: wire.TopologySpreadConstraintJson) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=spread.topology_key,
        max_skew=spread.max_skew,
        when_unsatisfiable=spread.when_unsatisfiable,
        selector=parse_label_selector_json(
            f"spec.topologySpreadConstraints[{number}].labelSelector", spread.label_selector
        ),
        min_domains=spread.min_domains,
        match_label_keys=tuple(sorted(set(spread.match_label_keys))),
        node_affinity_policy=spread.node_affinity_policy,
        node_taints_policy=spread.node_taints_policy,
    )
