"""Savings Plans, Reserved Instances and the instances of others, on every face of the cloud."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError, ParamValidationError

from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.contract.http_face import get_clients, get_embedded_aws
from tests.contract.memory_face import Face

CLUSTER = "joiner"


def test_reserved_instances_are_described_until_their_term_ends(aws: Face) -> None:
    now = aws.cloud.clock.get_time()
    regional = aws.cloud.commitments.add_reserved("m5.large", 3, now)
    zonal = aws.cloud.commitments.add_reserved("m5.xlarge", 1, now, zone="us-east-1a")
    expected = sorted((regional, zonal), key=lambda item: item.reservation_id)
    assert list(aws.ec2.describe_reserved_instances()) == [
        msgspec.structs.replace(item, usd_per_hour=pytest.approx(item.usd_per_hour)) for item in expected
    ]
    aws.cloud.clock.advance(timedelta(days=366))
    assert aws.ec2.describe_reserved_instances() == ()


def test_savings_plans_are_described_with_the_rates_of_the_region(aws: Face) -> None:
    now = aws.cloud.clock.get_time()
    compute = aws.cloud.commitments.add_plan(2.5, now)
    instance_plan = aws.cloud.commitments.add_plan(1.0, now, family="m5")
    aws.cloud.commitments.add_plan(1.0, now, family="m5", region="eu-west-1")
    plans = aws.savings_plans.describe_savings_plans(aws.cloud.region)
    assert plans == tuple(sorted((compute, instance_plan), key=lambda plan: plan.plan_id))
    assert len(compute.rates) > len(instance_plan.rates) > 0


def test_account_without_commitments(aws: Face) -> None:
    assert aws.ec2.describe_reserved_instances() == ()
    assert aws.ec2.describe_other_instances(CLUSTER) == ()
    assert aws.savings_plans.describe_savings_plans(aws.cloud.region) == ()


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("service", "call", "parameters", "code"),
    [
        (
            "ec2",
            "describe_reserved_instances",
            {"Filters": [{"Name": "platform", "Values": ["x"]}]},
            "InvalidParameterValue",
        ),
        ("ec2", "describe_reserved_instances", {"ReservedInstancesIds": ["x"]}, "InvalidReservedInstancesId"),
        ("savingsplans", "describe_savings_plan_rates", {"savingsPlanId": "x"}, "ResourceNotFoundException"),
        ("savingsplans", "describe_savings_plans", {"maxResults": 1001}, "ValidationException"),
        ("savingsplans", "describe_savings_plans", {"states": ["paid"]}, "ValidationException"),
    ],
)
def test_a_query_that_aws_rejects_is_rejected(service: str, call: str, parameters: dict[str, Any], code: str) -> None:
    get_embedded_aws().reset(Cloud(Clock()))
    with pytest.raises((ClientError, ParamValidationError)) as error:
        getattr(get_clients().get_retrying_client(service), call)(**parameters)
    assert isinstance(error.value, ParamValidationError) or error.value.response["Error"]["Code"] == code


@pytest.mark.loopback
def test_all_pages_of_rates_are_read() -> None:
    cloud = Cloud(Clock())
    get_embedded_aws().reset(cloud)
    plan = cloud.commitments.add_plan(1.0, cloud.clock.get_time())
    client = get_clients().get_retrying_client("savingsplans")
    page = client.describe_savings_plan_rates(savingsPlanId=plan.plan_id, maxResults=10)
    second = client.describe_savings_plan_rates(savingsPlanId=plan.plan_id, maxResults=10, nextToken=page["nextToken"])
    assert len(page["searchResults"]) == len(second["searchResults"]) == 10
    assert page["searchResults"][0] != second["searchResults"][0]
