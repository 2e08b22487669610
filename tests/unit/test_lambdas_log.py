"""The cluster's log: who wants its lines is called with them, soon after."""

import base64
import gzip
import json
from datetime import timedelta
from typing import Any

import pytest

from sim.lambdas.intrinsics import UnsupportedTemplateError
from sim.lambdas.runtime import PUSHED_AFTER
from tests.unit.lambdas_stack import BASE, Stack, fail, succeed


def wants(pattern: str, target: str = "Worker") -> dict[str, Any]:
    to = {"Fn::GetAtt": [target, "Arn"]}
    properties = {"DestinationArn": to, "FilterPattern": pattern, "LogGroupName": "cluster"}
    return BASE | {"Wants": {"Type": "AWS::Logs::SubscriptionFilter", "Properties": properties}}


def said(event: dict[str, Any]) -> list[str]:
    text = gzip.decompress(base64.b64decode(event["awslogs"]["data"]))
    return [one["message"] for one in json.loads(text)["logEvents"]]


def test_lines_that_are_wanted_come_together_and_soon() -> None:
    stack = Stack(wants('"no fit"'), succeed)
    for line in ("no fit for a", "all is well", "no fit for b"):
        stack.runtime.write_log(line)
    stack.clock.advance(PUSHED_AFTER - timedelta(seconds=1))
    assert not stack.seen
    stack.clock.advance(timedelta(seconds=1))
    [(_, _, event)] = stack.seen
    assert said(event) == ["no fit for a", "no fit for b"]
    assert [one.trigger for one in stack.runtime.records] == ["log"]


def test_lines_come_again_where_the_function_failed() -> None:
    stack = Stack(wants('"no fit"'), fail)
    stack.runtime.write_log("no fit")
    stack.clock.advance(timedelta(minutes=10))
    assert [said(event) for _, _, event in stack.seen] == [["no fit"]] * 3


@pytest.mark.parametrize(("pattern", "target"), [("[ip, user]", "Worker"), ('"no fit"', "Work")])
def test_a_filter_that_is_not_simulated_is_named(pattern: str, target: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match="Wants"):
        Stack(wants(pattern, target), succeed)
