"""What the account has set aside: capacity reservations and placement groups, as Describe tells of them."""

from datetime import datetime
from typing import Final

import msgspec

from shared.model.ec2 import CapacityReservation, PlacementGroup, Selector, Tags
from sim.cloud import chance
from sim.cloud.pools import Pool
from sim.cloud.selectors import has_tags, sorted_tags

OWNER: Final = "123456789012"


class ReservedPool(Pool):
    """What is left of one reservation."""

    __slots__ = ("_reservation_id", "_reservations")

    def __init__(self, reservations: "Reservations", reservation_id: str) -> None:
        """Draw from *reservation_id*."""
        known = reservations.find(reservation_id)
        super().__init__(known.available_count if known is not None else 0)
        self._reservations, self._reservation_id = reservations, reservation_id

    def take(self) -> None:
        """Use a slot."""
        self._change(-1)

    def give_back(self) -> None:
        """Return a slot."""
        self._change(1)

    def _change(self, by: int) -> None:
        known = self._reservations.find(self._reservation_id)
        if known is not None:
            self._reservations.set_available(self._reservation_id, known.available_count + by)


class Reservations:
    """The reservations and groups of one region."""

    def __init__(self, seed: int) -> None:
        """Begin with none."""
        self._seed = seed
        self._reservations: dict[str, tuple[CapacityReservation, Tags]] = {}
        self._groups: dict[str, PlacementGroup] = {}

    def add(self, reservation: CapacityReservation, tags: Tags = ()) -> str:
        """Keep *reservation* and answer its id, which is made where it is empty; without owner it is ours."""
        known = chance.identity("cr", self._seed, reservation.instance_type, len(self._reservations))
        reservation_id = reservation.reservation_id or known
        self._reservations[reservation_id] = (
            msgspec.structs.replace(reservation, reservation_id=reservation_id, owner_id=reservation.owner_id or OWNER),
            sorted_tags(tags),
        )
        return reservation_id

    def find(self, reservation_id: str) -> CapacityReservation | None:
        """Answer one, whether it is over or not."""
        found = self._reservations.get(reservation_id)
        return found[0] if found is not None else None

    def set_available(self, reservation_id: str, count: int) -> None:
        """Say how many instances it still has room for."""
        reservation, tags = self._reservations[reservation_id]
        self._reservations[reservation_id] = (msgspec.structs.replace(reservation, available_count=count), tags)

    def tags_of(self, reservation_id: str) -> Tags:
        """Answer the tags of one."""
        return self._reservations[reservation_id][1]

    def active(self, now: datetime) -> tuple[CapacityReservation, ...]:
        """Answer those that have not ended, sorted by id."""
        every = (one for _, (one, _) in sorted(self._reservations.items()))
        return tuple(one for one in every if one.ends_at is None or one.ends_at > now)

    def select(self, selectors: tuple[Selector, ...], now: datetime) -> tuple[CapacityReservation, ...]:
        """Answer the union of what *selectors* match among the active ones, sorted by id."""
        return tuple(
            one
            for one in self.active(now)
            if any(_fits(one, self.tags_of(one.reservation_id), selector) for selector in selectors)
        )

    def add_group(self, group: PlacementGroup) -> str:
        """Keep a placement group and answer its id, which is made where it is empty."""
        group_id = group.group_id or chance.identity("pg", self._seed, group.name)
        self._groups[group_id] = msgspec.structs.replace(group, group_id=group_id)
        return group_id

    def remove_group(self, group_id: str) -> None:
        """Delete a placement group, if it is there."""
        self._groups.pop(group_id, None)

    def groups(self) -> tuple[PlacementGroup, ...]:
        """Answer all placement groups, sorted by id."""
        return tuple(group for _, group in sorted(self._groups.items()))

    def group(self, selector: Selector) -> PlacementGroup | None:
        """Answer the group of that id or name."""
        wanted = (
            group
            for group in self.groups()
            if (group.group_id == selector.id if selector.id else group.name == selector.name)
        )
        return next(wanted, None)


def _fits(one: CapacityReservation, tags: Tags, selector: Selector) -> bool:
    if selector.id:
        return one.reservation_id == selector.id
    if not selector.tags and not selector.instance_match_criteria:
        return False
    return (
        (not selector.tags or has_tags(dict(tags), selector.tags))
        and selector.owner in ("", one.owner_id)
        and selector.instance_match_criteria in ("", one.instance_match_criteria)
    )
