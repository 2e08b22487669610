"""What no node can be made for whatever pools there are: fields of a pod that an API server would have refused.

A manifest that no API server has seen may hold anything; and rules of the API server change.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from shared.model.labels import is_restricted
from shared.model.pods import PodSpec, SpreadConstraint, strict_requirements

_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SHOWN: Final = 40
_AFFINITY: Final = "spec.affinity.nodeAffinity"
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")


@lru_cache(maxsize=8192)
def fault_of(spec: PodSpec) -> str:
    """Answer the first thing that is wrong with what the pod requires, with the remedy; "" if nothing is."""
    return next(_faults(spec), "")


def _faults(spec: PodSpec) -> Iterator[str]:
    if spec.has_match_fields:
        yield f"{_AFFINITY}: required terms use matchFields: use matchExpressions on a label"
    wanted = [strict_requirements(spec, term) for term in range(max(1, len(spec.required_terms)))]
    restricted = sorted({item.key for term in wanted for item in term if is_restricted(item.key)})
    if restricted:
        where = " and ".join(sorted({_field(spec, key) for key in restricted}))
        yield f"{where}: requires {', '.join(restricted)}, which is restricted: select on another label"
    asked = [*spec.node_selector, *((item.key, value) for one in wanted for item in one for value in item.values)]
    for key, value in sorted(set(asked)):
        if not _VALUE.fullmatch(value):
            said = f"{_field(spec, key)}: requires {key} to be {_shown(value)}"
            yield f"{said}: write up to 63 letters, digits, '-', '_' and '.'"
    for constraint in spec.spread:
        yield from _spread_faults(constraint)
    for term in (*spec.pod_affinity, *spec.pod_anti_affinity):
        if not term.topology_key:
            yield "spec.affinity: a term of pod affinity has no topologyKey: write a label's name"


def _spread_faults(one: SpreadConstraint) -> Iterator[str]:
    where = f"spec.topologySpreadConstraints over {one.topology_key!r}"
    if not one.topology_key:
        yield f"{where}: write a label's name as topologyKey"
    if one.max_skew < 1:
        yield f"{where}: maxSkew is {one.max_skew}: write one or more"
    if one.min_domains is not None and one.min_domains < 1:
        yield f"{where}: minDomains is {one.min_domains}: write one or more"
    if one.when_unsatisfiable not in _UNSATISFIABLE:
        yield f"{where}: whenUnsatisfiable is {one.when_unsatisfiable!r}: write one of {', '.join(_UNSATISFIABLE)}"
    for name, policy in (
        ("nodeAffinityPolicy", one.node_affinity_policy),
        ("nodeTaintsPolicy", one.node_taints_policy),
    ):
        if policy not in _POLICIES:
            yield f"{where}: {name} is {policy!r}: write one of {', '.join(_POLICIES)}"


def _field(spec: PodSpec, key: str) -> str:
    return "spec.nodeSelector" if any(key == one for one, _ in spec.node_selector) else _AFFINITY


def _shown(value: str) -> str:
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
