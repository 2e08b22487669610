"""The account's capacity reservations and placement groups, as Describe shows them."""

from datetime import datetime
from typing import Final

import msgspec

from shared.model.ec2.account import CapacityReservation, PlacementGroup, SelectorTerm
from shared.model.ec2.types import Tags
from sim.cloud import seeded_random
from sim.cloud.ec2.capacity_pools import CapacityPool
from sim.cloud.resources.selector_terms import has_tags, sort_tags

OWNER_ID: Final = "123456789012"


class ReservationPool(CapacityPool):
    """The free slots of one capacity reservation."""

    __slots__ = ("_reservation_id", "_reservations")

    def __init__(self, reservations: "Reservations", reservation_id: str) -> None:
        """Use the free slots of *reservation_id*."""
        reservation = reservations.find(reservation_id)
        super().__init__(reservation.available_count if reservation is not None else 0)
        self._reservations, self._reservation_id = reservations, reservation_id

    def acquire_slot(self) -> None:
        """Use a slot."""
        self._adjust_available_count(-1)

    def release_slot(self) -> None:
        """Return a slot."""
        self._adjust_available_count(1)

    def _adjust_available_count(self, delta: int) -> None:
        reservation = self._reservations.find(self._reservation_id)
        if reservation is not None:
            self._reservations.set_available(self._reservation_id, reservation.available_count + delta)


def is_scheduled(reservation: CapacityReservation, now: datetime) -> bool:
    """Return whether *reservation* starts later than *now*."""
    return reservation.starts_at is not None and reservation.starts_at > now


class Reservations:
    """The capacity reservations and placement groups of one region."""

    def __init__(self, seed: int) -> None:
        """Start without reservations and groups."""
        self._seed = seed
        self._reservations: dict[str, tuple[CapacityReservation, Tags]] = {}
        self._groups: dict[str, PlacementGroup] = {}

    def add(self, reservation: CapacityReservation, tags: Tags = ()) -> str:
        """Store *reservation* and return its id, which is generated if empty; without an owner, the account owns it."""
        generated_id = seeded_random.build_resource_id(
            "cr", self._seed, reservation.instance_type, len(self._reservations)
        )
        reservation_id = reservation.reservation_id or generated_id
        self._reservations[reservation_id] = (
            msgspec.structs.replace(
                reservation, reservation_id=reservation_id, owner_id=reservation.owner_id or OWNER_ID
            ),
            sort_tags(tags),
        )
        return reservation_id

    def find(self, reservation_id: str) -> CapacityReservation | None:
        """Return one reservation, also if it has ended; None if there is none."""
        entry = self._reservations.get(reservation_id)
        return entry[0] if entry is not None else None

    def set_available(self, reservation_id: str, count: int) -> None:
        """Set the number of instances for which the reservation has free capacity."""
        reservation, tags = self._reservations[reservation_id]
        self._reservations[reservation_id] = (msgspec.structs.replace(reservation, available_count=count), tags)

    def cancel(self, reservation_id: str, now: datetime) -> None:
        """End one reservation."""
        reservation, tags = self._reservations[reservation_id]
        self._reservations[reservation_id] = (msgspec.structs.replace(reservation, ends_at=now), tags)

    def get_tags(self, reservation_id: str) -> Tags:
        """Return the tags of one reservation."""
        return self._reservations[reservation_id][1]

    def list_current(self, now: datetime) -> tuple[CapacityReservation, ...]:
        """Return the reservations that have not ended, sorted by id; `starts_at` is None as soon as one is active."""
        reservations = (reservation for _, (reservation, _) in sorted(self._reservations.items()))
        return tuple(
            msgspec.structs.replace(
                reservation, starts_at=reservation.starts_at if is_scheduled(reservation, now) else None
            )
            for reservation in reservations
            if reservation.ends_at is None or reservation.ends_at > now
        )

    def select(self, selectors: tuple[SelectorTerm, ...], now: datetime) -> tuple[CapacityReservation, ...]:
        """Return the union of the active and scheduled reservations that match *selectors*, sorted by id."""
        return tuple(
            reservation
            for reservation in self.list_current(now)
            if any(
                _is_reservation_selected(reservation, self.get_tags(reservation.reservation_id), selector)
                for selector in selectors
            )
        )

    def add_group(self, group: PlacementGroup) -> str:
        """Store a placement group and return its id, which is generated if empty."""
        group_id = group.group_id or seeded_random.build_resource_id("pg", self._seed, group.name)
        self._groups[group_id] = msgspec.structs.replace(group, group_id=group_id)
        return group_id

    def remove_group(self, group_id: str) -> None:
        """Delete a placement group if it exists."""
        self._groups.pop(group_id, None)

    def list_groups(self) -> tuple[PlacementGroup, ...]:
        """Return all placement groups, sorted by id."""
        return tuple(group for _, group in sorted(self._groups.items()))

    def find_group(self, selector: SelectorTerm) -> PlacementGroup | None:
        """Return the placement group with that id or name."""
        matching_groups = (
            group
            for group in self.list_groups()
            if (group.group_id == selector.id if selector.id else group.name == selector.name)
        )
        return next(matching_groups, None)


def _is_reservation_selected(reservation: CapacityReservation, tags: Tags, selector: SelectorTerm) -> bool:
    if selector.id:
        return reservation.reservation_id == selector.id
    if not selector.tags and not selector.instance_match_criteria:
        return False
    return (
        (not selector.tags or has_tags(dict(tags), selector.tags))
        and selector.owner in ("", reservation.owner_id)
        and selector.instance_match_criteria in ("", reservation.instance_match_criteria)
    )
