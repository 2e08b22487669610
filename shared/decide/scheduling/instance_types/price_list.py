"""Price list: instance types by the price of their cheapest allowed offering, searched by bisection."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate, compress
from operator import itemgetter, or_
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask, merge_masks
from shared.decide.scheduling.instance_types.resource_index import build_bits
from shared.model.cloud_provider.instance_type import Offering

BLOCK_SIZE: Final = 32
_DIGIT_VALUES: Final = bytes.maketrans(b"01", b"\0\1")


class PricedInstanceType(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An instance type with its cheapest offering."""

    bit: Mask
    name: str
    offering: Offering


class SortedTypePrices:
    """Instance types in the order of their price, then of their name.

    For every `BLOCK_SIZE` types there is a mask of all types up to there: a search bisects the blocks, then scans one.
    """

    def __init__(self, priced_types: Iterable[PricedInstanceType]) -> None:
        """Index *priced_types*, which must be in this order."""
        self.priced_types = tuple(priced_types)
        numbers = [priced_type.bit.bit_length() - 1 for priced_type in self.priced_types]
        self._type_count = 1 + max(numbers, default=0)
        self._sort_flags = itemgetter(*numbers, 0, 0)  # with two more, so that the result is always a tuple
        blocks = (numbers[start : start + BLOCK_SIZE] for start in range(0, len(numbers), BLOCK_SIZE))
        self._block_masks: list[Mask] = [0, *accumulate(map(build_bits, blocks), or_)]

    def list_types(self, mask: Mask) -> list[PricedInstanceType]:
        """Return the types in *mask*, the cheapest first."""
        is_in_mask = bin(mask)[:1:-1].encode().translate(_DIGIT_VALUES).ljust(self._type_count, b"\0")
        return list(compress(self.priced_types, self._sort_flags(is_in_mask)))

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
        cheap_types = mask & self._merge_first(bisect_right(self.priced_types, max_price, key=_get_price))
        if cheap_types.bit_count() >= min_count:
            return cheap_types
        return mask & self._merge_first(min(self._count_until(mask, min_count), len(self.priced_types)))

    def _merge_first(self, count: int) -> Mask:
        """Return the first *count* types."""
        block = count // BLOCK_SIZE
        return merge_masks(
            (
                self._block_masks[block],
                *(priced_type.bit for priced_type in self.priced_types[block * BLOCK_SIZE : count]),
            )
        )

    def _count_until(self, mask: Mask, count: int) -> int:
        """Return how many types from the cheapest on contain *count* types of *mask*; more than all if none do."""
        block = bisect_left(self._block_masks, count, key=lambda cheapest: (cheapest & mask).bit_count()) - 1
        start, missing_count = block * BLOCK_SIZE, count - (self._block_masks[block] & mask).bit_count()
        for position, priced_type in enumerate(self.priced_types[start : start + BLOCK_SIZE], start + 1):
            if priced_type.bit & mask:
                missing_count -= 1
                if not missing_count:
                    return position
        return len(self.priced_types) + 1


def _get_price(priced_type: PricedInstanceType) -> float:
    return priced_type.offering.price_usd_per_hour
