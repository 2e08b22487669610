"""Requirements, taints and limits of a pool: nearly the same since v1alpha5."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.keys import meant
from cli.conversion.metadata import renamed_label
from cli.conversion.parts import Part, remedy, shown
from cli.conversion.remarks import Path, Remarks
from cli.conversion.remedies import amount_like, several, whole
from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, OS, WELL_KNOWN
from shared.model.units import is_quantity

Object = dict[str, Any]
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SETS: Final = ("In", "NotIn")
_NONE: Final = ("Exists", "DoesNotExist")
_SHORT: Final = re.compile(r"([\w./-]+)(?:=([\w.-]*))?:(\w+)")
_SIGNS: Final = {">": "Gt", "<": "Lt", ">=": "Gte", "<=": "Lte", "=": "In", "==": "In", "!=": "NotIn"} | dict.fromkeys(
    ("equal", "equals", "is"), "In"
)
_PODS: Final = "karpenter.k8s.aws/instance-pods"
_VALUES: Final = {
    ARCH: ("amd64", "arm64"),
    CAPACITY_TYPE: ("on-demand", "reserved", "spot"),
    OS: ("linux", "windows"),
}
_MEANT: Final = {"x86_64": "amd64", "x86-64": "amd64", "x64": "amd64", "aarch64": "arm64", "ondemand": "on-demand"}
_RESERVED: Final = ("karpenter.sh", "karpenter.k8s.aws")
CHOOSES: Final = (
    INSTANCE_TYPE,
    *(f"karpenter.k8s.aws/instance-{one}" for one in ("category", "family", "generation")),
)
"""Who constrains one of these got no default for category and generation."""


def requirements(spec: Part, set_by_us: frozenset[str] = frozenset((NODEPOOL, HOSTNAME))) -> list[Object]:
    """Answer `requirements` of *spec*; none of the keys *set_by_us* may be among them."""
    return [_requirement(one, set_by_us) for one in spec.parts("requirements")]


def _requirement(one: Part, set_by_us: frozenset[str]) -> Object:
    remarks = one.remarks
    key, operator, values = one.text("key"), one.text("operator"), one.texts("values")
    least = one.number("minValues")
    if key:
        one.end()
    if not key:
        remarks.refuse(one.at("key"), f"is missing: {whole(one.keys(), one.raw)}")
        return {}
    if not operator and not values and one.keys() == ["key"]:
        remarks.refuse(one.at("operator"), "is missing: write operator and values below key, without a hyphen before")
        return {}
    key = renamed_label(key, one.at("key"), remarks)
    _check_key(key, one.at("key"), remarks, set_by_us)
    if isinstance(one.raw("values"), list | None):
        _check_operator(operator, values, one)
    if operator in _SETS:
        _check_values(key, values, one)
    new: Object = {"key": key, "operator": operator}
    if values:
        new["values"] = values
    return new if least is None else new | {"minValues": least}


def _check_key(key: str, path: Path, remarks: Remarks, set_by_us: frozenset[str]) -> None:
    if key in set_by_us:
        remarks.refuse(path, f"{key} is set for each node by the autoscaler: remove the requirement")
    elif key == _PODS:
        remarks.refuse(path, f"{key} is no label any more: constrain instance-cpu or the types, or set kubelet.maxPods")
    elif key.partition("/")[0] in _RESERVED and key not in WELL_KNOWN:
        close = meant(key)
        hint = f"did you mean {close}?" if close else "remove it, or use a domain of your own"
        remarks.refuse(path, f"no label {key} is known: {hint}")
    elif close := meant(key):
        remarks.refuse(path, f"no machine has a label {key}: did you mean {close}?")


def _check_operator(operator: str, values: list[str], one: Part) -> None:
    if operator not in OPERATORS:
        close = get_close_matches(operator.lower().replace(" ", ""), [each.lower() for each in OPERATORS], n=1)
        sure = _SIGNS.get(operator.lower()) or next((each for each in OPERATORS if [each.lower()] == close), "")
        hint = f"did you mean {sure}?" if sure else f"write one of {', '.join(OPERATORS)}"
        one.remarks.refuse(one.at("operator"), f"is {operator!r}: {hint}" if operator else f"is missing: {hint}")
    elif operator in _NONE:
        if values:
            one.remarks.refuse(one.at("values"), f"{operator} takes none: remove them, or write In")
    elif operator in _SETS:
        if not values and operator == "In":
            one.remarks.refuse(one.at("values"), "are missing: In needs at least one: write values: [...]")
    elif len(values) != 1 or not values[0].isdecimal():
        one.remarks.refuse(one.at("values"), f'{operator} takes one whole number: write values: ["3"], for example')


def _check_values(key: str, values: list[str], one: Part) -> None:
    for place, value in enumerate(values):
        if "," in value or " " in value.strip():
            one.remarks.refuse(
                one.at("values", place),
                f"is one text with several values in it, {value!r}: write values: {several(value)}",
            )
        elif key in _VALUES and value not in _VALUES[key]:
            plain = value.lower().replace("_", "-").replace(" ", "-")
            close = [_MEANT[plain]] if plain in _MEANT else get_close_matches(plain, _VALUES[key], n=1)
            hint = f"did you mean {close[0]}?" if close else remedy(value, f"write one of {', '.join(_VALUES[key])}")
            one.remarks.refuse(one.at("values", place), f"{key} is never {value!r}: {hint}")


def labels_and_requirements(spec: Part, labels: dict[str, str], path: Path) -> tuple[dict[str, str], list[Object]]:
    """Answer the labels that a v1 pool may put on nodes, and as requirements those that it may not."""
    kept: dict[str, str] = {}
    needs: list[Object] = []
    for old, value in labels.items():
        key = renamed_label(old, (*path, old), spec.remarks)
        if key.partition("/")[0] not in _RESERVED:
            kept[key] = value
        elif key in WELL_KNOWN and key != NODEPOOL:
            spec.remarks.changed((*path, old), f"is a requirement now: nodes get the label {key} from what they are")
            needs.append({"key": key, "operator": "In", "values": [value]})
        elif key == NODEPOOL:
            spec.remarks.changed((*path, old), f"left out: every node gets {NODEPOOL} with its pool's name")
        else:
            spec.remarks.refuse((*path, old), f"the domain of {key} belongs to Karpenter: use one of your own")
    return kept, needs


def _taint(text: str) -> str:
    """Answer what to write for *text*, a taint as kubectl has it; "" if it is none."""
    found = _SHORT.fullmatch(text)
    if found is None:
        return ""
    value = f"value: {found[2]}, " if found[2] else ""
    return f"write {{key: {found[1]}, {value}effect: {found[3]}}}"


def taints(spec: Part, field: str) -> list[Object]:
    """Answer the taints under *field*."""
    found: list[Object] = []
    for one in spec.parts(field, _taint):
        new = {name: one.text(name) for name in ("key", "value", "effect")}
        one.raw("timeAdded")
        one.end()
        if not new["key"]:
            one.remarks.refuse(one.at("key"), "is missing: name the taint")
        if new["effect"] not in _EFFECTS:
            close = get_close_matches(new["effect"], _EFFECTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"write one of {', '.join(_EFFECTS)}"
            one.remarks.refuse(one.at("effect"), f"is {new['effect']!r}: {hint}")
        found.append({name: value for name, value in new.items() if value})
    return found


def limits(amounts: Part | None) -> Object:
    """Answer amounts by resource; a percentage is refused."""
    found: Object = {}
    if amounts is None:
        return found
    for name in amounts.keys():  # noqa: SIM118 - no mapping
        value = amounts.raw(name)
        if isinstance(value, str) and value.endswith("%"):
            amounts.remarks.refuse(
                amounts.at(name), f"is {value}: a limit is an amount, not a share: write 100 or 400Gi"
            )
        elif isinstance(value, bool) or not is_quantity(str(value)):
            amounts.remarks.refuse(amounts.at(name), f"is {shown(value)}: {remedy(value, amount_like(name, value))}")
        else:
            found[name] = value
    return found


def constrains(keys: Iterable[str], some: Iterable[str]) -> bool:
    """Whether one of *some* is among *keys*."""
    return not set(keys).isdisjoint(some)
