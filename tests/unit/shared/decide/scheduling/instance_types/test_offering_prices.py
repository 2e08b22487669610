"""Price lists are selected from the sorted offerings of all instance types."""

from shared.decide.scheduling.instance_types.offering_prices import OfferingPrices, get_offering_kind
from shared.model.cloud_provider.instance_type import InstanceType, Offering
from shared.model.core.requirements import ANYTHING
from shared.model.core.resources import NONE

SPOT_A, SPOT_B, ON_DEMAND_A = ("spot", "a"), ("spot", "b"), ("on-demand", "a")
OFFERINGS = (
    {SPOT_B: 0.05, SPOT_A: 0.05, ON_DEMAND_A: 0.09},
    {SPOT_A: 0.04, ON_DEMAND_A: 0.10},
    {ON_DEMAND_A: 0.05},
)


def make_offerings() -> list[list[Offering]]:
    return [
        [
            Offering(zone=zone, capacity_type=capacity_type, price_usd_per_hour=price)
            for (capacity_type, zone), price in prices.items()
        ]
        for prices in OFFERINGS
    ]


def make_offering_prices() -> OfferingPrices:
    types = [
        InstanceType(name=name, requirements=ANYTHING, capacity=NONE, overhead=NONE) for name in ("t0", "t1", "t2")
    ]
    return OfferingPrices(types, make_offerings())


def list_cheapest(*kinds: tuple[str, str]) -> list[tuple[str, int, str, str]]:
    """Return the type, its bit and the offering of each entry of the price list of *kinds*."""
    price_list = make_offering_prices().build_price_list(
        frozenset((capacity_type, "", "", zone) for capacity_type, zone in kinds)
    )
    return [
        (priced_type.name, priced_type.bit, priced_type.offering.capacity_type, priced_type.offering.zone)
        for priced_type in price_list.priced_types
    ]


def test_a_price_list_has_the_cheapest_allowed_offering_of_each_type_in_the_order_of_price_then_name() -> None:
    assert list_cheapest(SPOT_A, SPOT_B, ON_DEMAND_A) == [
        ("t1", 2, "spot", "a"),
        ("t0", 1, "spot", "a"),
        ("t2", 4, "on-demand", "a"),
    ]


def test_a_type_without_an_allowed_offering_is_left_out() -> None:
    assert list_cheapest(SPOT_B) == [("t0", 1, "spot", "b")]
    assert list_cheapest(ON_DEMAND_A) == [
        ("t2", 4, "on-demand", "a"),
        ("t0", 1, "on-demand", "a"),
        ("t1", 2, "on-demand", "a"),
    ]
    assert list_cheapest() == []


def test_the_masks_name_the_types_of_each_offering_kind() -> None:
    masks = make_offering_prices().build_masks()
    assert masks == {("spot", "", "", "a"): 0b011, ("spot", "", "", "b"): 0b001, ("on-demand", "", "", "a"): 0b111}
    assert {get_offering_kind(offering) for offerings in make_offerings() for offering in offerings} == set(masks)
