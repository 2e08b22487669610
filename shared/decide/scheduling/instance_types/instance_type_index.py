"""Instance type index: instance types as bits of an integer (bitmap); bit *i* is the i-th type by name.

A filter is a mask, and filters are combined with ``&``. Masks are stored per label value, per resource threshold and
per offering kind, so that 900 types are filtered in microseconds.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from shared.decide.scheduling.instance_types.masks import (
    LabelMasks,
    Mask,
    build_thresholds,
    find_max_amount,
)
from shared.decide.scheduling.instance_types.offering_prices import OfferingKind, OfferingPrices
from shared.decide.scheduling.instance_types.price_list import PricedInstanceType, SortedTypePrices
from shared.decide.scheduling.instance_types.resource_index import build_bits
from shared.model.cloud_provider.instance_type import InstanceType, Offering, UnavailableOffering
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION_ID, RESERVED, ZONE, ZONE_ID
from shared.model.core.requirements import Requirement, Requirements
from shared.model.core.resources import Axes, Vector

OFFERING_KEYS = (CAPACITY_TYPE, RESERVATION_ID, ZONE_ID, ZONE)
WITHOUT_RESERVED: Final = Requirements(
    items=(Requirement(key=CAPACITY_TYPE, complement=True, values=frozenset((RESERVED,))),)
)
"""Any capacity type but reserved."""
UnavailableByType: TypeAlias = Mapping[str, Sequence[UnavailableOffering]]
"""Offerings that EC2 recently refused, by instance type; "" stands for all types."""


class InstanceTypeIndex:
    """The instance types that can currently be launched for one node class, and masks over them."""

    def __init__(
        self, types: Iterable[InstanceType], axes: Axes, unavailable: tuple[UnavailableOffering, ...], now: datetime
    ) -> None:
        """Index *types*.

        Offerings that EC2 recently refused are excluded, and so are reservations without free capacity.
        """
        self.axes = axes
        self.types = tuple(sorted(types, key=lambda instance_type: instance_type.name))
        unavailable_by_type = _group_unavailable_by_type(unavailable, now)
        self.offerings = tuple(
            _list_available_offerings(sorted_type, unavailable_by_type, now) for sorted_type in self.types
        )
        allocatable_resources = [sorted_type.allocatable for sorted_type in self.types]
        self.allocatable = tuple(axes.build_vector(resources) for resources in allocatable_resources)
        self._allocatable_thresholds = build_thresholds(self.allocatable, len(axes.names))
        self._label_masks = LabelMasks(self.types)
        self.usable: Mask = build_bits(
            [index for index, resources in enumerate(allocatable_resources) if not resources.has_negative_amount()]
        )
        self._offering_prices = OfferingPrices(self.types, self.offerings)
        self._masks_by_kind = self._offering_prices.build_masks()
        self._cached_label_masks: dict[Requirement, Mask] = {}
        self._cached_capacity_thresholds: dict[str, tuple[list[int], list[Mask]]] = {}
        self._price_lists: dict[tuple[OfferingKind, ...], SortedTypePrices] = {}
        self._cached_kinds: dict[Requirements, tuple[OfferingKind, ...]] = {}

    def filter_fitting(self, mask: Mask, needed: Vector) -> Mask:
        """Return the types in *mask* whose allocatable resources are at least *needed*."""
        for amount, (thresholds, masks) in zip(needed, self._allocatable_thresholds, strict=True):
            if amount > 0:
                mask &= masks[bisect_left(thresholds, amount)]
                if not mask:
                    return 0
        return mask

    def find_compatible(self, requirements: Requirements) -> Mask:
        """Return the usable types whose labels intersect *requirements*."""
        mask = self.usable
        for requirement in requirements:
            if mask and self.has_label(requirement.key):
                label_mask = self._cached_label_masks.get(requirement)
                if label_mask is None:
                    label_mask = self._cached_label_masks[requirement] = self._find_intersecting(requirement)
                mask &= label_mask
        return mask

    def list_kinds(self, requirements: Requirements) -> tuple[OfferingKind, ...]:
        """Return the offering kinds that *requirements* allow, sorted."""
        cached_kinds = self._cached_kinds.get(requirements)
        if cached_kinds is None:
            offering_requirements = [
                (position, requirements[key]) for position, key in enumerate(OFFERING_KEYS) if key in requirements
            ]
            kinds = sorted(
                kind
                for kind in self._masks_by_kind
                if all(
                    _is_value_allowed(requirement, kind[position]) for position, requirement in offering_requirements
                )
            )
            cached_kinds = self._cached_kinds[requirements] = tuple(kinds)
        return cached_kinds

    def find_offered(self, requirements: Requirements) -> Mask:
        """Return the types with an available offering that *requirements* allow."""
        mask = 0
        for kind in self.list_kinds(requirements):
            mask |= self._masks_by_kind[kind]
        return mask

    def count_values(self, requirement: Requirement, mask: Mask) -> int:
        """Return the number of distinct values of a label that *requirement* allows, among the types in *mask*."""
        if requirement.key == INSTANCE_TYPE:
            return mask.bit_count()
        return len(self.list_values(requirement, mask))

    def is_satisfied_by_all(self, requirement: Requirement, mask: Mask) -> bool:
        """Return whether every type in *mask* satisfies *requirement* regardless of further narrowing."""
        satisfying = 0
        for type_requirement, group in self._label_masks.get_masks(requirement.key):
            is_satisfied = not type_requirement.complement and all(
                requirement.has(value) for value in type_requirement.values
            )
            if is_satisfied and (type_requirement.values or requirement.is_tolerant()):
                satisfying |= group
        return not mask & ~satisfying

    def has_label(self, key: str) -> bool:
        """Return whether some type has the label *key*."""
        return bool(self._label_masks.get_masks(key))

    def list_values(self, requirement: Requirement, mask: Mask) -> frozenset[str]:
        """Return the values of a label among the types in *mask*, of those that *requirement* allows."""
        type_requirements = (
            type_requirement
            for type_requirement, group in self._label_masks.get_masks(requirement.key)
            if group & mask and not type_requirement.complement
        )
        return frozenset(
            value
            for type_requirement in type_requirements
            for value in type_requirement.values
            if requirement.has(value)
        )

    def find_by_name(self, requirement: Requirement) -> Mask:
        """Return the types whose name *requirement* allows, whether they have an offering or not."""
        return sum(1 << index for index, instance_type in enumerate(self.types) if requirement.has(instance_type.name))

    def sort_by_price(self, requirements: Requirements, mask: Mask) -> list[PricedInstanceType]:
        """Return the types in *mask*, sorted by the price of their cheapest allowed offering, then by name."""
        return self.get_price_list(requirements).list_types(mask)

    def find_cheapest(self, requirements: Requirements, mask: Mask) -> PricedInstanceType | None:
        """Return the first type of `sort_by_price`, None if there is none."""
        return self.get_price_list(requirements).find_cheapest(mask)

    def get_price_list(self, requirements: Requirements) -> SortedTypePrices:
        """Return the types by the price of the cheapest offering that *requirements* allow."""
        kinds = self.list_kinds(requirements)
        price_list = self._price_lists.get(kinds)
        if price_list is None:
            price_list = self._price_lists[kinds] = self._offering_prices.build_price_list(frozenset(kinds))
        return price_list

    def list_capacity_types(self, requirements: Requirements, mask: Mask) -> frozenset[str]:
        """Return the capacity types of the allowed offerings of the types in *mask*."""
        return frozenset(kind[0] for kind in self.list_kinds(requirements) if self._masks_by_kind[kind] & mask)

    def list_reservation_ids(self, requirements: Requirements, mask: Mask) -> frozenset[str]:
        """Return the ids of the capacity reservations that the types in *mask* can use."""
        kinds = (kind for kind in self.list_kinds(requirements) if kind[0] == RESERVED)
        return frozenset(kind[1] for kind in kinds if self._masks_by_kind[kind] & mask)

    def count_reserved_instances(self) -> dict[str, int]:
        """Return the number of instances that each reservation can still launch: the minimum over its offerings."""
        count_by_reservation: dict[str, int] = {}
        if not any(kind[0] == RESERVED for kind in self._masks_by_kind):
            return count_by_reservation
        for offering in (offering for type_offerings in self.offerings for offering in type_offerings):
            if offering.capacity_type == RESERVED:
                available_count, reservation_id = offering.reservation_capacity, offering.reservation_id
                count_by_reservation[reservation_id] = min(
                    count_by_reservation.get(reservation_id, available_count), available_count
                )
        return count_by_reservation

    def find_within_limits(self, limits: Mapping[str, int]) -> Mask:
        """Return the usable types whose capacity exceeds none of *limits*."""
        mask = self.usable
        for name in sorted(limits):
            thresholds, masks = self._get_capacity_thresholds(name)
            mask &= ~masks[bisect_right(thresholds, limits[name])]
        return mask

    def get_max_capacity(self, mask: Mask, name: str) -> int:
        """Return the maximum capacity of resource *name* among the types in *mask*."""
        return find_max_amount(mask, *self._get_capacity_thresholds(name))

    def get_min_capacity(self, mask: Mask, name: str) -> int:
        """Return the minimum capacity of resource *name* among the types in *mask*, 0 if it is empty."""
        thresholds, masks = self._get_capacity_thresholds(name)
        return next((amount for amount, more in zip(thresholds, masks[1:], strict=True) if mask & ~more), 0)

    def get_max_allocatable(self, mask: Mask, axis: int) -> int:
        """Return the maximum allocatable amount on *axis* among the types in *mask*."""
        return find_max_amount(mask, *self._allocatable_thresholds[axis])

    def _get_capacity_thresholds(self, name: str) -> tuple[list[int], list[Mask]]:
        if name not in self._cached_capacity_thresholds:
            self._cached_capacity_thresholds[name] = build_thresholds(
                [(instance_type.capacity[name],) for instance_type in self.types], 1
            )[0]
        return self._cached_capacity_thresholds[name]

    def _find_intersecting(self, requirement: Requirement) -> Mask:
        return sum(
            type_mask
            for type_requirement, type_mask in self._label_masks.get_masks(requirement.key)
            if type_requirement.has_intersection(requirement)
            or (type_requirement.is_tolerant() and requirement.is_tolerant())
        )


def _is_value_allowed(requirement: Requirement, value: str) -> bool:
    return requirement.has(value) if value else requirement.is_tolerant()


def _group_unavailable_by_type(unavailable: Iterable[UnavailableOffering], now: datetime) -> UnavailableByType:
    unavailable_by_type: dict[str, list[UnavailableOffering]] = {}
    for unavailable_offering in unavailable:
        if now < unavailable_offering.until:
            unavailable_by_type.setdefault(unavailable_offering.instance_type, []).append(unavailable_offering)
    return unavailable_by_type


def _list_available_offerings(
    instance_type: InstanceType, unavailable_by_type: UnavailableByType, now: datetime
) -> tuple[Offering, ...]:
    unavailable_offerings = (*unavailable_by_type.get("", ()), *unavailable_by_type.get(instance_type.name, ()))
    offerings = [
        offering
        for offering in instance_type.offerings
        if offering.available and (offering.capacity_type != RESERVED or offering.reservation_capacity > 0)
    ]
    if not unavailable_offerings:
        return tuple(offerings)
    return tuple(
        offering
        for offering in offerings
        if not any(
            unavailable_offering.is_match(instance_type.name, offering, now, instance_type.group_id)
            for unavailable_offering in unavailable_offerings
        )
    )
