"""EventBridge's event patterns, as far as the service documents them for plain rules.

A pattern names fields; a field's list holds alternatives. Fields that a pattern does not name do not matter. A list in
the event matches if one of its elements does.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sim.lambdas.intrinsics import Json, UnsupportedTemplateError

COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Missing:
    """Stands for a field that the event does not have."""


MISSING: Final = _Missing()


def matches(pattern: Mapping[str, Any], event: object) -> bool:
    """Whether *event* has every field of *pattern*, which `checked` has seen, as it says."""
    if isinstance(event, list):
        return any(matches(pattern, element) for element in event)
    return all(_field(name, wanted, event) for name, wanted in pattern.items())


def checked(pattern: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer *pattern* itself.

    Raises:
        UnsupportedTemplateError: it uses an operator that is unknown here.
    """
    for name, wanted in pattern.items():
        if isinstance(wanted, Mapping):
            checked(wanted)
            continue
        for alternative in wanted:
            if name == "$or":
                checked(alternative)
            elif isinstance(alternative, Mapping) and not alternative.keys() <= {*OPERATORS, "exists"}:
                raise UnsupportedTemplateError(f"event patterns with {alternative!r} are not understood")
    return pattern


def _field(name: str, wanted: Json, event: object) -> bool:
    if name == "$or":
        return any(matches(alternative, event) for alternative in wanted)
    value = event.get(name, MISSING) if isinstance(event, Mapping) else MISSING
    if isinstance(wanted, Mapping):
        return matches(wanted, value)
    return any(_alternative(alternative, value) for alternative in wanted)


def _alternative(wanted: Json, value: object) -> bool:
    if not isinstance(wanted, Mapping):
        return any(_same(wanted, element) for element in _elements(value))
    [(name, argument)] = wanted.items()
    if name == "exists":
        return (value is not MISSING) is argument
    return any(OPERATORS[name](argument, element) for element in _elements(value))


def _elements(value: object) -> Sequence[object]:
    if value is MISSING:
        return ()
    return value if isinstance(value, list) else (value,)


def _same(wanted: object, value: object) -> bool:
    """JSON's equality: true is not 1."""
    return wanted == value and isinstance(wanted, bool) == isinstance(value, bool)


def _prefix(argument: Json, value: object) -> bool:
    return isinstance(value, str) and value.startswith(argument)


def _suffix(argument: Json, value: object) -> bool:
    return isinstance(value, str) and value.endswith(argument)


def _equals_ignore_case(argument: Json, value: object) -> bool:
    return isinstance(value, str) and value.casefold() == argument.casefold()


def _anything_but(argument: Json, value: object) -> bool:
    refused = argument if isinstance(argument, list) else [argument]
    return not any(_alternative(one, value) for one in refused)


def _numeric(argument: Json, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return all(COMPARISONS[sign](value, limit) for sign, limit in zip(argument[::2], argument[1::2], strict=True))


OPERATORS: Final[dict[str, Callable[[Any, object], bool]]] = {
    "anything-but": _anything_but,
    "equals-ignore-case": _equals_ignore_case,
    "numeric": _numeric,
    "prefix": _prefix,
    "suffix": _suffix,
}
