"""The annotation minimum-savings-percent with 100 %: nodes are deleted, and never replaced."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.disruption.budgets.node_pool_annotations import NodePoolDisruptionAnnotations
from shared.decide.disruption.savings.balanced_policy import _check_thresholds
from shared.model.core.labels import MINIMUM_SAVINGS_PERCENT
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_pool import NodePool
from tests.support.catalogues import make_node_pool
from tests.support.disruption_fleet import decide_disruption, make_fleet, make_node_with_pods, make_web_pod

ONLY_DELETION = NodePoolDisruptionAnnotations(minimum_percent=100.0)
PRICES = st.lists(st.floats(min_value=1e-4, max_value=1e3), min_size=1, max_size=60)


def make_threshold_pool(policy: str) -> NodePool:
    meta = ObjectMeta(name="default", annotations=build_pairs({MINIMUM_SAVINGS_PERCENT: "100"}))
    return make_node_pool(budgets=(), meta=meta, consolidation_policy=policy)


@given(prices=PRICES, data=st.data())
def test_deletion_saves_100_percent_in_whichever_order_prices_are_summed(
    prices: list[float], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(prices))
    assert _check_thresholds(ONLY_DELETION, sum(shuffled), sum(prices)) is None


@given(prices=PRICES, ratio=st.floats(min_value=1e-7, max_value=1.0))
def test_replacement_never_saves_100_percent_even_at_the_price_of_a_reservation(
    prices: list[float], ratio: float
) -> None:
    price = sum(prices)
    assert _check_thresholds(ONLY_DELETION, price * (1 - ratio), price) is not None


def test_node_without_a_known_price_saves_100_percent_when_it_is_deleted() -> None:
    assert _check_thresholds(ONLY_DELETION, 0.0, 0.0) is None


@given(prices=PRICES, part=st.floats(min_value=0, max_value=1))
def test_higher_threshold_never_allows_more(prices: list[float], part: float) -> None:
    price = sum(prices)
    refusals = [
        _check_thresholds(NodePoolDisruptionAnnotations(minimum_percent=float(percent)), price * part, price)
        is not None
        for percent in range(0, 101, 5)
    ]
    assert all(lower <= higher for lower, higher in pairwise(refusals))


@pytest.mark.parametrize("policy", ["WhenEmptyOrUnderutilized", "Balanced"])
def test_threshold_of_100_percent_deletes_nodes_whose_pods_fit_elsewhere_and_launches_none(policy: str) -> None:
    nodes = [make_node_with_pods(f"n{number}", make_web_pod(str(number), "700m"), cpu=4) for number in range(6)]
    decision = decide_disruption(make_fleet(*nodes, pools=(make_threshold_pool(policy),)))
    assert [len(command.replacements) for command in decision.commands] == [0]
    assert len(decision.commands[0].targets) == 4
