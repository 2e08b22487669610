"""Price list: instance types by the price of their cheapest allowed offering, searched by bisection."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from operator import or_

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask
from shared.model.cloud_provider.instance_type import Offering


class PricedInstanceType(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An instance type with its cheapest offering."""

    bit: Mask
    name: str
    offering: Offering


class SortedTypePrices:
    """Instance types in the order of their price, then of their name."""

    def __init__(self, priced_types: Iterable[PricedInstanceType]) -> None:
        """Sort *priced_types*."""
        self.priced_types = tuple(
            sorted(priced_types, key=lambda priced_type: (priced_type.offering.price_usd_per_hour, priced_type.name))
        )
        self._prices = [priced_type.offering.price_usd_per_hour for priced_type in self.priced_types]
        self._cumulative_masks: list[Mask] = [
            0,
            *accumulate((priced_type.bit for priced_type in self.priced_types), or_),
        ]

    def list_types(self, mask: Mask) -> list[PricedInstanceType]:
        """Return the types in *mask*, the cheapest first."""
        return [priced_type for priced_type in self.priced_types if priced_type.bit & mask]

    def find_cheapest(self, mask: Mask) -> PricedInstanceType | None:
        """Return the cheapest type in *mask*, None if there is none."""
        position = self._count_until(mask, 1) - 1
        return self.priced_types[position] if position < len(self.priced_types) else None

    def select_cheap_types(self, mask: Mask, max_price_ratio: float, min_count: int) -> Mask:
        """Return the types in *mask* that cost at most *max_price_ratio* times the cheapest of them.

        At least *min_count* types are returned, the cheapest ones, if *mask* has so many.
        """
        cheapest_type = self.find_cheapest(mask)
        if cheapest_type is None:
            return 0
        max_price = max_price_ratio * cheapest_type.offering.price_usd_per_hour
        cheap_types = mask & self._cumulative_masks[bisect_right(self._prices, max_price)]
        if cheap_types.bit_count() >= min_count:
            return cheap_types
        position = min(self._count_until(mask, min_count), len(self.priced_types))
        return mask & self._cumulative_masks[position]

    def _count_until(self, mask: Mask, count: int) -> int:
        """Return how many types from the cheapest on contain *count* types of *mask*; more than all if none do."""
        return bisect_left(self._cumulative_masks, count, key=lambda cheapest: (cheapest & mask).bit_count())
