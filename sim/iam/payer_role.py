"""Whether a caller may assume the role of a payer account, and read commitments with it.

AssumeRole across accounts needs both sides: the policy of the caller, and the trust policy of the role.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic-cross-account.html
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.errors import Forbidden
from sim.cloud.resources.payer_role import PayerRole
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, Policy, evaluate_policies, parse_policy

COMMITMENT_ACTIONS: Final = (
    "ec2:DescribeReservedInstances",
    "savingsplans:DescribeSavingsPlans",
    "savingsplans:DescribeSavingsPlanRates",
)


def check_role_use(role: PayerRole | None, role_arn: str, caller_arn: str, external_id: str) -> None:
    """Check that *caller_arn* may assume *role_arn* with *external_id* ("": none) and read commitments with it.

    Raises:
        Forbidden: it may not; the text is that of AWS.
    """
    external_ids = {"sts:ExternalId": external_id} if external_id else {}
    if role is None or role.arn != role_arn or not any(_iterate_trusted(role, caller_arn, external_ids)):
        call = f"User: {caller_arn} is not authorized to perform: sts:AssumeRole on resource: {role_arn}"
        raise Forbidden(f"sts:AssumeRole {role_arn}: AccessDenied: {call}")
    policy = parse_policy(role.permissions_policy)
    for action in COMMITMENT_ACTIONS:
        if evaluate_policies([policy], IamRequest(action=action)) is not AccessDecision.ALLOWED:
            text = f"{role_arn} is not authorized to perform: {action} because no identity-based policy allows it"
            raise Forbidden(f"{action}: AccessDenied: User: {text}")


def get_trusted_principal(role: PayerRole) -> str:
    """Return the first principal that the trust policy of *role* allows."""
    [first, *_] = _parse_trust_policy(role.trust_policy)
    return (first.principals or ("*",))[0]


def _iterate_trusted(role: PayerRole, caller_arn: str, external_ids: Mapping[str, str]) -> Iterator[bool]:
    """Yield whether the trust policy allows the caller: named itself, or by its account."""
    account = caller_arn.split(":")[4] if ":" in caller_arn else caller_arn
    policy = _parse_trust_policy(role.trust_policy)
    context = build_context({**external_ids, "aws:PrincipalArn": caller_arn, "aws:PrincipalAccount": account})
    for principal in (caller_arn, f"arn:aws:iam::{account}:root", account):
        request = IamRequest(action="sts:AssumeRole", context=context, principal=principal)
        yield evaluate_policies([policy], request) is AccessDecision.ALLOWED


def _parse_trust_policy(document: Mapping[str, Any]) -> Policy:
    """Parse a trust policy, whose statements have no resource: the role itself is the resource."""
    statements = document["Statement"]
    statement_list = statements if isinstance(statements, list) else [statements]
    return parse_policy({**document, "Statement": [{**statement, "Resource": "*"} for statement in statement_list]})
