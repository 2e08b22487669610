"""Read-only permissions of `catalog` for the setting `commitments`."""

from typing import Final

import aws_cdk as cdk

from infra.iam.policy_statement import Grant

SAVINGS_PLANS_ACTIONS: Final = ("savingsplans:DescribeSavingsPlanRates", "savingsplans:DescribeSavingsPlans")
_EC2_REASON: Final = "the action does not support resource-level permissions"
_SAVINGS_PLANS_REASON: Final = "AWS generates the id; the actions only read"


def build_commitment_grants(source: str, role_arn: str = "") -> list[Grant]:
    """Return the permissions to read commitments from *source*, and the instances that use them.

    *role_arn*: the role of a payer account that may be assumed; "" for none.
    """
    if source == "off":
        return []
    actions = ("ec2:DescribeInstances", *(("ec2:DescribeReservedInstances",) if source == "account" else ()))
    region_condition = {"StringEquals": {"aws:RequestedRegion": cdk.Aws.REGION}}
    grants = [
        Grant(
            sid="DescribeCommittedUsage",
            actions=actions,
            resources=("*",),
            conditions=region_condition,
            wildcard_reason=_EC2_REASON,
        )
    ]
    if source == "account":
        # The service has one endpoint for all regions: a condition on the region would deny the calls.
        grants.append(
            Grant(
                sid="DescribeSavingsPlans",
                actions=SAVINGS_PLANS_ACTIONS,
                resources=("*",),
                wildcard_reason=_SAVINGS_PLANS_REASON,
            )
        )
    if source == "account" and role_arn:
        grants.append(Grant(sid="AssumeCommitmentsRole", actions=("sts:AssumeRole",), resources=(role_arn,)))
    return grants
