"""The values and functions that device selectors can use in addition to CEL: quantities and semantic versions.

They are those of Kubernetes' CEL environment for devices: `quantity` and `semver` with their methods.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from shared.model.core.units import is_quantity, parse_quantity

_PER_UNIT: Final = 1000
_SEMVER_PATTERN: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
CelObject = dict[str, Any]


def build_quantity(text: str) -> CelObject:
    """Return the CEL value of a quantity.

    Raises:
        ValueError: *text* is not a quantity.
    """
    return {"quantity": parse_quantity(text, per_unit=_PER_UNIT)}


def build_semver(text: str) -> CelObject:
    """Return the CEL value of a semantic version.

    Raises:
        ValueError: *text* is not a semantic version.
    """
    match = _SEMVER_PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"not a semantic version: {text!r}")
    return {"semver": [int(match[1]), int(match[2]), int(match[3])], "prerelease": match[4] or ""}


def _compare(first: CelObject, second: CelObject) -> int:
    first_key, second_key = _get_order_key(first), _get_order_key(second)
    if type(first_key) is not type(second_key):
        raise ValueError("cannot compare a quantity with a version")
    return int(first_key > second_key) - int(first_key < second_key)


def _get_order_key(value: CelObject) -> Any:  # noqa: ANN401 - a number, or a tuple
    if "quantity" in value:
        return value["quantity"]
    prerelease = value["prerelease"]
    identifiers = [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in (prerelease.split(".") if prerelease else ())
    ]
    return (*value["semver"], not prerelease, identifiers)


def _get_units(value: CelObject) -> int:
    amount: int = value["quantity"]
    if amount % _PER_UNIT:
        raise ValueError("the quantity is not a whole number")
    return amount // _PER_UNIT


def _add(first: CelObject, second: CelObject | int) -> CelObject:
    return {"quantity": first["quantity"] + _get_amount(second)}


def _subtract(first: CelObject, second: CelObject | int) -> CelObject:
    return {"quantity": first["quantity"] - _get_amount(second)}


def _get_amount(value: CelObject | int) -> int:
    amount: int = value * _PER_UNIT if isinstance(value, int) else value["quantity"]
    return amount


def _is_semver(text: str) -> bool:
    return _SEMVER_PATTERN.fullmatch(text) is not None


CEL_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": build_quantity,
    "isQuantity": is_quantity,
    "semver": build_semver,
    "isSemver": _is_semver,
    "compareTo": _compare,
    "isGreaterThan": lambda first, second: _compare(first, second) > 0,
    "isLessThan": lambda first, second: _compare(first, second) < 0,
    "asInteger": _get_units,
    "isInteger": lambda value: not value["quantity"] % _PER_UNIT,
    "asApproximateFloat": lambda value: float(Decimal(value["quantity"]) / _PER_UNIT),
    "sign": lambda value: (value["quantity"] > 0) - (value["quantity"] < 0),
    "add": _add,
    "sub": _subtract,
    "major": lambda value: value["semver"][0],
    "minor": lambda value: value["semver"][1],
    "patch": lambda value: value["semver"][2],
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
}
