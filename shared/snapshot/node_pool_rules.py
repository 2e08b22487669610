"""What a NodePool must keep to be used, the definition's own rules included: an absent one checks nothing."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from shared.model.labels import CAPACITY_TYPE, NODEPOOL, ON_DEMAND, RESERVED, SPOT, is_restricted, normalised
from shared.model.requirements import requirement
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.fields import amounts
from shared.snapshot.node_claims import duration, nillable_duration
from shared.snapshot.wire_core import Expression, Taint

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_DOMAIN: Final = 253
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES: Final = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
_CAPACITY_TYPES: Final = frozenset((SPOT, ON_DEMAND, RESERVED))
_MOST_MIN_VALUES: Final = 50
_MOST_WEIGHT: Final = 100
_TEMPLATE: Final = "spec.template.spec"


def refusals(spec: wire.NodePoolSpec) -> Iterator[str]:
    """Answer all that is wrong, each naming the field and what to do; nothing if the NodePool can be used."""
    yield from _labels(spec.template.metadata.labels)
    for number, one in enumerate(spec.template.spec.requirements):
        yield from _requirement(f"{_TEMPLATE}.requirements[{number}]", one)
    yield from _taints(spec.template.spec)
    yield from _class_ref(spec.template.spec.node_class_ref)
    yield from _durations(spec)
    yield from _disruption(spec.disruption)
    yield from _size(spec)


def _labels(labels: dict[str, str]) -> Iterator[str]:
    for key, value in sorted(labels.items()):
        path = f"spec.template.metadata.labels[{key}]"
        yield from _key(path, key)
        yield from _label_value(path, value)


def _requirement(path: str, one: Expression) -> Iterator[str]:
    yield from _key(f"{path}.key", one.key)
    try:
        requirement(one.key, one.operator, one.values)
    except ValueError as error:
        yield f"{path}: {error}; write the operator with the values it takes"
        return
    if one.operator in ("In", "NotIn"):
        for value in one.values:
            yield from _label_value(f"{path}.values", value)
    elif one.values and int(one.values[0]) < 0:
        yield f"{path}.values: {one.values[0]} is below zero; write zero or more"
    yield from _min_values(path, one)
    yield from _capacity_types(path, one)


def _min_values(path: str, one: Expression) -> Iterator[str]:
    if one.min_values is None:
        return
    if not 1 <= one.min_values <= _MOST_MIN_VALUES:
        yield f"{path}.minValues: {one.min_values} is not between 1 and {_MOST_MIN_VALUES}; write one that is"
    elif one.operator == "In" and len(set(one.values)) < one.min_values:
        yield f"{path}.minValues: {one.min_values} of {len(set(one.values))} values; add values or lower it"


def _capacity_types(path: str, one: Expression) -> Iterator[str]:
    if normalised(one.key) != CAPACITY_TYPE or one.operator != "In":
        return
    known = _CAPACITY_TYPES.intersection(one.values)
    if not known:
        yield f"{path}.values: none of {', '.join(sorted(_CAPACITY_TYPES))}; write at least one"
    elif len(known) < min(one.min_values or 0, len(set(one.values))):
        yield f"{path}.minValues: only {len(known)} of the values are capacity types; add one or lower it"


def _taints(spec: wire.NodeClaimSpec) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for field, taints in (("taints", spec.taints), ("startupTaints", spec.startup_taints)):
        for number, taint in enumerate(taints):
            path = f"{_TEMPLATE}.{field}[{number}]"
            yield from _taint(path, taint)
            if (taint.key, taint.effect) in seen:
                yield f"{path}: a second taint {taint.key}:{taint.effect}; remove one"
            seen.add((taint.key, taint.effect))


def _taint(path: str, taint: Taint) -> Iterator[str]:
    yield from _qualified_name(f"{path}.key", taint.key)
    yield from _label_value(f"{path}.value", taint.value)
    if taint.effect not in _EFFECTS:
        yield f"{path}.effect: {taint.effect!r} is unknown; write one of {', '.join(_EFFECTS)}"


def _class_ref(ref: wire.ClassRef) -> Iterator[str]:
    for field, value in (("group", ref.group), ("kind", ref.kind), ("name", ref.name)):
        if not value:
            yield f"{_TEMPLATE}.nodeClassRef.{field}: is empty; write that of an EC2NodeClass"


def _durations(spec: wire.NodePoolSpec) -> Iterator[str]:
    template, disruption = spec.template.spec, spec.disruption
    yield from _refused(nillable_duration, f"{_TEMPLATE}.expireAfter", template.expire_after)
    yield from _refused(duration, f"{_TEMPLATE}.terminationGracePeriod", template.termination_grace_period)
    yield from _refused(nillable_duration, "spec.disruption.consolidateAfter", disruption.consolidate_after)
    for number, budget in enumerate(disruption.budgets):
        yield from _refused(duration, f"spec.disruption.budgets[{number}].duration", budget.duration)


def _disruption(disruption: wire.Disruption) -> Iterator[str]:
    if disruption.consolidation_policy not in _POLICIES:
        policy = disruption.consolidation_policy
        yield f"spec.disruption.consolidationPolicy: {policy!r} is unknown; write one of {', '.join(_POLICIES)}"
    for number, budget in enumerate(disruption.budgets):
        if bool(budget.schedule) != (budget.duration is not None):
            yield f"spec.disruption.budgets[{number}]: schedule and duration need each other; write both or neither"


def _size(spec: wire.NodePoolSpec) -> Iterator[str]:
    if spec.limits is not None:
        yield from _refused(amounts, "spec.limits", spec.limits)
    if spec.weight is not None and not 1 <= spec.weight <= _MOST_WEIGHT:
        yield f"spec.weight: {spec.weight} is not between 1 and {_MOST_WEIGHT}; write one that is"
    if spec.replicas is None:
        return
    if spec.replicas < 0:
        yield f"spec.replicas: {spec.replicas} is below zero; write zero or more"
    if set(spec.limits or ()) - {"nodes"}:
        yield "spec.limits: with replicas only nodes may be limited; remove the others"
    if spec.weight is not None:
        yield "spec.weight: has no meaning with replicas; remove it"


def _key(path: str, key: str) -> Iterator[str]:
    name = normalised(key)
    if name == NODEPOOL or is_restricted(name):
        yield f"{path}: {key} is set by the autoscaler; remove it"
    yield from _qualified_name(path, key)


def _qualified_name(path: str, key: str) -> Iterator[str]:
    domain, slash, name = key.rpartition("/")
    proper_domain = not slash or (len(domain) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(domain))
    if not proper_domain or not _NAME.fullmatch(name):
        yield f"{path}: {key!r} is not a label's name; write name or domain/name"


def _label_value(path: str, value: str) -> Iterator[str]:
    if value and not _NAME.fullmatch(value):
        yield f"{path}: {value!r} is not a label's value; write up to 63 letters, digits, '-', '_' and '.'"


def _refused(read: Callable[..., object], path: str, value: object) -> Iterator[str]:
    try:
        read(path, value)
    except ValueError as error:
        yield str(error)
