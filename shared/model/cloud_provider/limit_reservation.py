"""NodePool limits reserved for launches that are not visible in the cluster yet."""

from datetime import datetime

import msgspec

from shared.model.core.resources import Resources


class LimitReservation(msgspec.Struct, frozen=True, kw_only=True):
    """Reservation of limits for one launch group."""

    group: str
    claims: tuple[str, ...]
    max_capacity_per_claim: Resources = msgspec.field(name="each")
    """Raw capacity, by resource name, of the largest instance that one claim may become."""
    until: datetime


class LimitReservations(msgspec.Struct, frozen=True, kw_only=True):
    """One NodePool's row: *version* is the version that was read, or 0 if there was no row."""

    pool: str
    version: int = 0
    holds: tuple[LimitReservation, ...] = ()
    """Sorted by group."""
