"""Prices of instance types against limits in USD per hour: what a node of each type may cost at most.

EC2 selects the offering. So a type counts as its most expensive offering, over the zones of the NodePool, in the
capacity type that would be launched first.
"""

from bisect import bisect_right

from shared.decide.launch.money.limit_prices import LimitPrices
from shared.decide.scheduling.instance_types.instance_type_index import (
    InstanceTypeIndex,
)
from shared.decide.scheduling.instance_types.masks import Mask, build_thresholds, find_max_amount
from shared.decide.scheduling.instance_types.offering_prices import OfferingKind, get_offering_kind
from shared.decide.scheduling.instance_types.price_order import LAUNCH_ORDER
from shared.model.core.requirements import Requirements


class TypePrices:
    """Prices of the instance types of one NodePool, in millionths of a USD per hour."""

    def __init__(
        self, type_index: InstanceTypeIndex, limit_prices: LimitPrices, node_class: str, requirements: Requirements
    ) -> None:
        """Price the offerings that *requirements*, those of the NodePool, allow."""
        self._type_index = type_index
        self._price_by_type: list[dict[str, int]] = []
        allowed_kinds = frozenset(type_index.list_kinds(requirements))
        for instance_type, offerings in zip(type_index.types, type_index.offerings, strict=True):
            prices: dict[str, int] = {}
            for offering in offerings:
                if get_offering_kind(offering) in allowed_kinds:
                    price = limit_prices.get_price(instance_type, offering, node_class)
                    prices[offering.capacity_type] = max(prices.get(offering.capacity_type, 0), price)
            self._price_by_type.append(prices)
        self._cached_thresholds: dict[tuple[OfferingKind, ...], tuple[list[int], list[Mask]]] = {}

    def find_types_within(self, requirements: Requirements, micro_usd: int) -> Mask:
        """Return the types that cost at most *micro_usd* with the offerings that *requirements* allow."""
        thresholds, masks = self._get_thresholds(requirements)
        return masks[0] & ~masks[bisect_right(thresholds, micro_usd)]

    def get_max_price(self, requirements: Requirements, mask: Mask) -> int:
        """Return the price of the most expensive type in *mask*."""
        return find_max_amount(mask, *self._get_thresholds(requirements))

    def get_min_price(self, requirements: Requirements, mask: Mask) -> int:
        """Return the price of the cheapest type in *mask*, 0 if it is empty."""
        thresholds, masks = self._get_thresholds(requirements)
        steps = zip(thresholds, masks[1:], strict=True)
        return next((amount for amount, more_expensive in steps if mask & ~more_expensive), 0)

    def _get_thresholds(self, requirements: Requirements) -> tuple[list[int], list[Mask]]:
        kinds = self._type_index.list_kinds(requirements)
        thresholds = self._cached_thresholds.get(kinds)
        if thresholds is None:
            allowed_kinds = frozenset(kinds)
            amounts = [(self._find_price(number, allowed_kinds),) for number in range(len(self._price_by_type))]
            thresholds = self._cached_thresholds[kinds] = build_thresholds(amounts, 1)[0]
        return thresholds

    def _find_price(self, type_number: int, kinds: frozenset[OfferingKind]) -> int:
        """Return the price in the first capacity type of the launch order that is offered, 0 if none is."""
        offerings = self._type_index.offerings[type_number]
        capacity_types = {offering.capacity_type for offering in offerings if get_offering_kind(offering) in kinds}
        prices = self._price_by_type[type_number]
        return next((prices.get(name, 0) for name in LAUNCH_ORDER if name in capacity_types), 0)
