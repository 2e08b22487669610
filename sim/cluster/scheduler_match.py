"""Who matches whom: label selectors, node selector terms, taints and tolerations.

A selector is compiled once into a predicate; predicates are kept, because thousands of objects share a few selectors.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Obj = dict[str, Any]
Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

_kept: dict[str, Predicate] = {}


def label_selector(selector: Obj | None) -> Predicate:
    """Compile a LabelSelector: none matches nothing, an empty one everything."""
    if selector is None:
        return lambda _: False
    text = json.dumps(selector, sort_keys=True)
    if text not in _kept:
        exact = [
            {"key": k, "operator": "In", "values": [v]} for k, v in sorted((selector.get("matchLabels") or {}).items())
        ]
        _kept[text] = requirements(exact + (selector.get("matchExpressions") or []))
    return _kept[text]


def requirements(expressions: Iterable[Obj]) -> Predicate:
    """Compile *expressions*, all of which must hold."""
    tests = tuple(_requirement(expression) for expression in expressions)
    return lambda labels: all(test(labels) for test in tests)


def _requirement(expression: Obj) -> Predicate:
    key, operator = expression["key"], expression["operator"]
    values = frozenset(expression.get("values") or ())
    match operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case "Gt" | "Lt":
            return _comparison(key, operator, values)
        case _:
            return lambda _: False


def _comparison(key: str, operator: str, values: frozenset[str]) -> Predicate:
    if len(values) != 1 or (bound := _integer(next(iter(values)))) is None:
        return lambda _: False

    def holds(labels: Labels) -> bool:
        number = _integer(labels.get(key, ""))
        return number is not None and (number > bound if operator == "Gt" else number < bound)

    return holds


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def node_selector_term(term: Obj) -> Callable[[str, Labels], bool]:
    """Compile one term over a node's name and labels; a term that says nothing matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return lambda _name, _labels: False
    by_label, by_field = requirements(expressions), requirements(fields)
    return lambda name, labels: by_label(labels) and by_field({"metadata.name": name})


def node_selector(terms: Iterable[Obj]) -> Callable[[str, Labels], bool]:
    """Compile *terms*, one of which must match."""
    tests = tuple(node_selector_term(term) for term in terms)
    return lambda name, labels: any(test(name, labels) for test in tests)


def required_terms(pod_spec: Obj) -> list[Obj] | None:
    """Answer the required node affinity terms of *pod_spec*; none if it has no such affinity."""
    affinity = ((pod_spec.get("affinity") or {}).get("nodeAffinity")) or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or []


def wanted_node(pod_spec: Obj) -> Callable[[str, Labels], bool]:
    """Compile nodeSelector and required node affinity of *pod_spec*."""
    selector = sorted((pod_spec.get("nodeSelector") or {}).items())
    terms = required_terms(pod_spec)
    wanted = None if terms is None else node_selector(terms)

    def matches(name: str, labels: Labels) -> bool:
        return all(labels.get(key) == value for key, value in selector) and (wanted is None or wanted(name, labels))

    return matches


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Say whether *toleration* covers *taint*."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(taints: Iterable[Obj], tolerations: Iterable[Obj], effects: Iterable[str]) -> Obj | None:
    """Answer the first taint of one of *effects* that none of *tolerations* covers."""
    wanted, known = frozenset(effects), tuple(tolerations)
    for taint in taints:
        if taint.get("effect") in wanted and not any(tolerates(toleration, taint) for toleration in known):
            return taint
    return None
