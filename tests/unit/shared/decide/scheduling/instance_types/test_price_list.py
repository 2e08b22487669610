"""The price list finds cheap instance types by bisection."""

from hypothesis import given
from hypothesis import strategies as st

from shared.decide.scheduling.instance_types.price_list import PricedInstanceType, SortedTypePrices
from shared.model.cloud_provider.instance_type import Offering

PRICES = st.lists(st.integers(1, 12).map(lambda cents: cents / 100), min_size=0, max_size=80)


def make_price_list(prices: list[float]) -> SortedTypePrices:
    """Return a price list; the i-th type, with bit i, has the i-th of *prices*."""
    return SortedTypePrices(
        PricedInstanceType(
            bit=1 << number,
            name=f"t{number:02d}",
            offering=Offering(zone="a", capacity_type="spot", price_usd_per_hour=price),
        )
        for number, price in sorted(enumerate(prices), key=lambda pair: (pair[1], pair[0]))
    )


@given(PRICES, st.integers(0, (1 << 80) - 1), st.sampled_from((1.0, 1.15, 3.0)), st.integers(1, 40))
def test_cheap_types_are_those_near_the_lowest_price_and_at_least_the_minimum_number(
    prices: list[float], mask: int, max_price_ratio: float, min_count: int
) -> None:
    price_list = make_price_list(prices)
    listed = sorted((price, number) for number, price in enumerate(prices) if mask >> number & 1)
    expected = [
        number
        for place, (price, number) in enumerate(listed)
        if place < min_count or price <= max_price_ratio * listed[0][0]
    ]
    assert price_list.select_cheap_types(mask, max_price_ratio, min_count) == sum(1 << number for number in expected)
    cheapest = price_list.find_cheapest(mask)
    assert (None if cheapest is None else cheapest.bit) == (1 << listed[0][1] if listed else None)
    assert [priced.bit for priced in price_list.list_types(mask)] == [1 << number for _, number in listed]
