"""Two decisions beside each other: what is equal is no difference, and every difference is told once."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from cli.replay.differences import DecisionComparison, Difference, compare_decisions
from cli.replay.rerun import Decision
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import Action, CreateNodeClaim, DeleteObject, FollowUp
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.report.journal.journal import DecisionNote

T = TypeVar("T")
names = st.sampled_from("abc")
words = st.text("xy", max_size=2)


def _build_create_action(name: str, pods: frozenset[str], message: str) -> CreateNodeClaim:
    claim = NodeClaim(meta=ObjectMeta(name=name), node_class=NodeClassRef(name="default"))
    return CreateNodeClaim(claim=claim, pods=tuple(sorted(pods)), message=message)


actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(_build_create_action, names, st.frozensets(st.sampled_from("pqr"), max_size=2), words),
    st.builds(DeleteObject, kind=st.just("NodeClaim"), name=names, message=words),
    st.builds(FollowUp, function=st.sampled_from(["provision", "disrupt"]), after=st.just(timedelta()), message=words),
)
notes = st.builds(DecisionNote, kind=st.sampled_from(["Pod", "Node"]), name=names, verdict=words, reason=words)
decisions = st.builds(
    Decision, actions=st.lists(actions, max_size=6).map(tuple), notes=st.lists(notes, max_size=6).map(tuple)
)


@given(decisions)
def test_decision_equals_itself(decision: Decision) -> None:
    assert compare_decisions(decision, decision).is_same


@given(decisions, decisions)
def test_comparison_without_differences_means_equal_decisions(first: Decision, second: Decision) -> None:
    comparison = compare_decisions(first, second)
    assert comparison.is_same == (first == second)
    alike = Counter(first.actions) == Counter(second.actions) and Counter(first.notes) == Counter(second.notes)
    assert (not comparison.actions and not comparison.notes) == alike
    assert comparison.is_reordered == (alike and first != second)


@given(decisions, decisions)
def test_every_difference_between_decisions_is_reported_once(first: Decision, second: Decision) -> None:
    comparison = compare_decisions(first, second)
    _assert_reported_once(comparison.actions, Counter(first.actions), Counter(second.actions))
    _assert_reported_once(comparison.notes, Counter(first.notes), Counter(second.notes))


def _assert_reported_once(differences: Iterable[Difference], recorded: Counter[T], now: Counter[T]) -> None:
    hows = Counter(difference.kind for difference in differences)
    assert hows["recorded"] + hows["changed"] == (recorded - now).total()
    assert hows["replayed"] + hows["changed"] == (now - recorded).total()


@given(decisions, decisions)
def test_swapping_the_compared_decisions_swaps_the_reported_sides(first: Decision, second: Decision) -> None:
    assert _count_difference_kinds(compare_decisions(first, second)) == Counter(
        {"recorded": "replayed", "replayed": "recorded"}.get(how, how)
        for how in _count_difference_kinds(compare_decisions(second, first)).elements()
    )


def _count_difference_kinds(comparison: DecisionComparison) -> Counter[str]:
    return Counter(difference.kind for difference in comparison.notes)
