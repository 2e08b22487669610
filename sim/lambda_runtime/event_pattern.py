"""EventBridge event patterns, as documented for rules.

A pattern names fields; a field's list holds alternatives. Fields that the pattern does not name are ignored. A list in
the event matches if one of its elements matches.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sim.lambda_runtime.stack_template.generated_references import UnsupportedTemplateError
from sim.lambda_runtime.stack_template.intrinsic_functions import Json

COMPARISON_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}


class _MissingField:
    """Sentinel for a field that the event does not have."""


MISSING_FIELD: Final = _MissingField()


def matches_pattern(pattern: Mapping[str, Any], event: object) -> bool:
    """Return whether every field of *pattern*, which `check_pattern` has accepted, matches in *event*."""
    if isinstance(event, list):
        return any(matches_pattern(pattern, element) for element in event)
    return all(_matches_field(name, condition, event) for name, condition in pattern.items())


def check_pattern(pattern: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *pattern* unchanged if all its operators are supported.

    Raises:
        UnsupportedTemplateError: it uses an unsupported operator.
    """
    for name, condition in pattern.items():
        if isinstance(condition, Mapping):
            check_pattern(condition)
            continue
        for alternative in condition:
            if name == "$or":
                check_pattern(alternative)
            elif isinstance(alternative, Mapping) and not alternative.keys() <= {*MATCH_OPERATORS, "exists"}:
                raise UnsupportedTemplateError(f"event patterns with {alternative!r} are not understood")
    return pattern


def _matches_field(name: str, condition: Json, event: object) -> bool:
    if name == "$or":
        return any(matches_pattern(alternative, event) for alternative in condition)
    value = event.get(name, MISSING_FIELD) if isinstance(event, Mapping) else MISSING_FIELD
    if isinstance(condition, Mapping):
        return matches_pattern(condition, value)
    return any(_matches_alternative(alternative, value) for alternative in condition)


def _matches_alternative(condition: Json, value: object) -> bool:
    if not isinstance(condition, Mapping):
        return any(_is_equal(condition, element) for element in _list_elements(value))
    [(operator_name, argument)] = condition.items()
    if operator_name == "exists":
        return (value is not MISSING_FIELD) is argument
    return any(MATCH_OPERATORS[operator_name](argument, element) for element in _list_elements(value))


def _list_elements(value: object) -> Sequence[object]:
    if value is MISSING_FIELD:
        return ()
    return value if isinstance(value, list) else (value,)


def _is_equal(expected: object, value: object) -> bool:
    """Return whether two JSON values are equal: true is not 1."""
    return expected == value and isinstance(expected, bool) == isinstance(value, bool)


def _matches_prefix(argument: Json, value: object) -> bool:
    return isinstance(value, str) and value.startswith(argument)


def _matches_suffix(argument: Json, value: object) -> bool:
    return isinstance(value, str) and value.endswith(argument)


def _matches_ignoring_case(argument: Json, value: object) -> bool:
    return isinstance(value, str) and value.casefold() == argument.casefold()


def _matches_anything_but(argument: Json, value: object) -> bool:
    excluded_values = argument if isinstance(argument, list) else [argument]
    return not any(_matches_alternative(value_or_condition, value) for value_or_condition in excluded_values)


def _matches_numeric(argument: Json, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return all(
        COMPARISON_OPERATORS[comparison](value, limit)
        for comparison, limit in zip(argument[::2], argument[1::2], strict=True)
    )


MATCH_OPERATORS: Final[dict[str, Callable[[Any, object], bool]]] = {
    "anything-but": _matches_anything_but,
    "equals-ignore-case": _matches_ignoring_case,
    "numeric": _matches_numeric,
    "prefix": _matches_prefix,
    "suffix": _matches_suffix,
}
