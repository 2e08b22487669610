"""Preference relaxation: preferences are treated as requirements and dropped one at a time, in Karpenter's order.

First, pod affinity preferences for pods that do not exist are removed, because Karpenter would drop satisfiable
preferences before them. Then the order is: the first of several required terms, preferred pod affinity, preferred pod
anti-affinity, preferred node affinity, ScheduleAnyway spread; last, PreferNoSchedule taints are tolerated. Karpenter
stops here. Joiner also tries what that order omits: the required terms that were dropped while preferences remained,
without preferences.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.selectors import LabelSelector
from shared.model.core.taints import PREFER_NO_SCHEDULE, Toleration
from shared.model.kubernetes.pod import AffinityTerm, PodSpec, SpreadConstraint, build_strict_requirements

DO_NOT_SCHEDULE = "DoNotSchedule"


class RelaxationStage(msgspec.Struct, frozen=True, kw_only=True):
    """The constraints of a pod after some of its preferences were dropped."""

    requirements: Requirements
    """nodeSelector, the first remaining required term, and the heaviest preferred term."""
    strict: Requirements
    """The same without the preferred term."""
    tolerations: tuple[Toleration, ...]
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    is_contradictory: bool = False
    """Whether a required label cannot have any value."""
    number: int = 0
    """Number of the stage in a scheduling problem."""


def build_relaxation_stages(
    spec: PodSpec, policy: Literal["Respect", "Ignore"], *, discouraged: bool
) -> tuple[RelaxationStage, ...]:
    """Return the relaxation stages of *spec* in order.

    *discouraged*: a node or NodePool has a PreferNoSchedule taint.
    """
    initial_spec = _without_preferences(spec) if policy == "Ignore" else _sort_preferences(spec)
    relaxed_specs = [initial_spec, *_relax_spec(initial_spec)]
    unpreferred_specs = [
        msgspec.structs.replace(relaxed_specs[-1], required_terms=(term,)) for term in initial_spec.required_terms
    ]
    tolerant_specs = (
        [_with_taint_toleration(unpreferred_spec) for unpreferred_spec in unpreferred_specs or relaxed_specs[-1:]]
        if discouraged
        else []
    )
    relaxed_specs += (*tolerant_specs[-1:], *unpreferred_specs[:-1], *tolerant_specs[:-1])
    return tuple(dict.fromkeys(_build_stage(relaxed_spec) for relaxed_spec in relaxed_specs))


def without_impossible_affinity(spec: PodSpec, has_matching_pod: Callable[[LabelSelector], bool]) -> PodSpec:
    """Return *spec* without pod affinity preferences that match no pod; *has_matching_pod* evaluates a selector.

    In Karpenter's order such a preference is kept longer than heavier preferences that can be satisfied.
    """
    possible_terms = tuple(
        term for term in spec.preferred_pod_affinity if term.selector is not None and has_matching_pod(term.selector)
    )
    return (
        spec
        if possible_terms == spec.preferred_pod_affinity
        else msgspec.structs.replace(spec, preferred_pod_affinity=possible_terms)
    )


def _with_taint_toleration(spec: PodSpec) -> PodSpec:
    if PREFER_NO_SCHEDULE in spec.tolerations:
        return spec
    return msgspec.structs.replace(spec, tolerations=(*spec.tolerations, PREFER_NO_SCHEDULE))


def _build_stage(spec: PodSpec) -> RelaxationStage:
    strict = build_strict_requirements(spec)
    selector_requirements = build_strict_requirements(msgspec.structs.replace(spec, required_terms=()))
    preferred_requirements = spec.preferred_terms[0].requirements if spec.preferred_terms else ANYTHING
    return RelaxationStage(
        requirements=strict & preferred_requirements,
        strict=strict,
        tolerations=spec.tolerations,
        affinity=(*spec.pod_affinity, *spec.preferred_pod_affinity),
        anti_affinity=(*spec.pod_anti_affinity, *spec.preferred_pod_anti_affinity),
        spread=spec.spread,
        is_contradictory=_has_contradiction(
            strict & preferred_requirements, (selector_requirements, *spec.required_terms[:1], preferred_requirements)
        ),
    )


def _relax_spec(spec: PodSpec) -> Iterator[PodSpec]:
    """Yield the spec after each dropped preference or required term."""
    replace = msgspec.structs.replace
    while len(spec.required_terms) > 1:
        spec = replace(spec, required_terms=spec.required_terms[1:])
        yield spec
    while spec.preferred_pod_affinity:
        spec = replace(spec, preferred_pod_affinity=spec.preferred_pod_affinity[1:])
        yield spec
    while spec.preferred_pod_anti_affinity:
        spec = replace(spec, preferred_pod_anti_affinity=spec.preferred_pod_anti_affinity[1:])
        yield spec
    while spec.preferred_terms:
        spec = replace(spec, preferred_terms=spec.preferred_terms[1:])
        yield spec
    while any(constraint.when_unsatisfiable != DO_NOT_SCHEDULE for constraint in spec.spread):
        spec = replace(spec, spread=_without_first_soft_spread(spec.spread))
        yield spec


def _without_first_soft_spread(spread: tuple[SpreadConstraint, ...]) -> tuple[SpreadConstraint, ...]:
    """Drop the first ScheduleAnyway constraint; the last constraint takes its place, as in Karpenter."""
    soft_index = next(
        index for index, constraint in enumerate(spread) if constraint.when_unsatisfiable != DO_NOT_SCHEDULE
    )
    reordered_constraints = [*spread[:soft_index], spread[-1], *spread[soft_index + 1 : -1]]
    return tuple(reordered_constraints[: len(spread) - 1])


def _sort_preferences(spec: PodSpec) -> PodSpec:
    def sort_terms(terms: tuple[AffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
        return tuple(sorted(terms, key=lambda term: -term.weight))

    return msgspec.structs.replace(
        spec,
        preferred_terms=tuple(sorted(spec.preferred_terms, key=lambda term: -term.weight)),
        preferred_pod_affinity=sort_terms(spec.preferred_pod_affinity),
        preferred_pod_anti_affinity=sort_terms(spec.preferred_pod_anti_affinity),
    )


def _without_preferences(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        preferred_terms=(),
        preferred_pod_affinity=(),
        preferred_pod_anti_affinity=(),
        spread=tuple(constraint for constraint in spec.spread if constraint.when_unsatisfiable == DO_NOT_SCHEDULE),
    )


def _has_contradiction(requirements: Requirements, parts: tuple[Requirements, ...]) -> bool:
    empty_keys = [item.key for item in requirements if item.operator == "DoesNotExist"]
    return any(key in part and not part[key].is_tolerant() for key in empty_keys for part in parts)


def combine_required_terms(spec: PodSpec) -> Iterator[Requirements]:
    """Return nodeSelector combined with each of the required node affinity terms; any one of them is enough."""
    return (build_strict_requirements(spec, term) for term in range(max(1, len(spec.required_terms))))
