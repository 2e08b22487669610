"""Instance types as bits of an integer: bit *i* is the i-th type by name.

A filter is a mask, and filters are joined with ``&``. Masks are kept per value of a label, per threshold of a resource
and per kind of offering, so that 900 types are filtered in microseconds.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import TypeAlias

import msgspec

from shared.model.catalogue import InstanceType, Offering, UnavailableOffering
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVED, ZONE, ZONE_ID
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Axes, Vector

RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id"
OFFERING_KEYS = (CAPACITY_TYPE, RESERVATION_ID, ZONE_ID, ZONE)
Mask: TypeAlias = int
Kind: TypeAlias = tuple[str, str, str, str]
"""Of an offering: capacity type, reservation, zone id, zone."""
Refused: TypeAlias = Mapping[str, Sequence[UnavailableOffering]]
"""What EC2 refused lately, by instance type; "" stands for all of them."""


class Priced(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An instance type in its cheapest offering."""

    bit: Mask
    name: str
    offering: Offering


class Shelf:
    """The types of one node class that can be bought now, and the masks over them."""

    def __init__(
        self, types: Iterable[InstanceType], axes: Axes, unavailable: tuple[UnavailableOffering, ...], now: datetime
    ) -> None:
        """Sort *types* in; what EC2 refused lately, or what is overdrawn, is not on sale."""
        self.axes = axes
        self.types = tuple(sorted(types, key=lambda one: one.name))
        refused = _refused(unavailable, now)
        self.offerings = tuple(_on_sale(one, refused, now) for one in self.types)
        self.rooms = tuple(axes.vector(one.allocatable) for one in self.types)
        self._steps = _thresholds(self.rooms, len(axes.names))
        self._labels = _labels(self.types)
        self._kinds: dict[Kind, Mask] = {}
        self.usable: Mask = 0
        for index, one in enumerate(self.types):
            if all(amount >= 0 for _, amount in one.allocatable.amounts):
                self.usable |= 1 << index
            for offering in self.offerings[index]:
                kind = kind_of(offering)
                self._kinds[kind] = self._kinds.get(kind, 0) | 1 << index
        self._compatible: dict[Requirement, Mask] = {}
        self._capacities: dict[str, tuple[list[int], list[Mask]]] = {}
        self._priced: dict[tuple[Kind, ...], tuple[Priced, ...]] = {}
        self._cheaper: dict[tuple[Kind, ...], list[Mask]] = {}
        self._open_to: dict[int, tuple[Requirements, tuple[Kind, ...]]] = {}
        self._ranked: list[list[tuple[Kind, Offering]]] = []

    def fitting(self, mask: Mask, needed: Vector) -> Mask:
        """Keep the types that have room for *needed* in all."""
        for amount, (steps, masks) in zip(needed, self._steps, strict=True):
            if amount > 0:
                mask &= masks[bisect_left(steps, amount)]
                if not mask:
                    return 0
        return mask

    def compatible(self, wanted: Requirements) -> Mask:
        """Answer the usable types whose labels intersect *wanted*."""
        mask = self.usable
        for item in wanted:
            if mask and item.key in self._labels:
                found = self._compatible.get(item)
                if found is None:
                    found = self._compatible[item] = self._intersecting(item)
                mask &= found
        return mask

    def kinds(self, wanted: Requirements) -> tuple[Kind, ...]:
        """Answer the kinds of offering that *wanted* leaves open, sorted."""
        known = self._open_to.get(id(wanted))
        if known is None or known[0] is not wanted:
            asked = [(place, wanted[key]) for place, key in enumerate(OFFERING_KEYS) if key in wanted]
            some = sorted(kind for kind in self._kinds if all(_allows(item, kind[place]) for place, item in asked))
            known = self._open_to[id(wanted)] = (wanted, tuple(some))
        return known[1]

    def offered(self, wanted: Requirements) -> Mask:
        """Answer the types that have some available offering that *wanted* leaves open."""
        mask = 0
        for kind in self.kinds(wanted):
            mask |= self._kinds[kind]
        return mask

    def count_values(self, item: Requirement, mask: Mask) -> int:
        """Count the values of a label that the types in *mask* have between them, of those that *item* allows."""
        if item.key == INSTANCE_TYPE:
            return mask.bit_count()
        return len(self.values(item, mask))

    def all_within(self, item: Requirement, mask: Mask) -> bool:
        """Whether every type in *mask* satisfies *item* whatever else is decided."""
        within = 0
        for own, group in self._labels.get(item.key, ()):
            finite = not own.complement and all(item.has(value) for value in own.values)
            if finite and (own.values or item.is_tolerant()):
                within |= group
        return not mask & ~within

    def speaks_of(self, key: str) -> bool:
        """Whether types have a label *key*."""
        return key in self._labels

    def values(self, item: Requirement, mask: Mask) -> frozenset[str]:
        """Answer the values of a label that the types in *mask* have between them, of those that *item* allows."""
        groups = (own for own, group in self._labels.get(item.key, ()) if group & mask and not own.complement)
        return frozenset(value for own in groups for value in own.values if item.has(value))

    def named(self, item: Requirement) -> Mask:
        """Answer the types whose name *item* allows, on sale or not."""
        return sum(1 << index for index, one in enumerate(self.types) if item.has(one.name))

    def cheapest_first(self, wanted: Requirements, mask: Mask) -> list[Priced]:
        """Answer the types in *mask* by the price of their cheapest open offering, then by name."""
        return [one for one in self._by_price(wanted) if one.bit & mask]

    def cheapest(self, wanted: Requirements, mask: Mask) -> Priced | None:
        """Answer the first of those, None if there is none."""
        priced, masks = self._by_price(wanted), self._cheaper[self.kinds(wanted)]
        place = bisect_left(masks, 1, key=lambda cheaper: cheaper & mask != 0)
        return priced[place] if place < len(priced) else None

    def capacity_types(self, wanted: Requirements, mask: Mask) -> frozenset[str]:
        """Answer the capacity types of the open offerings of the types in *mask*."""
        return frozenset(kind[0] for kind in self.kinds(wanted) if self._kinds[kind] & mask)

    def reservations(self, wanted: Requirements, mask: Mask) -> frozenset[str]:
        """Answer the ids of the capacity reservations that are open to the types in *mask*."""
        kinds = (kind for kind in self.kinds(wanted) if kind[0] == RESERVED)
        return frozenset(kind[1] for kind in kinds if self._kinds[kind] & mask)

    def reserved(self) -> dict[str, int]:
        """Answer how many instances each reservation still takes: the least that any of its offerings says."""
        found: dict[str, int] = {}
        for offering in (offering for some in self.offerings for offering in some):
            if offering.capacity_type == RESERVED:
                left, key = offering.reservation_capacity, offering.reservation_id
                found[key] = min(found.get(key, left), left)
        return found

    def within(self, limits: Mapping[str, int]) -> Mask:
        """Answer the types whose raw capacity exceeds none of *limits*."""
        mask = self.usable
        for name in sorted(limits):
            steps, masks = self._capacity(name)
            mask &= ~masks[bisect_right(steps, limits[name])]
        return mask

    def largest(self, mask: Mask, name: str) -> int:
        """Answer the greatest raw capacity of resource *name* among the types in *mask*."""
        return _greatest(mask, *self._capacity(name))

    def most(self, mask: Mask, axis: int) -> int:
        """Answer the greatest allocatable amount on *axis* among the types in *mask*."""
        return _greatest(mask, *self._steps[axis])

    def _capacity(self, name: str) -> tuple[list[int], list[Mask]]:
        if name not in self._capacities:
            self._capacities[name] = _thresholds([(one.capacity[name],) for one in self.types], 1)[0]
        return self._capacities[name]

    def _by_price(self, wanted: Requirements) -> tuple[Priced, ...]:
        kinds = self.kinds(wanted)
        if kinds not in self._priced:
            priced = self._priced[kinds] = self._priced_in(frozenset(kinds))
            self._cheaper[kinds] = list(accumulate((one.bit for one in priced), or_))
        return self._priced[kinds]

    def _intersecting(self, item: Requirement) -> Mask:
        return sum(
            group
            for own, group in self._labels[item.key]
            if own.intersects(item) or (own.is_tolerant() and item.is_tolerant())
        )

    def _priced_in(self, kinds: frozenset[Kind]) -> tuple[Priced, ...]:
        found = []
        for index, ranked in enumerate(self._ranked_offerings()):
            best = next((offering for kind, offering in ranked if kind in kinds), None)
            if best is not None:
                found.append(Priced(bit=1 << index, name=self.types[index].name, offering=best))
        return tuple(sorted(found, key=lambda one: (one.offering.price_usd_per_hour, one.name)))

    def _ranked_offerings(self) -> list[list[tuple[Kind, Offering]]]:
        """Answer the offerings by type, the cheapest first."""
        if not self._ranked:
            self._ranked = [[(kind_of(one), one) for one in sorted(some, key=_order)] for some in self.offerings]
        return self._ranked


def union(masks: Iterable[Mask]) -> Mask:
    """Answer what is in any of *masks*."""
    return reduce(or_, masks, 0)


def kind_of(offering: Offering) -> Kind:
    """Answer what requirements can tell of *offering*."""
    return (offering.capacity_type, offering.reservation_id, offering.zone_id, offering.zone)


def _greatest(mask: Mask, steps: Sequence[int], masks: Sequence[Mask]) -> int:
    low, high = 0, len(steps)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if mask & masks[middle] else (low, middle)
    return steps[low] if steps and mask else 0


def _allows(item: Requirement, value: str) -> bool:
    return item.has(value) if value else item.is_tolerant()


def _order(offering: Offering) -> tuple[float, str, str, str]:
    return (offering.price_usd_per_hour, offering.zone, offering.capacity_type, offering.reservation_id)


def _refused(unavailable: Iterable[UnavailableOffering], now: datetime) -> Refused:
    found: dict[str, list[UnavailableOffering]] = {}
    for one in unavailable:
        if now < one.until:
            found.setdefault(one.instance_type, []).append(one)
    return found


def _on_sale(one: InstanceType, refused: Refused, now: datetime) -> tuple[Offering, ...]:
    against = (*refused.get("", ()), *refused.get(one.name, ()))
    return tuple(
        offering
        for offering in one.offerings
        if offering.available
        and (offering.capacity_type != RESERVED or offering.reservation_capacity > 0)
        and not any(some.covers(one.name, offering, now, one.group_id) for some in against)
    )


def _thresholds(rooms: Sequence[Vector], width: int) -> list[tuple[list[int], list[Mask]]]:
    """For each axis: amounts, rising, and for each the types that have at least so much; the last is nobody."""
    found = []
    for axis in range(width):
        steps = sorted({room[axis] for room in rooms})
        at = dict.fromkeys(steps, 0)
        for index, room in enumerate(rooms):
            at[room[axis]] |= 1 << index
        masks = [0]
        for step in reversed(steps):
            masks.append(masks[-1] | at[step])
        found.append((steps, masks[::-1]))
    return found


def _labels(types: tuple[InstanceType, ...]) -> dict[str, list[tuple[Requirement, Mask]]]:
    """By key: the distinct requirements that types have on it, and who has them; who has none is compatible."""
    found: dict[str, dict[Requirement, Mask]] = {}
    for index, one in enumerate(types):
        for item in one.requirements:
            group = found.setdefault(item.key, {})
            group[item] = group.get(item, 0) | 1 << index
    silent = (1 << len(types)) - 1
    groups: dict[str, list[tuple[Requirement, Mask]]] = {}
    for key, by_item in found.items():
        speaking = sum(by_item.values())
        some = list(by_item.items())
        if silent & ~speaking:
            some.append((Requirement(key=key, complement=True), silent & ~speaking))
        groups[key] = some
    return groups
