"""Laws of emptiness, for any cluster."""

import math
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.disruption.budgets import UNLIMITED, allowance, is_going
from shared.disruption.emptiness import decide
from shared.lifecycle.decide import decide as keep
from shared.model import labels
from shared.model.action import DeleteObject, EvictPod, PatchStatus, TaintNode
from shared.model.cluster import Cluster
from shared.model.nodepools import Budget
from shared.model.objects import condition, is_true
from shared.model.state import StateNode, state_nodes
from tests.property.lifecycle_world import Little, clusters, orders
from tests.unit.lifecycle_cases import NOW, POOL, changed, of


def allowed(budgets: tuple[Budget, ...], total: int) -> float:
    if any(one.nodes == "odd" for one in budgets):
        return 0
    return min(
        (
            math.ceil(total * int(one.nodes[:-1]) / 100) if one.nodes.endswith("%") else int(one.nodes)
            for one in budgets
        ),
        default=math.inf,
    )


def count(of_cluster: Cluster, *, proposals: bool) -> tuple[int, int]:
    """Answer how many nodes there are, and how many of them go or are broken."""
    mine = [
        state
        for state in state_nodes(of_cluster)
        if state.claim is not None
        and state.is_initialized()
        and not is_true(state.claim.conditions, "InstanceTerminating")
    ]
    return len(mine), sum(goes(state) or (proposals and is_proposed(state)) for state in mine)


def goes(state: StateNode) -> bool:
    return is_going(state) or state.node is None or not state.node.is_ready()


def is_proposed(state: StateNode) -> bool:
    known = condition(state.claim.conditions, "DisruptionReason") if state.claim is not None else None
    return known is not None and known.status == "True"


@given(clusters())
def test_a_budget_is_never_exceeded(start: Cluster) -> None:
    little = Little(start)
    for _ in range(4):
        before = little.cluster()
        total, going = count(before, proposals=False)
        little.perform(decide(before).actions)
        after = count(little.cluster(), proposals=True)[1]
        assert after <= max(allowed(start.node_pools[0].budgets, total), going)
        little.pass_time(timedelta(seconds=6))


@given(clusters())
def test_a_budget_holds_while_the_lifecycle_goes_on(start: Cluster) -> None:
    little = Little(start)
    for _ in range(6):
        before = little.cluster()
        total, going = count(before, proposals=False)
        sweep = decide(before)
        little.perform(sweep.actions)
        assert len(of(DeleteObject, sweep.actions)) <= max(allowed(start.node_pools[0].budgets, total) - going, 0)
        little.perform(keep(little.cluster()))
        little.pass_time(timedelta(seconds=6))


@given(orders())
def test_the_order_of_lists_changes_no_decision(pair: tuple[Cluster, Cluster]) -> None:
    one, other = pair
    assert decide(one) == decide(one)
    assert decide(one) == decide(other)


@given(clusters(), st.frozensets(st.sampled_from(("node-a", "node-b"))))
def test_every_node_gets_one_verdict(start: Cluster, nominated: frozenset[str]) -> None:
    sweep = decide(start, nominated)
    assert [one.node for one in sweep.verdicts] == sorted(state.name for state in state_nodes(start))
    assert not nominated & set(sweep.disrupted())


@given(clusters())
def test_a_node_with_a_pod_that_must_stay_is_never_disrupted(start: Cluster) -> None:
    disrupted = set(decide(start).disrupted())
    for pod in start.pods:
        if pod.meta.annotation(labels.DO_NOT_DISRUPT) == "true" and pod.is_active():
            assert pod.node_name not in disrupted
        if any(one.selects(pod) and one.disruptions_allowed == 0 for one in start.budgets) and pod.is_evictable(NOW):
            assert pod.node_name not in disrupted


@given(clusters())
def test_nothing_is_deleted_that_was_not_proposed_five_seconds_before(start: Cluster) -> None:
    claims = {claim.name: claim for claim in start.node_claims}
    for one in of(DeleteObject, decide(start).actions):
        known = condition(claims[one.name].conditions, "DisruptionReason")
        assert known is not None
        assert known.since is not None
        assert NOW - known.since >= timedelta(seconds=5)


@given(clusters())
def test_repeated_it_comes_to_rest(start: Cluster) -> None:
    little = Little(start)
    for _ in range(8):
        little.perform(decide(little.cluster()).actions)
        little.pass_time(timedelta(seconds=10))
    last = decide(little.cluster()).actions
    assert not [one for one in last if isinstance(one, TaintNode | PatchStatus | DeleteObject | EvictPod)], last


@given(
    st.lists(st.builds(Budget, nodes=st.text("0123456789%x", max_size=4)), max_size=3).map(tuple), st.integers(0, 200)
)
def test_more_budgets_never_allow_more(budgets: tuple[Budget, ...], total: int) -> None:
    every = allowance(changed(POOL, budgets=budgets), "Empty", total, NOW).count
    assert 0 <= every <= UNLIMITED
    for number in range(len(budgets)):
        fewer = budgets[:number] + budgets[number + 1 :]
        assert every <= allowance(changed(POOL, budgets=fewer), "Empty", total, NOW).count
