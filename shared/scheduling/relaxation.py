"""Preferences are held like requirements, and given up one at a time, in Karpenter's order.

Before that go those to be near pods that are nowhere: Karpenter gives up what could hold before them.
The first of several required terms, then preferred pod affinity, preferred pod anti-affinity, preferred node affinity,
spread that may be broken; last, taints that only discourage are tolerated. There Karpenter stops. We try what that
order has left out: the terms that were dropped while something was preferred besides, without all that.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from shared.model.pods import AffinityTerm, PodSpec, SpreadConstraint, strict_requirements
from shared.model.requirements import ANYTHING, Requirements
from shared.model.selectors import LabelSelector
from shared.model.taints import PREFER_NO_SCHEDULE, Toleration

HARD = "DoNotSchedule"


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for a pod after some preferences were given up."""

    requirements: Requirements
    """nodeSelector, the first term that is left, and the heaviest preference."""
    strict: Requirements
    """The same without the preference."""
    tolerations: tuple[Toleration, ...]
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    is_contradictory: bool = False
    """Some label would have to be there and cannot have any value."""


def stages(spec: PodSpec, policy: Literal["Respect", "Ignore"], *, discouraged: bool) -> tuple[Stage, ...]:
    """Answer what is tried for *spec*, one after the other; *discouraged*: some node or pool has PreferNoSchedule."""
    first = _without_preferences(spec) if policy == "Ignore" else _by_weight(spec)
    tried = [first, *_relaxed(first)]
    bare = [msgspec.structs.replace(tried[-1], required_terms=(term,)) for term in first.required_terms]
    tolerant = [_tolerant(one) for one in bare or tried[-1:]] if discouraged else []
    tried += (*tolerant[-1:], *bare[:-1], *tolerant[:-1])
    return tuple(dict.fromkeys(_stage(one) for one in tried))


def without_the_impossible(spec: PodSpec, is_anybody: Callable[[LabelSelector], bool]) -> PodSpec:
    """Answer *spec* without preferences to be near pods that are nowhere; *is_anybody* says whether some pod is meant.

    In Karpenter's order such a preference outlives heavier ones, which could hold.
    """
    kept = tuple(one for one in spec.preferred_pod_affinity if one.selector is not None and is_anybody(one.selector))
    return spec if kept == spec.preferred_pod_affinity else msgspec.structs.replace(spec, preferred_pod_affinity=kept)


def _tolerant(spec: PodSpec) -> PodSpec:
    if PREFER_NO_SCHEDULE in spec.tolerations:
        return spec
    return msgspec.structs.replace(spec, tolerations=(*spec.tolerations, PREFER_NO_SCHEDULE))


def _stage(spec: PodSpec) -> Stage:
    strict = strict_requirements(spec)
    selector = strict_requirements(msgspec.structs.replace(spec, required_terms=()))
    preferred = spec.preferred_terms[0].requirements if spec.preferred_terms else ANYTHING
    return Stage(
        requirements=strict & preferred,
        strict=strict,
        tolerations=spec.tolerations,
        affinity=(*spec.pod_affinity, *spec.preferred_pod_affinity),
        anti_affinity=(*spec.pod_anti_affinity, *spec.preferred_pod_anti_affinity),
        spread=spec.spread,
        is_contradictory=_contradicts(strict & preferred, (selector, *spec.required_terms[:1], preferred)),
    )


def _relaxed(spec: PodSpec) -> Iterator[PodSpec]:
    """Give up one thing after the other."""
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
    while any(one.when_unsatisfiable != HARD for one in spec.spread):
        spec = replace(spec, spread=_without_first_soft(spec.spread))
        yield spec


def _without_first_soft(spread: tuple[SpreadConstraint, ...]) -> tuple[SpreadConstraint, ...]:
    """Drop the first that may be broken; the last takes its place."""
    at = next(index for index, one in enumerate(spread) if one.when_unsatisfiable != HARD)
    moved = [*spread[:at], spread[-1], *spread[at + 1 : -1]]
    return tuple(moved[: len(spread) - 1])


def _by_weight(spec: PodSpec) -> PodSpec:
    def heaviest(terms: tuple[AffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
        return tuple(sorted(terms, key=lambda term: -term.weight))

    return msgspec.structs.replace(
        spec,
        preferred_terms=tuple(sorted(spec.preferred_terms, key=lambda term: -term.weight)),
        preferred_pod_affinity=heaviest(spec.preferred_pod_affinity),
        preferred_pod_anti_affinity=heaviest(spec.preferred_pod_anti_affinity),
    )


def _without_preferences(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        preferred_terms=(),
        preferred_pod_affinity=(),
        preferred_pod_anti_affinity=(),
        spread=tuple(one for one in spec.spread if one.when_unsatisfiable == HARD),
    )


def _contradicts(joined: Requirements, parts: tuple[Requirements, ...]) -> bool:
    empty = [item.key for item in joined if item.operator == "DoesNotExist"]
    return any(key in part and not part[key].is_tolerant() for key in empty for part in parts)
