"""Tests of synthetic prices: only what they must have in common with real prices."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest

from sim.cloud.catalog.instance_types import load_instance_types
from sim.cloud.catalog.synthetic_prices import (
    MAX_SPOT_PRICE_RATIO,
    MIN_SPOT_PRICE_RATIO,
    PriceList,
    compute_on_demand_price,
    compute_on_demand_prices,
    compute_spot_price_ratio,
    truncate_to_hour,
)

PRICES = compute_on_demand_prices()
NOON = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
POOL = (("m5.large", "us-east-1a"),)


def test_price_of_an_invalid_instance_type_name_is_rejected() -> None:
    with pytest.raises(ValueError, match="not an instance type: large"):
        compute_on_demand_price(msgspec.structs.replace(load_instance_types()["m5.large"], name="large"))


def test_every_instance_type_has_a_price() -> None:
    assert PRICES.keys() == load_instance_types().keys()
    assert all(0.001 < price < 500 for price in PRICES.values())


@pytest.mark.parametrize("family", ["c5", "c7g", "m5", "m6id", "m7a", "m7i-flex", "r6gd", "r8i", "t3"])
def test_price_doubles_with_instance_size(family: str) -> None:
    assert PRICES[f"{family}.xlarge"] == 2 * PRICES[f"{family}.large"]
    assert PRICES[f"{family}.2xlarge"] == 4 * PRICES[f"{family}.large"]


@pytest.mark.parametrize(
    ("cheaper", "more_expensive"),
    [
        ("c6i.large", "m6i.large"),  # memory costs
        ("m6i.large", "r6i.large"),
        ("m6g.large", "m6a.large"),  # Graviton is cheaper than AMD
        ("m6a.large", "m6i.large"),  # AMD is cheaper than Intel
        ("m7i.large", "m7a.large"),  # until it sells whole cores
        ("m6g.large", "m7g.large"),  # newer generations are faster
        ("m6i.large", "m7i.large"),
        ("m5.large", "m4.large"),  # old generations are expensive
        ("m4.large", "m3.large"),
        ("m7i-flex.large", "m7i.large"),
        ("m6i.large", "m6id.large"),  # a local disk
        ("m6i.large", "m6in.large"),  # network
        ("m5.large", "m5n.large"),
        ("c7g.large", "c7gn.large"),
        ("r5.large", "r5b.large"),  # EBS bandwidth
        ("m5n.large", "m5zn.large"),  # clock
        ("c8in.large", "c8ine.large"),
        ("t4g.large", "t3a.large"),
        ("t3a.large", "t3.large"),
        ("t3.large", "m5.large"),
        ("m5.4xlarge", "g4dn.4xlarge"),  # accelerators
        ("g5.xlarge", "p4d.24xlarge"),
        ("c5.xlarge", "inf1.xlarge"),
        ("m5.xlarge", "inf2.xlarge"),
        ("r6i.large", "i4i.large"),
        ("i4i.large", "i3en.large"),
    ],
)
def test_synthetic_price_order_matches_real_prices(cheaper: str, more_expensive: str) -> None:
    assert PRICES[cheaper] < PRICES[more_expensive]


def test_burstable_instance_price_is_proportional_to_memory() -> None:
    assert PRICES["t3.small"] == 2 * PRICES["t3.micro"]


def test_bare_metal_price_equals_the_largest_size() -> None:
    assert PRICES["m5.metal"] == PRICES["m5.24xlarge"]


def test_spot_price_ratio_changes_slightly_every_hour() -> None:
    hours = [NOON + timedelta(hours=hour) for hour in range(24 * 14)]
    shares = [compute_spot_price_ratio(0, "m5.large", "us-east-1a", at) for at in hours]
    steps = [abs(later - earlier) for earlier, later in pairwise(shares)]
    assert all(MIN_SPOT_PRICE_RATIO <= share <= MAX_SPOT_PRICE_RATIO for share in shares)
    assert len(set(shares)) == len(shares)
    assert max(steps) < 0.03
    assert max(shares) - min(shares) > 0.01


@pytest.mark.parametrize(
    "ratio_arguments",
    [(1, "m5.large", "us-east-1a"), (0, "m5.xlarge", "us-east-1a"), (0, "m5.large", "us-east-1b")],
)
def test_spot_price_differs_by_seed_type_and_zone(ratio_arguments: tuple[int, str, str]) -> None:
    assert compute_spot_price_ratio(*ratio_arguments, NOON) != compute_spot_price_ratio(
        0, "m5.large", "us-east-1a", NOON
    )


def test_spot_price_is_constant_within_an_hour() -> None:
    prices = PriceList(POOL, 0)
    assert truncate_to_hour(NOON) == NOON.replace(minute=0)
    assert prices.list_spot_prices(NOON) == prices.list_spot_prices(NOON.replace(minute=59))
    (price,) = prices.list_spot_prices(NOON)
    assert price.at == NOON.replace(minute=0)
    assert price.price_usd_per_hour == prices.get_spot_price("m5.large", "us-east-1a", NOON)


def test_on_demand_only_instance_type_has_no_spot_price() -> None:
    on_demand_only = next(info.name for info in load_instance_types().values() if "spot" not in info.usage_classes)
    assert PriceList(((on_demand_only, "us-east-1a"),), 0).list_spot_prices(NOON) == ()
