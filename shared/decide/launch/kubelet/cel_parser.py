"""Parser of CEL expressions: text to a typed expression, by recursive descent."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from shared.decide.launch.kubelet.cel_operators import (
    ADDITIVE_OPERATORS,
    COMPARISON_BY_OPERATOR,
    LITERAL_PARSERS,
    MULTIPLICATIVE_OPERATORS,
    CelExpression,
    CelType,
    build_arithmetic,
    build_comparison,
    build_conditional,
    build_constant,
    build_function_call,
    build_list,
    build_logical,
    build_method_call,
    build_unary,
)

MAX_EXPRESSION_LENGTH: Final = 1000
_MAX_NESTING_DEPTH: Final = 40
_TOKEN_PATTERN: Final = re.compile(
    r"\s*(?:(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)|(?P<int>\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>\"[^\"\\]*\"|'[^'\\]*')|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:(),.\[\]]))"
)


@lru_cache(maxsize=256)
def parse_expression(text: str, variables: tuple[tuple[str, CelType], ...]) -> CelExpression:
    """Parse *text*, which may use *variables*.

    Raises:
        ValueError: it is not a valid expression, or has a type error; the message says where.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise ValueError(f"is longer than {MAX_EXPRESSION_LENGTH} characters")
    parser = _Parser(_tokenize(text), dict(variables))
    expression = parser.parse_conditional()
    parser.check_end()
    return expression


def _tokenize(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN_PATTERN.match(text, position)
        if token is None or token.lastgroup is None:
            raise ValueError(f"{text[position:].strip()[:10]!r} is not valid syntax")
        tokens.append((token.lastgroup, token[token.lastgroup]))
        position = token.end()
    return tokens


class _Parser:
    """A recursive-descent parser of one expression, from the lowest to the highest precedence."""

    def __init__(self, tokens: list[tuple[str, str]], variables: Mapping[str, CelType]) -> None:
        self._tokens, self._position, self._depth = tokens, 0, 0
        self._variables = variables

    def parse_conditional(self) -> CelExpression:
        """Parse ``a ? b : c``."""
        self._depth += 1
        if self._depth > _MAX_NESTING_DEPTH:
            raise ValueError("is nested too deeply")
        expression = self._parse_or()
        if self._accept("?"):
            when_true = self.parse_conditional()
            self._expect(":")
            expression = build_conditional(expression, when_true, self.parse_conditional())
        self._depth -= 1
        return expression

    def check_end(self) -> None:
        """Check that no tokens are left."""
        if self._position < len(self._tokens):
            raise ValueError(f"{self._tokens[self._position][1]!r} is unexpected")

    def _parse_or(self) -> CelExpression:
        expression = self._parse_and()
        while self._accept("||"):
            expression = build_logical("||", expression, self._parse_and())
        return expression

    def _parse_and(self) -> CelExpression:
        expression = self._parse_comparison()
        while self._accept("&&"):
            expression = build_logical("&&", expression, self._parse_comparison())
        return expression

    def _parse_comparison(self) -> CelExpression:
        expression = self._parse_sum()
        while operator_sign := self._accept(*COMPARISON_BY_OPERATOR, "in"):
            expression = build_comparison(operator_sign, expression, self._parse_sum())
        return expression

    def _parse_sum(self) -> CelExpression:
        expression = self._parse_product()
        while operator_sign := self._accept(*ADDITIVE_OPERATORS):
            expression = build_arithmetic(operator_sign, expression, self._parse_product())
        return expression

    def _parse_product(self) -> CelExpression:
        expression = self._parse_unary()
        while operator_sign := self._accept(*MULTIPLICATIVE_OPERATORS):
            expression = build_arithmetic(operator_sign, expression, self._parse_unary())
        return expression

    def _parse_unary(self) -> CelExpression:
        signs = []
        while sign := self._accept("!", "-"):
            signs.append(sign)
        expression = self._parse_member()
        for sign in reversed(signs):
            expression = build_unary(sign, expression)
        return expression

    def _parse_member(self) -> CelExpression:
        expression = self._parse_primary()
        while self._accept("."):
            expression = build_method_call(self._read_token()[1], expression, self._parse_arguments())
        return expression

    def _parse_primary(self) -> CelExpression:
        kind, text = self._read_token()
        if kind in LITERAL_PARSERS:
            return LITERAL_PARSERS[kind](text)
        if kind == "name":
            return self._parse_name(text)
        if text == "[":
            return build_list(self._parse_list_until("]"))
        if text != "(":
            raise ValueError(f"{text!r} is not allowed here")
        expression = self.parse_conditional()
        self._expect(")")
        return expression

    def _parse_name(self, name: str) -> CelExpression:
        if self._peek() == ("sign", "("):
            return build_function_call(name, self._parse_arguments())
        if name in ("true", "false"):
            return build_constant("bool", name == "true")
        if name not in self._variables:
            raise ValueError(f"there is no {name}: use {', '.join(sorted(self._variables))}")
        return CelExpression(self._variables[name], lambda variables: variables[name])

    def _parse_arguments(self) -> list[CelExpression]:
        self._expect("(")
        return self._parse_list_until(")")

    def _parse_list_until(self, closing: str) -> list[CelExpression]:
        expressions: list[CelExpression] = []
        while not self._accept(closing):
            if expressions:
                self._expect(",")
            expressions.append(self.parse_conditional())
        return expressions

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position] if self._position < len(self._tokens) else ("", "")

    def _read_token(self) -> tuple[str, str]:
        token = self._peek()
        if token == ("", ""):
            raise ValueError("ends unexpectedly")
        self._position += 1
        return token

    def _accept(self, *texts: str) -> str:
        kind, text = self._peek()
        if text not in texts or kind not in ("sign", "name"):
            return ""
        self._position += 1
        return text

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise ValueError(f"expected {text!r}, found {self._peek()[1] or 'the end'!r}")
