"""Validation of a NodePool.

The rules of the CRD are included, because an API server without the CRD validates nothing.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from shared.model.core.labels import (
    CAPACITY_TYPE,
    NODEPOOL,
    ON_DEMAND,
    RESERVED,
    SPOT,
    is_restricted,
    normalize_label_key,
)
from shared.model.core.requirements import parse_requirement
from shared.model.karpenter.node_pool import CONSOLIDATION_POLICIES
from shared.wire.decode.field_errors import parse_resource_list
from shared.wire.decode.node_claim import parse_duration_or_never, parse_optional_duration
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import SelectorExpressionJson, TaintJson

_NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN_PATTERN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_MAX_DOMAIN_LENGTH: Final = 253
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CAPACITY_TYPES: Final = frozenset((SPOT, ON_DEMAND, RESERVED))
_MAX_MIN_VALUES: Final = 50
_MAX_WEIGHT: Final = 100
_TEMPLATE_PATH: Final = "spec.template.spec"


def validate_node_pool(spec: wire.NodePoolSpecJson) -> Iterator[str]:
    """Yield each error of *spec*, with the field and how to fix it; no errors: the NodePool can be used."""
    yield from _validate_labels(spec.template.metadata.labels)
    for number, expression in enumerate(spec.template.spec.requirements):
        yield from _validate_requirement(f"{_TEMPLATE_PATH}.requirements[{number}]", expression)
    yield from _validate_taints(spec.template.spec)
    yield from _validate_class_ref(spec.template.spec.node_class_ref)
    yield from _validate_durations(spec)
    yield from _validate_disruption(spec.disruption)
    yield from _validate_limits_and_replicas(spec)


def _validate_labels(labels: dict[str, str]) -> Iterator[str]:
    for key, value in sorted(labels.items()):
        path = f"spec.template.metadata.labels[{key}]"
        yield from _validate_label_key(path, key)
        yield from _validate_label_value(path, value)


def _validate_requirement(path: str, expression: SelectorExpressionJson) -> Iterator[str]:
    yield from _validate_label_key(f"{path}.key", expression.key)
    try:
        parse_requirement(expression.key, expression.operator, expression.values)
    except ValueError as error:
        yield f"{path}: {error}; write the operator with the values it takes"
        return
    if expression.operator in ("In", "NotIn"):
        for value in expression.values:
            yield from _validate_label_value(f"{path}.values", value)
    elif expression.values and int(expression.values[0]) < 0:
        yield f"{path}.values: {expression.values[0]} is below zero; write zero or more"
    yield from _validate_min_values(path, expression)
    yield from _validate_capacity_types(path, expression)


def _validate_min_values(path: str, expression: SelectorExpressionJson) -> Iterator[str]:
    if expression.min_values is None:
        return
    if not 1 <= expression.min_values <= _MAX_MIN_VALUES:
        yield f"{path}.minValues: {expression.min_values} must be between 1 and {_MAX_MIN_VALUES}; correct it"
    elif expression.operator == "In" and (value_count := len(set(expression.values))) < expression.min_values:
        yield f"{path}.minValues: {expression.min_values} of {value_count} values; add values or lower it"


def _validate_capacity_types(path: str, expression: SelectorExpressionJson) -> Iterator[str]:
    if normalize_label_key(expression.key) != CAPACITY_TYPE or expression.operator != "In":
        return
    capacity_types = _CAPACITY_TYPES.intersection(expression.values)
    if not capacity_types:
        yield f"{path}.values: none of {', '.join(sorted(_CAPACITY_TYPES))}; write at least one"
    elif len(capacity_types) < min(expression.min_values or 0, len(set(expression.values))):
        yield f"{path}.minValues: only {len(capacity_types)} of the values are capacity types; add one or lower it"


def _validate_taints(spec: wire.NodeClaimSpecJson) -> Iterator[str]:
    taint_ids: set[tuple[str, str]] = set()
    for field, taints in (("taints", spec.taints), ("startupTaints", spec.startup_taints)):
        for number, taint in enumerate(taints):
            path = f"{_TEMPLATE_PATH}.{field}[{number}]"
            yield from _validate_taint(path, taint)
            if (taint.key, taint.effect) in taint_ids:
                yield f"{path}: a second taint {taint.key}:{taint.effect}; remove one"
            taint_ids.add((taint.key, taint.effect))


def _validate_taint(path: str, taint: TaintJson) -> Iterator[str]:
    yield from _validate_qualified_name(f"{path}.key", taint.key)
    yield from _validate_label_value(f"{path}.value", taint.value)
    if taint.effect not in _TAINT_EFFECTS:
        yield f"{path}.effect: {taint.effect!r} is unknown; write one of {', '.join(_TAINT_EFFECTS)}"


def _validate_class_ref(ref: wire.NodeClassRefJson) -> Iterator[str]:
    for field, value in (("group", ref.group), ("kind", ref.kind), ("name", ref.name)):
        if not value:
            yield f"{_TEMPLATE_PATH}.nodeClassRef.{field}: is empty; write the value of an EC2NodeClass"


def _validate_durations(spec: wire.NodePoolSpecJson) -> Iterator[str]:
    template, disruption = spec.template.spec, spec.disruption
    yield from _validate_with_parser(parse_duration_or_never, f"{_TEMPLATE_PATH}.expireAfter", template.expire_after)
    yield from _validate_with_parser(
        parse_optional_duration, f"{_TEMPLATE_PATH}.terminationGracePeriod", template.termination_grace_period
    )
    yield from _validate_with_parser(
        parse_duration_or_never, "spec.disruption.consolidateAfter", disruption.consolidate_after
    )
    for number, budget in enumerate(disruption.budgets):
        yield from _validate_with_parser(
            parse_optional_duration, f"spec.disruption.budgets[{number}].duration", budget.duration
        )


def _validate_disruption(disruption: wire.DisruptionJson) -> Iterator[str]:
    if disruption.consolidation_policy not in CONSOLIDATION_POLICIES:
        policy, known_policies = disruption.consolidation_policy, ", ".join(CONSOLIDATION_POLICIES)
        yield f"spec.disruption.consolidationPolicy: {policy!r} is unknown; write one of {known_policies}"
    for number, budget in enumerate(disruption.budgets):
        if bool(budget.schedule) != (budget.duration is not None):
            yield f"spec.disruption.budgets[{number}]: schedule and duration belong together; set both or neither"


def _validate_limits_and_replicas(spec: wire.NodePoolSpecJson) -> Iterator[str]:
    if spec.limits is not None:
        yield from _validate_with_parser(parse_resource_list, "spec.limits", spec.limits)
    if spec.weight is not None and not 1 <= spec.weight <= _MAX_WEIGHT:
        yield f"spec.weight: {spec.weight} must be between 1 and {_MAX_WEIGHT}; correct it"
    if spec.replicas is None:
        return
    if spec.replicas < 0:
        yield f"spec.replicas: {spec.replicas} is below zero; write zero or more"
    if set(spec.limits or ()) - {"nodes"}:
        yield "spec.limits: with replicas, only nodes can be limited; remove the other limits"
    if spec.weight is not None:
        yield "spec.weight: has no effect with replicas; remove it"


def _validate_label_key(path: str, key: str) -> Iterator[str]:
    name = normalize_label_key(key)
    if name == NODEPOOL or is_restricted(name):
        yield f"{path}: {key} is set by the autoscaler; remove it"
    yield from _validate_qualified_name(path, key)


def _validate_qualified_name(path: str, key: str) -> Iterator[str]:
    domain, slash, name = key.rpartition("/")
    has_valid_domain = not slash or (len(domain) <= _MAX_DOMAIN_LENGTH and _DOMAIN_PATTERN.fullmatch(domain))
    if not has_valid_domain or not _NAME_PATTERN.fullmatch(name):
        yield f"{path}: {key!r} is not a label key; write name or domain/name"


def _validate_label_value(path: str, value: str) -> Iterator[str]:
    if value and not _NAME_PATTERN.fullmatch(value):
        yield f"{path}: {value!r} is not a label value; write up to 63 letters, digits, '-', '_' and '.'"


def _validate_with_parser(parse: Callable[..., object], path: str, value: object) -> Iterator[str]:
    try:
        parse(path, value)
    except ValueError as error:
        yield str(error)
