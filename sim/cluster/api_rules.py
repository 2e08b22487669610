"""CEL rules of a schema (`x-kubernetes-validations`)."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import cel
import msgspec

from shared.errors import Invalid
from sim.cluster.api_merge import Json


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; *compares* it with what was there before (`oldSelf`), so that it is for updates only."""

    text: str
    message: str
    compares: bool
    program: cel.Program

    def broken(self, context: cel.Context) -> str:
        """Answer the message if the rule does not hold in *context* or cannot be evaluated there, else nothing."""
        try:
            kept = self.program.execute(context)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            return f"{self.message}: {error}"
        return "" if kept is True else self.message


def parse_rules(definitions: Iterable[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Compile rules, in their order.

    Raises:
        Invalid: one is not CEL.
    """
    return tuple(_rule(each["rule"], each.get("message", "")) for each in definitions)


def broken_rules(rules: tuple[Rule, ...], value: Json, before: tuple[Json, ...]) -> tuple[str, ...]:
    """Answer the messages of those of *rules* that *value* breaks; *before* holds the old value, or nothing."""
    asked = tuple(rule for rule in rules if before or not rule.compares)
    if not asked:
        return ()
    if isinstance(value, str) and not any(rule.compares for rule in asked):
        return _broken_by_text(asked, value)
    names = {"self": value, "oldSelf": before[0]} if before else {"self": value}
    context = cel.Context(names)
    return tuple(filter(None, (rule.broken(context) for rule in asked)))


@lru_cache(maxsize=4096)
def _broken_by_text(rules: tuple[Rule, ...], value: str) -> tuple[str, ...]:
    context = cel.Context({"self": value})
    return tuple(filter(None, (rule.broken(context) for rule in rules)))


@lru_cache(maxsize=1024)
def _rule(text: str, message: str) -> Rule:
    try:
        program = cel.compile(text)
    except ValueError as error:
        raise Invalid(f"x-kubernetes-validations: {text!r}: {error}") from error
    return Rule(text=text, message=message or f"failed rule: {text}", compares="oldSelf" in text, program=program)
