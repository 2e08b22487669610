"""Functions, their versions and aliases, and how an alias moves: gradually, and back when an alarm is raised."""

import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sim.aws_account.function_runtime import InvocationResult, NoInvoker, Throttled
from sim.aws_account.resource_types.alias_deployments import parse_predefined_config
from sim.aws_account.resource_types.resource_provider import Failed
from tests.contract.account_stage import TRUST, Json, Stage, get_error_code

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


def make_function_resources(text: str = "1", **overrides: Any) -> Json:
    """Return the template resources of a function with its role, version and alias."""
    properties = {
        "FunctionName": "tick",
        "Code": {"ZipFile": text},
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Runtime": "python3.13",
        **overrides,
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


def make_canary_resources(text: str, config: str = "CodeDeployDefault.LambdaCanary10Percent5Minutes") -> Json:
    """Return the function's resources with an alias that CodeDeploy moves while an alarm is OK."""
    resources = make_function_resources(text)
    resources["Bad"] = ALARM
    resources["App"] = {"Type": "AWS::CodeDeploy::Application", "Properties": {"ComputePlatform": "Lambda"}}
    resources["Config"] = {
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
    resources["Group"] = {
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
    resources["Live"]["UpdatePolicy"] = {
        "CodeDeployLambdaAliasUpdate": {"ApplicationName": {"Ref": "App"}, "DeploymentGroupName": {"Ref": "Group"}}
    }
    return resources


def get_alias_target(stage: Stage) -> tuple[str, dict[str, float]]:
    alias = stage.get_client("lambda").get_alias(FunctionName="tick", Name="live")
    return alias["FunctionVersion"], alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})


def set_alarm_state(stage: Stage, state: str = "ALARM") -> None:
    stage.get_client("cloudwatch").set_alarm_state(AlarmName="bad", StateValue=state, StateReason="said so")


def record_alias_targets(stage: Stage) -> list[tuple[str, dict[str, float]]]:
    """Record the alias target at every wait of a deployment."""
    alias_targets: list[tuple[str, dict[str, float]]] = []
    stage.account.sleep = lambda _: alias_targets.append(get_alias_target(stage))
    stage.account.minute = timedelta(seconds=0.01)
    return alias_targets


def get_version_and_code(stage: Stage, qualifier: str, roll: float = 0.0) -> tuple[str, str]:
    """Return the version that a call of *qualifier* reaches, and its code."""
    deployed_function = stage.account.get_function("tick", qualifier, roll)
    return deployed_function.version, zipfile.ZipFile(io.BytesIO(deployed_function.code)).read("index.py").decode()


def test_alias_points_to_the_published_version(stage: Stage) -> None:
    stage.deploy("s", make_function_resources("1"))
    assert (get_alias_target(stage), get_version_and_code(stage, "live"), get_version_and_code(stage, "")) == (
        ("1", {}),
        ("1", "1"),
        ("$LATEST", "1"),
    )

    assert stage.deploy("s", make_function_resources("2"))["StackStatus"] == "UPDATE_COMPLETE"

    assert (get_alias_target(stage), get_version_and_code(stage, "live"), get_version_and_code(stage, "1")) == (
        ("2", {}),
        ("2", "2"),
        ("1", "1"),
    )
    versions = stage.get_client("lambda").list_versions_by_function(FunctionName="tick")["Versions"]
    assert [version["Version"] for version in versions] == ["$LATEST", "1", "2"]
    assert versions[0]["CodeSha256"] == versions[2]["CodeSha256"] != versions[1]["CodeSha256"]
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert stage.get_client("lambda").list_functions()["Functions"] == []


def test_unchanged_function_is_not_published_again(stage: Stage) -> None:
    stage.deploy("s", make_function_resources("1"))
    another = {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Tick"}, "Description": "again"}}
    assert (
        stage.deploy("s", {**make_function_resources("1"), "Again": another})["StackStatus"]
        == "UPDATE_ROLLBACK_COMPLETE"
    )
    assert "A version for this Lambda function exists ( 1 )" in stage.get_status_reasons("s")


def test_version_with_an_alias_cannot_be_deleted(stage: Stage) -> None:
    stage.deploy("s", make_function_resources("1"))
    lambdas = stage.get_client("lambda")
    assert (
        get_error_code(lambda: lambdas.delete_function(FunctionName="tick", Qualifier="1"))
        == "ResourceConflictException"
    )
    lambdas.delete_alias(FunctionName="tick", Name="live")
    lambdas.delete_function(FunctionName="tick", Qualifier="1")
    assert (
        get_error_code(lambda: lambdas.get_function(FunctionName="tick", Qualifier="1")) == "ResourceNotFoundException"
    )


def test_deployed_function_has_all_its_configured_settings(stage: Stage) -> None:
    s3 = stage.get_client("s3")
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
    resources = make_function_resources(
        "1",
        Architectures=["arm64"],
        Environment={"Variables": {"SIZE": "b"}},
        Layers=[{"Ref": "Layer"}],
        LoggingConfig={"LogFormat": "JSON", "LogGroup": "logs"},
        MemorySize=512,
        ReservedConcurrentExecutions=2,
        Timeout=7,
    )
    config = {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": {**asynchronous, **failed}, "DependsOn": "Live"}
    stage.deploy("s", {**resources, "Layer": layer, "Dead": queue, "Config": config})

    deployed_function = stage.account.get_function("arn:aws:lambda:us-east-1:123456789012:function:tick:live")

    assert deployed_function.arn == "arn:aws:lambda:us-east-1:123456789012:function:tick:live"
    assert (
        deployed_function.name,
        deployed_function.version,
        deployed_function.handler,
        deployed_function.environment,
    ) == ("tick", "1", "index.handler", {"SIZE": "b"})
    assert (deployed_function.memory_mb, deployed_function.timeout_seconds, deployed_function.layers) == (
        512,
        7,
        (b"layer",),
    )
    assert (deployed_function.log_group, deployed_function.log_format, deployed_function.reserved_concurrency) == (
        "logs",
        "JSON",
        2,
    )
    assert (deployed_function.async_retries, deployed_function.max_event_age_seconds) == (0, 60)
    assert deployed_function.on_failure_arn.endswith(":dead")
    plain = stage.account.get_function("tick")
    assert (plain.async_retries, plain.max_event_age_seconds, plain.on_failure_arn) == (2, 21_600, "")
    assert stage.deploy("s", make_function_resources("1"))["StackStatus"] == "UPDATE_COMPLETE"
    latest = stage.account.get_function("tick")
    assert (latest.environment, latest.layers, latest.memory_mb, latest.reserved_concurrency) == ({}, (), 128, None)
    # A version keeps its configuration, also a layer that was deleted.
    assert stage.account.get_function("tick", "1").layers == (b"layer",)
    assert stage.get_client("lambda").list_layers()["Layers"] == []


@pytest.mark.parametrize(("name", "qualifier"), [("none", ""), ("tick", "none"), ("tick", "9")])
def test_missing_function_is_not_found(stage: Stage, name: str, qualifier: str) -> None:
    stage.deploy("s", make_function_resources("1"))
    with pytest.raises(LookupError, match="Function not found"):
        stage.account.get_function(name, qualifier)


def test_function_without_an_existing_role_code_or_layer_fails_to_deploy(stage: Stage) -> None:
    stage.deploy("a", make_function_resources("1", FunctionName="a", Role="arn:aws:iam::123456789012:role/none"))
    assert "The role defined for the function cannot be assumed by Lambda." in stage.get_status_reasons("a")
    stage.deploy("b", make_function_resources("1", FunctionName="b", Code={"S3Bucket": "none", "S3Key": "x"}))
    assert "S3 Error Code: NoSuchBucket" in stage.get_status_reasons("b")
    stage.deploy(
        "c",
        make_function_resources("1", FunctionName="c", Layers=["arn:aws:lambda:us-east-1:123456789012:layer:none:1"]),
    )
    assert "does not exist" in stage.get_status_reasons("c")


def test_invocation_is_passed_to_the_invoker(stage: Stage) -> None:
    stage.deploy("s", make_function_resources("1"))
    lambdas = stage.get_client("lambda")
    answer = lambdas.invoke(FunctionName="tick:live", Payload=b'{"a": 1}')
    assert json.load(answer["Payload"]) == {"name": "tick", "qualifier": "live", "said": {"a": 1}}
    arn = "arn:aws:lambda:us-east-1:123456789012:function:tick"
    assert json.load(lambdas.invoke(FunctionName=arn, Qualifier="1")["Payload"])["qualifier"] == "1"


def test_function_error_is_returned_with_its_log(stage: Stage) -> None:
    stage.account.invoker = lambda *_: InvocationResult(payload=b"{}", error="Unhandled", log="last words", version="3")
    answer = stage.get_client("lambda").invoke(FunctionName="tick", LogType="Tail")
    assert (answer["StatusCode"], answer["FunctionError"], answer["ExecutedVersion"]) == (200, "Unhandled", "3")
    assert answer["LogResult"] == "bGFzdCB3b3Jkcw=="


def test_asynchronous_invocation_returns_202_and_is_dispatched(stage: Stage) -> None:
    calls: list[tuple[str, str, bytes]] = []
    stage.account.dispatcher = lambda *call: calls.append(call)
    assert (
        stage.get_client("lambda").invoke(FunctionName="tick", InvocationType="Event", Payload=b"1")["StatusCode"]
        == 202
    )
    assert calls == [("tick", "", b"1")]


@pytest.mark.parametrize(
    ("error", "code"), [(Throttled(), "TooManyRequestsException"), (LookupError("x"), "ResourceNotFoundException")]
)
def test_invocation_error_is_returned_with_its_aws_error_code(stage: Stage, error: Exception, code: str) -> None:
    def refuse(*_: object) -> InvocationResult:
        raise error

    stage.account.invoker = refuse
    assert get_error_code(lambda: stage.get_client("lambda").invoke(FunctionName="tick")) == code


def test_invocation_without_an_invoker_raises_an_error() -> None:
    with pytest.raises(NoInvoker, match="no process runs tick:live"):
        Stage().account.__class__(Stage().account.cloud, Stage().account.clock).invoker("tick", "live", b"")


def test_event_source_mapping_invokes_the_function_alias(stage: Stage) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs", "VisibilityTimeout": 30}}
    mapping: Json = {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {
            "BatchSize": 5,
            "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
            "FunctionName": {"Fn::Sub": "${Tick}:live"},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": 2},
            "Tags": [{"Key": "team", "Value": "platform"}],
        },
        "DependsOn": "Live",
    }
    resources = {**make_function_resources("1"), "Queue": queue, "Mapping": mapping}
    assert stage.deploy("s", resources)["StackStatus"] == "CREATE_COMPLETE"
    [described_mapping] = stage.get_client("lambda").list_event_source_mappings(FunctionName="tick:live")[
        "EventSourceMappings"
    ]
    assert described_mapping["FunctionArn"].endswith(":function:tick:live")
    assert (described_mapping["BatchSize"], described_mapping["State"], described_mapping["ScalingConfig"]) == (
        5,
        "Enabled",
        {"MaximumConcurrency": 2},
    )
    mapping["Properties"] |= {"Enabled": False, "BatchSize": 1}
    stage.deploy("s", resources)
    [described_mapping] = stage.get_client("lambda").list_event_source_mappings(
        EventSourceArn=described_mapping["EventSourceArn"]
    )["EventSourceMappings"]
    assert (described_mapping["BatchSize"], described_mapping["State"]) == (1, "Disabled")
    create = stage.get_client("lambda").create_event_source_mapping
    arn = described_mapping["EventSourceArn"]
    assert get_error_code(lambda: create(FunctionName="tick:live", EventSourceArn=arn)) == "ResourceConflictException"
    stage.deploy("s", {**make_function_resources("1"), "Queue": queue})
    assert stage.get_client("lambda").list_event_source_mappings()["EventSourceMappings"] == []


def test_queue_visibility_timeout_must_not_be_shorter_than_the_function_timeout(stage: Stage) -> None:
    stage.deploy(
        "s",
        {
            **make_function_resources("1", Timeout=60),
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}},
        },
    )
    create = stage.get_client("lambda").create_event_source_mapping
    with pytest.raises(ClientError, match="Queue visibility timeout: 30 seconds is less than Function timeout: 60"):
        create(FunctionName="tick", EventSourceArn="arn:aws:sqs:us-east-1:123456789012:jobs")
    missing_queue_arn = "arn:aws:sqs:us-east-1:123456789012:none"
    assert (
        get_error_code(lambda: create(FunctionName="tick", EventSourceArn=missing_queue_arn))
        == "InvalidParameterValueException"
    )


def test_permission_applies_to_the_function_or_to_an_alias(stage: Stage) -> None:
    arn = {"Ref": "Live"}
    permission_properties = {
        "Action": "lambda:InvokeFunction",
        "Principal": "events.amazonaws.com",
        "SourceArn": "arn:aws:events:::rule/a",
    }
    permission = {
        "Type": "AWS::Lambda::Permission",
        "Properties": {**permission_properties, "FunctionName": {"Ref": "Tick"}, "SourceAccount": "123456789012"},
    }
    stage.deploy(
        "s",
        {
            **make_function_resources("1"),
            "OfAlias": {**permission, "Properties": {**permission_properties, "FunctionName": arn}},
            "Own": permission,
        },
    )
    lambdas = stage.get_client("lambda")
    [statement] = json.loads(lambdas.get_policy(FunctionName="tick", Qualifier="live")["Policy"])["Statement"]
    assert statement["Resource"].endswith(":tick:live")
    assert statement["Condition"] == {"ArnLike": {"AWS:SourceArn": "arn:aws:events:::rule/a"}}
    stage.deploy("s", make_function_resources("1"))
    assert get_error_code(lambda: lambdas.get_policy(FunctionName="tick")) == "ResourceNotFoundException"
    remove = lambda: lambdas.remove_permission(FunctionName="tick", StatementId="x")  # noqa: E731 - asked for its code
    assert get_error_code(remove) == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("CodeDeployDefault.LambdaCanary10Percent5Minutes", [0.1]),
        ("CodeDeployDefault.LambdaLinear10PercentEvery3Minutes", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        ("CodeDeployDefault.LambdaAllAtOnce", []),
        ("half", [0.5]),
    ],
)
def test_canary_deployment_shifts_traffic_in_the_configured_steps(
    stage: Stage, config: str, parts: list[float]
) -> None:
    stage.deploy("s", make_canary_resources("1", config))
    alias_targets = record_alias_targets(stage)

    assert stage.deploy("s", make_canary_resources("2", config))["StackStatus"] == "UPDATE_COMPLETE"

    assert get_alias_target(stage) == ("2", {})
    assert [target for number, target in enumerate(alias_targets) if target not in alias_targets[:number]] == [
        ("1", {"2": part}) for part in parts
    ]


def test_weighted_alias_sends_the_configured_share_of_invocations_to_the_new_version(stage: Stage) -> None:
    stage.deploy("s", make_function_resources("1"))
    stage.deploy("s", make_function_resources("2"))
    stage.get_client("lambda").update_alias(
        FunctionName="tick", Name="live", FunctionVersion="1", RoutingConfig={"AdditionalVersionWeights": {"2": 0.25}}
    )
    met = [get_version_and_code(stage, "live", roll / 100)[0] for roll in range(100)]
    assert (met.count("1"), met.count("2")) == (75, 25)


def test_alarm_during_a_deployment_rolls_back_the_alias_and_the_stack(stage: Stage) -> None:
    stage.deploy("s", make_canary_resources("1"))
    alias_targets = record_alias_targets(stage)

    def record_target_and_raise_alarm(_: float) -> None:
        alias_targets.append(get_alias_target(stage))
        set_alarm_state(stage)

    stage.account.sleep = record_target_and_raise_alarm

    assert stage.deploy("s", make_canary_resources("2"))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"

    assert alias_targets == [("1", {"2": 0.1})]
    assert (get_alias_target(stage), get_version_and_code(stage, "live"), get_version_and_code(stage, "")) == (
        ("1", {}),
        ("1", "1"),
        ("$LATEST", "1"),
    )
    assert "alarm bad is in ALARM; the alias leads to version 1 again." in stage.get_status_reasons("s")
    set_alarm_state(stage, "OK")
    stage.account.sleep = lambda _: None
    assert stage.deploy("s", make_canary_resources("3"))["StackStatus"] == "UPDATE_COMPLETE"
    assert get_version_and_code(stage, "live")[1] == "3"


def test_active_alarm_blocks_a_deployment(stage: Stage) -> None:
    stage.deploy("s", make_canary_resources("1"))
    set_alarm_state(stage)
    assert stage.deploy("s", make_canary_resources("2"))["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert get_alias_target(stage) == ("1", {})


def test_deployment_group_with_disabled_alarms_ignores_alarms(stage: Stage) -> None:
    for text in ("1", "2"):
        resources = make_canary_resources(text)
        resources["Group"]["Properties"]["AlarmConfiguration"]["Enabled"] = False
        stage.deploy("s", resources)
        set_alarm_state(stage)
    assert get_alias_target(stage) == ("2", {})


def test_unknown_deployment_configuration_is_rejected() -> None:
    with pytest.raises(Failed, match="no deployment configuration"):
        parse_predefined_config("CodeDeployDefault.OneAtATime")


def test_deployment_resources_are_listed_and_deleted_with_the_stack(stage: Stage) -> None:
    stage.deploy("s", make_canary_resources("1"))
    codedeploy = stage.get_client("codedeploy")
    [application] = codedeploy.list_applications()["applications"]
    assert len(codedeploy.list_deployment_groups(applicationName=application)["deploymentGroups"]) == 1
    assert codedeploy.list_deployment_configs()["deploymentConfigsList"] == ["half"]
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert (
        codedeploy.list_applications()["applications"]
        == codedeploy.list_deployment_configs()["deploymentConfigsList"]
        == []
    )
