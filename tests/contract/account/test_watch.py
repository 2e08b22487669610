"""Metrics that the account records by itself, and alarms that follow from them."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sim.aws_account.function_runtime import DeployedFunction, Throttled
from sim.cloudwatch.metrics import Metric
from sim.lambda_processes.execution_environment import ExecutionResult
from sim.lambda_processes.invocation_metrics import build_invocation_metrics, build_throttle_metrics
from sim.lambda_processes.sandboxes import SandboxHost, SandboxInvocation, SandboxPool
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from tests.contract.account_stage import Stage
from tests.contract.lambda_processes.sandbox_directory import FunctionDirectory as Directory

ONE_MINUTE = timedelta(minutes=1)


@pytest.mark.loopback
def test_queue_depth_alarm_fires_and_clears_when_the_queue_is_empty() -> None:
    clock = Clock()
    stage = Stage(clock, ONE_MINUTE)
    with stage.account as account:
        sqs, cloudwatch = account.get_client("sqs"), account.get_client("cloudwatch")
        url = sqs.create_queue(QueueName="dead")["QueueUrl"]
        cloudwatch.put_metric_alarm(
            AlarmName="letters",
            Namespace="AWS/SQS",
            MetricName="ApproximateNumberOfMessagesVisible",
            Dimensions=[{"Name": "QueueName", "Value": "dead"}],
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
        )

        def read_alarm_state_after_minute() -> str:
            account.cloudwatch.tick()
            clock.advance(ONE_MINUTE)
            account.cloudwatch.tick()
            return str(cloudwatch.describe_alarms()["MetricAlarms"][0]["StateValue"])

        assert read_alarm_state_after_minute() == "OK"
        sqs.send_message(QueueUrl=url, MessageBody="a letter")
        assert [read_alarm_state_after_minute() for _ in range(2)][-1] == "ALARM"
        sqs.purge_queue(QueueUrl=url)
        assert [read_alarm_state_after_minute() for _ in range(2)][-1] == "OK"
        [age] = [
            data_point
            for data_point in account.cloudwatch.metrics.list_data_points(
                make_queue_metric("ApproximateAgeOfOldestMessage")
            )
            if data_point[0] == DEFAULT_START_TIME
        ]
        assert age == (DEFAULT_START_TIME, 0.0)


def make_queue_metric(name: str) -> Metric:
    return Metric(namespace="AWS/SQS", name=name, dimensions=(("QueueName", "dead"),))


def make_function(folder: Path, **changed: Any) -> DeployedFunction:
    """Return the function `tiny`, called by its alias."""
    arn = "arn:aws:lambda:us-east-1:111122223333:function:tiny:live"
    return Directory(folder).build_function(arn=arn, version="7", **changed)


def make_invocation(status: Any = "success", *lines: str) -> SandboxInvocation:
    result = ExecutionResult(
        status=status,
        payload=b"",
        log_lines=lines,
        init_duration=None,
        duration=timedelta(milliseconds=20),
        peak_memory_mb=64,
    )
    return SandboxInvocation(
        request_id="r",
        function="tiny",
        version="7",
        source="a test",
        started_at=DEFAULT_START_TIME,
        result=result,
        log_lines=lines,
    )


def test_invocation_metrics_are_recorded_for_the_function_and_its_alias(tmp_path: Path) -> None:
    values = {
        (data_point.metric.name, data_point.metric.dimensions): data_point.value
        for data_point in build_invocation_metrics(make_function(tmp_path), make_invocation("error"))
    }
    function_dimension, alias = ("FunctionName", "tiny"), ("Resource", "tiny:live")
    assert values == {
        (name, keys): value
        for name, value in (("Duration", 20.0), ("Errors", 1.0), ("Invocations", 1.0))
        for keys in ((function_dimension,), (function_dimension, alias))
    }


def test_executed_version_metric_is_recorded_while_an_alias_is_weighted(tmp_path: Path) -> None:
    function = make_function(tmp_path, is_weighted_choice=True)
    dimensions = {data_point.metric.dimensions for data_point in build_invocation_metrics(function, make_invocation())}
    assert (("ExecutedVersion", "7"), ("FunctionName", "tiny"), ("Resource", "tiny:live")) in dimensions


def test_embedded_metrics_in_the_function_log_are_recorded(tmp_path: Path) -> None:
    directive = '{"Namespace": "N", "Dimensions": [["a"]], "Metrics": [{"Name": "M"}]}'
    line = f'{{"_aws": {{"Timestamp": 1000, "CloudWatchMetrics": [{directive}]}}, "a": "b", "M": [3]}}'
    own_points = [
        data_point
        for data_point in build_invocation_metrics(make_function(tmp_path), make_invocation("success", "hello", line))
        if data_point.metric.namespace == "N"
    ]
    assert [(data_point.metric.name, data_point.metric.dimensions, data_point.value) for data_point in own_points] == [
        ("M", (("a", "b"),), 3.0)
    ]


def test_throttled_invocation_is_counted_as_a_throttle_only(tmp_path: Path) -> None:
    refused: list[DeployedFunction] = []
    machine = SandboxHost(python=sys.executable, libraries=tmp_path, folder=tmp_path, region="us-east-1")
    sandboxes = SandboxPool(
        machine,
        clock=lambda: DEFAULT_START_TIME,
        credentials_of=lambda _: pytest.fail("it began"),
        on_throttle=refused.append,
    )
    function = make_function(tmp_path, reserved_concurrency=0)
    with pytest.raises(Throttled):
        sandboxes.invoke(function, b"{}", request_id="r", source="a test")
    assert refused == [function]
    assert {data_point.metric.name for data_point in build_throttle_metrics(function, DEFAULT_START_TIME)} == {
        "Throttles"
    }
