"""Change sets: what would be done is said first, and done on request."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.account_stage import Stage, code_of

pytestmark = pytest.mark.loopback

QUEUE: dict[str, Any] = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}}
TOPIC: dict[str, Any] = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "told"}}


def propose(stage: Stage, resources: dict[str, Any], kind: str = "UPDATE", **template: Any) -> dict[str, Any]:
    """Make a change set, and answer it."""
    cloudformation = stage.client("cloudformation")
    body = json.dumps({"Resources": resources, **template})
    made = cloudformation.create_change_set(
        StackName="s", ChangeSetName="changes", ChangeSetType=kind, TemplateBody=body, Tags=[{"Key": "a", "Value": "b"}]
    )
    found: dict[str, Any] = cloudformation.describe_change_set(ChangeSetName=made["Id"])
    return found


def execute(stage: Stage) -> str:
    stage.client("cloudformation").execute_change_set(ChangeSetName="changes", StackName="s")
    return str(stage.settled("s")["StackStatus"])


def said(changes: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = [one["ResourceChange"] for one in changes["Changes"]]
    return [(one["Action"], one["LogicalResourceId"], one.get("Replacement", "")) for one in found]


def test_a_stack_is_made_by_a_change_set(stage: Stage) -> None:
    changes = propose(stage, {"Queue": QUEUE}, "CREATE")
    assert said(changes) == [("Add", "Queue", "")]
    assert stage.settled("s")["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert not stage.client("sqs").list_queues().get("QueueUrls")

    assert execute(stage) == "CREATE_COMPLETE"

    assert stage.settled("s")["Tags"] == [{"Key": "a", "Value": "b"}]
    assert code_of(lambda: execute(stage)) == "ChangeSetNotFound"


def test_changes_are_additions_removals_modifications_and_replacements(stage: Stage) -> None:
    four = {name: {**QUEUE, "Properties": {"QueueName": name}} for name in ("a", "b", "c", "d")}
    stage.deploy("s", four)
    wanted = {
        "a": four["a"],
        "b": {**QUEUE, "Properties": {"QueueName": "b", "DelaySeconds": 1}},
        "c": {**QUEUE, "Properties": {"QueueName": "other"}},
        "e": TOPIC,
    }
    changes = propose(stage, wanted)
    assert said(changes) == [("Modify", "b", "False"), ("Modify", "c", "True"), ("Remove", "d", ""), ("Add", "e", "")]
    [detail] = changes["Changes"][0]["ResourceChange"]["Details"]
    assert detail["Target"] == {"Attribute": "Properties", "Name": "DelaySeconds", "RequiresRecreation": "Never"}


def test_a_parameter_with_another_value_changes_what_refers_to_it(stage: Stage) -> None:
    named = {**TOPIC, "Properties": {"TopicName": "t", "DisplayName": {"Ref": "Name"}}}
    parameters = {"Name": {"Type": "String", "Default": "a"}}
    stage.deploy("s", {"Queue": QUEUE, "Topic": named}, Parameters=parameters)
    parameters["Name"]["Default"] = "b"
    assert said(propose(stage, {"Queue": QUEUE, "Topic": named}, Parameters=parameters)) == [
        ("Modify", "Topic", "False")
    ]


def test_parameters_keep_their_values_if_somebody_says_so(stage: Stage) -> None:
    named = {**TOPIC, "Properties": {"TopicName": {"Ref": "Name"}}}
    parameters = {"Name": {"Type": "String"}}
    stage.deploy("s", {"Topic": named}, parameters={"Name": "kept"}, Parameters=parameters)
    stage.client("cloudformation").update_stack(
        StackName="s",
        TemplateBody=json.dumps({"Resources": {"Topic": named, "Queue": QUEUE}, "Parameters": parameters}),
        Parameters=[{"ParameterKey": "Name", "UsePreviousValue": True}],
    )
    assert stage.settled("s")["Parameters"] == [{"ParameterKey": "Name", "ParameterValue": "kept"}]
    with pytest.raises(ClientError, match=r"Parameters: \[Name\] must have values"):
        stage.deploy("s", {"Topic": named, "Queue": QUEUE}, Parameters=parameters)
    with pytest.raises(ClientError, match=r"Parameters: \[Other\] do not exist"):
        stage.deploy("s", {"Topic": named}, parameters={"Name": "a", "Other": "b"}, Parameters=parameters)


def test_nothing_to_change_is_a_change_set_that_failed(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    changes = propose(stage, {"Queue": QUEUE})
    assert (changes["Status"], changes["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert "didn't contain changes" in changes["StatusReason"]
    assert code_of(lambda: execute(stage)) == "InvalidChangeSetStatus"
    with pytest.raises(ClientError, match="No updates are to be performed"):
        stage.deploy("s", {"Queue": QUEUE})


def test_another_output_is_a_change(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    assert propose(stage, {"Queue": QUEUE}, Outputs={"A": {"Value": "a"}})["Status"] == "CREATE_COMPLETE"
    assert execute(stage) == "UPDATE_COMPLETE"
    assert stage.settled("s")["Outputs"] == [{"OutputKey": "A", "OutputValue": "a"}]


def test_a_change_set_that_nobody_wants_leaves_no_trace(stage: Stage) -> None:
    propose(stage, {"Queue": QUEUE}, "CREATE")
    cloudformation = stage.client("cloudformation")
    for _ in range(2):
        cloudformation.delete_change_set(ChangeSetName="changes", StackName="s")
    assert (
        code_of(lambda: cloudformation.describe_change_set(ChangeSetName="changes", StackName="s"))
        == "ChangeSetNotFound"
    )
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"


def test_a_stack_is_made_once_and_changed_only_if_it_is_there(stage: Stage) -> None:
    assert code_of(lambda: propose(stage, {"Queue": QUEUE})) == "ValidationError"
    stage.deploy("s", {"Queue": QUEUE})
    assert code_of(lambda: propose(stage, {"Queue": QUEUE}, "CREATE")) == "ValidationError"
    body = json.dumps({"Resources": {"Queue": QUEUE}})
    again = lambda: stage.client("cloudformation").create_stack(StackName="s", TemplateBody=body)  # noqa: E731 - asked for its code
    assert code_of(again) == "AlreadyExistsException"


@pytest.mark.parametrize(
    "url", ["https://assets.s3.us-east-1.amazonaws.com/{}", "https://s3.us-east-1.amazonaws.com/assets/{}"]
)
def test_a_template_may_lie_in_a_bucket(stage: Stage, url: str) -> None:
    s3 = stage.client("s3")
    s3.create_bucket(Bucket="assets")
    s3.put_object(Bucket="assets", Key="of/t.json", Body=json.dumps({"Resources": {"Queue": QUEUE}}).encode())
    stage.client("cloudformation").create_stack(StackName="s", TemplateURL=url.format("of/t.json"))
    assert stage.settled("s")["StackStatus"] == "CREATE_COMPLETE"


def test_a_template_lies_nowhere_else(stage: Stage) -> None:
    create = stage.client("cloudformation").create_stack
    assert code_of(lambda: create(StackName="s", TemplateURL="ftp://somewhere/else")) == "ValidationError"


def test_what_a_template_wants_is_told(stage: Stage) -> None:
    cloudformation = stage.client("cloudformation")
    parameters = {"A": {"Type": "String", "Default": "x"}, "B": {"Type": "String"}}
    body = json.dumps({"Description": "d", "Resources": {"Queue": QUEUE, "Topic": TOPIC}, "Parameters": parameters})
    found = cloudformation.get_template_summary(TemplateBody=body)
    assert [(one["ParameterKey"], one.get("DefaultValue")) for one in found["Parameters"]] == [("A", "x"), ("B", None)]
    assert found["ResourceTypes"] == ["AWS::SNS::Topic", "AWS::SQS::Queue"]
    stage.deploy("s", {"Queue": QUEUE})
    assert cloudformation.get_template_summary(StackName="s")["ResourceTypes"] == ["AWS::SQS::Queue"]


def test_resources_are_found_by_stack_and_by_id(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE, "Topic": TOPIC})
    cloudformation = stage.client("cloudformation")
    every = cloudformation.describe_stack_resources(StackName="s")["StackResources"]
    assert [one["LogicalResourceId"] for one in every] == ["Queue", "Topic"]
    url = stage.physical("s", "Queue")
    found = cloudformation.describe_stack_resources(PhysicalResourceId=url)["StackResources"]
    assert {one["StackName"] for one in found} == {"s"}
    assert code_of(lambda: cloudformation.describe_stack_resources(PhysicalResourceId="none")) == "ValidationError"
    assert code_of(lambda: stage.physical("s", "None")) == "ValidationError"


def test_events_come_in_pages_latest_first(stage: Stage) -> None:
    many = {
        f"T{number}": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}
        for number in range(60)
    }
    stage.deploy("s", many)
    happened = stage.happened("s")
    assert len(happened) == 122
    assert (happened[0], happened[-1]) == ("s CREATE_IN_PROGRESS", "s CREATE_COMPLETE")


def test_a_call_that_is_not_understood_is_refused(stage: Stage) -> None:
    assert code_of(lambda: stage.client("cloudformation").detect_stack_drift(StackName="s")) == "InvalidAction"
