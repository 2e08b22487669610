"""Expressions of the Common Expression Language, as far as spec.kubelet needs them: arithmetic over a machine.

Integers have 64 bits and divide towards zero, doubles are doubles, and the two are only compared with each other: who
adds them writes `double(vcpus)`. There are `max` and `min` over any of both, `int`, `double`, `string`, `size`, the
methods of strings, lists with `in`, and a choice by `? :`. What does not fit together is said before anything is
computed. An expression is at most `LONGEST` characters long, and has no loops: it ends.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

Value: TypeAlias = int | float | str | bool
Kind: TypeAlias = Literal["int", "double", "string", "bool", "list"]
Compute: TypeAlias = Callable[[Mapping[str, Value]], Any]

LONGEST: Final = 1000
_DEEPEST: Final = 40
_NUMBERS: Final = ("int", "double")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)|(?P<int>\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>\"[^\"\\]*\"|'[^'\\]*')|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:(),.\[\]]))"
)
_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_METHODS: Final[dict[str, Callable[[str, str], bool]]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
}
_SUMS: Final = ("+", "-")
_PRODUCTS: Final = ("*", "/", "%")


class Expression(msgspec.Struct, frozen=True):
    """One that fits together: of what kind its value is, and how it is computed from the variables."""

    kind: Kind
    value: Compute
    """Raises ValueError where the numbers do not allow it: a division by nothing, an overflow."""


@lru_cache(maxsize=256)
def expression(text: str, variables: tuple[tuple[str, Kind], ...]) -> Expression:
    """Read *text*, which may name *variables*.

    Raises:
        ValueError: it is no expression, or its parts do not fit together; the message says where.
    """
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    parser = _Parser(_tokens(text), dict(variables))
    found = parser.choice()
    parser.end()
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            raise ValueError(f"{text[at:].strip()[:10]!r} is not understood")
        found.append((token.lastgroup, token[token.lastgroup]))
        at = token.end()
    return found


class _Parser:
    """Reads one expression, from what binds least to what binds most."""

    def __init__(self, tokens: list[tuple[str, str]], variables: Mapping[str, Kind]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self._variables = variables

    def choice(self) -> Expression:
        """``a ? b : c``."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("is nested too deeply")
        asked = self._either()
        if self._takes("?"):
            one = self.choice()
            self._expect(":")
            asked = _chosen(asked, one, self.choice())
        self._depth -= 1
        return asked

    def end(self) -> None:
        """See that nothing is left."""
        if self._at < len(self._tokens):
            raise ValueError(f"{self._tokens[self._at][1]!r} is one too many")

    def _either(self) -> Expression:
        found = self._both()
        while self._takes("||"):
            found = _joined("||", found, self._both())
        return found

    def _both(self) -> Expression:
        found = self._relation()
        while self._takes("&&"):
            found = _joined("&&", found, self._relation())
        return found

    def _relation(self) -> Expression:
        found = self._sum()
        while sign := self._takes(*_COMPARED, "in"):
            found = _compared(sign, found, self._sum())
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while sign := self._takes(*_SUMS):
            found = _computed(sign, found, self._product())
        return found

    def _product(self) -> Expression:
        found = self._signed()
        while sign := self._takes(*_PRODUCTS):
            found = _computed(sign, found, self._signed())
        return found

    def _signed(self) -> Expression:
        signs = []
        while sign := self._takes("!", "-"):
            signs.append(sign)
        found = self._member()
        for sign in reversed(signs):
            found = _signed(sign, found)
        return found

    def _member(self) -> Expression:
        found = self._primary()
        while self._takes("."):
            found = _method(self._next()[1], found, self._arguments())
        return found

    def _primary(self) -> Expression:
        kind, text = self._next()
        if kind in _LITERALS:
            return _LITERALS[kind](text)
        if kind == "name":
            return self._named(text)
        if text == "[":
            return _list(self._until("]"))
        if text != "(":
            raise ValueError(f"{text!r} is not where it can be")
        found = self.choice()
        self._expect(")")
        return found

    def _named(self, name: str) -> Expression:
        if self._peek() == ("sign", "("):
            return _call(name, self._arguments())
        if name in ("true", "false"):
            return _constant("bool", name == "true")
        if name not in self._variables:
            raise ValueError(f"there is no {name}: use {', '.join(sorted(self._variables))}")
        return Expression(self._variables[name], lambda known: known[name])

    def _arguments(self) -> list[Expression]:
        self._expect("(")
        return self._until(")")

    def _until(self, closing: str) -> list[Expression]:
        found: list[Expression] = []
        while not self._takes(closing):
            if found:
                self._expect(",")
            found.append(self.choice())
        return found

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        if token == ("", ""):
            raise ValueError("ends too early")
        self._at += 1
        return token

    def _takes(self, *texts: str) -> str:
        kind, text = self._peek()
        if text not in texts or kind not in ("sign", "name"):
            return ""
        self._at += 1
        return text

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise ValueError(f"want {text!r} where {self._peek()[1] or 'the end'!r} is")


def _constant(kind: Kind, value: Value) -> Expression:
    return Expression(kind, lambda _: value)


_LITERALS: Final[dict[str, Callable[[str], Expression]]] = {
    "int": lambda text: _constant("int", _whole(int(text))),
    "double": lambda text: _constant("double", float(text)),
    "string": lambda text: _constant("string", text[1:-1]),
}


def _list(items: list[Expression]) -> Expression:
    return Expression("list", lambda known: [one.value(known) for one in items])


def _chosen(asked: Expression, one: Expression, other: Expression) -> Expression:
    _want(asked.kind == "bool", "? wants true or false before it")
    _want(one.kind == other.kind, f"? chooses between {one.kind} and {other.kind}: write one kind")
    return Expression(one.kind, lambda known: one.value(known) if asked.value(known) else other.value(known))


def _joined(sign: str, one: Expression, other: Expression) -> Expression:
    _want(one.kind == other.kind == "bool", f"{sign} wants true or false on both sides")
    if sign == "&&":
        return Expression("bool", lambda known: one.value(known) and other.value(known))
    return Expression("bool", lambda known: one.value(known) or other.value(known))


def _compared(sign: str, one: Expression, other: Expression) -> Expression:
    if sign == "in":
        _want(other.kind == "list", 'in wants a list after it, like ["m5.large"]')
        return Expression("bool", lambda known: one.value(known) in other.value(known))
    is_alike = one.kind == other.kind or {one.kind, other.kind} <= set(_NUMBERS)
    _want(is_alike and one.kind != "list", f"{sign} cannot compare {one.kind} with {other.kind}")
    compare = _COMPARED[sign]
    return Expression("bool", lambda known: compare(one.value(known), other.value(known)))


def _computed(sign: str, one: Expression, other: Expression) -> Expression:
    _want(one.kind == other.kind, f"{sign} cannot take {one.kind} and {other.kind}: write double(…) or int(…)")
    _want(one.kind in _NUMBERS or (one.kind, sign) == ("string", "+"), f"{sign} cannot take {one.kind}")
    _want((one.kind, sign) != ("double", "%"), "% wants whole numbers")
    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": _left}[sign]

    def value(known: Mapping[str, Value]) -> Any:  # noqa: ANN401 - of the expression's kind
        found = apply(one.value(known), other.value(known))
        return _whole(found) if one.kind == "int" else found

    return Expression(one.kind, value)


def _signed(sign: str, one: Expression) -> Expression:
    if sign == "!":
        _want(one.kind == "bool", "! wants true or false")
        return Expression("bool", lambda known: not one.value(known))
    _want(one.kind in _NUMBERS, "- wants a number")
    return Expression(one.kind, lambda known: -one.value(known))


def _method(name: str, text: Expression, arguments: list[Expression]) -> Expression:
    _want(name in _METHODS, f"there is no .{name}: use {', '.join(_METHODS)}")
    kinds = [one.kind for one in (text, *arguments)]
    _want(kinds == ["string", "string"], f".{name} is for a string, and takes one")
    [part], method = arguments, _METHODS[name]
    return Expression("bool", lambda known: method(text.value(known), part.value(known)))


def _call(name: str, arguments: list[Expression]) -> Expression:
    kinds = {one.kind for one in arguments}
    if name in ("max", "min"):
        _want(bool(kinds) and kinds <= set(_NUMBERS), f"{name} wants numbers")
        choose = max if name == "max" else min
        kind: Kind = "int" if kinds == {"int"} else "double"
        turned: Callable[[Any], Any] = int if kind == "int" else float
        return Expression(kind, lambda known: turned(choose(one.value(known) for one in arguments)))
    _want(name in _CASTS, f"there is no {name}(): use max, min, {', '.join(_CASTS)}")
    allowed, result, turn = _CASTS[name]
    _want(len(arguments) == 1 and kinds <= set(allowed), f"{name} takes one of {', '.join(allowed)}")
    [one] = arguments
    return Expression(result, lambda known: turn(one.value(known)))


def _integer(value: float | str) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no whole number")
    return _whole(int(value))


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_CASTS: Final[dict[str, tuple[tuple[Kind, ...], Kind, Callable[[Any], Any]]]] = {
    "int": (("int", "double", "string"), "int", _integer),
    "double": (("int", "double", "string"), "double", float),
    "string": (("int", "double", "string", "bool"), "string", _text),
    "size": (("string", "list"), "int", len),
}


def _whole(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("a whole number needs more than 64 bits")
    return value


def _divided(one: float, other: float) -> float:
    if isinstance(one, float):
        return one / other if other else math.nan if not one else math.copysign(math.inf, one)
    if not other:
        raise ValueError("a division by zero")
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _left(one: int, other: int) -> int:
    return one - other * int(_divided(one, other))


def _want(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - the claim itself
    if not holds:
        raise ValueError(otherwise)
