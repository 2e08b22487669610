"""DescribeSpotPriceHistory: the arguments that return current prices, and the parser of the response."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from shared.model.ec2.instance_type_info import SpotPrice


def build_spot_price_query(now: datetime) -> dict[str, Any]:
    """Return the arguments: a history that starts *now* is the current price of each type and zone."""
    return {"ProductDescriptions": ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"], "StartTime": now}


def select_newest_prices(history: Iterable[Mapping[str, Any]]) -> tuple[SpotPrice, ...]:
    """Return the newest price of each type and zone, sorted; entries without a usable price are skipped."""
    newest: dict[tuple[str, str], SpotPrice] = {}
    for price in filter(None, map(_parse_spot_price, history)):
        key = (price.instance_type, price.zone)
        newest[key] = max(
            newest.get(key, price),
            price,
            key=lambda candidate_price: (candidate_price.at, candidate_price.price_usd_per_hour),
        )
    return tuple(newest[key] for key in sorted(newest))


def _parse_spot_price(wire: Mapping[str, Any]) -> SpotPrice | None:
    try:
        price = float(wire.get("SpotPrice", ""))
    except ValueError:
        return None
    if "Timestamp" not in wire or not 0 < price < math.inf:
        return None
    return SpotPrice(
        instance_type=wire["InstanceType"],
        zone=wire["AvailabilityZone"],
        price_usd_per_hour=price,
        at=wire["Timestamp"].astimezone(UTC),
    )
