"""CEL validation rules of a schema (`x-kubernetes-validations`)."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import cel
import msgspec

from shared.errors import Invalid

Json = Any
"""A JSON value."""


class ValidationRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; a transition rule compares with the old value (`oldSelf`), so that it applies to updates only."""

    expression: str
    message: str
    is_transition_rule: bool
    program: cel.Program

    def find_violation(self, context: cel.Context) -> str:
        """Return the message if the rule is false in *context* or cannot be evaluated there, else ""."""
        try:
            result = self.program.execute(context)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            return f"{self.message}: {error}"
        return "" if result is True else self.message


def compile_rules(definitions: Iterable[Mapping[str, Any]]) -> tuple[ValidationRule, ...]:
    """Compile rules, in their order.

    Raises:
        Invalid: a rule is not valid CEL.
    """
    return tuple(_compile_rule(definition["rule"], definition.get("message", "")) for definition in definitions)


def find_broken_rules(rules: tuple[ValidationRule, ...], value: Json, before: tuple[Json, ...]) -> tuple[str, ...]:
    """Return the messages of the *rules* that *value* violates; *before* contains the old value, or is empty."""
    applicable_rules = tuple(rule for rule in rules if before or not rule.is_transition_rule)
    if not applicable_rules:
        return ()
    if isinstance(value, str) and not any(rule.is_transition_rule for rule in applicable_rules):
        return _find_rules_broken_by_text(applicable_rules, value)
    variables = {"self": value, "oldSelf": before[0]} if before else {"self": value}
    context = cel.Context(variables)
    return tuple(filter(None, (rule.find_violation(context) for rule in applicable_rules)))


@lru_cache(maxsize=4096)
def _find_rules_broken_by_text(rules: tuple[ValidationRule, ...], value: str) -> tuple[str, ...]:
    context = cel.Context({"self": value})
    return tuple(filter(None, (rule.find_violation(context) for rule in rules)))


@lru_cache(maxsize=1024)
def _compile_rule(text: str, message: str) -> ValidationRule:
    try:
        program = cel.compile(text)
    except ValueError as error:
        raise Invalid(f"x-kubernetes-validations: {text!r}: {error}") from error
    return ValidationRule(
        expression=text,
        message=message or f"failed rule: {text}",
        is_transition_rule="oldSelf" in text,
        program=program,
    )
