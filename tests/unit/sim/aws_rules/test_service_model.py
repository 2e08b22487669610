"""Checks of parameters against botocore's service models."""

from collections.abc import Mapping
from typing import Any

import pytest

from sim.aws_rules.problem import CLIENT_SIDE_CODE
from sim.aws_rules.request_validation import find_problem, find_rejection, has_operation

FLEET = {"LaunchTemplateConfigs": [], "TargetCapacitySpecification": {"TotalTargetCapacity": 1}}


@pytest.mark.parametrize(
    ("call", "parameters", "message"),
    [
        ("ec2:CreateFleet", FLEET | {"Type": "immediate"}, "Member must satisfy enum value set: ['instant'"),
        ("ec2:DescribeLaunchTemplates", {"MaxResults": 201}, "less than or equal to 200, not 201 at MaxResults"),
        ("ec2:DescribeSubnets", {"Filters": [{"Nam": "a"}]}, 'Unknown parameter "Nam" at Filters[0]'),
        ("ec2:DescribeSubnets", {"SubnetIds": "subnet-1"}, "Invalid type: str, valid type: list at SubnetIds"),
        ("ec2:DescribeSubnets", {"MaxResults": True}, "Invalid type: bool, valid type: integer"),
        ("ec2:DescribeSubnets", {"MaxResults": 4}, "valid min value: 5"),
        ("ec2:DescribeSubnets", {"DryRun": "yes"}, "valid type: boolean"),
        ("ec2:CreateTags", {"Resources": []}, 'Missing required parameter "Tags" at the request'),
        ("ec2:DescribeSpotPriceHistory", {"StartTime": []}, "valid type: timestamp"),
        ("dynamodb:GetItem", {"TableName": "", "Key": {}}, "valid min length: 1 at TableName"),
        ("dynamodb:GetItem", {"TableName": "a", "Key": []}, "valid type: dict at Key"),
        ("dynamodb:GetItem", {"TableName": "a", "Key": {"x" * 65_536: {"S": "a"}}}, "less than or equal to 65535"),
        (
            "dynamodb:GetItem",
            {"TableName": "a", "Key": {"a": {"M": {"b": {"S": 1}}}}},
            "valid type: str at Key.a.M.b.S",
        ),
        ("dynamodb:TransactWriteItems", {"TransactItems": []}, "valid min length: 1 at TransactItems"),
        (
            "lambda:CreateAlias",
            {"FunctionName": "f", "Name": "1", "FunctionVersion": "1"},
            "regular expression pattern",
        ),
        ("s3:PutObject", {"Bucket": "joiner", "Key": "a", "Body": 1}, "valid type: blob"),
        ("sqs:SendMessage", 1, "valid type: dict"),
    ],
)
def test_a_value_that_does_not_fit_its_shape_is_rejected(call: str, parameters: Any, message: str) -> None:
    problem = find_problem(*split_call(call), parameters)
    assert problem is not None
    assert message in problem.message


@pytest.mark.parametrize(
    ("call", "parameters", "code"),
    [
        ("ec2:CreateFleet", FLEET | {"Type": "immediate"}, "InvalidParameterValue"),
        ("lambda:CreateAlias", {"FunctionName": "f", "Name": "1", "FunctionVersion": "1"}, "ValidationException"),
        ("ec2:CreateFleet", FLEET | {"Colour": "red"}, CLIENT_SIDE_CODE),
    ],
)
def test_the_code_is_that_of_the_service_or_of_botocore(call: str, parameters: Mapping[str, Any], code: str) -> None:
    problem = find_problem(*split_call(call), parameters)
    assert problem is not None
    assert problem.code == code


def test_botocore_parameter_error_is_not_recorded_as_an_aws_rejection() -> None:
    assert find_rejection("ec2", "DescribeSubnets", {"MaxResults": 4}) is None
    rejection = find_rejection("ec2", "CreateFleet", {"Type": "immediate"})
    assert rejection is not None
    assert rejection.code == "InvalidParameterValue"


def test_a_token_that_botocore_generates_is_not_required() -> None:
    assert find_problem("codedeploy", "ListApplications", {}) is None
    assert find_problem("servicecatalog", "CreatePortfolio", {"DisplayName": "a", "ProviderName": "b"}) is None


def test_an_instance_type_that_botocore_does_not_know_yet_is_accepted() -> None:
    configs = [{"Overrides": [{"InstanceType": "m99.large"}]}]
    assert find_problem("ec2", "CreateFleet", FLEET | {"LaunchTemplateConfigs": configs}) is None


def test_a_service_without_a_model_has_no_operations() -> None:
    assert has_operation("ec2", "DescribeSubnets")
    assert not has_operation("ec2", "DescribeColours")
    assert not has_operation("colours", "DescribeColours")


def split_call(call: str) -> tuple[str, str]:
    service, operation = call.split(":")
    return service, operation
