"""Metric math, as far as alarms of templates use it.

A series has a number or nothing for each period, all for the same periods. What an expression does not know it is
refused for: a wrong answer would be an alarm that does not ring.

    >>> evaluated("FILL(calls, 0) - FILL(errors, 0)", {"calls": (3.0, None), "errors": (1.0, None)})
    (2.0, 0.0)
    >>> evaluated("SUM(METRICS())", {"one": (None, 1.0), "two": (None, 2.0)})
    (None, 3.0)
"""

import ast
import operator
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Final, TypeAlias

Series: TypeAlias = tuple[float | None, ...]
Value: TypeAlias = float | Series | list[Series]
"""A number, a series, or several series."""

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_TOGETHER: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "AVG": lambda values: sum(values) / len(values),
    "MAX": max,
    "MIN": min,
    "SUM": sum,
}


class NotUnderstood(Exception):
    """An expression says something that is unknown here; the message is the part."""


def evaluated(expression: str, series: Mapping[str, Series]) -> Series:
    """Answer the series that *expression* makes of *series*, by their ids.

    Raises:
        NotUnderstood: it has a function or an id that is not known, or is no series.
    """
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise NotUnderstood(expression) from error
    found = _value(tree, series)
    if not isinstance(found, tuple):
        raise NotUnderstood(expression)
    return found


def _value(node: ast.expr, series: Mapping[str, Series]) -> Value:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in series:
            return series[name]
        case ast.Call(func=ast.Name(id="METRICS"), args=[]):
            return [series[name] for name in sorted(series)]
        case ast.Call(func=ast.Name(id="FILL"), args=[filled, with_]):
            return _filled(_value(filled, series), _value(with_, series), node)
        case ast.Call(func=ast.Name(id=name), args=[several]) if name in _TOGETHER:
            return _together(_value(several, series), _TOGETHER[name], node)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _joined(_value(left, series), _value(right, series), _OPERATORS[type(op)], node)
    raise NotUnderstood(ast.unparse(node))


def _filled(series: Value, number: Value, node: ast.expr) -> Series:
    """Fill the holes; a series of nothing but holes is a metric that nobody knows, and stays so."""
    if not isinstance(series, tuple) or not isinstance(number, float):
        raise NotUnderstood(ast.unparse(node))
    is_known = any(one is not None for one in series)
    return tuple(number if one is None and is_known else one for one in series)


def _together(several: Value, join: Callable[[list[float]], float], node: ast.expr) -> Series:
    """Make one series of *several*, of what each period has."""
    if not isinstance(several, list):
        raise NotUnderstood(ast.unparse(node))
    there = [[one for one in period if one is not None] for period in zip(*several, strict=True)]
    return tuple(join(some) if some else None for some in there)


def _joined(left: Value, right: Value, join: Callable[[float, float], float], node: ast.expr) -> Value:
    """Join two period by period; a number is the same in each."""
    if isinstance(left, list) or isinstance(right, list):
        raise NotUnderstood(ast.unparse(node))
    if isinstance(left, float) and isinstance(right, float):
        return join(left, right)
    lefts = left if isinstance(left, tuple) else repeat(left)
    rights = right if isinstance(right, tuple) else repeat(right)
    pairs = zip(lefts, rights, strict=False)
    return tuple(None if one is None or other is None else join(one, other) for one, other in pairs)
