"""Worst-case price of a replacement: whichever offering EC2 selects, the cluster gets cheaper."""

from bisect import bisect_left
from math import inf
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.instance_type_index import (
    InstanceTypeIndex,
)
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.instance_types.offering_prices import OfferingKind, get_offering_kind
from shared.model.core.labels import ON_DEMAND, RESERVED, SPOT
from shared.model.core.requirements import Requirements

LAUNCH_ORDER: Final = (RESERVED, SPOT, ON_DEMAND)
"""The first of these capacity types that a type is offered as is the one it is launched as."""


class PriceOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Types by their worst launch price, ascending; the mask at index i has the types before position i."""

    prices: tuple[float, ...]
    type_masks: tuple[Mask, ...]
    worst_price_by_type: dict[int, float]
    """By type number."""

    def find_types_below(self, price: float) -> Mask:
        """Return the types that cost less than *price* with each offering."""
        return self.type_masks[bisect_left(self.prices, price)]


class PriceOrders:
    """Builds and caches price orders."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._order_by_key: dict[tuple[InstanceTypeIndex, tuple[OfferingKind, ...]], PriceOrder] = {}

    def get_price_order(self, instance_type_index: InstanceTypeIndex, requirements: Requirements) -> PriceOrder:
        """Return the price order of the types and offerings that *requirements* allow."""
        kinds = instance_type_index.list_kinds(requirements)
        key = (instance_type_index, kinds)
        if key not in self._order_by_key:
            self._order_by_key[key] = _build_price_order(instance_type_index, frozenset(kinds))
        return self._order_by_key[key]


def _build_price_order(instance_type_index: InstanceTypeIndex, kinds: frozenset[OfferingKind]) -> PriceOrder:
    worst_price_by_type: dict[int, float] = {}
    for index, offerings in enumerate(instance_type_index.offerings):
        price_by_capacity_type: dict[str, float] = {}
        for offering in offerings:
            if get_offering_kind(offering) in kinds:
                price_by_capacity_type[offering.capacity_type] = max(
                    price_by_capacity_type.get(offering.capacity_type, 0.0), offering.price_usd_per_hour
                )
        launch_price = next(
            (price_by_capacity_type[name] for name in LAUNCH_ORDER if name in price_by_capacity_type), inf
        )
        if launch_price < inf:
            worst_price_by_type[index] = launch_price
    ranked = sorted((price, index) for index, price in worst_price_by_type.items())
    masks = [0]
    for _, index in ranked:
        masks.append(masks[-1] | 1 << index)
    return PriceOrder(
        prices=tuple(price for price, _ in ranked), type_masks=tuple(masks), worst_price_by_type=worst_price_by_type
    )
