"""Laws of the soft balance of nodes across zones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.core.labels import ZONE_BALANCE
from shared.model.core.metadata import ObjectMeta
from shared.model.karpenter.zone_balance import choose_balanced_zone, get_balance_percent, parse_balance_percent
from tests.support.catalogues import make_node_pool

ZONES = st.sampled_from("abcd")
PRICES = st.dictionaries(ZONES, st.floats(0.001, 10), min_size=1)
COUNTS = st.dictionaries(ZONES, st.integers(0, 50))
PERCENTS = st.integers(0, 1000)


@given(PRICES, COUNTS, PERCENTS)
def test_chosen_zone_costs_at_most_the_percentage_more(
    prices: dict[str, float], node_counts: dict[str, int], percent: int
) -> None:
    zone = choose_balanced_zone(prices, node_counts, percent)
    assert prices[zone] <= min(prices.values()) * (1 + percent / 100)


@given(PRICES, COUNTS, PERCENTS)
def test_no_affordable_zone_has_fewer_nodes(
    prices: dict[str, float], node_counts: dict[str, int], percent: int
) -> None:
    zone = choose_balanced_zone(prices, node_counts, percent)
    affordable = [name for name, price in prices.items() if price <= min(prices.values()) * (1 + percent / 100)]
    assert node_counts.get(zone, 0) == min(node_counts.get(name, 0) for name in affordable)


@given(PRICES, COUNTS)
def test_without_a_tolerance_the_cheapest_zone_is_chosen(prices: dict[str, float], node_counts: dict[str, int]) -> None:
    assert prices[choose_balanced_zone(prices, node_counts, 0)] == min(prices.values())


@given(st.sets(ZONES, min_size=1), st.integers(0, 40))
def test_equally_expensive_zones_differ_by_at_most_one_node(zones: set[str], node_count: int) -> None:
    node_counts: Counter[str] = Counter()
    for _ in range(node_count):
        node_counts[choose_balanced_zone(dict.fromkeys(zones, 1.0), node_counts, 0)] += 1
    counts = [node_counts[zone] for zone in zones]
    assert max(counts) - min(counts) <= 1
    assert sum(counts) == node_count


def test_without_zones_none_is_chosen() -> None:
    assert choose_balanced_zone({}, {}, 10) == ""


@pytest.mark.parametrize(("text", "percent"), [("", None), ("0", 0), ("15", 15), ("15%", None), ("1001", None)])
def test_invalid_percentage_balances_nothing(text: str, percent: int | None) -> None:
    pool = make_node_pool(meta=ObjectMeta(name="default", annotations=((ZONE_BALANCE, text),)))
    assert get_balance_percent(pool) == percent


@pytest.mark.parametrize("text", ["ten", "-1", "1001", "٣"])
def test_invalid_percentage_names_the_fix(text: str) -> None:
    with pytest.raises(ValueError, match="write a whole number from 0 to 1000"):
        parse_balance_percent(text)
