"""Offering prices: the offerings of each instance type, the cheapest first, from which price lists are selected."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.instance_types.price_list import PricedInstanceType, SortedTypePrices
from shared.decide.scheduling.instance_types.resource_index import build_bits
from shared.model.cloud_provider.instance_type import InstanceType, Offering

OfferingKind: TypeAlias = tuple[str, str, str, str]
"""What requirements can distinguish of an offering: capacity type, reservation id, zone id, zone."""
_GET_PRICE_ORDER: Final = attrgetter("price_usd_per_hour", "zone", "capacity_type", "reservation_id")


def get_offering_kind(offering: Offering) -> OfferingKind:
    """Return the properties of *offering* that requirements can distinguish."""
    return (offering.capacity_type, offering.reservation_id, offering.zone_id, offering.zone)


class OfferingPrices:
    """The offerings of each instance type, the cheapest first; they are ranked when the first price list is built."""

    def __init__(self, types: Sequence[InstanceType], offerings: Sequence[Sequence[Offering]]) -> None:
        """Use *types*, sorted by name; *offerings* are those of each type that can be launched."""
        self._types, self._offerings = types, offerings
        self._numbers_by_kind: dict[OfferingKind, list[int]] = {}
        for number, type_offerings in enumerate(offerings):
            for offering in type_offerings:
                kind = (offering.capacity_type, offering.reservation_id, offering.zone_id, offering.zone)
                if kind in self._numbers_by_kind:
                    self._numbers_by_kind[kind].append(number)
                else:
                    self._numbers_by_kind[kind] = [number]
        self._cached_ranks: list[list[tuple[int, PricedInstanceType]]] = []

    def build_masks(self) -> dict[OfferingKind, Mask]:
        """Return, by offering kind, the instance types that have such an offering."""
        return {kind: build_bits(numbers) for kind, numbers in self._numbers_by_kind.items()}

    def build_price_list(self, kinds: frozenset[OfferingKind]) -> SortedTypePrices:
        """Return the types by the price of the cheapest of their offerings that *kinds* contains."""
        priced_types: list[PricedInstanceType] = []
        is_allowed = [kind in kinds for kind in self._numbers_by_kind]
        for ranked_offerings in self._rank_offerings():
            for kind_number, priced_type in ranked_offerings:
                if is_allowed[kind_number]:
                    priced_types.append(priced_type)
                    break
        priced_types.sort(key=attrgetter("offering.price_usd_per_hour"))
        return SortedTypePrices(priced_types)

    def _rank_offerings(self) -> list[list[tuple[int, PricedInstanceType]]]:
        """Return the offerings of each type with the number of their kind, the cheapest first."""
        if not self._cached_ranks:
            kind_numbers = {kind: number for number, kind in enumerate(self._numbers_by_kind)}
            for number, (instance_type, type_offerings) in enumerate(zip(self._types, self._offerings, strict=True)):
                bit, name = 1 << number, instance_type.name
                self._cached_ranks.append(
                    [
                        (
                            kind_numbers[get_offering_kind(offering)],
                            PricedInstanceType(bit=bit, name=name, offering=offering),
                        )
                        for offering in sorted(type_offerings, key=_GET_PRICE_ORDER)
                    ]
                )
        return self._cached_ranks
