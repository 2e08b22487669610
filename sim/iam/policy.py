"""Evaluates IAM policies: an explicit deny wins over every allow, an allow over the implicit deny."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from sim.iam.condition_operators import ConditionBlock, check_operators, convert_to_values, is_condition_met
from sim.iam.patterns_and_variables import (
    IamRequest,
    MissingValueError,
    RequestContext,
    UnsupportedPolicyError,
    Values,
    is_match,
)

POLICY_VERSION: Final = "2012-10-17"
"""Older policy versions have no policy variables."""
_SUPPORTED_ELEMENTS: Final = frozenset(
    {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal"}
)


class AccessDecision(Enum):
    """The decision about a request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    IMPLICIT_DENY = "nothing allows it"


class PolicyStatement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement.

    *actions* and *resources* are patterns: one must match the request, or none for NotAction and NotResource.
    """

    effect: str
    actions: Values
    resources: Values
    has_not_action: bool = False
    has_not_resource: bool = False
    condition: ConditionBlock = {}
    principals: Values | None = None
    """None: the statement is in an identity-based policy."""
    sid: str = ""

    def is_applicable(self, request: IamRequest) -> bool:
        """Return whether the statement applies to *request*; a missing value of a policy variable means no.

        Raises:
            UnsupportedPolicyError: a condition for one value meets a key with several values.
        """
        try:
            return self._is_match(request) and is_condition_met(self.condition, request.context)
        except MissingValueError:
            return False

    def _is_match(self, request: IamRequest) -> bool:
        return (
            _has_match(self.actions, request.action, None) != self.has_not_action
            and _has_match(self.resources, request.resource, request.context) != self.has_not_resource
            and (self.principals is None or _has_match(self.principals, request.principal, None))
        )


Policy = tuple[PolicyStatement, ...]


def parse_policy(document: Mapping[str, Any]) -> Policy:
    """Parse a policy document whose CloudFormation functions are resolved.

    Raises:
        UnsupportedPolicyError: it has an element that is not evaluated here.
    """
    if document.get("Version") != POLICY_VERSION:
        raise UnsupportedPolicyError(f"Version is {document.get('Version')}: want {POLICY_VERSION}")
    statements = document["Statement"]
    return tuple(
        parse_statement(statement) for statement in (statements if isinstance(statements, list) else [statements])
    )


def parse_statement(document: Mapping[str, Any]) -> PolicyStatement:
    """Parse one statement.

    Raises:
        UnsupportedPolicyError: it has an element that is not evaluated here, or lacks a required element.
    """
    if unknown := sorted(document.keys() - _SUPPORTED_ELEMENTS):
        raise UnsupportedPolicyError(f"{', '.join(unknown)} is not evaluated here")
    if document.get("Effect") not in ("Allow", "Deny"):
        raise UnsupportedPolicyError(f"Effect is {document.get('Effect')!r}: want Allow or Deny")
    check_operators(document.get("Condition", {}))
    actions, has_not_action = _get_element(document, "Action")
    resources, has_not_resource = _get_element(document, "Resource")
    return PolicyStatement(
        effect=document["Effect"],
        actions=actions,
        resources=resources,
        has_not_action=has_not_action,
        has_not_resource=has_not_resource,
        condition=document.get("Condition", {}),
        principals=_parse_principals(document["Principal"]) if "Principal" in document else None,
        sid=document.get("Sid", ""),
    )


def evaluate_policies(policies: Iterable[Policy], request: IamRequest) -> AccessDecision:
    """Return the decision of all *policies* about *request*: of the role's policies, or of a resource policy.

    Raises:
        UnsupportedPolicyError: a condition for one value meets a key with several values.
    """
    effects = {statement.effect for policy in policies for statement in policy if statement.is_applicable(request)}
    if "Deny" in effects:
        return AccessDecision.DENIED
    return AccessDecision.ALLOWED if effects else AccessDecision.IMPLICIT_DENY


def split_policy(policy: Policy) -> Policy:
    """Return statements with one action and one resource each that decide as *policy* does.

    Statements with NotAction, NotResource or policy variables stay whole.
    """
    return tuple(part for statement in policy for part in _split_statement(statement))


def _split_statement(statement: PolicyStatement) -> Policy:
    if statement.has_not_action or statement.has_not_resource or any("${" in text for text in statement.resources):
        return (statement,)
    return tuple(
        msgspec.structs.replace(statement, actions=(action,), resources=(resource,))
        for action in statement.actions
        for resource in statement.resources
    )


def find_allowing_statements(policy: Policy, request: IamRequest) -> tuple[PolicyStatement, ...]:
    """Return the statements of *policy* that allow *request*, in their order."""
    return tuple(statement for statement in policy if statement.effect == "Allow" and statement.is_applicable(request))


def _get_element(document: Mapping[str, Any], name: str) -> tuple[Values, bool]:
    negated_name = f"Not{name}"
    if (name in document) == (negated_name in document):
        raise UnsupportedPolicyError(f"a statement has {name} or {negated_name}: this one has both or none")
    return convert_to_values(document[name if name in document else negated_name]), negated_name in document


def _parse_principals(principal_element: str | Mapping[str, Any]) -> Values:
    principals = {"AWS": principal_element} if isinstance(principal_element, str) else principal_element
    if unknown := sorted(principals.keys() - {"AWS", "Service"}):
        raise UnsupportedPolicyError(f"principals of kind {', '.join(unknown)} are not evaluated here")
    return tuple(principal for kind in sorted(principals) for principal in convert_to_values(principals[kind]))


def _has_match(patterns: Values, text: str, context: RequestContext | None) -> bool:
    """Return whether a pattern matches; without *context* (actions and principals), case is ignored."""
    # Evaluate all patterns: a variable without a value makes the whole statement inapplicable.
    matches_by_pattern = [is_match(pattern, text, context, ignore_case=context is None) for pattern in patterns]
    return any(matches_by_pattern)
