"""Typed CEL expressions: operators, functions and methods, and their evaluation."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

CelValue: TypeAlias = int | float | str | bool
CelType: TypeAlias = Literal["int", "double", "string", "bool", "list"]
Evaluator: TypeAlias = Callable[[Mapping[str, CelValue]], Any]
_NUMERIC_TYPES: Final = ("int", "double")
COMPARISON_BY_OPERATOR: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_STRING_METHODS: Final[dict[str, Callable[[str, str], bool]]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
}
ADDITIVE_OPERATORS: Final = ("+", "-")
MULTIPLICATIVE_OPERATORS: Final = ("*", "/", "%")


class CelExpression(msgspec.Struct, frozen=True):
    """A type-checked expression: the type of its value, and the function that computes it from the variables."""

    value_type: CelType
    evaluate: Evaluator
    """Raises ValueError where the numbers do not allow it: division by zero, overflow."""


def build_constant(kind: CelType, value: CelValue) -> CelExpression:
    """Build the expression of a literal of type *kind*."""
    return CelExpression(kind, lambda _: value)


LITERAL_PARSERS: Final[dict[str, Callable[[str], CelExpression]]] = {
    "int": lambda text: build_constant("int", _check_int64(int(text))),
    "double": lambda text: build_constant("double", float(text)),
    "string": lambda text: build_constant("string", text[1:-1]),
}


def build_list(items: list[CelExpression]) -> CelExpression:
    """Build a list of *items*."""
    return CelExpression("list", lambda variables: [item.evaluate(variables) for item in items])


def build_conditional(condition: CelExpression, when_true: CelExpression, when_false: CelExpression) -> CelExpression:
    """Build ``condition ? when_true : when_false``.

    Raises:
        ValueError: an operand has the wrong type.
    """
    _require(condition.value_type == "bool", "the operand before ? must be true or false")
    _require(
        when_true.value_type == when_false.value_type,
        f"? chooses between {when_true.value_type} and {when_false.value_type}: use the same type on both sides",
    )
    return CelExpression(
        when_true.value_type,
        lambda variables: (
            when_true.evaluate(variables) if condition.evaluate(variables) else when_false.evaluate(variables)
        ),
    )


def build_logical(operator_sign: str, left_operand: CelExpression, right_operand: CelExpression) -> CelExpression:
    """Build ``left && right`` or ``left || right``; *right_operand* is evaluated only if it decides.

    Raises:
        ValueError: an operand has the wrong type.
    """
    _require(
        left_operand.value_type == right_operand.value_type == "bool",
        f"{operator_sign} needs true or false on both sides",
    )
    if operator_sign == "&&":
        return CelExpression(
            "bool", lambda variables: left_operand.evaluate(variables) and right_operand.evaluate(variables)
        )
    return CelExpression(
        "bool", lambda variables: left_operand.evaluate(variables) or right_operand.evaluate(variables)
    )


def build_comparison(operator_sign: str, left_operand: CelExpression, right_operand: CelExpression) -> CelExpression:
    """Build a comparison of *left_operand* with *right_operand*, or ``left in right``.

    Raises:
        ValueError: an operand has the wrong type.
    """
    if operator_sign == "in":
        _require(right_operand.value_type == "list", 'in needs a list on its right, like ["m5.large"]')
        return CelExpression(
            "bool", lambda variables: left_operand.evaluate(variables) in right_operand.evaluate(variables)
        )
    is_alike = left_operand.value_type == right_operand.value_type or {
        left_operand.value_type,
        right_operand.value_type,
    } <= set(_NUMERIC_TYPES)
    _require(
        is_alike and left_operand.value_type != "list",
        f"{operator_sign} cannot compare {left_operand.value_type} with {right_operand.value_type}",
    )
    compare = COMPARISON_BY_OPERATOR[operator_sign]
    return CelExpression(
        "bool", lambda variables: compare(left_operand.evaluate(variables), right_operand.evaluate(variables))
    )


def build_arithmetic(operator_sign: str, left_operand: CelExpression, right_operand: CelExpression) -> CelExpression:
    """Build a sum, difference, product, quotient or remainder of two values of the same type.

    Raises:
        ValueError: an operand has the wrong type.
    """
    _require(
        left_operand.value_type == right_operand.value_type,
        f"{operator_sign} cannot take {left_operand.value_type} and {right_operand.value_type}: "
        "write double(…) or int(…)",
    )
    _require(
        left_operand.value_type in _NUMERIC_TYPES or (left_operand.value_type, operator_sign) == ("string", "+"),
        f"{operator_sign} cannot take {left_operand.value_type}",
    )
    _require((left_operand.value_type, operator_sign) != ("double", "%"), "% needs whole numbers")
    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "%": _compute_remainder}[
        operator_sign
    ]

    def evaluate(variables: Mapping[str, CelValue]) -> Any:  # noqa: ANN401 - of the expression's kind
        result = apply(left_operand.evaluate(variables), right_operand.evaluate(variables))
        return _check_int64(result) if left_operand.value_type == "int" else result

    return CelExpression(left_operand.value_type, evaluate)


def build_unary(operator_sign: str, operand: CelExpression) -> CelExpression:
    """Build ``!operand`` or ``-operand``.

    Raises:
        ValueError: an operand has the wrong type.
    """
    if operator_sign == "!":
        _require(operand.value_type == "bool", "! needs true or false")
        return CelExpression("bool", lambda variables: not operand.evaluate(variables))
    _require(operand.value_type in _NUMERIC_TYPES, "- needs a number")
    return CelExpression(operand.value_type, lambda variables: -operand.evaluate(variables))


def build_method_call(name: str, text: CelExpression, arguments: list[CelExpression]) -> CelExpression:
    """Build ``text.name(arguments)``.

    Raises:
        ValueError: there is no such method, or it does not take these arguments.
    """
    _require(name in _STRING_METHODS, f"there is no .{name}: use {', '.join(_STRING_METHODS)}")
    kinds = [argument.value_type for argument in (text, *arguments)]
    _require(kinds == ["string", "string"], f".{name} needs a string and a string argument")
    [part], method = arguments, _STRING_METHODS[name]
    return CelExpression("bool", lambda variables: method(text.evaluate(variables), part.evaluate(variables)))


def build_function_call(name: str, arguments: list[CelExpression]) -> CelExpression:
    """Build ``name(arguments)``.

    Raises:
        ValueError: there is no such function, or it does not take these arguments.
    """
    kinds = {argument.value_type for argument in arguments}
    if name in ("max", "min"):
        _require(bool(kinds) and kinds <= set(_NUMERIC_TYPES), f"{name} needs numbers")
        choose = max if name == "max" else min
        kind: CelType = "int" if kinds == {"int"} else "double"
        convert_result: Callable[[Any], Any] = int if kind == "int" else float
        return CelExpression(
            kind, lambda variables: convert_result(choose(argument.evaluate(variables) for argument in arguments))
        )
    _require(name in _CASTS, f"there is no {name}(): use max, min, {', '.join(_CASTS)}")
    allowed, result, convert = _CASTS[name]
    _require(len(arguments) == 1 and kinds <= set(allowed), f"{name} takes one of {', '.join(allowed)}")
    [argument] = arguments
    return CelExpression(result, lambda variables: convert(argument.evaluate(variables)))


def _convert_to_integer(value: float | str) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a whole number")
    return _check_int64(int(value))


def _convert_to_string(value: CelValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_CASTS: Final[dict[str, tuple[tuple[CelType, ...], CelType, Callable[[Any], Any]]]] = {
    "int": (("int", "double", "string"), "int", _convert_to_integer),
    "double": (("int", "double", "string"), "double", float),
    "string": (("int", "double", "string", "bool"), "string", _convert_to_string),
    "size": (("string", "list"), "int", len),
}


def _check_int64(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("a whole number needs more than 64 bits")
    return value


def _divide(dividend: float, divisor: float) -> float:
    if isinstance(dividend, float):
        return dividend / divisor if divisor else math.nan if not dividend else math.copysign(math.inf, dividend)
    if not divisor:
        raise ValueError("division by zero")
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _compute_remainder(dividend: int, divisor: int) -> int:
    return dividend - divisor * int(_divide(dividend, divisor))


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - the claim itself
    if not condition:
        raise ValueError(message)
