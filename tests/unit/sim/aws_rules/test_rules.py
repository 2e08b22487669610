"""The table of rules: each row cites a page and rejects something, and its filters are the documented ones."""

import html
import re
from collections.abc import Mapping
from typing import Any

import pytest

from sim.aws_rules.request_validation import find_problem, load_service_model
from sim.aws_rules.rules_table import Rule, load_rules
from tests.unit.sim.aws_rules.rule_examples import BROKEN_REQUEST_BY_RULE

FILTER_RULES = [rule for rule in load_rules() if rule.check == "filters"]


def test_every_rule_has_an_id_of_its_own_and_cites_a_page() -> None:
    ids = [rule.id for rule in load_rules()]
    assert len(ids) == len(set(ids))
    assert all(rule.page.startswith("https://") for rule in load_rules())


def test_every_rule_has_a_request_that_breaks_it() -> None:
    other_rules = {rule.id for rule in load_rules()} - {rule.id for rule in FILTER_RULES}
    assert set(BROKEN_REQUEST_BY_RULE) == other_rules


@pytest.mark.parametrize("rule_id", BROKEN_REQUEST_BY_RULE)
def test_a_request_that_breaks_a_rule_is_rejected_with_the_code_of_the_rule(rule_id: str) -> None:
    call, parameters = BROKEN_REQUEST_BY_RULE[rule_id]
    problem = find_problem(*split_call(call), parameters)
    assert problem is not None
    assert (problem.rule, problem.code) == (rule_id, get_rule(rule_id).code)


@pytest.mark.parametrize("rule", FILTER_RULES, ids=lambda rule: rule.id)
def test_the_filters_of_a_call_are_those_of_the_api_reference(rule: Rule) -> None:
    (call,) = rule.calls
    assert sorted(rule.values) == list_documented_filters(call)


@pytest.mark.parametrize("rule", FILTER_RULES, ids=lambda rule: rule.id)
def test_an_unknown_filter_is_rejected_in_the_words_of_ec2(rule: Rule) -> None:
    (call,) = rule.calls
    problem = find_problem(*split_call(call), {"Filters": [{"Name": "colour", "Values": ["red"]}]})
    assert problem is not None
    assert (problem.code, problem.message) == ("InvalidParameterValue", "The filter 'colour' is invalid")


def test_every_describe_call_with_filters_has_a_list_of_them() -> None:
    """A new Describe call of the product needs a row, or its filters are not checked."""
    calls = {call for rule in FILTER_RULES for call in rule.calls}
    assert {"ec2:DescribeInstances", "ec2:DescribeCapacityReservations", "ec2:DescribeVolumes"} <= calls


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        ("ec2:DescribeInstances", {"Filters": [{"Name": "tag:team", "Values": ["shop"]}], "MaxResults": 1000}),
        ("ec2:DescribeInstances", {"InstanceIds": ["i-0123456789abcdef0"]}),
        ("ec2:DescribeCapacityReservations", {"Filters": [{"Name": "tag-key", "Values": ["team"]}]}),
        ("ssm:GetParameter", {"Name": "/aws/service/eks/optimized-ami/1.34/recommended/image_id"}),
        ("ssm:GetParameter", {"Name": "arn:aws:ssm:us-east-1:123456789012:parameter/images/latest"}),
        ("sns:Publish", {"TopicArn": "arn:aws-cn:sns:cn-north-1:123456789012:costs", "Message": "a"}),
    ],
)
def test_an_ordinary_request_is_accepted(call: str, parameters: Mapping[str, Any]) -> None:
    assert find_problem(*split_call(call), parameters) is None


def get_rule(rule_id: str) -> Rule:
    return next(rule for rule in load_rules() if rule.id == rule_id)


def list_documented_filters(call: str) -> list[str]:
    """Return the names in the outer list of botocore's description of the filters; ``tag:<key>`` as ``tag``."""
    service, operation = call.split(":")
    text = load_service_model(service).operation_model(operation).input_shape.members["Filters"].documentation
    names, depth = set(), 0
    for token in re.finditer(r"<(?P<end>/?)ul>|<li>\s*<p>\s*<code>(?P<name>[^<]+)</code>", text):
        if token["name"] is None:
            depth += -1 if token["end"] else 1
        elif depth == 1:
            names.add(html.unescape(token["name"]).replace("tag:<key>", "tag"))
    return sorted(names)


def split_call(call: str) -> tuple[str, str]:
    service, operation = call.split(":")
    return service, operation
