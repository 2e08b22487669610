"""Match label selectors, node selector terms, taints and tolerations.

A selector is compiled once into a predicate; predicates are cached, because thousands of objects share a few selectors.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Obj = dict[str, Any]
Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
UNSCHEDULABLE_TAINT: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

_selector_cache: dict[str, Predicate] = {}


def compile_label_selector(selector: Obj | None) -> Predicate:
    """Compile a LabelSelector: None matches nothing, an empty selector matches everything."""
    if selector is None:
        return lambda _: False
    cache_key = json.dumps(selector, sort_keys=True)
    if cache_key not in _selector_cache:
        label_expressions = [
            {"key": key, "operator": "In", "values": [value]}
            for key, value in sorted((selector.get("matchLabels") or {}).items())
        ]
        _selector_cache[cache_key] = compile_requirements(label_expressions + (selector.get("matchExpressions") or []))
    return _selector_cache[cache_key]


def compile_requirements(expressions: Iterable[Obj]) -> Predicate:
    """Compile *expressions*, all of which must match."""
    predicates = tuple(_compile_requirement(expression) for expression in expressions)
    return lambda labels: all(predicate(labels) for predicate in predicates)


def _compile_requirement(expression: Obj) -> Predicate:
    key, operator = expression.get("key", ""), expression["operator"]
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
            return _compile_comparison(key, operator, values)
        case _:
            return lambda _: False


def _compile_comparison(key: str, operator: str, values: frozenset[str]) -> Predicate:
    if len(values) != 1 or (bound := _parse_integer(next(iter(values)))) is None:
        return lambda _: False

    def is_match(labels: Labels) -> bool:
        number = _parse_integer(labels.get(key, ""))
        return number is not None and (number > bound if operator == "Gt" else number < bound)

    return is_match


def _parse_integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def compile_node_selector_term(term: Obj) -> Callable[[str, Labels], bool]:
    """Compile one term over a node's name and labels; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return lambda _name, _labels: False
    by_label, by_field = compile_requirements(expressions), compile_requirements(fields)
    return lambda name, labels: by_label(labels) and by_field({"metadata.name": name})


def compile_node_selector(terms: Iterable[Obj]) -> Callable[[str, Labels], bool]:
    """Compile *terms*; a node matches if at least one term matches."""
    predicates = tuple(compile_node_selector_term(term) for term in terms)
    return lambda name, labels: any(predicate(name, labels) for predicate in predicates)


def get_required_node_terms(pod_spec: Obj) -> list[Obj] | None:
    """Return the required node affinity terms of *pod_spec*; None if it has no required node affinity."""
    affinity = ((pod_spec.get("affinity") or {}).get("nodeAffinity")) or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or []


def compile_required_node_affinity(pod_spec: Obj) -> Callable[[str, Labels], bool]:
    """Compile the nodeSelector and the required node affinity of *pod_spec*."""
    selector = sorted((pod_spec.get("nodeSelector") or {}).items())
    terms = get_required_node_terms(pod_spec)
    affinity_predicate = None if terms is None else compile_node_selector(terms)

    def is_match(name: str, labels: Labels) -> bool:
        return all(labels.get(key) == value for key, value in selector) and (
            affinity_predicate is None or affinity_predicate(name, labels)
        )

    return is_match


def is_taint_tolerated(toleration: Obj, taint: Obj) -> bool:
    """Return whether *toleration* tolerates *taint*."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def find_untolerated_taint(taints: Iterable[Obj], tolerations: Iterable[Obj], effects: Iterable[str]) -> Obj | None:
    """Return the first taint with one of *effects* that none of *tolerations* tolerates, or None."""
    checked_effects, all_tolerations = frozenset(effects), tuple(tolerations)
    for taint in taints:
        if taint.get("effect") in checked_effects and not any(
            is_taint_tolerated(toleration, taint) for toleration in all_tolerations
        ):
            return taint
    return None
