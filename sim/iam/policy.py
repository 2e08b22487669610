"""The verdict: an explicit deny wins over every allow, an allow over silence, and silence is a no."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from sim.iam.conditions import Block, check, holds, several
from sim.iam.values import Context, MissingValueError, Request, UnsupportedPolicyError, Values, matches

VERSION: Final = "2012-10-17"
"""Older policies know no variables."""
_ELEMENTS: Final = frozenset(
    {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal"}
)


class Verdict(Enum):
    """What becomes of a request; *SILENT* is IAM's implicit deny."""

    ALLOWED = "allowed"
    DENIED = "denied"
    SILENT = "nothing allows it"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement; *actions* and *resources* are patterns, of which the request may match one, or none at all."""

    effect: str
    actions: Values
    resources: Values
    excepts_actions: bool = False
    excepts_resources: bool = False
    condition: Block = {}
    principals: Values | None = None
    """None: the policy is a role's own."""
    sid: str = ""

    def applies(self, request: Request) -> bool:
        """Whether it speaks of *request*; one with a variable that has no value does not.

        Raises:
            UnsupportedPolicyError: a condition on one value is asked of several.
        """
        try:
            return self._speaks_of(request) and holds(self.condition, request.context)
        except MissingValueError:
            return False

    def _speaks_of(self, request: Request) -> bool:
        return (
            _any(self.actions, request.action, None) != self.excepts_actions
            and _any(self.resources, request.resource, request.context) != self.excepts_resources
            and (self.principals is None or _any(self.principals, request.principal, None))
        )


Policy = tuple[Statement, ...]


def parse_policy(document: Mapping[str, Any]) -> Policy:
    """Read a policy document whose CloudFormation functions are resolved.

    Raises:
        UnsupportedPolicyError: it says what is not evaluated here.
    """
    if document.get("Version") != VERSION:
        raise UnsupportedPolicyError(f"Version is {document.get('Version')}: want {VERSION}")
    found = document["Statement"]
    return tuple(parse_statement(one) for one in (found if isinstance(found, list) else [found]))


def parse_statement(document: Mapping[str, Any]) -> Statement:
    """Read one statement.

    Raises:
        UnsupportedPolicyError: it has an element that is not evaluated here, or lacks one.
    """
    if unknown := sorted(document.keys() - _ELEMENTS):
        raise UnsupportedPolicyError(f"{', '.join(unknown)} is not evaluated here")
    if document.get("Effect") not in ("Allow", "Deny"):
        raise UnsupportedPolicyError(f"Effect is {document.get('Effect')!r}: want Allow or Deny")
    check(document.get("Condition", {}))
    actions, excepts_actions = _either(document, "Action")
    resources, excepts_resources = _either(document, "Resource")
    return Statement(
        effect=document["Effect"],
        actions=actions,
        resources=resources,
        excepts_actions=excepts_actions,
        excepts_resources=excepts_resources,
        condition=document.get("Condition", {}),
        principals=_principals(document["Principal"]) if "Principal" in document else None,
        sid=document.get("Sid", ""),
    )


def verdict(policies: Iterable[Policy], request: Request) -> Verdict:
    """Answer what all *policies* together say of *request*: those of the role that asks, and the resource's own.

    Raises:
        UnsupportedPolicyError: a condition on one value is asked of several.
    """
    effects = {one.effect for policy in policies for one in policy if one.applies(request)}
    if "Deny" in effects:
        return Verdict.DENIED
    return Verdict.ALLOWED if effects else Verdict.SILENT


def allowing(policy: Policy, request: Request) -> tuple[Statement, ...]:
    """Answer the statements of *policy* that allow *request*, in their order."""
    return tuple(one for one in policy if one.effect == "Allow" and one.applies(request))


def _either(document: Mapping[str, Any], name: str) -> tuple[Values, bool]:
    excepting = f"Not{name}"
    if (name in document) == (excepting in document):
        raise UnsupportedPolicyError(f"a statement has {name} or {excepting}: this one has both or none")
    return several(document[name if name in document else excepting]), excepting in document


def _principals(said: str | Mapping[str, Any]) -> Values:
    named = {"AWS": said} if isinstance(said, str) else said
    if unknown := sorted(named.keys() - {"AWS", "Service"}):
        raise UnsupportedPolicyError(f"principals of kind {', '.join(unknown)} are not evaluated here")
    return tuple(one for kind in sorted(named) for one in several(named[kind]))


def _any(patterns: Values, text: str, known: Context | None) -> bool:
    """Whether one matches; actions, the only ones without variables besides principals, do not mind case."""
    # All are looked at: a variable without a value takes the whole statement away, whatever else it names.
    found = [matches(one, text, known, is_caseless=known is None) for one in patterns]
    return any(found)
