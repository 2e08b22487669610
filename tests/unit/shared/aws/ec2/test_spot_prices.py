"""Tests of spot prices: the newest usable price of each instance type and zone."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.aws.ec2.spot_prices import select_newest_prices
from shared.model.ec2.instance_type_info import SpotPrice

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PRICE = {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a", "SpotPrice": "0.04", "Timestamp": NOON}


def make_price(**changes: object) -> dict[str, object]:
    return {**PRICE, **changes}


def make_spot_price(usd_per_hour: float, at: datetime = NOON, zone: str = "us-east-1a") -> SpotPrice:
    return SpotPrice(instance_type="m5.large", zone=zone, price_usd_per_hour=usd_per_hour, at=at)


@pytest.mark.parametrize(
    ("history", "prices"),
    [
        ([], ()),
        ([make_price()], (make_spot_price(0.04),)),
        ([make_price(SpotPrice="none")], ()),
        ([make_price(SpotPrice="0")], ()),
        ([make_price(SpotPrice="inf")], ()),
        ([{key: value for key, value in PRICE.items() if key != "Timestamp"}], ()),
        ([{key: value for key, value in PRICE.items() if key != "SpotPrice"}], ()),
        (
            [
                make_price(SpotPrice="0.05"),
                make_price(SpotPrice="0.03", Timestamp=NOON + timedelta(hours=1)),
                make_price(),
            ],
            (make_spot_price(0.03, NOON + timedelta(hours=1)),),
        ),
        (
            [make_price(AvailabilityZone="us-east-1b"), make_price(SpotPrice="0.05"), make_price()],
            (make_spot_price(0.05), make_spot_price(0.04, zone="us-east-1b")),
        ),
    ],
    ids=["none", "one", "words", "zero", "infinite", "undated", "unpriced", "newest", "by-zone"],
)
def test_newest_valid_spot_price_per_instance_type_and_zone_is_selected(
    history: list[dict[str, object]], prices: tuple[SpotPrice, ...]
) -> None:
    assert select_newest_prices(history) == prices
