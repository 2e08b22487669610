"""The offline evaluator: what each part of a policy means, case by case."""

from typing import Any

import pytest

from sim.iam.condition_operators import is_condition_met
from sim.iam.patterns_and_variables import (
    IamRequest,
    MissingValueError,
    UnsupportedPolicyError,
    build_context,
    is_match,
    replace_variables,
)
from sim.iam.policy import AccessDecision, evaluate_policies, find_allowing_statements, parse_policy

INSTANCE = "arn:aws:ec2:us-east-1:1:instance/i-1"


def make_policy(*statements: dict[str, Any]) -> Any:
    filled_in = [{"Effect": "Allow", "Action": "*", "Resource": "*"} | statement for statement in statements]
    return parse_policy({"Version": "2012-10-17", "Statement": filled_in})


def make_request(action: str = "ec2:RunInstances", resource: str = INSTANCE, **options: Any) -> IamRequest:
    context = build_context(options.pop("known", {}))
    return IamRequest(action=action, resource=resource, context=context, **options)


@pytest.mark.parametrize(
    ("statements", "answer"),
    [
        ([], AccessDecision.IMPLICIT_DENY),
        ([{}], AccessDecision.ALLOWED),
        ([{"Effect": "Deny"}], AccessDecision.DENIED),
        ([{}, {"Effect": "Deny"}], AccessDecision.DENIED),
        ([{"Effect": "Deny"}, {}], AccessDecision.DENIED),
        ([{}, {"Effect": "Deny", "Action": "s3:*"}], AccessDecision.ALLOWED),
        ([{"Action": "ec2:RunInstances"}], AccessDecision.ALLOWED),
        ([{"Action": "EC2:runinstances"}], AccessDecision.ALLOWED),
        ([{"Action": "ec2:Run*"}], AccessDecision.ALLOWED),
        ([{"Action": "ec2:RunInstance?"}], AccessDecision.ALLOWED),
        ([{"Action": ["s3:*", "ec2:*"]}], AccessDecision.ALLOWED),
        ([{"Action": "ec2:Run"}], AccessDecision.IMPLICIT_DENY),
        ([{"Action": "ec2:TerminateInstances"}], AccessDecision.IMPLICIT_DENY),
        ([{"Resource": INSTANCE}], AccessDecision.ALLOWED),
        ([{"Resource": INSTANCE.upper()}], AccessDecision.IMPLICIT_DENY),
        ([{"Resource": "arn:aws:ec2:*:*:instance/*"}], AccessDecision.ALLOWED),
        ([{"Resource": "arn:*"}], AccessDecision.ALLOWED),
        ([{"Resource": "arn:aws:ec2:us-east-1:1:volume/*"}], AccessDecision.IMPLICIT_DENY),
        ([{"Resource": ["a", "b*"]}], AccessDecision.IMPLICIT_DENY),
        ([{"Resource": "arn:aws:ec2:us.east.1:1:instance/i-1"}], AccessDecision.IMPLICIT_DENY),
    ],
)
def test_policy_evaluation_returns_the_expected_decision(
    statements: list[dict[str, Any]], answer: AccessDecision
) -> None:
    assert evaluate_policies([make_policy(*statements)], make_request()) is answer


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ({"NotAction": "s3:*", "Resource": "*"}, AccessDecision.ALLOWED),
        ({"NotAction": ["s3:*", "ec2:Run*"], "Resource": "*"}, AccessDecision.IMPLICIT_DENY),
        ({"Action": "*", "NotResource": "arn:aws:s3:::*"}, AccessDecision.ALLOWED),
        ({"Action": "*", "NotResource": "*:instance/*"}, AccessDecision.IMPLICIT_DENY),
    ],
)
def test_not_action_and_not_resource_statements_are_evaluated(
    statement: dict[str, Any], answer: AccessDecision
) -> None:
    document = {"Version": "2012-10-17", "Statement": {"Effect": "Allow"} | statement}
    assert evaluate_policies([parse_policy(document)], make_request()) is answer


SINGLE_VALUE, TWO_VALUES = {"k": ["a"]}, {"k": ["a", "b"]}


@pytest.mark.parametrize(
    ("operator", "expected_values", "context_values", "answer"),
    [
        ("StringEquals", "a", SINGLE_VALUE, True),
        ("StringEquals", "A", SINGLE_VALUE, False),
        ("StringEquals", "*", SINGLE_VALUE, False),
        ("StringEquals", ["b", "a"], SINGLE_VALUE, True),
        ("StringEquals", "a", {}, False),
        ("StringEqualsIfExists", "a", {}, True),
        ("StringEqualsIfExists", "b", SINGLE_VALUE, False),
        ("StringEqualsIgnoreCase", "A", SINGLE_VALUE, True),
        ("StringNotEquals", "b", SINGLE_VALUE, True),
        ("StringNotEquals", "a", SINGLE_VALUE, False),
        ("StringNotEquals", ["a", "b"], SINGLE_VALUE, False),
        ("StringNotEquals", "a", {}, True),
        ("StringNotEqualsIgnoreCase", "A", SINGLE_VALUE, False),
        ("StringLike", "*", SINGLE_VALUE, True),
        ("StringLike", "?", SINGLE_VALUE, True),
        ("StringLike", "??", SINGLE_VALUE, False),
        ("StringLike", "*", {"k": [""]}, True),
        ("StringLike", "*", {}, False),
        ("StringLikeIfExists", "*b", {}, True),
        ("StringNotLike", "b*", SINGLE_VALUE, True),
        ("StringNotLike", "*", {}, True),
        ("ArnLike", "arn:aws:s3:::*", {"k": ["arn:aws:s3:::bucket/a:b"]}, True),
        ("ArnLike", "arn:*:role/a", {"k": ["arn:aws:iam::1:role/a"]}, False),
        ("ArnLike", "arn:*:iam::*:role/a*", {"k": ["arn:aws:iam::1:role/ab"]}, True),
        ("ArnLike", "arn:aws:iam::${k2}:role/a", {"k": ["arn:aws:iam::1:role/a"], "k2": ["1"]}, True),
        ("ArnLike", "arn:aws:iam::${aws:n}:role/a", {"k": ["arn:aws:iam::1:role/a"], "aws:n": ["1"]}, True),
        ("ArnLike", "*", {"k": ["no arn"]}, False),
        ("ArnEquals", "arn:aws:iam::*:role/a", {"k": ["arn:aws:iam::1:role/a"]}, True),
        ("ArnNotEquals", "arn:aws:iam::1:role/a", {"k": ["arn:aws:iam::2:role/a"]}, True),
        ("ArnNotLike", "arn:aws:iam::*:role/a", {"k": ["arn:aws:iam::2:role/a"]}, False),
        ("Bool", "true", {"k": ["true"]}, True),
        ("Bool", True, {"k": ["true"]}, True),
        ("Bool", "false", {"k": ["true"]}, False),
        ("Bool", "false", {}, False),
        ("BoolIfExists", "false", {}, True),
        ("Null", "true", {}, True),
        ("Null", "true", {"k": []}, True),
        ("Null", "true", SINGLE_VALUE, False),
        ("Null", "false", SINGLE_VALUE, True),
        ("Null", "false", {}, False),
        ("NumericEquals", "1.0", {"k": ["1"]}, True),
        ("NumericNotEquals", "2", {"k": ["1"]}, True),
        ("NumericLessThan", 2, {"k": ["1"]}, True),
        ("NumericLessThan", "1", {"k": ["1"]}, False),
        ("NumericLessThanEquals", "1", {"k": ["1"]}, True),
        ("NumericGreaterThan", "0", {"k": ["1"]}, True),
        ("NumericGreaterThanEquals", "2", {"k": ["1"]}, False),
        ("NumericEquals", "1", {"k": ["one"]}, False),
        ("ForAllValues:StringEquals", ["a", "b"], TWO_VALUES, True),
        ("ForAllValues:StringEquals", ["a"], TWO_VALUES, False),
        ("ForAllValues:StringEquals", ["a"], {}, True),
        ("ForAllValues:StringEquals", ["a"], {"k": []}, True),
        ("ForAllValues:StringLike", ["?"], TWO_VALUES, True),
        ("ForAllValues:StringNotEquals", ["c"], TWO_VALUES, True),
        ("ForAllValues:StringNotEquals", ["b"], TWO_VALUES, False),
        ("ForAnyValue:StringEquals", ["b", "c"], TWO_VALUES, True),
        ("ForAnyValue:StringEquals", ["c"], TWO_VALUES, False),
        ("ForAnyValue:StringEquals", ["a"], {}, False),
        ("ForAnyValue:StringNotEquals", ["a"], TWO_VALUES, True),
        ("ForAnyValue:StringNotEquals", ["a"], {}, False),
        ("ForAnyValue:StringEqualsIfExists", ["a"], {}, True),
    ],
)
def test_condition_operator_is_evaluated_against_context_values(
    operator: str,
    expected_values: Any,
    context_values: dict[str, list[str]],
    answer: bool,  # noqa: FBT001
) -> None:
    assert is_condition_met({operator: {"K": expected_values}}, build_context(context_values)) is answer


@pytest.mark.parametrize(("first", "second"), [("a", "c"), ("c", "a"), ("c", "c")])
def test_condition_requires_all_keys_and_all_operators_to_match(first: str, second: str) -> None:
    context = build_context({"k": "a", "l": "a"})
    assert is_condition_met({"StringEquals": {"k": "a", "l": "a"}, "StringLike": {"k": "a"}}, context)
    assert not is_condition_met({"StringEquals": {"k": first, "l": second}}, context)
    assert not is_condition_met({"StringEquals": {"k": first}, "StringLike": {"l": second}}, context)


@pytest.mark.parametrize(
    ("pattern", "text", "answer"),
    [
        ("${aws:username}/*", "a/b", True),
        ("${AWS:UserName}/*", "a/b", True),
        ("${aws:username}/*", "b/b", False),
        ("${star}", "*", True),
        ("${star}", "anything", False),
        ("${*}", "*", True),
        ("${*}", "b", False),
        ("${?}", "b", False),
        ("${$}x", "$x", True),
        ("${nobody, 'c'}", "c", True),
        ("${aws:username, 'c'}", "c", False),
        ("${nobody, ''}", "", True),
        ("a.c", "abc", False),
        ("a\nb*", "a\nb\nc", True),
    ],
)
def test_policy_variable_is_replaced_by_request_context_value(pattern: str, text: str, answer: bool) -> None:  # noqa: FBT001
    context = build_context({"aws:username": "a", "star": "*"})
    assert is_match(pattern, text, context) is answer


def test_policy_variable_without_context_is_literal_text() -> None:
    assert is_match("${a}", "${a}")
    assert replace_variables("x${a}y*", build_context({"a": "*"})) == "x*y*"


@pytest.mark.parametrize("context_values", [{}, {"a": ["b", "c"]}])
def test_policy_variable_without_exactly_one_value_never_matches(context_values: dict[str, list[str]]) -> None:
    with pytest.raises(MissingValueError):
        is_match("${a}", "b", build_context(context_values))
    for statement in (
        {"Resource": ["*", "${a}"]},
        {"Condition": {"StringEquals": {"k": ["x", "${a}"]}}},
        {"Condition": {"StringEquals": {"k": "y"}, "StringLike": {"k": "${a}"}}},
    ):
        for effect in ("Allow", "Deny"):
            parsed_policy = make_policy({"Effect": effect} | statement)
            assert (
                evaluate_policies([parsed_policy], make_request(known={"k": "x"} | context_values))
                is AccessDecision.IMPLICIT_DENY
            )


@pytest.mark.parametrize(
    "statement",
    [
        {"Condition": {"DateLessThan": {"k": "2026"}}},
        {"Condition": {"StringMatches": {"k": "a"}}},
        {"Condition": {"NullIfExists": {"k": "a"}}},
        {"Condition": {"ForSomeValues:StringEquals": {"k": "a"}}},
        {"Effect": "allow"},
        {"NotAction": "*"},
        {"NotPrincipal": "*"},
        {"Principal": {"Federated": "a"}},
        {"Sids": "a"},
    ],
)
def test_unsupported_policy_element_is_rejected(statement: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedPolicyError):
        make_policy(statement)


@pytest.mark.parametrize("statement", [{"Effect": "Allow", "Action": "*"}, {"Effect": "Allow", "Resource": "*"}])
def test_statement_with_only_action_or_only_resource_is_rejected(statement: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedPolicyError, match="both or none"):
        parse_policy({"Version": "2012-10-17", "Statement": [statement]})


def test_policy_without_current_version_is_rejected() -> None:
    with pytest.raises(UnsupportedPolicyError, match="2012-10-17"):
        parse_policy({"Statement": []})


def test_single_value_operator_with_multivalued_key_is_rejected() -> None:
    with pytest.raises(UnsupportedPolicyError, match="2 values"):
        is_condition_met({"StringEquals": {"k": "a"}}, build_context(TWO_VALUES))


@pytest.mark.parametrize(
    ("principal", "answer"),
    [
        ("*", AccessDecision.ALLOWED),
        ({"AWS": "*"}, AccessDecision.ALLOWED),
        ({"Service": "events.amazonaws.com"}, AccessDecision.ALLOWED),
        ({"Service": ["sqs.amazonaws.com", "events.amazonaws.com"]}, AccessDecision.ALLOWED),
        ({"Service": "sns.amazonaws.com"}, AccessDecision.IMPLICIT_DENY),
    ],
)
def test_resource_policy_principal_is_evaluated(principal: Any, answer: AccessDecision) -> None:
    assert (
        evaluate_policies([make_policy({"Principal": principal})], make_request(principal="events.amazonaws.com"))
        is answer
    )


def test_allowing_statements_are_returned() -> None:
    parsed_policy = make_policy(
        {"Sid": "A"}, {"Sid": "B", "Action": "s3:*"}, {"Sid": "C", "Effect": "Deny"}, {"Sid": "D"}
    )
    assert [statement.sid for statement in find_allowing_statements(parsed_policy, make_request())] == ["A", "D"]
