"""A cluster without a way out: which services are called at all, and what is lost where one has no endpoint."""

import re
from pathlib import Path

AWS = Path(__file__).parents[4] / "shared" / "aws"
CALLED = re.compile(r"\.get_(?:retrying|single_attempt)_client\(\s*\"([a-z0-9-]+)\"")
IN_A_VPC = {"arc-zonal-shift", "dynamodb", "ec2", "eks", "events", "s3", "sns", "sqs", "ssm"}
"""Services with a VPC endpoint. Logs are written to by others than our code; the token for
EKS is signed for STS, not sent to it by us."""
WITHOUT = {"pricing", "savingsplans", "sts"}
"""Services without a VPC endpoint. Without pricing, only fresh list prices are missing:
`test_failing_api_call_is_recovered_from[GetProducts-5xx]` runs without them. Savings Plans are read, and STS
is called for a payer account, only with `commitments: account`: settings refuse it in an isolated network."""


def test_private_cluster_calls_only_known_services_without_a_vpc_endpoint() -> None:
    call_names = {name for path in AWS.rglob("*.py") for name in CALLED.findall(path.read_text())}
    assert call_names == IN_A_VPC | WITHOUT
