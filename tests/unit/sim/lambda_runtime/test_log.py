"""Tests of the cluster's log: subscribed functions are invoked with matching lines after a short delay."""

import base64
import gzip
import json
from datetime import timedelta
from typing import Any

import pytest

from sim.lambda_runtime.runtime import LOG_DELIVERY_DELAY
from sim.lambda_runtime.stack_template.generated_references import UnsupportedTemplateError
from tests.unit.sim.lambda_runtime.lambdas_stack import BASE, Stack, handle_successfully, raise_value_error


def make_log_subscription(pattern: str, target: str = "Worker") -> dict[str, Any]:
    to = {"Fn::GetAtt": [target, "Arn"]}
    properties = {"DestinationArn": to, "FilterPattern": pattern, "LogGroupName": "cluster"}
    return BASE | {"Wants": {"Type": "AWS::Logs::SubscriptionFilter", "Properties": properties}}


def list_log_messages(event: dict[str, Any]) -> list[str]:
    text = gzip.decompress(base64.b64decode(event["awslogs"]["data"]))
    return [log_event["message"] for log_event in json.loads(text)["logEvents"]]


def test_matching_log_lines_are_delivered_together_after_a_delay() -> None:
    stack = Stack(make_log_subscription('"no fit"'), handle_successfully)
    for line in ("no fit for a", "all is well", "no fit for b"):
        stack.runtime.write_log(line)
    stack.clock.advance(LOG_DELIVERY_DELAY - timedelta(seconds=1))
    assert not stack.received_events
    stack.clock.advance(timedelta(seconds=1))
    [(_, _, event)] = stack.received_events
    assert list_log_messages(event) == ["no fit for a", "no fit for b"]
    assert [invocation.trigger for invocation in stack.runtime.invocations] == ["log"]


def test_log_delivery_is_retried_if_the_function_fails() -> None:
    stack = Stack(make_log_subscription('"no fit"'), raise_value_error)
    stack.runtime.write_log("no fit")
    stack.clock.advance(timedelta(minutes=10))
    assert [list_log_messages(event) for _, _, event in stack.received_events] == [["no fit"]] * 3


@pytest.mark.parametrize(("pattern", "target"), [("[ip, user]", "Worker"), ('"no fit"', "Work")])
def test_unsupported_subscription_filter_is_rejected_by_name(pattern: str, target: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match="Wants"):
        Stack(make_log_subscription(pattern, target), handle_successfully)
