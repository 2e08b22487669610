"""Soft balance of a NodePool's nodes across zones: the annotation joiner.dev/zone-balance-percent of the NodePool."""

from collections.abc import Mapping
from typing import Final

from shared.model.core.labels import ZONE_BALANCE
from shared.model.karpenter.node_pool import NodePool

_MAX_PERCENT: Final = 1000


def parse_balance_percent(text: str) -> int:
    """Parse how many percent more than the cheapest zone a node may cost.

    >>> parse_balance_percent("10")
    10

    Raises:
        ValueError: *text* is not a whole number from 0 to 1000.
    """
    if not (text.isascii() and text.isdecimal()) or int(text) > _MAX_PERCENT:
        raise ValueError(f"{text!r} is not a percentage: write a whole number from 0 to {_MAX_PERCENT}, like 10")
    return int(text)


def get_balance_percent(pool: NodePool) -> int | None:
    """Return the percentage of *pool*; None if it has no annotation, or an invalid one: then nothing is balanced."""
    try:
        return parse_balance_percent(pool.meta.get_annotation(ZONE_BALANCE))
    except ValueError:
        return None


def choose_balanced_zone(prices: Mapping[str, float], node_counts: Mapping[str, int], percent: int) -> str:
    """Return the zone with the fewest nodes among those that cost at most *percent* more than the cheapest zone.

    *prices* has the price of the cheapest offering by zone, *node_counts* the nodes by zone. Of zones with equally many
    nodes, the cheapest is returned; "" without zones.
    """
    max_price = min(prices.values(), default=0.0) * (1 + percent / 100)
    affordable_zones = [zone for zone, price in prices.items() if price <= max_price]
    return min(affordable_zones, key=lambda zone: (node_counts.get(zone, 0), prices[zone], zone), default="")
