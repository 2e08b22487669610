"""Stacks: created in order, updated in place or replaced, rolled back after a failure, deleted completely."""

import json
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from sim.cloud.cloud import Cloud
from sim.playground.kubectl import KubectlClient
from tests.contract.account_stage import Stage, get_error_code
from tests.e2e.account_queries import Sights

pytestmark = pytest.mark.loopback

QUEUE: dict[str, Any] = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}}
BROKEN: dict[str, Any] = {
    "Type": "AWS::SQS::QueuePolicy",
    "Properties": {"Queues": ["http://q/none"], "PolicyDocument": {}},
}


def make_topic(name: str, **attributes: Any) -> dict[str, Any]:
    return {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": name}, **attributes}


def make_alarm(**overrides: Any) -> dict[str, Any]:
    properties = {"MetricName": "M", "Namespace": "N", "ComparisonOperator": "GreaterThanThreshold", "Threshold": 1}
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {**properties, "EvaluationPeriods": 1, "Period": 60, **overrides},
    }


def list_queue_names(stage: Stage) -> list[str]:
    return [url.rpartition("/")[2] for url in stage.get_client("sqs").list_queues().get("QueueUrls", [])]


def list_topic_names(stage: Stage) -> list[str]:
    return sorted(
        listed_topic["TopicArn"].rpartition(":")[2] for listed_topic in stage.get_client("sns").list_topics()["Topics"]
    )


@pytest.mark.parametrize(
    "need",
    [
        {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "Zulu"}}},
        {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::GetAtt": ["Zulu", "Arn"]}}},
        {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::Sub": "of ${Zulu.QueueName}"}}},
        {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::Join": ["", ["a", {"Ref": "Zulu"}]]}}},
        {"Type": "AWS::SNS::Topic", "DependsOn": "Zulu"},
        {"Type": "AWS::SNS::Topic", "DependsOn": ["Zulu"]},
    ],
)
def test_dependencies_are_created_first_and_deleted_last(stage: Stage, need: dict[str, Any]) -> None:
    assert stage.deploy("s", {"Alpha": need, "Zulu": QUEUE})["StackStatus"] == "CREATE_COMPLETE"
    creations = [event for event in stage.list_events("s") if event.endswith("CREATE_COMPLETE")]
    assert creations == ["Zulu CREATE_COMPLETE", "Alpha CREATE_COMPLETE", "s CREATE_COMPLETE"]

    deleted_stack = stage.remove("s")

    deletions = [event for event in stage.list_events(deleted_stack["StackId"]) if event.endswith("DELETE_COMPLETE")]
    assert deletions == ["Alpha DELETE_COMPLETE", "Zulu DELETE_COMPLETE", "s DELETE_COMPLETE"]
    assert list_queue_names(stage) == list_topic_names(stage) == []


def test_circular_dependency_is_rejected(stage: Stage) -> None:
    resources = {"A": make_topic("a", DependsOn="B"), "B": make_topic("b", DependsOn="A")}
    stage.deploy("s", resources)
    assert "Circular dependency between resources: [" in stage.get_status_reasons("s")
    assert list_topic_names(stage) == []


def test_intrinsic_functions_return_the_expected_values(stage: Stage) -> None:
    outputs = {
        "Arn": {"Value": {"Fn::GetAtt": "Queue.Arn"}},
        "Base": {"Value": {"Fn::Base64": "a"}},
        "Either": {"Value": {"Fn::If": ["IsProd", "prod", "test"]}},
        "Found": {"Value": {"Fn::FindInMap": ["Sizes", {"Ref": "Stage"}, "Size"]}},
        "Literal": {"Value": {"Fn::Sub": ["${!Not}-${Here}-${AWS::Region}", {"Here": "here"}]}},
        "Missing": {"Value": "x", "Condition": "IsProd"},
        "Picked": {"Value": {"Fn::Select": [1, {"Fn::Split": [",", "a,b"]}]}},
        "Zone": {"Value": {"Fn::Select": [0, {"Fn::GetAZs": ""}]}},
    }
    is_prod = {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}
    stack = stage.deploy(
        "s",
        {"Queue": QUEUE, "Never": make_topic("never", Condition="IsProd")},
        parameters={"Stage": "test"},
        Parameters={"Stage": {"Type": "String"}},
        Conditions={"IsProd": is_prod, "Any": {"Fn::Or": [is_prod, {"Fn::Not": [{"Condition": "IsProd"}]}]}},
        Mappings={"Sizes": {"test": {"Size": "small"}}},
        Outputs=outputs,
    )
    values = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert values == {
        "Arn": "arn:aws:sqs:us-east-1:123456789012:jobs",
        "Base": "YQ==",
        "Either": "test",
        "Found": "small",
        "Literal": "${Not}-here-us-east-1",
        "Picked": "b",
        "Zone": "us-east-1a",
    }
    assert list_topic_names(stage) == []


def test_property_with_no_value_is_omitted(stage: Stage) -> None:
    properties = {"QueueName": "jobs", "DelaySeconds": {"Ref": "AWS::NoValue"}}
    stage.deploy("s", {"Queue": {"Type": "AWS::SQS::Queue", "Properties": properties}})
    assert list_queue_names(stage) == ["jobs"]


def test_parameter_value_can_be_read_from_the_ssm_parameter_store(stage: Stage) -> None:
    stage.get_client("ssm").put_parameter(Name="/named", Value="stored", Type="String")
    stored = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/named"}
    stage.deploy(
        "s", {"T": make_topic("x") | {"Properties": {"TopicName": {"Ref": "Name"}}}}, Parameters={"Name": stored}
    )
    assert list_topic_names(stage) == ["stored"]


def test_exported_value_can_be_imported_by_another_stack(stage: Stage) -> None:
    export = {"Q": {"Value": {"Ref": "Queue"}, "Export": {"Name": "the-queue"}}}
    stage.deploy("a", {"Queue": QUEUE}, Outputs=export)
    topic_properties = {"DisplayName": {"Fn::ImportValue": "the-queue"}, "TopicName": "t"}
    assert (
        stage.deploy("b", {"T": {"Type": "AWS::SNS::Topic", "Properties": topic_properties}})["StackStatus"]
        == "CREATE_COMPLETE"
    )
    assert stage.get_client("cloudformation").list_exports()["Exports"][0]["Name"] == "the-queue"
    stage.deploy("c", {"T": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::ImportValue": "none"}}}})
    assert "No export named none found." in stage.get_status_reasons("c")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"Fn::Transform": {}}, "Fn::Transform is not understood"),
        ({"Ref": "Nobody"}, "Unresolved resource dependencies [Nobody]"),
        ({"Fn::GetAtt": ["Queue", "Colour"]}, "Requested attribute Colour does not exist"),
        ({"Fn::If": ["Never", 1, 2]}, "unresolved condition dependency Never"),
    ],
)
def test_unresolvable_expression_fails_and_rolls_back_the_stack(stage: Stage, value: object, words: str) -> None:
    named_topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": value}, "DependsOn": "Queue"}
    assert stage.deploy("s", {"Queue": QUEUE, "Topic": named_topic})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert words in stage.get_status_reasons("s")
    assert list_queue_names(stage) == []


def test_missing_required_property_is_reported(stage: Stage) -> None:
    assert stage.deploy("s", {"A": {"Type": "AWS::SNS::Subscription"}})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "required key [TopicArn] not found" in stage.get_status_reasons("s")


def test_unknown_resource_type_is_rejected(stage: Stage) -> None:
    stage.deploy("s", {"A": QUEUE, "B": {"Type": "AWS::No::Thing"}})
    assert "Unrecognized resource types: [AWS::No::Thing]" in stage.get_status_reasons("s")


@pytest.mark.parametrize("body", ["{}", '{"Resources": {}}', "a: [", "- a"])
def test_invalid_template_is_rejected(stage: Stage, body: str) -> None:
    cloudformation = stage.get_client("cloudformation")
    assert get_error_code(lambda: cloudformation.create_stack(StackName="s", TemplateBody=body)) == "ValidationError"
    assert cloudformation.describe_stacks()["Stacks"] == []


def test_yaml_short_form_functions_are_supported(stage: Stage) -> None:
    body = """
    Conditions: {Yes: !Equals [a, a]}
    Resources:
      Queue: {Type: AWS::SQS::Queue, Properties: {QueueName: !If [Yes, jobs, none]}}
      Topic:
        Type: AWS::SNS::Topic
        Properties: {TopicName: !Sub "${Queue.QueueName}-told", DisplayName: !GetAtt Queue.Arn}
    Outputs:
      Said: {Value: !Join ["", [!Ref Queue, 2010-09-09]]}
      Given: {Value: !Sub [ "${A}", {A: b} ]}
      Mapped: {Value: !FindInMap [M, a, b]}
    Mappings: {M: {a: {b: c}}}
    """
    stage.get_client("cloudformation").create_stack(StackName="s", TemplateBody=body)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stage.wait_until_settled("s")["Outputs"]}
    assert list_topic_names(stage) == ["jobs-told"]
    assert outputs["Said"].endswith("/jobs2010-09-09")
    assert (outputs["Given"], outputs["Mapped"]) == ("b", "c")


def test_mutable_property_is_updated_in_place(stage: Stage) -> None:
    stage.deploy("s", {"Alarm": make_alarm(), "Queue": QUEUE})
    before = stage.get_physical_id("s", "Alarm")
    assert stage.deploy("s", {"Alarm": make_alarm(Threshold=5), "Queue": QUEUE})["StackStatus"] == "UPDATE_COMPLETE"
    [metric_alarm] = stage.get_client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert (metric_alarm["AlarmName"], metric_alarm["Threshold"]) == (before, 5.0)
    assert not [event for event in stage.list_events("s", logical_id="Queue") if "UPDATE" in event]


def test_immutable_property_change_replaces_the_resource_and_deletes_the_old_one_last(stage: Stage) -> None:
    needs = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "t", "DisplayName": {"Ref": "Queue"}}}
    stage.deploy("s", {"Queue": QUEUE, "Topic": needs})
    other_queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "other"}}

    assert stage.deploy("s", {"Queue": other_queue, "Topic": needs})["StackStatus"] == "UPDATE_COMPLETE"

    assert list_queue_names(stage) == ["other"]
    events = stage.list_events("s")
    assert events.index("Topic UPDATE_COMPLETE") < events.index("s UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
    assert events.index("s UPDATE_COMPLETE_CLEANUP_IN_PROGRESS") < events.index("Queue DELETE_COMPLETE")
    attributes = stage.get_client("sns").get_topic_attributes(TopicArn=stage.get_physical_id("s", "Topic"))[
        "Attributes"
    ]
    assert attributes["DisplayName"].endswith("/other")


def test_changed_resource_type_replaces_the_resource(stage: Stage) -> None:
    stage.deploy("s", {"Thing": QUEUE})
    assert stage.deploy("s", {"Thing": make_topic("t")})["StackStatus"] == "UPDATE_COMPLETE"
    assert (list_queue_names(stage), list_topic_names(stage)) == ([], ["t"])


def test_unnamed_resource_is_replaced_when_a_name_is_added_or_removed(stage: Stage) -> None:
    stage.deploy("s", {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": {"Ref": "AWS::NoValue"}}}})
    first = stage.get_physical_id("s", "Queue")
    role = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "named"}}
    stage.deploy("s", {"Queue": role})
    stage.deploy("s", {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {}}})
    assert stage.get_physical_id("s", "Queue") != first
    assert len(list_queue_names(stage)) == 1


def test_resources_removed_from_the_template_are_deleted(stage: Stage) -> None:
    stage.deploy(
        "s",
        {"A": make_topic("a"), "B": make_topic("b", DependsOn="A"), "C": make_topic("c", DependsOn="B"), "D": QUEUE},
    )
    stage.deploy("s", {"A": make_topic("a"), "D": QUEUE})
    assert list_topic_names(stage) == ["a"]
    deletions = [event for event in stage.list_events("s") if event.endswith("DELETE_COMPLETE")]
    assert deletions == ["C DELETE_COMPLETE", "B DELETE_COMPLETE"]
    summaries = stage.get_client("cloudformation").list_stack_resources(StackName="s")["StackResourceSummaries"]
    assert [summary["LogicalResourceId"] for summary in summaries] == ["A", "D"]


def test_failed_creation_rolls_back_all_resources(stage: Stage) -> None:
    resources = {
        "Queue": QUEUE,
        "Topic": make_topic("t", DependsOn="Queue"),
        "Broken": {**BROKEN, "DependsOn": "Topic"},
    }
    stack = stage.deploy("s", resources)
    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    assert list_queue_names(stage) == list_topic_names(stage) == []
    events = stage.list_events("s")
    failed = events.index("Broken CREATE_FAILED")
    assert events[failed + 1] == "s ROLLBACK_IN_PROGRESS"
    deletions = [event for event in events[failed:] if event.endswith("DELETE_COMPLETE")]
    assert deletions == ["Topic DELETE_COMPLETE", "Queue DELETE_COMPLETE"]
    assert "The following resource(s) failed to create: [Broken]." in stage.get_status_reasons("s")


def test_stack_in_rollback_complete_can_only_be_deleted(stage: Stage) -> None:
    stage.deploy("s", {"Broken": BROKEN})
    with pytest.raises(ClientError, match="ROLLBACK_COMPLETE state and can not be updated"):
        stage.deploy("s", {"Queue": QUEUE})
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"


def test_failed_creation_with_disabled_rollback_keeps_its_resources(stage: Stage) -> None:
    body = json.dumps({"Resources": {"Queue": QUEUE, "Broken": {**BROKEN, "DependsOn": "Queue"}}})
    stage.get_client("cloudformation").create_stack(StackName="s", TemplateBody=body, DisableRollback=True)
    assert stage.wait_until_settled("s")["StackStatus"] == "CREATE_FAILED"
    assert list_queue_names(stage) == ["jobs"]
    assert stage.deploy("s", {"Queue": QUEUE})["StackStatus"] == "UPDATE_COMPLETE"


def test_partially_created_resource_is_deleted_by_the_rollback(stage: Stage) -> None:
    role = {"AssumeRolePolicyDocument": {}, "RoleName": "half", "ManagedPolicyArns": ["arn:aws:iam::aws:policy/None"]}
    assert (
        stage.deploy("s", {"R": {"Type": "AWS::IAM::Role", "Properties": role}})["StackStatus"] == "ROLLBACK_COMPLETE"
    )
    assert "half" not in [listed_role["RoleName"] for listed_role in stage.get_client("iam").list_roles()["Roles"]]


def test_failed_update_restores_the_previous_state(stage: Stage) -> None:
    before = {"Alarm": make_alarm(AlarmName="a"), "Queue": QUEUE, "Topic": make_topic("gone")}
    first = stage.deploy("s", before, Outputs={"O": {"Value": "1"}})
    other_queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "other"}}
    after = {
        "Alarm": make_alarm(AlarmName="a", Threshold=7),
        "Queue": other_queue,
        "New": make_topic("new"),
        "Broken": {**BROKEN, "DependsOn": ["Alarm", "Queue", "New"]},
    }

    stack = stage.deploy("s", after, Outputs={"O": {"Value": "2"}})

    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert stack["Outputs"] == first["Outputs"]
    assert (list_queue_names(stage), list_topic_names(stage)) == (["jobs"], ["gone"])
    [metric_alarm] = stage.get_client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert metric_alarm["Threshold"] == 1.0
    assert stage.get_physical_id("s", "Queue").endswith("/jobs")
    events = stage.list_events("s")
    states = [event for event in events if event.startswith("s ") and "ROLLBACK" in event]
    assert states == [
        "s UPDATE_ROLLBACK_IN_PROGRESS",
        "s UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "s UPDATE_ROLLBACK_COMPLETE",
    ]
    template = stage.get_client("cloudformation").get_template(StackName="s")["TemplateBody"]
    assert template["Resources"] == before
    assert stage.deploy("s", before | {"Topic": make_topic("next")})["StackStatus"] == "UPDATE_COMPLETE"


def test_failed_update_with_disabled_rollback_keeps_its_changes(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    body = json.dumps(
        {"Resources": {"Queue": QUEUE, "Topic": make_topic("t"), "Broken": {**BROKEN, "DependsOn": "Topic"}}}
    )
    stage.get_client("cloudformation").update_stack(StackName="s", TemplateBody=body, DisableRollback=True)
    assert stage.wait_until_settled("s")["StackStatus"] == "UPDATE_FAILED"
    assert list_topic_names(stage) == ["t"]


def test_retained_resource_is_kept_when_it_leaves_the_template_or_the_stack_is_deleted(stage: Stage) -> None:
    resources = {
        "A": make_topic("a", DeletionPolicy="Retain"),
        "B": make_topic("b", DeletionPolicy="Retain"),
        "C": QUEUE,
    }
    stage.deploy("s", resources)
    stage.deploy("s", {"B": resources["B"], "C": QUEUE})
    assert list_topic_names(stage) == ["a", "b"]
    assert "A DELETE_SKIPPED" in stage.list_events("s")
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert (list_topic_names(stage), list_queue_names(stage)) == (["a", "b"], [])


def test_replaced_resource_with_retain_policy_is_kept(stage: Stage) -> None:
    stage.deploy("s", {"A": make_topic("a", UpdateReplacePolicy="Retain")})
    stage.deploy("s", {"A": make_topic("b", UpdateReplacePolicy="Retain")})
    assert list_topic_names(stage) == ["a", "b"]
    stage.remove("s")
    assert list_topic_names(stage) == ["a"]


def test_retain_except_on_create_deletes_the_resource_only_after_a_failed_creation(stage: Stage) -> None:
    later = make_topic("a", DeletionPolicy="RetainExceptOnCreate")
    stage.deploy("s", {"A": later, "Broken": {**BROKEN, "DependsOn": "A"}})
    assert list_topic_names(stage) == []
    stage.deploy("t", {"A": later})
    stage.remove("t")
    assert list_topic_names(stage) == ["a"]


def test_non_empty_bucket_fails_stack_deletion_and_keeps_its_dependencies(stage: Stage) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "full"}, "DependsOn": "Topic"}
    stage.deploy("s", {"Bucket": bucket, "Topic": make_topic("t"), "Queue": QUEUE})
    stage.get_client("s3").put_object(Bucket="full", Key="a", Body=b"")

    assert stage.remove("s")["StackStatus"] == "DELETE_FAILED"

    assert "failed to delete: [Bucket]" in stage.wait_until_settled("s")["StackStatusReason"]
    assert (list_topic_names(stage), list_queue_names(stage)) == (["t"], [])
    stage.get_client("s3").delete_object(Bucket="full", Key="a")
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert list_topic_names(stage) == []


def test_resource_deleted_outside_the_stack_does_not_fail_stack_deletion(stage: Stage) -> None:
    stage.deploy(
        "s", {"Queue": QUEUE, "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {}}}}
    )
    stage.get_client("sqs").delete_queue(QueueUrl=stage.get_physical_id("s", "Queue"))
    stage.get_client("iam").delete_role(RoleName=stage.get_physical_id("s", "Role"))
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"


def test_stack_with_termination_protection_cannot_be_deleted(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    cloudformation = stage.get_client("cloudformation")
    cloudformation.update_termination_protection(StackName="s", EnableTerminationProtection=True)
    with pytest.raises(ClientError, match="TerminationProtection is enabled"):
        cloudformation.delete_stack(StackName="s")
    assert list_queue_names(stage) == ["jobs"]


def test_deleted_stacks_are_found_only_by_their_arn(stage: Stage) -> None:
    stage.deploy("s", {"Queue": QUEUE})
    deleted_stack = stage.remove("s")
    cloudformation = stage.get_client("cloudformation")
    assert deleted_stack["StackStatus"] == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="Stack with id s does not exist"):
        cloudformation.describe_stacks(StackName="s")
    assert cloudformation.delete_stack(StackName="s")["ResponseMetadata"]["HTTPStatusCode"] == 200
    deleted_stacks = cloudformation.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert [summary["StackId"] for summary in deleted_stacks] == [deleted_stack["StackId"]]
    assert stage.deploy("s", {"Queue": QUEUE})["StackId"] != deleted_stack["StackId"]


def test_status_of_a_name_is_that_of_the_stack_that_is_not_deleted(stage: Stage) -> None:
    queries = Sights(stage.account, cast(KubectlClient, None), cast(Cloud, None), "s")
    assert queries.get_stack_status() == ""
    stage.deploy("s", {"Queue": QUEUE})
    stage.remove("s")
    assert queries.get_stack_status() == "DELETE_COMPLETE"
    stage.deploy("s", {"Queue": QUEUE})
    assert queries.get_stack_status() == "CREATE_COMPLETE"
    stage.remove("s")
    assert queries.get_stack_status() == "DELETE_COMPLETE"
