"""AWS managed policies, which exist in every account: moto has them, but loads none until it is referenced."""

import json
from functools import cache
from typing import Any, Final

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, iam_backends

AWS_POLICY_ARN_PREFIX: Final = "arn:aws:iam::aws:policy/"


def register_managed_policy(account_id: str, arn: str) -> None:
    """Add the AWS managed policy with *arn*, if it exists, to IAM of the account *account_id*."""
    backend, name = iam_backends[account_id]["aws"], arn.rpartition("/")[2]
    if arn.startswith(AWS_POLICY_ARN_PREFIX) and arn not in backend.managed_policies and name in _load_policies():
        policy = AWSManagedPolicy.from_data(name, account_id, "aws", _load_policies()[name])
        backend.managed_policies[policy.arn] = policy


@cache
def _load_policies() -> dict[str, Any]:
    policies: dict[str, Any] = json.loads(aws_managed_policies_data)
    return policies
