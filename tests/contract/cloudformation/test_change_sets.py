"""Change sets: CloudFormation describes the changes first and executes them on request."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.account_stage import Stage, get_error_code

pytestmark = pytest.mark.loopback

QUEUE: dict[str, Any] = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}}
TOPIC: dict[str, Any] = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "told"}}


def create_change_set(stage: Stage, resources: dict[str, Any], kind: str = "UPDATE", **template: Any) -> dict[str, Any]:
    """Create a change set and return its description."""
    cloudformation = stage.get_client("cloudformation")
    body = json.dumps({"Resources": resources, **template})
    response = cloudformation.create_change_set(
        StackName="s", ChangeSetName="changes", ChangeSetType=kind, TemplateBody=body, Tags=[{"Key": "a", "Value": "b"}]
    )
    change_set: dict[str, Any] = cloudformation.describe_change_set(ChangeSetName=response["Id"])
    return change_set


def execute_change_set(stage: Stage) -> str:
    stage.get_client("cloudformation").execute_change_set(ChangeSetName="changes", StackName="s")
    return str(stage.wait_until_settled("s")["StackStatus"])


def summarize_changes(changes: dict[str, Any]) -> list[tuple[str, str, str]]:
    resource_changes = [change["ResourceChange"] for change in changes["Changes"]]
    return [
        (resource_change["Action"], resource_change["LogicalResourceId"], resource_change.get("Replacement", ""))
        for resource_change in resource_changes
    ]


def test_change_set_creates_a_stack(stage: Stage) -> None:
    changes = create_change_set(stage, {"Queue": QUEUE}, "CREATE")
    assert summarize_changes(changes) == [("Add", "Queue", "")]
    assert stage.wait_until_settled("s")["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert not stage.get_client("sqs").list_queues().get("QueueUrls")

    assert execute_change_set(stage) == "CREATE_COMPLETE"

    assert stage.wait_until_settled("s")["Tags"] == [{"Key": "a", "Value": "b"}]
    assert get_error_code(lambda: execute_change_set(stage)) == "ChangeSetNotFound"


def test_change_set_lists_additions_removals_modifications_and_replacements(stage: Stage) -> None:
    four = {name: {**QUEUE, "Properties": {"QueueName": name}} for name in ("a", "b", "c", "d")}
    stage.deploy("s", four)
    resources = {
        "a": four["a"],
        "b": {**QUEUE, "Properties": {"QueueName": "b", "DelaySeconds": 1}},
        "c": {**QUEUE, "Properties": {"QueueName": "other"}},
        "e": TOPIC,
    }
    changes = create_change_set(stage, resources)
    assert summarize_changes(changes) == [
        ("Modify", "b", "False"),
        ("Modify", "c", "True"),
        ("Remove", "d", ""),
        ("Add", "e", ""),
    ]
    [detail] = changes["Changes"][0]["ResourceChange"]["Details"]
    assert detail["Target"] == {"Attribute": "Properties", "Name": "DelaySeconds", "RequiresRecreation": "Never"}


def test_changed_parameter_default_modifies_the_resources_that_reference_it(stage: Stage) -> None:
    topic = {**TOPIC, "Properties": {"TopicName": "t", "DisplayName": {"Ref": "Name"}}}
    parameters = {"Name": {"Type": "String", "Default": "a"}}
    stage.deploy("s", {"Queue": QUEUE, "Topic": topic}, Parameters=parameters)
    parameters["Name"]["Default"] = "b"
    assert summarize_changes(create_change_set(stage, {"Queue": QUEUE, "Topic": topic}, Parameters=parameters)) == [
        ("Modify", "Topic", "False")
    ]


def test_use_previous_value_keeps_a_parameter_value(stage: Stage) -> None:
    topic = {**TOPIC, "Properties": {"TopicName": {"Ref": "Name"}}}
    parameters = {"Name": {"Type": "String"}}
    stage.deploy("s", {"Topic": topic}, parameters={"Name": "kept"}, Parameters=parameters)
    stage.get_client("cloudformation").update_stack(
        StackName="s",
        TemplateBody=json.dumps({"Resources": {"Topic": topic, "Queue": QUEUE}, "Parameters": parameters}),
        Parameters=[{"ParameterKey": "Name", "UsePreviousValue": True}],
    )
    assert stage.wait_until_settled("s")["Parameters"] == [{"ParameterKey": "Name", "ParameterValue": "kept"}]
    with pytest.raises(ClientError, match=r"Parameters: \[Name\] must have values"):
        stage.deploy("s", {"Topic": topic, "Queue": QUEUE}, Parameters=parameters)
    with pytest.raises(ClientError, match=r"Parameters: \[Other\] do not exist"):
        stage.deploy("s", {"Topic": topic}, parameters={"Name": "a", "Other": "b"}, Parameters=parameters)


def test_change_set_without_changes_fails(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    changes = create_change_set(stage, {"Queue": QUEUE})
    assert (changes["Status"], changes["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert "didn't contain changes" in changes["StatusReason"]
    assert get_error_code(lambda: execute_change_set(stage)) == "InvalidChangeSetStatus"
    with pytest.raises(ClientError, match="No updates are to be performed"):
        stage.deploy("s", {"Queue": QUEUE})


def test_changed_output_counts_as_a_change(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    assert create_change_set(stage, {"Queue": QUEUE}, Outputs={"A": {"Value": "a"}})["Status"] == "CREATE_COMPLETE"
    assert execute_change_set(stage) == "UPDATE_COMPLETE"
    assert stage.wait_until_settled("s")["Outputs"] == [{"OutputKey": "A", "OutputValue": "a"}]


def test_deleted_change_set_leaves_no_resources(stage: Stage) -> None:
    create_change_set(stage, {"Queue": QUEUE}, "CREATE")
    cloudformation = stage.get_client("cloudformation")
    for _ in range(2):
        cloudformation.delete_change_set(ChangeSetName="changes", StackName="s")
    assert (
        get_error_code(lambda: cloudformation.describe_change_set(ChangeSetName="changes", StackName="s"))
        == "ChangeSetNotFound"
    )
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"


def test_create_of_an_existing_stack_and_update_of_a_missing_stack_are_rejected(stage: Stage) -> None:
    assert get_error_code(lambda: create_change_set(stage, {"Queue": QUEUE})) == "ValidationError"
    stage.deploy("s", {"Queue": QUEUE})
    assert get_error_code(lambda: create_change_set(stage, {"Queue": QUEUE}, "CREATE")) == "ValidationError"
    body = json.dumps({"Resources": {"Queue": QUEUE}})
    create_again = lambda: stage.get_client("cloudformation").create_stack(StackName="s", TemplateBody=body)  # noqa: E731 - asked for its code
    assert get_error_code(create_again) == "AlreadyExistsException"


@pytest.mark.parametrize(
    "url", ["https://assets.s3.us-east-1.amazonaws.com/{}", "https://s3.us-east-1.amazonaws.com/assets/{}"]
)
def test_template_can_be_read_from_an_s3_url(stage: Stage, url: str) -> None:
    s3 = stage.get_client("s3")
    s3.create_bucket(Bucket="assets")
    s3.put_object(Bucket="assets", Key="of/t.json", Body=json.dumps({"Resources": {"Queue": QUEUE}}).encode())
    stage.get_client("cloudformation").create_stack(StackName="s", TemplateURL=url.format("of/t.json"))
    assert stage.wait_until_settled("s")["StackStatus"] == "CREATE_COMPLETE"


def test_template_url_outside_s3_is_rejected(stage: Stage) -> None:
    create = stage.get_client("cloudformation").create_stack
    assert get_error_code(lambda: create(StackName="s", TemplateURL="ftp://somewhere/else")) == "ValidationError"


def test_template_summary_lists_parameters_and_resource_types(stage: Stage) -> None:
    cloudformation = stage.get_client("cloudformation")
    parameters = {"A": {"Type": "String", "Default": "x"}, "B": {"Type": "String"}}
    body = json.dumps({"Description": "d", "Resources": {"Queue": QUEUE, "Topic": TOPIC}, "Parameters": parameters})
    summary = cloudformation.get_template_summary(TemplateBody=body)
    assert [(parameter["ParameterKey"], parameter.get("DefaultValue")) for parameter in summary["Parameters"]] == [
        ("A", "x"),
        ("B", None),
    ]
    assert summary["ResourceTypes"] == ["AWS::SNS::Topic", "AWS::SQS::Queue"]
    stage.deploy("s", {"Queue": QUEUE})
    assert cloudformation.get_template_summary(StackName="s")["ResourceTypes"] == ["AWS::SQS::Queue"]


def test_resources_are_found_by_stack_and_by_id(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE, "Topic": TOPIC})
    cloudformation = stage.get_client("cloudformation")
    resources = cloudformation.describe_stack_resources(StackName="s")["StackResources"]
    assert [resource["LogicalResourceId"] for resource in resources] == ["Queue", "Topic"]
    url = stage.get_physical_id("s", "Queue")
    matching_resources = cloudformation.describe_stack_resources(PhysicalResourceId=url)["StackResources"]
    assert {resource["StackName"] for resource in matching_resources} == {"s"}
    assert (
        get_error_code(lambda: cloudformation.describe_stack_resources(PhysicalResourceId="none")) == "ValidationError"
    )
    assert get_error_code(lambda: stage.get_physical_id("s", "None")) == "ValidationError"


def test_stack_events_are_paginated_and_complete(stage: Stage) -> None:
    resources = {
        f"T{number}": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}
        for number in range(60)
    }
    stage.deploy("s", resources)
    events = stage.list_events("s")
    assert len(events) == 122
    assert (events[0], events[-1]) == ("s CREATE_IN_PROGRESS", "s CREATE_COMPLETE")


def test_unsupported_api_call_is_rejected(stage: Stage) -> None:
    assert (
        get_error_code(lambda: stage.get_client("cloudformation").detect_stack_drift(StackName="s")) == "InvalidAction"
    )
