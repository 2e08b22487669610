"""NodeOverlays: wire JSON -> model. An invalid NodeOverlay is kept with its errors, which its status must report."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from shared.model.core.labels import DEVICES, is_restricted, normalize_label_key
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.resources import CPU, MEMORY, NONE, PODS, STORAGE, Resources
from shared.model.karpenter.node_overlay import NodeOverlay, PriceAdjustment
from shared.wire.decode.core import parse_conditions, parse_object_meta, parse_requirements
from shared.wire.decode.dynamic_resources.declared_devices import parse_declared_devices
from shared.wire.decode.field_errors import parse_resource_list
from shared.wire.schema import feature_kinds as wire

_PRICE_PATTERN: Final = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_CHANGE_PATTERN: Final = re.compile(r"(?P<amount>[+-]\d{1,18}(?:\.\d{1,18})?)(?P<percent>%?)", re.ASCII)
_MAX_WEIGHT: Final = 10_000
_NUMERIC_OPERATORS: Final = ("Gt", "Lt", "Gte", "Lte")
_STANDARD_RESOURCES: Final = (CPU, MEMORY, PODS, STORAGE)


def parse_node_overlay(overlay: wire.NodeOverlayJson) -> NodeOverlay:
    """Parse a NodeOverlay; its errors are in *refused*."""
    spec, errors = overlay.spec, list(_validate_overlay(overlay.spec))
    requirements, capacity, devices = ANYTHING, NONE, None
    try:
        devices = parse_declared_devices(overlay.metadata.annotations.get(DEVICES, ""))
        requirements = _parse_requirements(spec)
        capacity = parse_resource_list("spec.capacity", spec.capacity)
    except ValueError as error:
        errors.append(str(error))
    return NodeOverlay(
        meta=parse_object_meta(overlay.metadata),
        requirements=requirements,
        adjustment=None if errors else _build_adjustment(spec),
        capacity=Resources() if errors else capacity,
        devices=None if errors else devices,
        weight=spec.weight or 0,
        refusal_message=" | ".join(errors),
        conditions=parse_conditions(overlay.status.conditions),
    )


def _parse_requirements(spec: wire.NodeOverlaySpecJson) -> Requirements:
    return parse_requirements("spec.requirements", spec.requirements)


def _validate_overlay(spec: wire.NodeOverlaySpecJson) -> Iterator[str]:
    if spec.price is not None and spec.price_adjustment is not None:
        yield "spec.price: cannot be combined with priceAdjustment; remove one of them"
    if spec.price is not None and not _PRICE_PATTERN.fullmatch(str(spec.price)):
        yield f"spec.price: {spec.price!r} is not a price; write USD per hour like 0.25"
    if spec.price_adjustment is not None and not _is_price_change(str(spec.price_adjustment)):
        yield (
            f"spec.priceAdjustment: {spec.price_adjustment!r} is not a price adjustment; write a value "
            "like +0.5, -0.02, +10% or -15%"
        )
    for name in sorted(set(_STANDARD_RESOURCES).intersection(spec.capacity)):
        yield f"spec.capacity: {name} comes from the instance type; write only extended resources"
    if spec.weight is not None and not 1 <= spec.weight <= _MAX_WEIGHT:
        yield f"spec.weight: {spec.weight} must be between 1 and {_MAX_WEIGHT}; correct it"
    for number, expression in enumerate(spec.requirements):
        key = normalize_label_key(expression.key)
        if is_restricted(key):
            yield f"spec.requirements[{number}].key: {expression.key} is restricted; select on another label"
        if expression.operator in _NUMERIC_OPERATORS and expression.values and expression.values[0].startswith("-"):
            yield f"spec.requirements[{number}].values: {expression.values[0]} is below zero; write zero or more"


def _is_price_change(text: str) -> bool:
    match = _CHANGE_PATTERN.fullmatch(text)
    return match is not None and not (match["percent"] and Decimal(match["amount"]) < -100)  # noqa: PLR2004 - per cent


def _build_adjustment(spec: wire.NodeOverlaySpecJson) -> PriceAdjustment | None:
    if spec.price is not None:
        return PriceAdjustment(kind="absolute", amount=Decimal(str(spec.price)))
    match = _CHANGE_PATTERN.fullmatch(str(spec.price_adjustment))
    if match is None:
        return None
    return PriceAdjustment(kind="percent" if match["percent"] else "add", amount=Decimal(match["amount"]))
