"""Condition operators: what each says of one value, and how several values, several keys and missing keys add up.

A key that the request lacks fails a test, unless the operator is a negation, asks only ``IfExists``, or is of all
values. An operator that is not known here raises, wherever it stands.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import zip_longest
from operator import eq, ge, gt, le, lt
from typing import Final

from sim.iam.values import Context, UnsupportedPolicyError, Values, filled, matches

Block = Mapping[str, Mapping[str, str | list[str]]]
"""As a statement has it: operator, key, one value or several."""
Test = Callable[[str, str, Context], bool]
"""Whether a value of the policy, with the variables of a context, describes one of the request."""

ARN_PARTS: Final = 6
_ALL: Final = "ForAllValues:"
_ANY: Final = "ForAnyValue:"
_IF_EXISTS: Final = "IfExists"
_NULL: Final = "Null"


def _equals(wanted: str, value: str, known: Context) -> bool:
    return filled(wanted, known) == value


def _equals_caseless(wanted: str, value: str, known: Context) -> bool:
    return filled(wanted, known).lower() == value.lower()


def _like(wanted: str, value: str, known: Context) -> bool:
    return matches(wanted, value, known)


def _arn_like(wanted: str, value: str, known: Context) -> bool:
    """Compare part by part: a wildcard does not reach beyond a colon, but for the last part, which may have some."""
    parts = zip_longest(_arn_parts(wanted), value.split(":", ARN_PARTS - 1), fillvalue="")
    return value.count(":") >= ARN_PARTS - 1 and all(matches(pattern, part, known) for pattern, part in parts)


def _arn_parts(pattern: str) -> list[str]:
    """Split *pattern* at the colons that no variable contains."""
    parts, depth = [""], 0
    for one in pattern:
        depth += (one == "{") - (one == "}")
        if one == ":" and not depth and len(parts) < ARN_PARTS:
            parts.append("")
        else:
            parts[-1] += one
    return parts


def _is(wanted: str, value: str, known: Context) -> bool:
    return filled(wanted, known).lower() == value.lower()


def _number(holds: Callable[[float, float], bool], wanted: str, value: str, known: Context) -> bool:
    try:
        return holds(float(value), float(filled(wanted, known)))
    except ValueError:
        return False


TESTS: Final[Mapping[str, Test]] = {
    "StringEquals": _equals,
    "StringEqualsIgnoreCase": _equals_caseless,
    "StringLike": _like,
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": _is,
    "NumericEquals": partial(_number, eq),
    "NumericLessThan": partial(_number, lt),
    "NumericLessThanEquals": partial(_number, le),
    "NumericGreaterThan": partial(_number, gt),
    "NumericGreaterThanEquals": partial(_number, ge),
}
NEGATIONS: Final = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
}


def holds(block: Block, known: Context) -> bool:
    """Whether all of *block* is so in a request with the keys of *known*.

    Raises:
        UnsupportedPolicyError: an operator is unknown, or a key has several values and the operator takes one.
        MissingValueError: a variable has no value.
    """
    tests = [
        _test(operator)(several(wanted), known.get(key.lower()), known)
        for operator, keys in sorted(block.items())
        for key, wanted in sorted(keys.items())
    ]
    # All of them are looked at first: a variable without a value must not hide behind what fails.
    return all(tests)


def check(block: Block) -> None:
    """Look whether every operator of *block* is known here.

    Raises:
        UnsupportedPolicyError: one is not.
    """
    for operator in sorted(block):
        _test(operator)


def _test(operator: str) -> Callable[[Values, Values | None, Context], bool]:
    return _null if operator == _NULL else _operator(operator)


def several(value: str | list[str]) -> Values:
    """Answer the items of what is one or a list; JSON's own numbers and booleans in IAM's words.

    >>> several("a"), several(["a", "b"])
    (('a',), ('a', 'b'))
    """
    return tuple(_text(one) for one in (value if isinstance(value, list) else [value]))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _null(wanted: Values, values: Values | None, known: Context) -> bool:
    del known
    return str(not values).lower() in {one.lower() for one in wanted}


def _operator(operator: str) -> Callable[[Values, Values | None, Context], bool]:
    quantifier = next((one for one in (_ALL, _ANY) if operator.startswith(one)), "")
    name = operator.removeprefix(quantifier)
    is_optional = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    is_negation = name in NEGATIONS
    test = TESTS.get(NEGATIONS.get(name, name))
    if test is None:
        raise UnsupportedPolicyError(f"the condition operator {operator} is not evaluated here")

    def decided(wanted: Values, values: Values | None, known: Context) -> bool:
        if not values:
            return is_optional or quantifier == _ALL or (is_negation and not quantifier)
        if not quantifier and len(values) > 1:
            raise UnsupportedPolicyError(f"{operator} is asked of {len(values)} values: it takes one")
        hits = [[test(each, value, known) for each in wanted] for value in values]
        found = [any(each) != is_negation for each in hits]
        return any(found) if quantifier == _ANY else all(found)

    return decided
