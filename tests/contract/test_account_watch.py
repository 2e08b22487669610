"""What the account measures by itself, and that its alarms are in the state that follows from it."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sim.account.contract import Function, Throttled
from sim.clock import START, Clock
from sim.sandboxes.environment import Ended
from sim.sandboxes.measured import measured, throttled
from sim.sandboxes.sandboxes import Call, Machine, Sandboxes
from sim.watching.metrics import Metric
from tests.contract.account_stage import Stage
from tests.contract.sandbox_directory import Account as Directory

MINUTE = timedelta(minutes=1)


@pytest.mark.loopback
def test_an_alarm_rings_by_what_lies_in_a_queue_and_falls_silent_when_it_is_empty() -> None:
    clock = Clock()
    stage = Stage(clock, MINUTE)
    with stage.account as account:
        sqs, cloudwatch = account.client("sqs"), account.client("cloudwatch")
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

        def after_a_minute() -> str:
            account.watch.look()
            clock.advance(MINUTE)
            account.watch.look()
            return str(cloudwatch.describe_alarms()["MetricAlarms"][0]["StateValue"])

        assert after_a_minute() == "OK"
        sqs.send_message(QueueUrl=url, MessageBody="a letter")
        assert [after_a_minute() for _ in range(2)][-1] == "ALARM"
        sqs.purge_queue(QueueUrl=url)
        assert [after_a_minute() for _ in range(2)][-1] == "OK"
        [age] = [one for one in account.watch.metrics.points(queue("ApproximateAgeOfOldestMessage")) if one[0] == START]
        assert age == (START, 0.0)


def queue(name: str) -> Metric:
    return Metric(namespace="AWS/SQS", name=name, dimensions=(("QueueName", "dead"),))


def called(folder: Path, **changed: Any) -> Function:
    """Answer `tiny`, called by its alias."""
    arn = "arn:aws:lambda:us-east-1:111122223333:function:tiny:live"
    return Directory(folder).made(arn=arn, version="7", **changed)


def call(status: Any = "success", *lines: str) -> Call:
    how = Ended(status=status, payload=b"", lines=lines, init=None, duration=timedelta(milliseconds=20), memory_mb=64)
    return Call(request_id="r", function="tiny", version="7", by="a test", began=START, how=how, lines=lines)


def test_a_call_counts_for_its_function_and_for_what_was_called(tmp_path: Path) -> None:
    found = {(one.metric.name, one.metric.dimensions): one.value for one in measured(called(tmp_path), call("error"))}
    own, alias = ("FunctionName", "tiny"), ("Resource", "tiny:live")
    assert found == {
        (name, keys): value
        for name, value in (("Duration", 20.0), ("Errors", 1.0), ("Invocations", 1.0))
        for keys in ((own,), (own, alias))
    }


def test_a_version_counts_by_itself_while_its_alias_leads_to_two(tmp_path: Path) -> None:
    function = called(tmp_path, is_one_of_two=True)
    dimensions = {one.metric.dimensions for one in measured(function, call())}
    assert (("ExecutedVersion", "7"), ("FunctionName", "tiny"), ("Resource", "tiny:live")) in dimensions


def test_what_a_function_says_of_itself_counts_too(tmp_path: Path) -> None:
    directive = '{"Namespace": "N", "Dimensions": [["a"]], "Metrics": [{"Name": "M"}]}'
    line = f'{{"_aws": {{"Timestamp": 1000, "CloudWatchMetrics": [{directive}]}}, "a": "b", "M": [3]}}'
    own = [one for one in measured(called(tmp_path), call("success", "hello", line)) if one.metric.namespace == "N"]
    assert [(one.metric.name, one.metric.dimensions, one.value) for one in own] == [("M", (("a", "b"),), 3.0)]


def test_a_call_that_is_refused_is_told_and_is_no_invocation(tmp_path: Path) -> None:
    refused: list[Function] = []
    machine = Machine(python=sys.executable, libraries=tmp_path, folder=tmp_path, region="us-east-1")
    sandboxes = Sandboxes(
        machine, clock=lambda: START, credentials_of=lambda _: pytest.fail("it began"), on_throttle=refused.append
    )
    function = called(tmp_path, reserved_concurrency=0)
    with pytest.raises(Throttled):
        sandboxes.invoke(function, b"{}", request_id="r", by="a test")
    assert refused == [function]
    assert {one.metric.name for one in throttled(function, START)} == {"Throttles"}
