"""Functions, their versions and aliases; and how an alias moves: by and by, and back when an alarm rings."""

import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sim.account.contract import Invocation, NoInvoker, Throttled
from sim.account.kinds.aliases import steps_of
from sim.account.kinds.kind import Failed
from tests.contract.account_stage import TRUST, Json, Stage, code_of

pytestmark = pytest.mark.loopback

ALARM: Json = {
    "Type": "AWS::CloudWatch::Alarm",
    "Properties": {
        "AlarmName": "bad",
        "ComparisonOperator": "GreaterThanThreshold",
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "Metrics": [
            {"Id": "a", "Expression": "SUM(METRICS())"},
            {
                "Id": "b",
                "ReturnData": False,
                "MetricStat": {"Metric": {"Namespace": "N", "MetricName": "M"}, "Period": 60, "Stat": "Sum"},
            },
        ],
    },
}


def function(text: str = "1", **said: Any) -> Json:
    """Answer what a stack with one function, its version and its alias says."""
    properties = {
        "FunctionName": "tick",
        "Code": {"ZipFile": text},
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Runtime": "python3.13",
        **said,
    }
    return {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST, "RoleName": "ticks"}},
        "Tick": {"Type": "AWS::Lambda::Function", "Properties": properties},
        f"Version{text}": {
            "Type": "AWS::Lambda::Version",
            "Properties": {"FunctionName": {"Ref": "Tick"}},
            "DeletionPolicy": "Retain",
        },
        "Live": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {
                "FunctionName": {"Ref": "Tick"},
                "FunctionVersion": {"Fn::GetAtt": [f"Version{text}", "Version"]},
                "Name": "live",
            },
        },
    }


def canary(text: str, config: str = "CodeDeployDefault.LambdaCanary10Percent5Minutes") -> Json:
    """Answer the same, moved by CodeDeploy while an alarm is quiet."""
    made = function(text)
    made["Bad"] = ALARM
    made["App"] = {"Type": "AWS::CodeDeploy::Application", "Properties": {"ComputePlatform": "Lambda"}}
    made["Config"] = {
        "Type": "AWS::CodeDeploy::DeploymentConfig",
        "Properties": {
            "DeploymentConfigName": "half",
            "ComputePlatform": "Lambda",
            "TrafficRoutingConfig": {
                "Type": "TimeBasedCanary",
                "TimeBasedCanary": {"CanaryInterval": 5, "CanaryPercentage": 50},
            },
        },
    }
    made["Group"] = {
        "Type": "AWS::CodeDeploy::DeploymentGroup",
        "DependsOn": "Config",
        "Properties": {
            "ApplicationName": {"Ref": "App"},
            "DeploymentConfigName": config,
            "ServiceRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
            "AlarmConfiguration": {"Enabled": True, "Alarms": [{"Name": {"Ref": "Bad"}}]},
            "DeploymentStyle": {"DeploymentType": "BLUE_GREEN", "DeploymentOption": "WITH_TRAFFIC_CONTROL"},
        },
    }
    made["Live"]["UpdatePolicy"] = {
        "CodeDeployLambdaAliasUpdate": {"ApplicationName": {"Ref": "App"}, "DeploymentGroupName": {"Ref": "Group"}}
    }
    return made


def leads(stage: Stage) -> tuple[str, dict[str, float]]:
    found = stage.client("lambda").get_alias(FunctionName="tick", Name="live")
    return found["FunctionVersion"], found.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})


def ring(stage: Stage, state: str = "ALARM") -> None:
    stage.client("cloudwatch").set_alarm_state(AlarmName="bad", StateValue=state, StateReason="said so")


def watched(stage: Stage) -> list[tuple[str, dict[str, float]]]:
    """Have every wait of a deployment noted: where the alias leads meanwhile."""
    seen: list[tuple[str, dict[str, float]]] = []
    stage.account.pause = lambda _: seen.append(leads(stage))
    stage.account.minute = timedelta(seconds=0.01)
    return seen


def text_of(stage: Stage, qualifier: str, roll: float = 0.0) -> tuple[str, str]:
    """Answer the version that a call of *qualifier* meets, and its code."""
    found = stage.account.function("tick", qualifier, roll)
    return found.version, zipfile.ZipFile(io.BytesIO(found.code)).read("index.py").decode()


def test_an_alias_leads_to_what_was_published(stage: Stage) -> None:
    stage.deploy("s", function("1"))
    assert (leads(stage), text_of(stage, "live"), text_of(stage, "")) == (("1", {}), ("1", "1"), ("$LATEST", "1"))

    assert stage.deploy("s", function("2"))["StackStatus"] == "UPDATE_COMPLETE"

    assert (leads(stage), text_of(stage, "live"), text_of(stage, "1")) == (("2", {}), ("2", "2"), ("1", "1"))
    versions = stage.client("lambda").list_versions_by_function(FunctionName="tick")["Versions"]
    assert [one["Version"] for one in versions] == ["$LATEST", "1", "2"]
    assert versions[0]["CodeSha256"] == versions[2]["CodeSha256"] != versions[1]["CodeSha256"]
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert stage.client("lambda").list_functions()["Functions"] == []


def test_what_did_not_change_is_not_published_again(stage: Stage) -> None:
    stage.deploy("s", function("1"))
    another = {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Tick"}, "Description": "again"}}
    assert stage.deploy("s", {**function("1"), "Again": another})["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert "A version for this Lambda function exists ( 1 )" in stage.why("s")


def test_a_version_that_an_alias_leads_to_stays(stage: Stage) -> None:
    stage.deploy("s", function("1"))
    lambdas = stage.client("lambda")
    assert code_of(lambda: lambdas.delete_function(FunctionName="tick", Qualifier="1")) == "ResourceConflictException"
    lambdas.delete_alias(FunctionName="tick", Name="live")
    lambdas.delete_function(FunctionName="tick", Qualifier="1")
    assert code_of(lambda: lambdas.get_function(FunctionName="tick", Qualifier="1")) == "ResourceNotFoundException"


def test_a_function_is_as_its_runner_needs_it(stage: Stage) -> None:
    s3 = stage.client("s3")
    s3.create_bucket(Bucket="code")
    s3.put_object(Bucket="code", Key="l.zip", Body=b"layer")
    layer = {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": {"S3Bucket": "code", "S3Key": "l.zip"}}}
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "dead"}}
    asynchronous = {
        "FunctionName": {"Ref": "Tick"},
        "Qualifier": "live",
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
    }
    failed = {"DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Dead", "Arn"]}}}}
    resources = function(
        "1",
        Architectures=["arm64"],
        Environment={"Variables": {"A": "b"}},
        Layers=[{"Ref": "Layer"}],
        LoggingConfig={"LogFormat": "JSON", "LogGroup": "logs"},
        MemorySize=512,
        ReservedConcurrentExecutions=2,
        Timeout=7,
    )
    config = {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": {**asynchronous, **failed}, "DependsOn": "Live"}
    stage.deploy("s", {**resources, "Layer": layer, "Dead": queue, "Config": config})

    found = stage.account.function("arn:aws:lambda:us-east-1:123456789012:function:tick:live")

    assert found.arn == "arn:aws:lambda:us-east-1:123456789012:function:tick:live"
    assert (found.name, found.version, found.handler, found.environment) == ("tick", "1", "index.handler", {"A": "b"})
    assert (found.memory_mb, found.timeout_seconds, found.layers) == (512, 7, (b"layer",))
    assert (found.log_group, found.log_format, found.reserved_concurrency) == ("logs", "JSON", 2)
    assert (found.async_retries, found.max_event_age_seconds) == (0, 60)
    assert found.on_failure_arn.endswith(":dead")
    plain = stage.account.function("tick")
    assert (plain.async_retries, plain.max_event_age_seconds, plain.on_failure_arn) == (2, 21_600, "")
    assert stage.deploy("s", function("1"))["StackStatus"] == "UPDATE_COMPLETE"
    latest = stage.account.function("tick")
    assert (latest.environment, latest.layers, latest.memory_mb, latest.reserved_concurrency) == ({}, (), 128, None)
    # A version stays what it was, with a layer that is gone.
    assert stage.account.function("tick", "1").layers == (b"layer",)
    assert stage.client("lambda").list_layers()["Layers"] == []


@pytest.mark.parametrize(("name", "qualifier"), [("none", ""), ("tick", "none"), ("tick", "9")])
def test_a_function_that_is_not_there_is_not_found(stage: Stage, name: str, qualifier: str) -> None:
    stage.deploy("s", function("1"))
    with pytest.raises(LookupError, match="Function not found"):
        stage.account.function(name, qualifier)


def test_a_function_wants_a_role_a_layer_and_code_that_are_there(stage: Stage) -> None:
    stage.deploy("a", function("1", FunctionName="a", Role="arn:aws:iam::123456789012:role/none"))
    assert "The role defined for the function cannot be assumed by Lambda." in stage.why("a")
    stage.deploy("b", function("1", FunctionName="b", Code={"S3Bucket": "none", "S3Key": "x"}))
    assert "S3 Error Code: NoSuchBucket" in stage.why("b")
    stage.deploy("c", function("1", FunctionName="c", Layers=["arn:aws:lambda:us-east-1:123456789012:layer:none:1"]))
    assert "does not exist" in stage.why("c")


def test_a_call_goes_to_whoever_runs_functions(stage: Stage) -> None:
    stage.deploy("s", function("1"))
    lambdas = stage.client("lambda")
    answer = lambdas.invoke(FunctionName="tick:live", Payload=b'{"a": 1}')
    assert json.load(answer["Payload"]) == {"name": "tick", "qualifier": "live", "said": {"a": 1}}
    arn = "arn:aws:lambda:us-east-1:123456789012:function:tick"
    assert json.load(lambdas.invoke(FunctionName=arn, Qualifier="1")["Payload"])["qualifier"] == "1"


def test_a_failure_of_a_function_is_an_answer_with_its_log(stage: Stage) -> None:
    stage.account.invoker = lambda *_: Invocation(payload=b"{}", error="Unhandled", log="last words", version="3")
    answer = stage.client("lambda").invoke(FunctionName="tick", LogType="Tail")
    assert (answer["StatusCode"], answer["FunctionError"], answer["ExecutedVersion"]) == (200, "Unhandled", "3")
    assert answer["LogResult"] == "bGFzdCB3b3Jkcw=="


def test_an_asynchronous_call_is_taken_and_nothing_else_is_said(stage: Stage) -> None:
    taken: list[tuple[str, str, bytes]] = []
    stage.account.dispatcher = lambda *said: taken.append(said)
    assert stage.client("lambda").invoke(FunctionName="tick", InvocationType="Event", Payload=b"1")["StatusCode"] == 202
    assert taken == [("tick", "", b"1")]


@pytest.mark.parametrize(
    ("error", "code"), [(Throttled(), "TooManyRequestsException"), (LookupError("x"), "ResourceNotFoundException")]
)
def test_a_call_that_cannot_be_made_is_refused(stage: Stage, error: Exception, code: str) -> None:
    def refuse(*_: object) -> Invocation:
        raise error

    stage.account.invoker = refuse
    assert code_of(lambda: stage.client("lambda").invoke(FunctionName="tick")) == code


def test_without_anybody_who_runs_functions_none_runs() -> None:
    with pytest.raises(NoInvoker, match="nobody runs tick:live"):
        Stage().account.__class__(Stage().account.cloud, Stage().account.clock).invoker("tick", "live", b"")


def test_a_queue_wakes_a_function_by_its_alias(stage: Stage) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs", "VisibilityTimeout": 30}}
    mapping: Json = {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {
            "BatchSize": 5,
            "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
            "FunctionName": {"Fn::Sub": "${Tick}:live"},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": 2},
        },
        "DependsOn": "Live",
    }
    resources = {**function("1"), "Queue": queue, "Mapping": mapping}
    assert stage.deploy("s", resources)["StackStatus"] == "CREATE_COMPLETE"
    [found] = stage.client("lambda").list_event_source_mappings(FunctionName="tick:live")["EventSourceMappings"]
    assert found["FunctionArn"].endswith(":function:tick:live")
    assert (found["BatchSize"], found["State"], found["ScalingConfig"]) == (5, "Enabled", {"MaximumConcurrency": 2})
    mapping["Properties"] |= {"Enabled": False, "BatchSize": 1}
    stage.deploy("s", resources)
    [found] = stage.client("lambda").list_event_source_mappings(EventSourceArn=found["EventSourceArn"])[
        "EventSourceMappings"
    ]
    assert (found["BatchSize"], found["State"]) == (1, "Disabled")
    create = stage.client("lambda").create_event_source_mapping
    arn = found["EventSourceArn"]
    assert code_of(lambda: create(FunctionName="tick:live", EventSourceArn=arn)) == "ResourceConflictException"
    stage.deploy("s", {**function("1"), "Queue": queue})
    assert stage.client("lambda").list_event_source_mappings()["EventSourceMappings"] == []


def test_a_queue_must_hide_a_message_as_long_as_the_function_may_run(stage: Stage) -> None:
    stage.deploy(
        "s", {**function("1", Timeout=60), "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}}}
    )
    create = stage.client("lambda").create_event_source_mapping
    with pytest.raises(ClientError, match="Queue visibility timeout: 30 seconds is less than Function timeout: 60"):
        create(FunctionName="tick", EventSourceArn="arn:aws:sqs:us-east-1:123456789012:jobs")
    none = "arn:aws:sqs:us-east-1:123456789012:none"
    assert code_of(lambda: create(FunctionName="tick", EventSourceArn=none)) == "InvalidParameterValueException"


def test_a_permission_is_of_the_function_or_of_an_alias(stage: Stage) -> None:
    arn = {"Ref": "Live"}
    said = {
        "Action": "lambda:InvokeFunction",
        "Principal": "events.amazonaws.com",
        "SourceArn": "arn:aws:events:::rule/a",
    }
    mine = {
        "Type": "AWS::Lambda::Permission",
        "Properties": {**said, "FunctionName": {"Ref": "Tick"}, "SourceAccount": "1"},
    }
    stage.deploy("s", {**function("1"), "OfAlias": {**mine, "Properties": {**said, "FunctionName": arn}}, "Own": mine})
    lambdas = stage.client("lambda")
    [one] = json.loads(lambdas.get_policy(FunctionName="tick", Qualifier="live")["Policy"])["Statement"]
    assert one["Resource"].endswith(":tick:live")
    assert one["Condition"] == {"ArnLike": {"AWS:SourceArn": "arn:aws:events:::rule/a"}}
    stage.deploy("s", function("1"))
    assert code_of(lambda: lambdas.get_policy(FunctionName="tick")) == "ResourceNotFoundException"
    remove = lambda: lambdas.remove_permission(FunctionName="tick", StatementId="x")  # noqa: E731 - asked for its code
    assert code_of(remove) == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("CodeDeployDefault.LambdaCanary10Percent5Minutes", [0.1]),
        ("CodeDeployDefault.LambdaLinear10PercentEvery3Minutes", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        ("CodeDeployDefault.LambdaAllAtOnce", []),
        ("half", [0.5]),
    ],
)
def test_a_new_version_gets_a_part_of_the_calls_first(stage: Stage, config: str, parts: list[float]) -> None:
    stage.deploy("s", canary("1", config))
    seen = watched(stage)

    assert stage.deploy("s", canary("2", config))["StackStatus"] == "UPDATE_COMPLETE"

    assert leads(stage) == ("2", {})
    assert [one for number, one in enumerate(seen) if one not in seen[:number]] == [
        ("1", {"2": part}) for part in parts
    ]


def test_a_part_of_the_calls_meets_the_new_version(stage: Stage) -> None:
    stage.deploy("s", function("1"))
    stage.deploy("s", function("2"))
    stage.client("lambda").update_alias(
        FunctionName="tick", Name="live", FunctionVersion="1", RoutingConfig={"AdditionalVersionWeights": {"2": 0.25}}
    )
    met = [text_of(stage, "live", roll / 100)[0] for roll in range(100)]
    assert (met.count("1"), met.count("2")) == (75, 25)


def test_an_alarm_takes_the_new_version_back_and_the_stack_with_it(stage: Stage) -> None:
    stage.deploy("s", canary("1"))
    seen = watched(stage)

    def look(_: float) -> None:
        seen.append(leads(stage))
        ring(stage)

    stage.account.pause = look

    assert stage.deploy("s", canary("2"))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"

    assert seen == [("1", {"2": 0.1})]
    assert (leads(stage), text_of(stage, "live"), text_of(stage, "")) == (("1", {}), ("1", "1"), ("$LATEST", "1"))
    assert "alarm bad is in ALARM; the alias leads to version 1 again." in stage.why("s")
    ring(stage, "OK")
    stage.account.pause = lambda _: None
    assert stage.deploy("s", canary("3"))["StackStatus"] == "UPDATE_COMPLETE"
    assert text_of(stage, "live")[1] == "3"


def test_an_alarm_that_rings_already_lets_nothing_through(stage: Stage) -> None:
    stage.deploy("s", canary("1"))
    ring(stage)
    assert stage.deploy("s", canary("2"))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert leads(stage) == ("1", {})


def test_a_group_without_alarms_looks_at_none(stage: Stage) -> None:
    for text in ("1", "2"):
        resources = canary(text)
        resources["Group"]["Properties"]["AlarmConfiguration"]["Enabled"] = False
        stage.deploy("s", resources)
        ring(stage)
    assert leads(stage) == ("2", {})


def test_a_deployment_that_is_not_understood_fails() -> None:
    with pytest.raises(Failed, match="no deployment configuration"):
        steps_of("CodeDeployDefault.OneAtATime")


def test_deployments_can_be_listed_and_are_gone_with_the_stack(stage: Stage) -> None:
    stage.deploy("s", canary("1"))
    codedeploy = stage.client("codedeploy")
    [application] = codedeploy.list_applications()["applications"]
    assert len(codedeploy.list_deployment_groups(applicationName=application)["deploymentGroups"]) == 1
    assert codedeploy.list_deployment_configs()["deploymentConfigsList"] == ["half"]
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert (
        codedeploy.list_applications()["applications"]
        == codedeploy.list_deployment_configs()["deploymentConfigsList"]
        == []
    )
