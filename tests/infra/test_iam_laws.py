"""The evaluator's laws, whatever the policies: what may be added without looking, and what may not."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sim.iam.conditions import holds
from sim.iam.policy import Policy, Statement, Verdict, parse_statement, verdict
from sim.iam.values import Request, context, matches

WORDS = st.text(alphabet="ab:*", min_size=1, max_size=4)
LITERALS = st.text(alphabet="ab:", min_size=1, max_size=4)
KEYS = st.sampled_from(["k", "l", "aws:TagKeys"])
SINGLE = st.sampled_from(["StringEquals", "StringLike", "StringNotEquals", "StringNotLike", "StringEqualsIfExists"])
QUANTIFIERS = st.sampled_from(["ForAllValues:", "ForAnyValue:"])
OPERATORS = st.one_of(st.builds(str.__add__, QUANTIFIERS, SINGLE), st.just("Null"))
"""Of any number of values."""
BLOCKS = st.dictionaries(
    OPERATORS, st.dictionaries(KEYS, st.lists(WORDS, min_size=1, max_size=2), max_size=2), max_size=2
)
KNOWN = st.dictionaries(KEYS, st.lists(LITERALS, max_size=2), max_size=3).map(context)
REQUESTS = st.builds(Request, action=LITERALS, resource=LITERALS, context=KNOWN)


@st.composite
def statements(draw: st.DrawFn, effects: tuple[str, ...] = ("Allow", "Deny")) -> Statement:
    document: dict[str, Any] = {
        "Effect": draw(st.sampled_from(effects)),
        draw(st.sampled_from(["Action", "NotAction"])): draw(st.lists(WORDS, min_size=1, max_size=2)),
        draw(st.sampled_from(["Resource", "NotResource"])): draw(st.lists(WORDS, min_size=1, max_size=2)),
        "Condition": draw(BLOCKS),
    }
    return parse_statement(document)


POLICIES = st.lists(st.lists(statements(), max_size=3).map(tuple), max_size=3)


@given(POLICIES, statements(effects=("Deny",)), REQUESTS)
def test_a_deny_always_wins(some: list[Policy], deny: Statement, request: Request) -> None:
    if deny.applies(request):
        assert verdict([*some, (deny,)], request) is Verdict.DENIED


@given(POLICIES, statements(effects=("Allow",)), REQUESTS)
def test_another_allow_takes_nothing_away(some: list[Policy], allow: Statement, request: Request) -> None:
    before, after = verdict(some, request), verdict([*some, (allow,)], request)
    assert after is before or (before is Verdict.SILENT and after is Verdict.ALLOWED)


@given(POLICIES, statements(effects=("Deny",)), REQUESTS)
def test_another_deny_gives_nothing(some: list[Policy], deny: Statement, request: Request) -> None:
    before, after = verdict(some, request), verdict([*some, (deny,)], request)
    assert after is before or after is Verdict.DENIED


@given(POLICIES, REQUESTS)
def test_order_and_grouping_do_not_matter(some: list[Policy], request: Request) -> None:
    flat = tuple(one for policy in some for one in policy)
    assert verdict(some, request) is verdict([flat[::-1]], request) is verdict(some[::-1], request)


@given(REQUESTS)
def test_silence_is_a_no(request: Request) -> None:
    assert verdict([], request) is Verdict.SILENT


@given(BLOCKS, BLOCKS, KNOWN)
def test_another_condition_never_opens_a_statement(one: Any, other: Any, known: Any) -> None:
    if not holds(one, known):
        merged = {key: other.get(key, {}) | one.get(key, {}) for key in sorted({*one, *other})}
        assert not holds(merged, known)


@given(SINGLE, st.lists(WORDS, min_size=1, max_size=3), LITERALS)
def test_a_negation_is_the_opposite_where_the_key_is_there(operator: str, wanted: list[str], value: str) -> None:
    if "Not" in operator:
        known = context({"k": value})
        assert holds({operator: {"k": wanted}}, known) != holds({operator.replace("Not", ""): {"k": wanted}}, known)


@given(SINGLE, st.lists(WORDS, min_size=1, max_size=3), st.lists(LITERALS, min_size=1, max_size=1))
def test_of_one_value_all_any_and_the_value_itself_agree(operator: str, wanted: list[str], values: list[str]) -> None:
    known, block = context({"k": values}), {"k": wanted}
    plain = holds({operator: block}, known)
    assert (
        plain is holds({f"ForAllValues:{operator}": block}, known) is holds({f"ForAnyValue:{operator}": block}, known)
    )


@given(st.lists(WORDS, min_size=1, max_size=3), st.lists(LITERALS, max_size=4), st.lists(LITERALS, max_size=2))
def test_fewer_values_pass_a_test_of_all(wanted: list[str], values: list[str], more: list[str]) -> None:
    block = {"ForAllValues:StringLike": {"k": wanted}}
    if holds(block, context({"k": [*values, *more]})):
        assert holds(block, context({"k": values}))


@given(LITERALS, LITERALS)
def test_text_matches_itself_everything_and_nothing_else(text: str, other: str) -> None:
    assert matches(text, text)
    assert matches("*", text)
    assert matches(text, other) is (text == other)


@given(WORDS, st.text(alphabet="*?ab$", max_size=4))
def test_what_a_variable_says_is_no_pattern(pattern: str, value: str) -> None:
    known = context({"v": value})
    assert matches("${v}", pattern, known) is (pattern == value)
