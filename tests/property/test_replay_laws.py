"""Two decisions beside each other: what is equal is no difference, and every difference is told once."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from cli.replay_differences import Compared, Difference, compared
from cli.replayed import Decision
from shared.model.action import Action, CreateNodeClaim, DeleteObject, FollowUp
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.report.journal import Note

T = TypeVar("T")
names = st.sampled_from("abc")
words = st.text("xy", max_size=2)


def _claim(name: str, pods: frozenset[str], why: str) -> CreateNodeClaim:
    claim = NodeClaim(meta=Meta(name=name), node_class=NodeClassRef(name="default"))
    return CreateNodeClaim(claim=claim, pods=tuple(sorted(pods)), why=why)


actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(_claim, names, st.frozensets(st.sampled_from("pqr"), max_size=2), words),
    st.builds(DeleteObject, kind=st.just("NodeClaim"), name=names, why=words),
    st.builds(FollowUp, function=st.sampled_from(["provision", "disrupt"]), after=st.just(timedelta()), why=words),
)
notes = st.builds(Note, kind=st.sampled_from(["Pod", "Node"]), name=names, verdict=words, why=words)
decisions = st.builds(
    Decision, actions=st.lists(actions, max_size=6).map(tuple), notes=st.lists(notes, max_size=6).map(tuple)
)


@given(decisions)
def test_a_decision_does_not_differ_from_itself(one: Decision) -> None:
    assert compared(one, one).is_same


@given(decisions, decisions)
def test_no_difference_is_the_same_content_and_sameness_is_equality(one: Decision, other: Decision) -> None:
    found = compared(one, other)
    assert found.is_same == (one == other)
    alike = Counter(one.actions) == Counter(other.actions) and Counter(one.notes) == Counter(other.notes)
    assert (not found.actions and not found.notes) == alike
    assert found.is_reordered == (alike and one != other)


@given(decisions, decisions)
def test_each_side_is_told_once(one: Decision, other: Decision) -> None:
    found = compared(one, other)
    _told_once(found.actions, Counter(one.actions), Counter(other.actions))
    _told_once(found.notes, Counter(one.notes), Counter(other.notes))


def _told_once(told: Iterable[Difference], then: Counter[T], now: Counter[T]) -> None:
    hows = Counter(each.how for each in told)
    assert hows["then"] + hows["changed"] == (then - now).total()
    assert hows["now"] + hows["changed"] == (now - then).total()


@given(decisions, decisions)
def test_turned_around_what_was_only_then_is_only_now(one: Decision, other: Decision) -> None:
    assert _hows(compared(one, other)) == Counter(
        {"then": "now", "now": "then"}.get(how, how) for how in _hows(compared(other, one)).elements()
    )


def _hows(found: Compared) -> Counter[str]:
    return Counter(each.how for each in found.notes)
