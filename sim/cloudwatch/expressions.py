"""Metric math, as far as the alarms of templates use it.

A series has a number or None for each period; all series have the same periods. An unsupported expression raises an
error: a wrong result would be an alarm that never goes off.

    >>> evaluate_expression("FILL(calls, 0) - FILL(errors, 0)", {"calls": (3.0, None), "errors": (1.0, None)})
    (2.0, 0.0)
    >>> evaluate_expression("SUM(METRICS())", {"one": (None, 1.0), "two": (None, 2.0)})
    (None, 3.0)
"""

import ast
import operator
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Final, TypeAlias

Series: TypeAlias = tuple[float | None, ...]
ExpressionValue: TypeAlias = float | Series | list[Series]
"""A number, a series, or several series."""

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_AGGREGATIONS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "AVG": lambda values: sum(values) / len(values),
    "MAX": max,
    "MIN": min,
    "SUM": sum,
}


class NotUnderstood(Exception):
    """The expression uses an unsupported feature; the message is the unsupported part."""


def evaluate_expression(expression: str, series: Mapping[str, Series]) -> Series:
    """Return the series that *expression* computes from *series*, by id.

    Raises:
        NotUnderstood: it has an unknown function or id, or its value is not a series.
    """
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise NotUnderstood(expression) from error
    result = _evaluate_node(tree, series)
    if not isinstance(result, tuple):
        raise NotUnderstood(expression)
    return result


def _evaluate_node(node: ast.expr, series: Mapping[str, Series]) -> ExpressionValue:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in series:
            return series[name]
        case ast.Call(func=ast.Name(id="METRICS"), args=[]):
            return [series[name] for name in sorted(series)]
        case ast.Call(func=ast.Name(id="FILL"), args=[filled_node, number_node]):
            return _fill_missing(_evaluate_node(filled_node, series), _evaluate_node(number_node, series), node)
        case ast.Call(func=ast.Name(id=name), args=[series_node]) if name in _AGGREGATIONS:
            return _aggregate(_evaluate_node(series_node, series), _AGGREGATIONS[name], node)
        case ast.BinOp(left=left_node, op=operation, right=right_node) if type(operation) in _OPERATORS:
            return _combine(
                _evaluate_node(left_node, series), _evaluate_node(right_node, series), _OPERATORS[type(operation)], node
            )
    raise NotUnderstood(ast.unparse(node))


def _fill_missing(series: ExpressionValue, number: ExpressionValue, node: ast.expr) -> Series:
    """Replace missing values by *number*; a series without any value is an unknown metric and stays empty."""
    if not isinstance(series, tuple) or not isinstance(number, float):
        raise NotUnderstood(ast.unparse(node))
    is_known = any(value is not None for value in series)
    return tuple(number if value is None and is_known else value for value in series)


def _aggregate(several_series: ExpressionValue, aggregate: Callable[[list[float]], float], node: ast.expr) -> Series:
    """Aggregate *several_series* to one series: for each period, over the values that exist."""
    if not isinstance(several_series, list):
        raise NotUnderstood(ast.unparse(node))
    values_by_period = [
        [value for value in period if value is not None] for period in zip(*several_series, strict=True)
    ]
    return tuple(aggregate(values) if values else None for values in values_by_period)


def _combine(
    left_value: ExpressionValue, right_value: ExpressionValue, combine: Callable[[float, float], float], node: ast.expr
) -> ExpressionValue:
    """Combine two values period by period; a number is the same in each period."""
    if isinstance(left_value, list) or isinstance(right_value, list):
        raise NotUnderstood(ast.unparse(node))
    if isinstance(left_value, float) and isinstance(right_value, float):
        return combine(left_value, right_value)
    lefts = left_value if isinstance(left_value, tuple) else repeat(left_value)
    rights = right_value if isinstance(right_value, tuple) else repeat(right_value)
    pairs = zip(lefts, rights, strict=False)
    return tuple(
        None if left_item is None or right_item is None else combine(left_item, right_item)
        for left_item, right_item in pairs
    )
