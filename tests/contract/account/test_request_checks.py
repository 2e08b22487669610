"""The embedded AWS rejects over HTTP what AWS rejects, with the same error code and message."""

import pytest
from botocore.exceptions import ClientError

from tests.contract.account_stage import Stage

pytestmark = pytest.mark.loopback


def test_an_unknown_filter_is_an_invalid_parameter(stage: Stage) -> None:
    with pytest.raises(ClientError) as raised:
        stage.get_client("ec2").describe_instances(Filters=[{"Name": "colour", "Values": ["red"]}])
    assert raised.value.response["Error"] == {
        "Code": "InvalidParameterValue",
        "Message": "The filter 'colour' is invalid",
    }


def test_calls_of_services_that_moto_serves_are_checked_too(stage: Stage) -> None:
    with pytest.raises(ClientError) as raised:
        stage.get_client("dynamodb").get_item(TableName="joiner", Key={"pk": {"S": ""}, "sk": {"S": "a"}})
    assert raised.value.response["Error"]["Code"] == "ValidationException"


def test_a_value_outside_its_enum_is_rejected(stage: Stage) -> None:
    with pytest.raises(ClientError) as raised:
        stage.get_client("ec2").describe_instance_type_offerings(LocationType="planet")
    assert "Member must satisfy enum value set" in raised.value.response["Error"]["Message"]
