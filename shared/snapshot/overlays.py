"""NodeOverlays: wire -> model. One that the rules refuse is kept, with the words: its status has to say so."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from shared.model.labels import is_restricted, normalised
from shared.model.overlays import Adjustment, NodeOverlay
from shared.model.requirements import ANYTHING, Requirements
from shared.model.resources import CPU, MEMORY, NONE, PODS, STORAGE, Resources
from shared.snapshot import wire_optional as wire
from shared.snapshot.core import conditions_from_wire, meta_from_wire, requirements_from_wire
from shared.snapshot.fields import amounts

_PRICE: Final = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_CHANGE: Final = re.compile(r"(?P<amount>[+-]\d{1,18}(?:\.\d{1,18})?)(?P<percent>%?)", re.ASCII)
_MOST_WEIGHT: Final = 10_000
_NUMERIC: Final = ("Gt", "Lt", "Gte", "Lte")
_OURS: Final = (CPU, MEMORY, PODS, STORAGE)


def node_overlay_from_wire(overlay: wire.NodeOverlay) -> NodeOverlay:
    """Read a NodeOverlay; what is wrong with it is in *refused*."""
    spec, errors = overlay.spec, list(_errors(overlay.spec))
    requirements, capacity = ANYTHING, NONE
    try:
        requirements = _requirements(spec)
        capacity = amounts("spec.capacity", spec.capacity)
    except ValueError as error:
        errors.append(str(error))
    return NodeOverlay(
        meta=meta_from_wire(overlay.metadata),
        requirements=requirements,
        adjustment=None if errors else _adjustment(spec),
        capacity=Resources() if errors else capacity,
        weight=spec.weight or 0,
        refused=" | ".join(errors),
        conditions=conditions_from_wire(overlay.status.conditions),
    )


def _requirements(spec: wire.OverlaySpec) -> Requirements:
    return requirements_from_wire("spec.requirements", spec.requirements)


def _errors(spec: wire.OverlaySpec) -> Iterator[str]:
    if spec.price is not None and spec.price_adjustment is not None:
        yield "spec.price: there is a priceAdjustment too; write one of them"
    if spec.price is not None and not _PRICE.fullmatch(str(spec.price)):
        yield f"spec.price: {spec.price!r} is no price; write USD per hour like 0.25"
    if spec.price_adjustment is not None and not _is_change(str(spec.price_adjustment)):
        yield f"spec.priceAdjustment: {spec.price_adjustment!r} is no change; write one like +0.5, -0.02, +10% or -15%"
    for name in sorted(set(_OURS).intersection(spec.capacity)):
        yield f"spec.capacity: {name} is the instance type's own; write extended resources only"
    if spec.weight is not None and not 1 <= spec.weight <= _MOST_WEIGHT:
        yield f"spec.weight: {spec.weight} is not between 1 and {_MOST_WEIGHT}; write one that is"
    for number, one in enumerate(spec.requirements):
        key = normalised(one.key)
        if is_restricted(key):
            yield f"spec.requirements[{number}].key: {one.key} is restricted; select on another label"
        if one.operator in _NUMERIC and one.values and one.values[0].startswith("-"):
            yield f"spec.requirements[{number}].values: {one.values[0]} is below zero; write zero or more"


def _is_change(text: str) -> bool:
    found = _CHANGE.fullmatch(text)
    return found is not None and not (found["percent"] and Decimal(found["amount"]) < -100)  # noqa: PLR2004 - per cent


def _adjustment(spec: wire.OverlaySpec) -> Adjustment | None:
    if spec.price is not None:
        return Adjustment(kind="absolute", amount=Decimal(str(spec.price)))
    found = _CHANGE.fullmatch(str(spec.price_adjustment))
    if found is None:
        return None
    return Adjustment(kind="percent" if found["percent"] else "add", amount=Decimal(found["amount"]))
