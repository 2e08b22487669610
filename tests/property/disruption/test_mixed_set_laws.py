"""Looking ahead: mixed sets never end with a higher cost than the usual order, for any fleet."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.consolidate.steps import take_all_steps
from cli.planning.fleet import build_fleet
from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS
from shared.decide.disruption.methods import mixed_sets
from shared.decide.disruption.methods.consolidation_search import is_end_cheaper
from shared.model.cluster import ClusterSnapshot
from shared.state.cluster_state import ClusterState
from tests.support.disruption_fleet import (
    BOTH,
    OPTIONS,
    decide_disruption,
    make_budgeted_pool,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)

MAX_ERROR_USD_PER_HOUR = 1e-9


@st.composite
def generate_mixed_fleet(draw: st.DrawFn) -> ClusterSnapshot:
    """A few nodes with spot and on-demand capacity, and pods that they have room for."""
    machines = []
    for number in range(draw(st.integers(2, 7))):
        cpu = draw(st.sampled_from((2, 4, 8)))
        count = draw(st.integers(1, 2))
        size = draw(st.sampled_from((200, 450, cpu * 200, cpu * 300, cpu * 480)))
        pods = [make_web_pod(f"{number}-{place}", f"{size}m") for place in range(count)]
        kind = draw(st.sampled_from(("spot", "spot", "on-demand")))
        machines.append(make_node_with_pods(f"n{number}", *pods, cpu=cpu, capacity_type=kind))
    budget = draw(st.sampled_from(("1", "3", "100%")))
    return make_fleet(*machines, pools=(make_budgeted_pool(budget),), types=BOTH)


def compute_end_price(cluster: ClusterSnapshot) -> float:
    last_state, _ = take_all_steps(ClusterState(cluster), OPTIONS, DEFAULT_SETTINGS, ())
    return build_fleet(last_state).price_usd_per_hour


@settings(max_examples=60, deadline=None)
@given(generate_mixed_fleet())
def test_looking_ahead_never_ends_with_a_higher_cost(cluster: ClusterSnapshot) -> None:
    price = compute_end_price(cluster)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(mixed_sets, "MAX_CANDIDATES", 0)
        usual_price = compute_end_price(cluster)
    assert price <= usual_price + MAX_ERROR_USD_PER_HOUR


@settings(max_examples=30, deadline=None)
@given(generate_mixed_fleet(), generate_mixed_fleet())
def test_of_two_ends_at_most_one_is_cheaper(cluster: ClusterSnapshot, other_cluster: ClusterSnapshot) -> None:
    ends = [decide_disruption(fleet).proposed_commands for fleet in (cluster, other_cluster)]
    assert not (is_end_cheaper(ends[0], ends[1]) and is_end_cheaper(ends[1], ends[0]))
    assert not is_end_cheaper(ends[0], None)
    assert not is_end_cheaper(None, ends[0])
