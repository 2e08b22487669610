"""Pod validation: pods that cannot be scheduled on any node, and fields that an API server would have rejected.

A manifest that no API server has validated may contain anything, and the rules of the API server change.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from shared.decide.scheduling.constraints.volume_topology import VolumeTopology
from shared.model.core.labels import NODEPOOL, is_restricted
from shared.model.decisions.placement import Unschedulable, UnschedulableReason
from shared.model.karpenter.spot_share import WORKLOAD_UNITS, find_share_problem
from shared.model.kubernetes.pod import Pod, PodSpec, SpreadConstraint, build_strict_requirements
from shared.state.dynamic_resources.pod_claims import SETTING, PodClaims

_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MAX_CHARS_IN_MESSAGE: Final = 40
_NODE_AFFINITY_FIELD: Final = "spec.affinity.nodeAffinity"
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")


def validate_pod(pod: Pod, volumes: VolumeTopology, claims: PodClaims) -> Unschedulable | None:
    """Return why *pod* cannot be scheduled on any node, or None if it can be scheduled."""
    error = _find_pod_error(pod, volumes, claims)
    return None if error is None else Unschedulable(pod=pod.name, reason=error[0], message=error[1])


def _find_pod_error(pod: Pod, volumes: VolumeTopology, claims: PodClaims) -> tuple[UnschedulableReason, str] | None:
    spec = pod.spec
    if spec.has_resource_claims:
        if not claims.is_enabled:
            return "ResourceClaimsIgnored", f"spec.resourceClaims: Joiner plans claims only with {SETTING}: on"
        claim_error = claims.find_error(pod)
        if claim_error:
            return "ResourceClaimNotUsable", claim_error
    if pod.node_name:
        return None
    first_term_requirements = build_strict_requirements(spec)
    if NODEPOOL in first_term_requirements and first_term_requirements[NODEPOOL].operator == "DoesNotExist":
        return "OptedOut", f"its requirements exclude nodes with the label {NODEPOOL}: Joiner ignores the pod"
    spec_error = find_spec_error(spec) or find_share_problem(pod.meta, WORKLOAD_UNITS)
    if spec_error:
        return "InvalidPod", spec_error
    volume_error = volumes.find_error(pod)
    return ("VolumeNotUsable", volume_error) if volume_error else None


@lru_cache(maxsize=8192)
def find_spec_error(spec: PodSpec) -> str:
    """Return the first error in the scheduling fields of *spec*, with the fix; "" if there is none."""
    return next(_find_spec_errors(spec), "")


def _find_spec_errors(spec: PodSpec) -> Iterator[str]:
    if spec.has_match_fields:
        yield f"{_NODE_AFFINITY_FIELD}: required terms use matchFields: use matchExpressions on a label"
    term_requirements = [build_strict_requirements(spec, term) for term in range(max(1, len(spec.required_terms)))]
    restricted_keys = sorted({item.key for term in term_requirements for item in term if is_restricted(item.key)})
    if restricted_keys:
        field_paths = " and ".join(sorted({_get_field_path(spec, key) for key in restricted_keys}))
        yield f"{field_paths}: requires {', '.join(restricted_keys)}, which is restricted: select on another label"
    label_values = [
        *spec.node_selector,
        *((item.key, value) for requirements in term_requirements for item in requirements for value in item.values),
    ]
    for key, value in sorted(set(label_values)):
        if not _LABEL_VALUE.fullmatch(value):
            prefix = f"{_get_field_path(spec, key)}: requires {key} to be {_format_value(value)}"
            yield f"{prefix}: write up to 63 letters, digits, '-', '_' and '.'"
    for constraint in spec.spread:
        yield from _find_spread_errors(constraint)
    for term in (*spec.pod_affinity, *spec.pod_anti_affinity):
        if not term.topology_key:
            yield "spec.affinity: a term of pod affinity has no topologyKey: write a label key"


def _find_spread_errors(constraint: SpreadConstraint) -> Iterator[str]:
    field_path = f"spec.topologySpreadConstraints over {constraint.topology_key!r}"
    if not constraint.topology_key:
        yield f"{field_path}: write a label key as topologyKey"
    if constraint.max_skew < 1:
        yield f"{field_path}: maxSkew is {constraint.max_skew}: write 1 or more"
    if constraint.min_domains is not None and constraint.min_domains < 1:
        yield f"{field_path}: minDomains is {constraint.min_domains}: write 1 or more"
    if constraint.when_unsatisfiable not in _UNSATISFIABLE:
        allowed_values = ", ".join(_UNSATISFIABLE)
        yield f"{field_path}: whenUnsatisfiable is {constraint.when_unsatisfiable!r}: write one of {allowed_values}"
    for name, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in _POLICIES:
            yield f"{field_path}: {name} is {policy!r}: write one of {', '.join(_POLICIES)}"


def _get_field_path(spec: PodSpec, key: str) -> str:
    return "spec.nodeSelector" if any(key == label_key for label_key, _ in spec.node_selector) else _NODE_AFFINITY_FIELD


def _format_value(value: str) -> str:
    return repr(value if len(value) <= _MAX_CHARS_IN_MESSAGE else f"{value[:_MAX_CHARS_IN_MESSAGE]}...")
