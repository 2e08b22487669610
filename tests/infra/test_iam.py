"""The offline evaluator: what each part of a policy means, case by case."""

from typing import Any

import pytest

from sim.iam.conditions import holds
from sim.iam.policy import Verdict, allowing, parse_policy, verdict
from sim.iam.values import MissingValueError, Request, UnsupportedPolicyError, context, filled, matches

INSTANCE = "arn:aws:ec2:us-east-1:1:instance/i-1"


def policy(*statements: dict[str, Any]) -> Any:
    filled_in = [{"Effect": "Allow", "Action": "*", "Resource": "*"} | one for one in statements]
    return parse_policy({"Version": "2012-10-17", "Statement": filled_in})


def asked(action: str = "ec2:RunInstances", resource: str = INSTANCE, **options: Any) -> Request:
    known = context(options.pop("known", {}))
    return Request(action=action, resource=resource, context=known, **options)


@pytest.mark.parametrize(
    ("statements", "answer"),
    [
        ([], Verdict.SILENT),
        ([{}], Verdict.ALLOWED),
        ([{"Effect": "Deny"}], Verdict.DENIED),
        ([{}, {"Effect": "Deny"}], Verdict.DENIED),
        ([{"Effect": "Deny"}, {}], Verdict.DENIED),
        ([{}, {"Effect": "Deny", "Action": "s3:*"}], Verdict.ALLOWED),
        ([{"Action": "ec2:RunInstances"}], Verdict.ALLOWED),
        ([{"Action": "EC2:runinstances"}], Verdict.ALLOWED),
        ([{"Action": "ec2:Run*"}], Verdict.ALLOWED),
        ([{"Action": "ec2:RunInstance?"}], Verdict.ALLOWED),
        ([{"Action": ["s3:*", "ec2:*"]}], Verdict.ALLOWED),
        ([{"Action": "ec2:Run"}], Verdict.SILENT),
        ([{"Action": "ec2:TerminateInstances"}], Verdict.SILENT),
        ([{"Resource": INSTANCE}], Verdict.ALLOWED),
        ([{"Resource": INSTANCE.upper()}], Verdict.SILENT),
        ([{"Resource": "arn:aws:ec2:*:*:instance/*"}], Verdict.ALLOWED),
        ([{"Resource": "arn:*"}], Verdict.ALLOWED),
        ([{"Resource": "arn:aws:ec2:us-east-1:1:volume/*"}], Verdict.SILENT),
        ([{"Resource": ["a", "b*"]}], Verdict.SILENT),
        ([{"Resource": "arn:aws:ec2:us.east.1:1:instance/i-1"}], Verdict.SILENT),
    ],
)
def test_a_verdict(statements: list[dict[str, Any]], answer: Verdict) -> None:
    assert verdict([policy(*statements)], asked()) is answer


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ({"NotAction": "s3:*", "Resource": "*"}, Verdict.ALLOWED),
        ({"NotAction": ["s3:*", "ec2:Run*"], "Resource": "*"}, Verdict.SILENT),
        ({"Action": "*", "NotResource": "arn:aws:s3:::*"}, Verdict.ALLOWED),
        ({"Action": "*", "NotResource": "*:instance/*"}, Verdict.SILENT),
    ],
)
def test_a_statement_may_say_what_it_is_not_about(statement: dict[str, Any], answer: Verdict) -> None:
    document = {"Version": "2012-10-17", "Statement": {"Effect": "Allow"} | statement}
    assert verdict([parse_policy(document)], asked()) is answer


ONE, TWO = {"k": ["a"]}, {"k": ["a", "b"]}


@pytest.mark.parametrize(
    ("operator", "wanted", "known", "answer"),
    [
        ("StringEquals", "a", ONE, True),
        ("StringEquals", "A", ONE, False),
        ("StringEquals", "*", ONE, False),
        ("StringEquals", ["b", "a"], ONE, True),
        ("StringEquals", "a", {}, False),
        ("StringEqualsIfExists", "a", {}, True),
        ("StringEqualsIfExists", "b", ONE, False),
        ("StringEqualsIgnoreCase", "A", ONE, True),
        ("StringNotEquals", "b", ONE, True),
        ("StringNotEquals", "a", ONE, False),
        ("StringNotEquals", ["a", "b"], ONE, False),
        ("StringNotEquals", "a", {}, True),
        ("StringNotEqualsIgnoreCase", "A", ONE, False),
        ("StringLike", "*", ONE, True),
        ("StringLike", "?", ONE, True),
        ("StringLike", "??", ONE, False),
        ("StringLike", "*", {"k": [""]}, True),
        ("StringLike", "*", {}, False),
        ("StringLikeIfExists", "*b", {}, True),
        ("StringNotLike", "b*", ONE, True),
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
        ("Null", "true", ONE, False),
        ("Null", "false", ONE, True),
        ("Null", "false", {}, False),
        ("NumericEquals", "1.0", {"k": ["1"]}, True),
        ("NumericNotEquals", "2", {"k": ["1"]}, True),
        ("NumericLessThan", 2, {"k": ["1"]}, True),
        ("NumericLessThan", "1", {"k": ["1"]}, False),
        ("NumericLessThanEquals", "1", {"k": ["1"]}, True),
        ("NumericGreaterThan", "0", {"k": ["1"]}, True),
        ("NumericGreaterThanEquals", "2", {"k": ["1"]}, False),
        ("NumericEquals", "1", {"k": ["one"]}, False),
        ("ForAllValues:StringEquals", ["a", "b"], TWO, True),
        ("ForAllValues:StringEquals", ["a"], TWO, False),
        ("ForAllValues:StringEquals", ["a"], {}, True),
        ("ForAllValues:StringEquals", ["a"], {"k": []}, True),
        ("ForAllValues:StringLike", ["?"], TWO, True),
        ("ForAllValues:StringNotEquals", ["c"], TWO, True),
        ("ForAllValues:StringNotEquals", ["b"], TWO, False),
        ("ForAnyValue:StringEquals", ["b", "c"], TWO, True),
        ("ForAnyValue:StringEquals", ["c"], TWO, False),
        ("ForAnyValue:StringEquals", ["a"], {}, False),
        ("ForAnyValue:StringNotEquals", ["a"], TWO, True),
        ("ForAnyValue:StringNotEquals", ["a"], {}, False),
        ("ForAnyValue:StringEqualsIfExists", ["a"], {}, True),
    ],
)
def test_a_condition(operator: str, wanted: Any, known: dict[str, list[str]], answer: bool) -> None:  # noqa: FBT001
    assert holds({operator: {"K": wanted}}, context(known)) is answer


@pytest.mark.parametrize(("first", "second"), [("a", "c"), ("c", "a"), ("c", "c")])
def test_all_keys_and_all_operators_have_to_hold(first: str, second: str) -> None:
    known = context({"k": "a", "l": "a"})
    assert holds({"StringEquals": {"k": "a", "l": "a"}, "StringLike": {"k": "a"}}, known)
    assert not holds({"StringEquals": {"k": first, "l": second}}, known)
    assert not holds({"StringEquals": {"k": first}, "StringLike": {"l": second}}, known)


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
def test_a_variable_is_what_the_request_says(pattern: str, text: str, answer: bool) -> None:  # noqa: FBT001
    known = context({"aws:username": "a", "star": "*"})
    assert matches(pattern, text, known) is answer


def test_without_a_context_a_variable_is_only_text() -> None:
    assert matches("${a}", "${a}")
    assert filled("x${a}y*", context({"a": "*"})) == "x*y*"


@pytest.mark.parametrize("known", [{}, {"a": ["b", "c"]}])
def test_a_variable_without_one_value_matches_nothing(known: dict[str, list[str]]) -> None:
    with pytest.raises(MissingValueError):
        matches("${a}", "b", context(known))
    for statement in (
        {"Resource": ["*", "${a}"]},
        {"Condition": {"StringEquals": {"k": ["x", "${a}"]}}},
        {"Condition": {"StringEquals": {"k": "y"}, "StringLike": {"k": "${a}"}}},
    ):
        for effect in ("Allow", "Deny"):
            found = policy({"Effect": effect} | statement)
            assert verdict([found], asked(known={"k": "x"} | known)) is Verdict.SILENT


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
def test_what_is_unknown_is_an_error(statement: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedPolicyError):
        policy(statement)


@pytest.mark.parametrize("statement", [{"Effect": "Allow", "Action": "*"}, {"Effect": "Allow", "Resource": "*"}])
def test_half_a_statement_is_an_error(statement: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedPolicyError, match="both or none"):
        parse_policy({"Version": "2012-10-17", "Statement": [statement]})


def test_an_old_policy_is_an_error() -> None:
    with pytest.raises(UnsupportedPolicyError, match="2012-10-17"):
        parse_policy({"Statement": []})


def test_a_test_of_one_value_is_not_asked_of_several() -> None:
    with pytest.raises(UnsupportedPolicyError, match="2 values"):
        holds({"StringEquals": {"k": "a"}}, context(TWO))


@pytest.mark.parametrize(
    ("principal", "answer"),
    [
        ("*", Verdict.ALLOWED),
        ({"AWS": "*"}, Verdict.ALLOWED),
        ({"Service": "events.amazonaws.com"}, Verdict.ALLOWED),
        ({"Service": ["sqs.amazonaws.com", "events.amazonaws.com"]}, Verdict.ALLOWED),
        ({"Service": "sns.amazonaws.com"}, Verdict.SILENT),
    ],
)
def test_a_resource_says_who(principal: Any, answer: Verdict) -> None:
    assert verdict([policy({"Principal": principal})], asked(principal="events.amazonaws.com")) is answer


def test_the_statements_that_allow_are_told() -> None:
    found = policy({"Sid": "A"}, {"Sid": "B", "Action": "s3:*"}, {"Sid": "C", "Effect": "Deny"}, {"Sid": "D"})
    assert [one.sid for one in allowing(found, asked())] == ["A", "D"]
