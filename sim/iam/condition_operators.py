"""IAM condition operators.

The comparison of one value, and the combination of several values, several keys and missing keys.

A condition on a key that the request lacks is false, unless the operator is negated, has ``IfExists``, or has
``ForAllValues``. An unsupported operator raises an error wherever it occurs.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import zip_longest
from operator import eq, ge, gt, le, lt
from typing import Final

from sim.iam.patterns_and_variables import RequestContext, UnsupportedPolicyError, Values, is_match, replace_variables

ConditionBlock = Mapping[str, Mapping[str, str | list[str]]]
"""The Condition element of a statement: operator, key, one value or a list of values."""
ValueTest = Callable[[str, str, RequestContext], bool]
"""Returns whether a policy value, with the policy variables of a context, matches a value of the request."""

ARN_PART_COUNT: Final = 6
_FOR_ALL_VALUES: Final = "ForAllValues:"
_FOR_ANY_VALUE: Final = "ForAnyValue:"
_IF_EXISTS_SUFFIX: Final = "IfExists"
_NULL_OPERATOR: Final = "Null"


def _is_equal(policy_value: str, value: str, context: RequestContext) -> bool:
    return replace_variables(policy_value, context) == value


def _is_equal_ignoring_case(policy_value: str, value: str, context: RequestContext) -> bool:
    return replace_variables(policy_value, context).lower() == value.lower()


def _is_like(policy_value: str, value: str, context: RequestContext) -> bool:
    return is_match(policy_value, value, context)


def _is_arn_like(policy_value: str, value: str, context: RequestContext) -> bool:
    """Compare part by part: a wildcard does not match a colon, except in the last part, which may contain colons."""
    part_pairs = zip_longest(_split_arn_pattern(policy_value), value.split(":", ARN_PART_COUNT - 1), fillvalue="")
    return value.count(":") >= ARN_PART_COUNT - 1 and all(
        is_match(pattern, part, context) for pattern, part in part_pairs
    )


def _split_arn_pattern(pattern: str) -> list[str]:
    """Split *pattern* at the colons outside of policy variables."""
    parts, depth = [""], 0
    for character in pattern:
        depth += (character == "{") - (character == "}")
        if character == ":" and not depth and len(parts) < ARN_PART_COUNT:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _is_equal_bool(policy_value: str, value: str, context: RequestContext) -> bool:
    return replace_variables(policy_value, context).lower() == value.lower()


def _compare_number(
    compare: Callable[[float, float], bool], policy_value: str, value: str, context: RequestContext
) -> bool:
    try:
        return compare(float(value), float(replace_variables(policy_value, context)))
    except ValueError:
        return False


TEST_BY_OPERATOR: Final[Mapping[str, ValueTest]] = {
    "StringEquals": _is_equal,
    "StringEqualsIgnoreCase": _is_equal_ignoring_case,
    "StringLike": _is_like,
    "ArnEquals": _is_arn_like,
    "ArnLike": _is_arn_like,
    "Bool": _is_equal_bool,
    "NumericEquals": partial(_compare_number, eq),
    "NumericLessThan": partial(_compare_number, lt),
    "NumericLessThanEquals": partial(_compare_number, le),
    "NumericGreaterThan": partial(_compare_number, gt),
    "NumericGreaterThanEquals": partial(_compare_number, ge),
}
OPERATOR_BY_NEGATION: Final = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
}


def is_condition_met(block: ConditionBlock, context: RequestContext) -> bool:
    """Return whether all conditions of *block* are true for a request with *context*.

    Raises:
        UnsupportedPolicyError: an operator is unknown, or a key has several values and the operator takes one.
        MissingValueError: a policy variable has no value.
    """
    tests = [
        _get_operator_test(operator)(convert_to_values(policy_values), context.get(key.lower()), context)
        for operator, keys in sorted(block.items())
        for key, policy_values in sorted(keys.items())
    ]
    # Evaluate all conditions first: a variable without a value must raise even if another condition is false.
    return all(tests)


def check_operators(block: ConditionBlock) -> None:
    """Check that every operator of *block* is supported.

    Raises:
        UnsupportedPolicyError: an operator is not supported.
    """
    for operator in sorted(block):
        _get_operator_test(operator)


def _get_operator_test(operator: str) -> Callable[[Values, Values | None, RequestContext], bool]:
    return _is_null_condition_met if operator == _NULL_OPERATOR else _build_operator_test(operator)


def convert_to_values(value: str | list[str]) -> Values:
    """Return a value or a list of values as a tuple of text; JSON numbers and booleans are written as IAM does.

    >>> convert_to_values("a"), convert_to_values(["a", "b"])
    (('a',), ('a', 'b'))
    """
    return tuple(_format_value(item) for item in (value if isinstance(value, list) else [value]))


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_null_condition_met(policy_values: Values, values: Values | None, context: RequestContext) -> bool:
    del context
    return str(not values).lower() in {policy_value.lower() for policy_value in policy_values}


def _build_operator_test(operator: str) -> Callable[[Values, Values | None, RequestContext], bool]:
    quantifier = next((prefix for prefix in (_FOR_ALL_VALUES, _FOR_ANY_VALUE) if operator.startswith(prefix)), "")
    name = operator.removeprefix(quantifier)
    is_optional = name.endswith(_IF_EXISTS_SUFFIX)
    name = name.removesuffix(_IF_EXISTS_SUFFIX)
    is_negation = name in OPERATOR_BY_NEGATION
    test = TEST_BY_OPERATOR.get(OPERATOR_BY_NEGATION.get(name, name))
    if test is None:
        raise UnsupportedPolicyError(f"the condition operator {operator} is not evaluated here")

    def is_operator_met(policy_values: Values, values: Values | None, context: RequestContext) -> bool:
        if not values:
            return is_optional or quantifier == _FOR_ALL_VALUES or (is_negation and not quantifier)
        if not quantifier and len(values) > 1:
            raise UnsupportedPolicyError(f"{operator} is asked of {len(values)} values: it takes one")
        matches_by_value = [[test(policy_value, value, context) for policy_value in policy_values] for value in values]
        is_met_by_value = [any(matches_of_value) != is_negation for matches_of_value in matches_by_value]
        return any(is_met_by_value) if quantifier == _FOR_ANY_VALUE else all(is_met_by_value)

    return is_operator_met
