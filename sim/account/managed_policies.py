"""AWS's own policies, which every account has: moto knows them, and leaves them out until somebody names one."""

import json
from functools import cache
from typing import Any, Final

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, iam_backends

PREFIX: Final = "arn:aws:iam::aws:policy/"


def know_managed_policy(number: str, arn: str) -> None:
    """Have IAM of account *number* know the policy with *arn*, if AWS has one."""
    backend, name = iam_backends[number]["aws"], arn.rpartition("/")[2]
    if arn.startswith(PREFIX) and arn not in backend.managed_policies and name in _policies():
        policy = AWSManagedPolicy.from_data(name, number, "aws", _policies()[name])
        backend.managed_policies[policy.arn] = policy


@cache
def _policies() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(aws_managed_policies_data)
    return found
