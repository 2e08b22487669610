"""What a replacement may cost at worst: whatever EC2 chooses of what it is offered, the fleet gets cheaper."""

from bisect import bisect_left
from math import inf
from typing import Final

import msgspec

from shared.model.catalogue import Catalogue, InstanceType
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, RESERVED, SPOT, ZONE
from shared.model.objects import Meta
from shared.model.requirements import Requirements
from shared.scheduling.shelf import Kind, Mask, Shelf, kind_of

LAUNCH_ORDER: Final = (RESERVED, SPOT, ON_DEMAND)
"""The first of these that a type is sold as is what it is launched as."""


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """Types by the worst price that they may be launched at, rising; at i, those before number i."""

    prices: tuple[float, ...]
    masks: tuple[Mask, ...]
    worst: dict[int, float]
    """By type."""

    def below(self, price: float) -> Mask:
        """Answer the types that cost less than *price* whatever happens."""
        return self.masks[bisect_left(self.prices, price)]


class Ladders:
    """Makes ladders, and keeps them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[tuple[int, tuple[Kind, ...]], Ladder] = {}

    def of(self, shelf: Shelf, wanted: Requirements) -> Ladder:
        """Answer the ladder of what *wanted* leaves open."""
        kinds = shelf.kinds(wanted)
        key = (id(shelf), kinds)
        if key not in self._known:
            self._known[key] = _ladder(shelf, frozenset(kinds))
        return self._known[key]


def _ladder(shelf: Shelf, kinds: frozenset[Kind]) -> Ladder:
    worst: dict[int, float] = {}
    for index, offerings in enumerate(shelf.offerings):
        by_type: dict[str, float] = {}
        for one in offerings:
            if kind_of(one) in kinds:
                by_type[one.capacity_type] = max(by_type.get(one.capacity_type, 0.0), one.price_usd_per_hour)
        first = next((by_type[name] for name in LAUNCH_ORDER if name in by_type), inf)
        if first < inf:
            worst[index] = first
    ranked = sorted((price, index) for index, price in worst.items())
    masks = [0]
    for _, index in ranked:
        masks.append(masks[-1] | 1 << index)
    return Ladder(prices=tuple(price for price, _ in ranked), masks=tuple(masks), worst=worst)


class PriceList:
    """What nodes cost that are there: looked up by what their labels say."""

    def __init__(self, catalogue: Catalogue | None) -> None:
        """Sort in what *catalogue* sells."""
        self._catalogue = catalogue
        self._types: dict[tuple[str, str], dict[str, InstanceType]] = {}

    def price(self, meta: Meta, node_class: str) -> float:
        """Answer the price of the first offering that the labels name, available or not; 0 if there is none."""
        one = self.type_of(meta, node_class)
        wanted = (meta.label(ZONE), meta.label(CAPACITY_TYPE))
        offerings = one.offerings if one is not None else ()
        return next((one.price_usd_per_hour for one in offerings if (one.zone, one.capacity_type) == wanted), 0.0)

    def type_of(self, meta: Meta, node_class: str) -> InstanceType | None:
        """Answer the type that the labels name."""
        return self.types(node_class, meta.label(NODEPOOL)).get(meta.label(INSTANCE_TYPE))

    def types(self, node_class: str, node_pool: str) -> dict[str, InstanceType]:
        """Answer what a NodePool sees of the catalogue, by name."""
        key = (node_class, node_pool)
        if key not in self._types:
            some = self._catalogue.types_for(node_class, node_pool) if self._catalogue is not None else ()
            self._types[key] = {one.name: one for one in some}
        return self._types[key]
