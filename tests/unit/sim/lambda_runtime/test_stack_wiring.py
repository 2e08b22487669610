"""Tests of templates that become plain values: unknown parts are errors, never guessed or skipped."""

import json
import subprocess
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sim.lambda_runtime.stack_template import synthesis
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver, UnsupportedTemplateError
from sim.lambda_runtime.stack_wiring import StackWiring

QUEUE_ARN = {"Fn::GetAtt": ["Work", "Arn"]}
TEMPLATE: dict[str, Any] = {
    "Parameters": {"Stage": {"Type": "String", "Default": "blue"}, "Bare": {"Type": "String"}},
    "Resources": {
        "Ticker": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Handler": "functions.ticker.handler.handler",
                "Timeout": 55,
                "MemorySize": 256,
                "Environment": {
                    "Variables": {
                        "TABLE": {"Ref": "Rows"},
                        "JOINER_QUEUE_PREFIX": {
                            "Fn::Sub": "https://sqs.${AWS::Region}.amazonaws.com/${AWS::AccountId}/"
                        },
                    }
                },
            },
        },
        "Once": {
            "Type": "AWS::Lambda::EventInvokeConfig",
            "Properties": {
                "FunctionName": {"Ref": "Ticker"},
                "Qualifier": {"Fn::Select": [7, {"Fn::Split": [":", {"Ref": "Live"}]}]},
                "MaximumRetryAttempts": 0,
            },
        },
        "Version": {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Ticker"}}},
        "Live": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {
                "FunctionName": {"Ref": "Ticker"},
                "FunctionVersion": {"Fn::GetAtt": ["Version", "Version"]},
                "Name": "live",
            },
        },
        "Plain": {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "functions.plain.handler.handler"}},
        "Work": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "QueueName": "ticker",
                "VisibilityTimeout": 330,
                "DelaySeconds": 5,
                "MessageRetentionPeriod": 3600,
                "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 3},
            },
        },
        "Dead": {"Type": "AWS::SQS::Queue"},
        "Reads": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "BatchSize": 4,
                "EventSourceArn": QUEUE_ARN,
                "FunctionName": {"Ref": "Ticker"},
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
                "MaximumBatchingWindowInSeconds": 3,
                "ScalingConfig": {"MaximumConcurrency": 2},
            },
        },
        "Minute": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "ScheduleExpression": "rate(1 minute)",
                "Target": {"Arn": {"Ref": "Live"}, "Input": "{}", "RoleArn": "arn:x"},
            },
        },
        "Never": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {"ScheduleExpression": "rate(1 day)", "State": "DISABLED"},
        },
        "Heard": {
            "Type": "AWS::Events::Rule",
            "Properties": {"EventPattern": {"source": ["a"]}, "Targets": [{"Arn": QUEUE_ARN, "Id": "a"}]},
        },
        "Rows": {"Type": "AWS::DynamoDB::Table", "Properties": {}},
        "Policy": {"Type": "AWS::SQS::QueuePolicy", "Properties": {"PolicyDocument": {"Fn::If": ["c", "a", "b"]}}},
    },
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (7, 7),
        (None, None),
        ([{"Ref": "AWS::Region"}], ["eu-west-1"]),
        ({"a": {"Ref": "AWS::AccountId"}, "b": 1}, {"a": "111122223333", "b": 1}),
        ({"Ref": "AWS::Partition"}, "aws"),
        ({"Ref": "AWS::URLSuffix"}, "amazonaws.com"),
        ({"Ref": "Stage"}, "blue"),
        ({"Ref": "Work"}, "https://sqs.eu-west-1.amazonaws.com/111122223333/ticker"),
        ({"Ref": "Dead"}, "https://sqs.eu-west-1.amazonaws.com/111122223333/dead"),
        ({"Ref": "Rows"}, "rows"),
        ({"Fn::GetAtt": ["Work", "Arn"]}, "arn:aws:sqs:eu-west-1:111122223333:ticker"),
        ({"Fn::GetAtt": "Work.Arn"}, "arn:aws:sqs:eu-west-1:111122223333:ticker"),
        ({"Fn::GetAtt": ["Work", "QueueName"]}, "ticker"),
        ({"Fn::GetAtt": ["Work", "QueueUrl"]}, "https://sqs.eu-west-1.amazonaws.com/111122223333/ticker"),
        ({"Ref": "Live"}, "arn:aws:lambda:eu-west-1:111122223333:function:ticker:live"),
        ({"Fn::GetAtt": ["Version", "Version"]}, "version"),
        ({"Fn::Select": ["1", {"Fn::Split": ["-", "a-b"]}]}, "b"),
        ({"Fn::GetAtt": ["Rows", "Arn"]}, "arn:aws:dynamodb:eu-west-1:111122223333:table/rows"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}, 3]]}, "a-blue-3"),
        (
            {"Fn::Sub": "${Stage}/${Rows.Arn}/${!Literal}"},
            "blue/arn:aws:dynamodb:eu-west-1:111122223333:table/rows/${Literal}",
        ),
        ({"Fn::Sub": ["${x}-${Stage}", {"x": {"Ref": "AWS::Region"}}]}, "eu-west-1-blue"),
    ],
)
def test_intrinsic_functions_resolve_to_fixed_values(value: object, expected: object) -> None:
    assert IntrinsicResolver(TEMPLATE, "eu-west-1").resolve(value) == expected


@pytest.mark.parametrize(
    ("value", "expected_message"),
    [
        ({"Fn::ImportValue": "x"}, "Fn::ImportValue"),
        ({"Fn::If": ["c", 1, 2]}, "Fn::If"),
        ({"Ref": "Nobody"}, "Nobody"),
        ({"Ref": "Bare"}, "Bare"),
        ({"Ref": "Policy"}, "AWS::SQS::QueuePolicy"),
        ({"Fn::GetAtt": ["Rows", "StreamArn"]}, "StreamArn"),
    ],
)
def test_unknown_intrinsic_or_reference_is_rejected_by_name(value: object, expected_message: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match=expected_message):
        IntrinsicResolver(TEMPLATE).resolve(value)


def test_stack_template_is_parsed_to_plain_values() -> None:
    wiring = StackWiring.parse(TEMPLATE)
    ticker, plain = wiring.functions
    work, dead = wiring.queues
    [mapping] = wiring.mappings
    [schedule] = wiring.schedules
    [rule] = wiring.rules
    assert (ticker.name, ticker.timeout, ticker.memory_mb, ticker.async_retries) == (
        "ticker",
        timedelta(seconds=55),
        256,
        0,
    )
    assert dict(ticker.environment)["TABLE"] == "rows"
    assert (work.delay, work.visibility_timeout) == (timedelta(seconds=5), timedelta(seconds=330))
    assert (work.retention, work.dead_letter_queue, work.max_receive_count) == (timedelta(hours=1), dead.name, 3)
    assert (mapping.queue, mapping.function) == ("ticker", "ticker")
    assert (mapping.batch_size, mapping.reports_item_failures, mapping.maximum_concurrency) == (4, True, 2)
    assert mapping.batching_window == timedelta(seconds=3)
    assert (schedule.target.kind, schedule.target.name, schedule.target.input) == ("function", "ticker", "{}")
    assert [(target.kind, target.name, target.input) for target in rule.targets] == [("queue", "ticker", "")]
    assert plain.name == "plain"


def test_omitted_properties_have_aws_defaults() -> None:
    wiring = StackWiring.parse(TEMPLATE)
    plain, dead = wiring.get_function("plain"), wiring.queues[1]
    assert (plain.timeout, plain.memory_mb, plain.async_retries) == (timedelta(seconds=3), 128, 2)
    assert (dead.visibility_timeout, dead.retention) == (timedelta(seconds=30), timedelta(days=4))
    assert (dead.delay, dead.dead_letter_queue) == (timedelta(0), "")


def test_disabled_schedule_is_left_out() -> None:
    assert [schedule.name for schedule in StackWiring.parse(TEMPLATE).schedules] == ["Minute"]


def test_functions_with_different_queue_prefixes_are_rejected() -> None:
    with pytest.raises(UnsupportedTemplateError, match="JOINER_QUEUE_PREFIX"):
        StackWiring.parse(TEMPLATE).get_follow_up_prefix()


def _with_properties(resource: str, **properties: object) -> dict[str, Any]:
    template = deepcopy(TEMPLATE)
    template["Resources"][resource]["Properties"] |= properties
    return template


def _add_resource(**resource: object) -> dict[str, Any]:
    return {**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "Added": resource}}


@pytest.mark.parametrize(
    ("template", "expected_message"),
    [
        (_add_resource(Type="AWS::Pipes::Pipe"), "Added is AWS::Pipes::Pipe"),
        (_add_resource(Type="AWS::SQS::Queue", Condition="Maybe"), "Added has a condition"),
        (_with_properties("Work", FifoQueue=True), "Work has FifoQueue"),
        (_with_properties("Once", DestinationConfig={}), "Once has DestinationConfig"),
        (_with_properties("Reads", FilterCriteria={}), "Reads has FilterCriteria"),
        (_with_properties("Reads", EventSourceArn="arn:aws:sqs:us-east-1:111122223333:other"), "Reads connects"),
        (_with_properties("Minute", Target={"Arn": "arn:x"}), "Minute delivers to arn:x"),
        (
            _with_properties("Minute", FlexibleTimeWindow={"Mode": "FLEXIBLE"}),
            "Minute rings in UTC, {'Mode': 'FLEXIBLE'}",
        ),
        (_with_properties("Minute", ScheduleExpressionTimezone="Europe/Berlin"), "Minute rings in Europe/Berlin"),
        (_with_properties("Heard", Targets=[{"Arn": QUEUE_ARN, "Id": "a", "InputPath": "$"}]), "Heard has InputPath"),
        (_with_properties("Heard", EventPattern={"source": [{"wildcard": "*"}]}), "wildcard"),
        (_with_properties("Plain", Handler="lambda.main"), "lambda.main"),
    ],
)
def test_unsupported_template_part_is_rejected_by_name(template: dict[str, Any], expected_message: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match=expected_message):
        StackWiring.parse(template)


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[list[str]]]:
    """Stand in for app.py: write the given documents as templates and return the commands that ran."""

    def install_fake_synthesis(*documents: object, returncode: int = 0) -> list[list[str]]:
        commands: list[list[str]] = []

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            [outdir] = [word.removeprefix("CDK_OUTDIR=") for word in command if word.startswith("CDK_OUTDIR=")]
            for number, document in enumerate(documents):
                (Path(outdir) / f"{number}.template.json").write_text(json.dumps(document))
            return subprocess.CompletedProcess(command, returncode, "", "node is missing")

        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(synthesis, "TEMPLATE_CACHE", tmp_path / "templates")
        return commands

    return install_fake_synthesis


def test_synthesized_template_is_cached(application: Callable[..., list[list[str]]]) -> None:
    commands = application({"Resources": {}})
    assert synthesis.synthesize_template() == synthesis.synthesize_template() == {"Resources": {}}
    assert len(commands) == 1


def test_template_is_synthesized_again_for_other_settings_or_without_cache(
    application: Callable[..., list[list[str]]],
) -> None:
    commands = application({"Resources": {}})
    synthesis.synthesize_template()
    synthesis.synthesize_template(settings={"mode": "plan"})
    synthesis.synthesize_template(settings={"mode": "plan"})
    synthesis.synthesize_template(cache=False)
    assert len(commands) == 3


def test_settings_reach_the_application_in_a_settings_file() -> None:
    template = synthesis.synthesize_template(settings={"mode": "plan"})
    assert dict(StackWiring.parse(template).functions[0].environment)["JOINER_MODE"] == "plan"


def test_template_is_synthesized_again_after_a_source_change(
    application: Callable[..., list[list[str]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = application({"Resources": {}})
    for name in ("infra/stack/stack.py", "shared/settings_by_topic/money.py", *synthesis.SOURCE_FILES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"context": {}}')
    monkeypatch.setattr(synthesis, "REPOSITORY_ROOT", tmp_path)
    changed_files = ("cdk.json", "infra/stack/stack.py", "shared/settings.py", "shared/settings_by_topic/money.py")
    for number, name in enumerate(changed_files, start=1):
        synthesis.synthesize_template()
        assert len(commands) == number
        (tmp_path / name).write_text('{"context": {}, "changed": true}')
    synthesis.synthesize_template()
    assert len(commands) == len(changed_files) + 1


@pytest.mark.parametrize(("documents", "returncode"), [((), 1), (({},), 1), ((), 0), (({}, {}), 0)])
def test_failed_synthesis_is_reported_with_its_error_output(
    application: Callable[..., list[list[str]]], documents: tuple[object, ...], returncode: int
) -> None:
    application(*documents, returncode=returncode)
    with pytest.raises(synthesis.SynthesisError, match="node is missing"):
        synthesis.synthesize_template()
