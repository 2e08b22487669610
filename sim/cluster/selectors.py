"""Label selectors and field selectors, as text (`app in (a, b),!gone`) and as objects (`matchLabels`)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from shared.errors import Invalid

_TERM: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<gone>[\w./-]+)"
    r"|(?P<set_key>[\w./-]+)\s+(?P<set_op>in|notin)\s*\((?P<set_values>[^()]*)\)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*))?)\s*"
)
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn"}


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement; *operator* is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Answer whether *labels* meet it; NotIn is met by a missing key too."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True):
    """All of *terms*; none select everything, unless *nothing*."""

    terms: tuple[Term, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Answer whether *labels* (None: there are none) are selected."""
        return not self.nothing and all(term.matches(labels or {}) for term in self.terms)


@lru_cache(maxsize=1024)
def parse_label_selector(text: str) -> LabelSelector:
    """Parse the query parameter; empty selects everything.

    Raises:
        Invalid: the text is no selector.
    """
    terms: list[Term] = []
    position = 0
    while text.strip() and position <= len(text):
        found = _TERM.match(text, position)
        if not found or (found.end() < len(text) and text[found.end()] != ","):
            raise Invalid(f"unable to parse the label selector {text!r} at {position}", "BadRequest")
        terms.append(_term(found))
        position = found.end() + 1
    return LabelSelector(terms=tuple(terms))


def _term(found: re.Match[str]) -> Term:
    if found["absent"]:
        return Term(key=found["gone"], operator="DoesNotExist")
    if found["set_key"]:
        values = frozenset(value.strip() for value in found["set_values"].split(","))
        return Term(key=found["set_key"], operator=_OPERATORS[found["set_op"]], values=values)
    if found["op"]:
        return Term(key=found["key"], operator=_OPERATORS[found["op"]], values=frozenset({found["value"]}))
    return Term(key=found["key"], operator="Exists")


def label_selector_from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Read a LabelSelector object; None selects nothing, an empty one everything.

    Raises:
        Invalid: an expression is malformed.
    """
    if selector is None:
        return LabelSelector(nothing=True)
    exact = selector.get("matchLabels") or {}
    terms = [Term(key=key, operator="In", values=frozenset({exact[key]})) for key in sorted(exact)]
    for expression in selector.get("matchExpressions") or []:
        term = Term(
            key=expression.get("key", ""),
            operator=expression.get("operator", ""),
            values=frozenset(expression.get("values") or ()),
        )
        if term.operator not in {"In", "NotIn", "Exists", "DoesNotExist"} or (
            bool(term.values) != (term.operator in {"In", "NotIn"})
        ):
            raise Invalid(f"{expression!r} is not a valid label selector requirement")
        terms.append(term)
    return LabelSelector(terms=tuple(terms))


_FIELDS: Final[dict[str, dict[str, str]]] = {
    "pods": {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    "nodes": {"spec.unschedulable": "false"},
    "namespaces": {"status.phase": ""},
    "events": {
        "involvedObject.kind": "",
        "involvedObject.namespace": "",
        "involvedObject.name": "",
        "involvedObject.uid": "",
        "involvedObject.apiVersion": "",
        "reason": "",
        "reportingComponent": "",
        "type": "",
    },
}
_EVERYWHERE: Final = {"metadata.name": "", "metadata.namespace": ""}


def select(
    resource: str, objects: list[dict[str, Any]], *, label_selector: str = "", field_selector: str = ""
) -> list[dict[str, Any]]:
    """Answer those of *objects* that both selectors match, in their order.

    Raises:
        Invalid: a selector is malformed, or its field is none that *resource* can be selected by.
    """
    labels, fields = parse_label_selector(label_selector), parse_field_selector(resource, field_selector)
    if labels.terms:
        objects = [each for each in objects if labels.matches(each["metadata"].get("labels"))]
    if not fields:
        return objects
    paths = _paths(resource, fields)
    return [each for each in objects if _matches(paths, each)]


@lru_cache(maxsize=1024)
def parse_field_selector(resource: str, text: str) -> tuple[tuple[str, bool, str], ...]:
    """Parse ``status.phase!=Failed,spec.nodeName=``: (field, equal, value) in the order given.

    Raises:
        Invalid: malformed, or *resource* cannot be selected by that field.
    """
    known = _EVERYWHERE | _FIELDS.get(resource, {})
    terms = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"([^!=]+)(==|=|!=)(.*)", part.strip())
        if not found:
            raise Invalid(f"invalid field selector {text!r}; can't understand {part!r}", "BadRequest")
        field, operator, value = found.groups()
        if field not in known:
            raise Invalid(f'"{field}" is not a known field selector of {resource}', "BadRequest")
        terms.append((field, operator != "!=", value))
    return tuple(terms)


def matches_fields(resource: str, terms: tuple[tuple[str, bool, str], ...], obj: Mapping[str, Any]) -> bool:
    """Answer whether *obj* meets all *terms* of `parse_field_selector`."""
    return _matches(_paths(resource, terms), obj)


_Path = tuple[str, str, str, bool, str]
"""Of a term: the field's two parts, what it is where it is not said, and whether it must be which value."""


@lru_cache(maxsize=1024)
def _paths(resource: str, terms: tuple[tuple[str, bool, str], ...]) -> tuple[_Path, ...]:
    usual = _FIELDS.get(resource, {})
    parts = ((field, field.partition("."), equal, value) for field, equal, value in terms)
    return tuple((outer, inner, usual.get(field, ""), equal, value) for field, (outer, _, inner), equal, value in parts)


def _matches(paths: tuple[_Path, ...], obj: Mapping[str, Any]) -> bool:
    """Answer whether *obj* is as all *paths* say; lists of thousands of pods are asked this every few seconds."""
    for outer, inner, usual, equal, value in paths:
        part = obj.get(outer)
        found = (part.get(inner) if isinstance(part, dict) else None) if inner else part
        if isinstance(found, bool):
            found = "true" if found else "false"
        if ((found if isinstance(found, str) else usual) == value) is not equal:
            return False
    return True
