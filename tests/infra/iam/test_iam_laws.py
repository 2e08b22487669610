"""Laws of the policy evaluator for arbitrary policies: which additions are always safe, and which are not."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sim.iam.condition_operators import is_condition_met
from sim.iam.patterns_and_variables import IamRequest, build_context, is_match
from sim.iam.policy import AccessDecision, Policy, PolicyStatement, evaluate_policies, parse_statement, split_policy

WORDS = st.text(alphabet="ab:*", min_size=1, max_size=4)
LITERALS = st.text(alphabet="ab:", min_size=1, max_size=4)
KEYS = st.sampled_from(["k", "l", "aws:TagKeys"])
SINGLE_OPERATORS = st.sampled_from(
    ["StringEquals", "StringLike", "StringNotEquals", "StringNotLike", "StringEqualsIfExists"]
)
QUANTIFIERS = st.sampled_from(["ForAllValues:", "ForAnyValue:"])
MULTIVALUE_OPERATORS = st.one_of(st.builds(str.__add__, QUANTIFIERS, SINGLE_OPERATORS), st.just("Null"))
"""Operators for any number of values."""
CONDITIONS = st.dictionaries(
    MULTIVALUE_OPERATORS, st.dictionaries(KEYS, st.lists(WORDS, min_size=1, max_size=2), max_size=2), max_size=2
)
CONTEXTS = st.dictionaries(KEYS, st.lists(LITERALS, max_size=2), max_size=3).map(build_context)
REQUESTS = st.builds(IamRequest, action=LITERALS, resource=LITERALS, context=CONTEXTS)


@st.composite
def build_statements(draw: st.DrawFn, effects: tuple[str, ...] = ("Allow", "Deny")) -> PolicyStatement:
    document: dict[str, Any] = {
        "Effect": draw(st.sampled_from(effects)),
        draw(st.sampled_from(["Action", "NotAction"])): draw(st.lists(WORDS, min_size=1, max_size=2)),
        draw(st.sampled_from(["Resource", "NotResource"])): draw(st.lists(WORDS, min_size=1, max_size=2)),
        "Condition": draw(CONDITIONS),
    }
    return parse_statement(document)


POLICIES = st.lists(st.lists(build_statements(), max_size=3).map(tuple), max_size=3)


@given(POLICIES, build_statements(effects=("Deny",)), REQUESTS)
def test_deny_overrides_any_allow(policies: list[Policy], deny: PolicyStatement, request: IamRequest) -> None:
    if deny.is_applicable(request):
        assert evaluate_policies([*policies, (deny,)], request) is AccessDecision.DENIED


@given(POLICIES, build_statements(effects=("Allow",)), REQUESTS)
def test_adding_an_allow_statement_never_removes_access(
    policies: list[Policy], allow: PolicyStatement, request: IamRequest
) -> None:
    before, after = evaluate_policies(policies, request), evaluate_policies([*policies, (allow,)], request)
    assert after is before or (before is AccessDecision.IMPLICIT_DENY and after is AccessDecision.ALLOWED)


@given(POLICIES, build_statements(effects=("Deny",)), REQUESTS)
def test_adding_a_deny_statement_never_grants_access(
    policies: list[Policy], deny: PolicyStatement, request: IamRequest
) -> None:
    before, after = evaluate_policies(policies, request), evaluate_policies([*policies, (deny,)], request)
    assert after is before or after is AccessDecision.DENIED


@given(POLICIES, REQUESTS)
def test_statement_order_and_grouping_do_not_change_the_decision(policies: list[Policy], request: IamRequest) -> None:
    flat = tuple(statement for policy in policies for statement in policy)
    assert (
        evaluate_policies(policies, request)
        is evaluate_policies([flat[::-1]], request)
        is evaluate_policies(policies[::-1], request)
    )


@given(REQUESTS)
def test_request_without_policies_is_implicitly_denied(request: IamRequest) -> None:
    assert evaluate_policies([], request) is AccessDecision.IMPLICIT_DENY


@given(CONDITIONS, CONDITIONS, CONTEXTS)
def test_adding_a_condition_never_makes_a_statement_match(condition: Any, added_condition: Any, context: Any) -> None:
    if not is_condition_met(condition, context):
        merged = {
            key: added_condition.get(key, {}) | condition.get(key, {}) for key in sorted({*condition, *added_condition})
        }
        assert not is_condition_met(merged, context)


@given(SINGLE_OPERATORS, st.lists(WORDS, min_size=1, max_size=3), LITERALS)
def test_negated_operator_is_the_opposite_if_the_key_is_present(operator: str, patterns: list[str], value: str) -> None:
    if "Not" in operator:
        context = build_context({"k": value})
        assert is_condition_met({operator: {"k": patterns}}, context) != is_condition_met(
            {operator.replace("Not", ""): {"k": patterns}}, context
        )


@given(SINGLE_OPERATORS, st.lists(WORDS, min_size=1, max_size=3), st.lists(LITERALS, min_size=1, max_size=1))
def test_for_all_and_for_any_agree_with_plain_operator_for_a_single_value(
    operator: str, patterns: list[str], values: list[str]
) -> None:
    context, block = build_context({"k": values}), {"k": patterns}
    plain = is_condition_met({operator: block}, context)
    assert (
        plain
        is is_condition_met({f"ForAllValues:{operator}": block}, context)
        is is_condition_met({f"ForAnyValue:{operator}": block}, context)
    )


@given(st.lists(WORDS, min_size=1, max_size=3), st.lists(LITERALS, max_size=4), st.lists(LITERALS, max_size=2))
def test_for_all_values_still_matches_after_removing_values(
    patterns: list[str], values: list[str], extra_values: list[str]
) -> None:
    block = {"ForAllValues:StringLike": {"k": patterns}}
    if is_condition_met(block, build_context({"k": [*values, *extra_values]})):
        assert is_condition_met(block, build_context({"k": values}))


@given(LITERALS, LITERALS)
def test_literal_text_matches_only_itself_and_star(text: str, other_text: str) -> None:
    assert is_match(text, text)
    assert is_match("*", text)
    assert is_match(text, other_text) is (text == other_text)


@given(WORDS, st.text(alphabet="*?ab$", max_size=4))
def test_wildcards_in_a_variable_value_are_literal(pattern: str, value: str) -> None:
    context = build_context({"v": value})
    assert is_match("${v}", pattern, context) is (pattern == value)


@given(POLICIES, REQUESTS)
def test_split_policies_decide_as_before(policies: list[Policy], request: IamRequest) -> None:
    assert evaluate_policies(map(split_policy, policies), request) is evaluate_policies(policies, request)
