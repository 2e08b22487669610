"""Conversion of requirements, taints and limits of a pool, which changed little since v1alpha5."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.fields.label_suggestions import VALUES_BY_LABEL, suggest_label, suggest_label_value
from cli.convert.fields.metadata import convert_label_key
from cli.convert.reading.field_reader import MappingReader, choose_fix, format_value
from cli.convert.reading.fixes import format_value_list, suggest_amount, suggest_requirement
from cli.convert.reading.remarks import FieldPath, RemarkCollector
from shared.model.core.labels import HOSTNAME, INSTANCE_TYPE, NODEPOOL, WELL_KNOWN
from shared.model.core.units import is_quantity

JsonObject = dict[str, Any]
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SET_OPERATORS: Final = ("In", "NotIn")
_OPERATORS_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")
_TAINT_PATTERN: Final = re.compile(r"([\w./-]+)(?:=([\w.-]*))?:(\w+)")
_OPERATOR_BY_SIGN: Final = {
    ">": "Gt",
    "<": "Lt",
    ">=": "Gte",
    "<=": "Lte",
    "=": "In",
    "==": "In",
    "!=": "NotIn",
} | dict.fromkeys(("equal", "equals", "is"), "In")
_PODS_LABEL: Final = "karpenter.k8s.aws/instance-pods"
_RESERVED_DOMAINS: Final = ("karpenter.sh", "karpenter.k8s.aws")
TYPE_SELECTING_LABELS: Final = (
    INSTANCE_TYPE,
    *(f"karpenter.k8s.aws/instance-{attribute}" for attribute in ("category", "family", "generation")),
)
"""A pool with a requirement for one of these labels got no default for category and generation."""


def convert_requirements(
    spec: MappingReader, managed_keys: frozenset[str] = frozenset((NODEPOOL, HOSTNAME))
) -> list[JsonObject]:
    """Return the `requirements` of *spec*; refuse those with a key in *managed_keys*."""
    return [
        _convert_requirement(requirement_reader, managed_keys)
        for requirement_reader in spec.read_mappings("requirements")
    ]


def _convert_requirement(reader: MappingReader, managed_keys: frozenset[str]) -> JsonObject:
    remarks = reader.remarks
    key, operator, values = reader.read_text("key"), reader.read_text("operator"), reader.read_texts("values")
    min_values = reader.read_integer("minValues")
    if key:
        reader.refuse_unread_keys()
    if not key:
        remarks.add_refusal(
            reader.get_path("key"), f"is missing: {suggest_requirement(reader.list_keys(), reader.read_raw)}"
        )
        return {}
    if not operator and not values and reader.list_keys() == ["key"]:
        remarks.add_refusal(
            reader.get_path("operator"), "is missing: write operator and values below key, without a hyphen"
        )
        return {}
    key = convert_label_key(key, reader.get_path("key"), remarks)
    _check_key(key, reader.get_path("key"), remarks, managed_keys)
    if isinstance(reader.read_raw("values"), list | None):
        _check_operator(operator, values, reader)
    if operator in _SET_OPERATORS:
        _check_values(key, values, reader)
    requirement: JsonObject = {"key": key, "operator": operator}
    if values:
        requirement["values"] = values
    return requirement if min_values is None else requirement | {"minValues": min_values}


def _check_key(key: str, path: FieldPath, remarks: RemarkCollector, managed_keys: frozenset[str]) -> None:
    if key in managed_keys:
        remarks.add_refusal(path, f"{key} is set for each node by the autoscaler: remove the requirement")
    elif key == _PODS_LABEL:
        remarks.add_refusal(
            path, f"{key} is no longer a label: restrict instance-cpu or the types, or set kubelet.maxPods"
        )
    elif key.partition("/")[0] in _RESERVED_DOMAINS and key not in WELL_KNOWN:
        suggestion = suggest_label(key)
        hint = f"did you mean {suggestion}?" if suggestion else "remove it, or use a domain of your own"
        remarks.add_refusal(path, f"unknown label {key}: {hint}")
    elif suggestion := suggest_label(key):
        remarks.add_refusal(path, f"unknown node label {key}: did you mean {suggestion}?")


def _check_operator(operator: str, values: list[str], reader: MappingReader) -> None:
    if operator not in OPERATORS:
        closest = get_close_matches(
            operator.lower().replace(" ", ""), [known_operator.lower() for known_operator in OPERATORS], n=1
        )
        suggestion = _OPERATOR_BY_SIGN.get(operator.lower()) or next(
            (known_operator for known_operator in OPERATORS if [known_operator.lower()] == closest), ""
        )
        hint = f"did you mean {suggestion}?" if suggestion else f"write one of {', '.join(OPERATORS)}"
        reader.remarks.add_refusal(
            reader.get_path("operator"), f"is {operator!r}: {hint}" if operator else f"is missing: {hint}"
        )
    elif operator in _OPERATORS_WITHOUT_VALUES:
        if values:
            reader.remarks.add_refusal(
                reader.get_path("values"), f"{operator} takes no values: remove them, or write In"
            )
    elif operator in _SET_OPERATORS:
        if not values and operator == "In":
            reader.remarks.add_refusal(
                reader.get_path("values"), "are missing: In needs at least one: write values: [...]"
            )
    elif len(values) != 1 or not values[0].isdecimal():
        reader.remarks.add_refusal(
            reader.get_path("values"), f'{operator} takes one whole number: write values: ["3"], for example'
        )


def _check_values(key: str, values: list[str], reader: MappingReader) -> None:
    for index, value in enumerate(values):
        if "," in value or " " in value.strip():
            message = f"is one string with several values,  {value!r}: write values: {format_value_list(value)}"
            reader.remarks.add_refusal(reader.get_path("values", index), message)
        elif key in VALUES_BY_LABEL and value not in VALUES_BY_LABEL[key]:
            suggestion = suggest_label_value(key, value)
            hint = f"did you mean {suggestion}?" if suggestion else f"write one of {', '.join(VALUES_BY_LABEL[key])}"
            reader.remarks.add_refusal(
                reader.get_path("values", index), f"{value!r} is not a value of {key}: {choose_fix(value, hint)}"
            )


def split_labels(
    spec: MappingReader, labels: dict[str, str], path: FieldPath
) -> tuple[dict[str, str], list[JsonObject]]:
    """Return the labels that a v1 pool may set on nodes, and requirements for those that it may not set."""
    allowed_labels: dict[str, str] = {}
    requirements_from_labels: list[JsonObject] = []
    for old, value in labels.items():
        key = convert_label_key(old, (*path, old), spec.remarks)
        if key.partition("/")[0] not in _RESERVED_DOMAINS:
            allowed_labels[key] = value
        elif key in WELL_KNOWN and key != NODEPOOL:
            spec.remarks.add_change(
                (*path, old), f"converted to a requirement: nodes get the label {key} from their instance"
            )
            requirements_from_labels.append({"key": key, "operator": "In", "values": [value]})
        elif key == NODEPOOL:
            spec.remarks.add_change((*path, old), f"removed: every node gets {NODEPOOL} with the name of its NodePool")
        else:
            spec.remarks.add_refusal((*path, old), f"the domain of {key} is reserved for Karpenter: use another domain")
    return allowed_labels, requirements_from_labels


def _suggest_taint(text: str) -> str:
    """Return what to write instead of *text*, a taint in kubectl's notation; "" if it is none."""
    match = _TAINT_PATTERN.fullmatch(text)
    if match is None:
        return ""
    value = f"value: {match[2]}, " if match[2] else ""
    return f"write {{key: {match[1]}, {value}effect: {match[3]}}}"


def convert_taints(spec: MappingReader, field: str) -> list[JsonObject]:
    """Return the taints in *field*."""
    converted_taints: list[JsonObject] = []
    for reader in spec.read_mappings(field, _suggest_taint):
        taint = {name: reader.read_text(name) for name in ("key", "value", "effect")}
        reader.read_raw("timeAdded")
        reader.refuse_unread_keys()
        if not taint["key"]:
            reader.remarks.add_refusal(reader.get_path("key"), "is missing: name the taint")
        if taint["effect"] not in _TAINT_EFFECTS:
            close = get_close_matches(taint["effect"], _TAINT_EFFECTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"write one of {', '.join(_TAINT_EFFECTS)}"
            reader.remarks.add_refusal(reader.get_path("effect"), f"is {taint['effect']!r}: {hint}")
        converted_taints.append({name: value for name, value in taint.items() if value})
    return converted_taints


def convert_limits(reader: MappingReader | None) -> JsonObject:
    """Return the amounts by resource; refuse percentages."""
    converted: JsonObject = {}
    if reader is None:
        return converted
    for name in reader.list_keys():
        value = reader.read_raw(name)
        if isinstance(value, str) and value.endswith("%"):
            reader.remarks.add_refusal(
                reader.get_path(name), f"is {value}: a limit is a quantity, not a percentage: write 100 or 400Gi"
            )
        elif isinstance(value, bool) or not is_quantity(str(value)):
            reader.remarks.add_refusal(
                reader.get_path(name), f"is {format_value(value)}: {choose_fix(value, suggest_amount(name, value))}"
            )
        else:
            converted[name] = value
    return converted


def has_any_key(keys: Iterable[str], wanted_keys: Iterable[str]) -> bool:
    """Return whether *keys* contain one of *wanted_keys*."""
    return not set(keys).isdisjoint(wanted_keys)
