"""Label selectors and field selectors, as text (`app in (a, b),!gone`) and as objects (`matchLabels`)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from shared.crds.definitions import Object
from shared.errors import Invalid
from sim.cluster.matching import Predicate, compile_label_selector, compile_requirements

_LABEL_TERM_PATTERN: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<gone>[\w./-]+)"
    r"|(?P<set_key>[\w./-]+)\s+(?P<set_op>in|notin)\s*\((?P<set_values>[^()]*)\)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*))?)\s*"
)
_OPERATOR_BY_SYMBOL: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn"}
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


@lru_cache(maxsize=1024)
def parse_label_selector(text: str) -> Predicate | None:
    """Parse the query parameter; None: the text is empty, which selects everything.

    Raises:
        Invalid: the text is not a label selector.
    """
    expressions: list[Object] = []
    position = 0
    while text.strip() and position <= len(text):
        match = _LABEL_TERM_PATTERN.match(text, position)
        if not match or (match.end() < len(text) and text[match.end()] != ","):
            raise Invalid(f"unable to parse the label selector {text!r} at {position}", "BadRequest")
        expressions.append(_build_expression(match))
        position = match.end() + 1
    return compile_requirements(expressions) if expressions else None


def _build_expression(match: re.Match[str]) -> Object:
    if match["absent"]:
        return {"key": match["gone"], "operator": "DoesNotExist"}
    if match["set_key"]:
        values = [value.strip() for value in match["set_values"].split(",")]
        return {"key": match["set_key"], "operator": _OPERATOR_BY_SYMBOL[match["set_op"]], "values": values}
    if match["op"]:
        return {"key": match["key"], "operator": _OPERATOR_BY_SYMBOL[match["op"]], "values": [match["value"]]}
    return {"key": match["key"], "operator": "Exists"}


def build_label_selector(selector: Object | None) -> Predicate:
    """Compile a LabelSelector object; None matches nothing, an empty object everything.

    Raises:
        Invalid: an expression is malformed.
    """
    for expression in (selector or {}).get("matchExpressions") or []:
        operator, has_values = expression.get("operator", ""), bool(expression.get("values"))
        if operator not in _OPERATORS or has_values != (operator in {"In", "NotIn"}):
            raise Invalid(f"{expression!r} is not a valid label selector requirement")
    return compile_label_selector(selector)


_POD_FIELDS: Final = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"),
    *("status.podIP", "status.nominatedNodeName"),
)
_EVENT_FIELDS: Final = (
    *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid"),
    *("involvedObject.apiVersion", "reason", "reportingComponent", "type"),
)
_SELECTABLE_FIELDS: Final[dict[str, dict[str, str]]] = {
    "pods": dict.fromkeys(_POD_FIELDS, ""),
    "nodes": {"spec.unschedulable": "false"},
    "namespaces": {"status.phase": ""},
    "events": dict.fromkeys(_EVENT_FIELDS, ""),
}
"""The fields of each resource, with the value of an absent field."""
_COMMON_SELECTABLE_FIELDS: Final = {"metadata.name": "", "metadata.namespace": ""}


def select_objects(
    resource: str, objects: list[dict[str, Any]], *, label_selector: str = "", field_selector: str = ""
) -> list[dict[str, Any]]:
    """Return the *objects* that both selectors match, in their order.

    Raises:
        Invalid: a selector is malformed, or *resource* does not support its field.
    """
    has_labels, fields = parse_label_selector(label_selector), parse_field_selector(resource, field_selector)
    if has_labels is not None:
        objects = [obj for obj in objects if has_labels(obj["metadata"].get("labels") or {})]
    if not fields:
        return objects
    compiled_terms = _compile_field_terms(resource, fields)
    return [obj for obj in objects if _is_match(compiled_terms, obj)]


@lru_cache(maxsize=1024)
def parse_field_selector(resource: str, text: str) -> tuple[tuple[str, bool, str], ...]:
    """Parse ``status.phase!=Failed,spec.nodeName=`` to (field, equal, value), in the order of the text.

    Raises:
        Invalid: the text is malformed, or *resource* does not support the field.
    """
    supported_fields = _COMMON_SELECTABLE_FIELDS | _SELECTABLE_FIELDS.get(resource, {})
    terms = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"([^!=]+)(==|=|!=)(.*)", part.strip())
        if not match:
            raise Invalid(f"invalid field selector {text!r}; can't understand {part!r}", "BadRequest")
        field, operator, value = match.groups()
        if field not in supported_fields:
            raise Invalid(f'"{field}" is not a known field selector of {resource}', "BadRequest")
        terms.append((field, operator != "!=", value))
    return tuple(terms)


_CompiledFieldTerm = tuple[str, str, str, bool, str]
"""A compiled field term: the two parts of the field path, the value if absent, whether it must equal, the value."""


@lru_cache(maxsize=1024)
def _compile_field_terms(resource: str, terms: tuple[tuple[str, bool, str], ...]) -> tuple[_CompiledFieldTerm, ...]:
    default_values = _SELECTABLE_FIELDS.get(resource, {})
    parts = ((field, field.partition("."), equal, value) for field, equal, value in terms)
    return tuple(
        (outer, inner, default_values.get(field, ""), equal, value) for field, (outer, _, inner), equal, value in parts
    )


def _is_match(field_terms: tuple[_CompiledFieldTerm, ...], obj: Mapping[str, Any]) -> bool:
    """Return whether *obj* matches all *field_terms*.

    This runs every few seconds for lists of thousands of pods.
    """
    for outer, inner, default_value, must_equal, value in field_terms:
        part = obj.get(outer)
        field_value = (part.get(inner) if isinstance(part, dict) else None) if inner else part
        if isinstance(field_value, bool):
            field_value = "true" if field_value else "false"
        if ((field_value if isinstance(field_value, str) else default_value) == value) is not must_equal:
            return False
    return True
