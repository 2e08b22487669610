"""Preferences are held like requirements, and given up one at a time, in Karpenter's order.

The first of several required terms, then preferred pod affinity, preferred pod anti-affinity, preferred node affinity,
spread that may be broken; last, taints that only discourage are tolerated.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from shared.model.pods import AffinityTerm, PodSpec, SpreadConstraint, strict_requirements
from shared.model.requirements import ANYTHING, Requirements
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
    current = _without_preferences(spec) if policy == "Ignore" else _by_weight(spec)
    tried = [current, *_relaxed(current)]
    current = tried[-1]
    if discouraged and PREFER_NO_SCHEDULE not in current.tolerations:
        tried.append(msgspec.structs.replace(current, tolerations=(*current.tolerations, PREFER_NO_SCHEDULE)))
    return tuple(_stage(one) for one in tried)


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
