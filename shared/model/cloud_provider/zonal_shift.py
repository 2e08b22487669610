"""Zonal shifts of the cluster in Amazon Application Recovery Controller (ARC): zones that must get no new nodes."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.units import format_instant

CLEARED_EVENT_PERIOD: Final = timedelta(minutes=5)
"""For how long an ended shift is kept, so that a function that runs every minute reports its end."""


class ZonalShift(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A zonal shift or autoshift that ARC applies to the cluster."""

    zone_id: str
    """The id of the zone, which is the same in all accounts: ``use1-az1``."""
    started_at: datetime | None = None
    expires_at: datetime | None = None
    """None: an autoshift, which lasts until AWS ends it."""
    comment: str = ""

    def is_active(self, now: datetime) -> bool:
        """Return whether the shift has not expired at *now*."""
        return self.expires_at is None or now < self.expires_at

    def describe_end(self) -> str:
        """Return until when the shift lasts."""
        return "until AWS ends it" if self.expires_at is None else f"until {format_instant(self.expires_at)}"


class EndedShift(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A shift that was canceled or has expired."""

    shift: ZonalShift
    ended_at: datetime


class ZonalShifts(msgspec.Struct, frozen=True, kw_only=True):
    """The zonal shifts of the cluster, as a decision reads them."""

    shifts: tuple[ZonalShift, ...] = ()
    """Sorted by zone id; one that has expired since it was read is not active."""
    ended: tuple[EndedShift, ...] = ()
    """The shifts that ended recently."""
    drains_zones: bool = False
    """Whether the nodes of a shifted zone are replaced (`zonal-shift: drain`)."""


class ZonalShiftRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored about the zonal shifts of the cluster."""

    attempted_at: datetime
    """When ARC was last asked."""
    read_at: datetime | None = None
    """When ARC last responded; None: not yet."""
    error: str = ""
    """Why ARC did not respond at *attempted_at*; "": it did."""
    shifts: tuple[ZonalShift, ...] = ()
    """As of *read_at*."""
    ended: tuple[EndedShift, ...] = ()


def record_shifts(previous: ZonalShiftRecord | None, shifts: tuple[ZonalShift, ...], now: datetime) -> ZonalShiftRecord:
    """Return the record after ARC has returned *shifts*."""
    active_shifts = tuple(sorted(shift for shift in shifts if shift.is_active(now)))
    return ZonalShiftRecord(
        attempted_at=now,
        read_at=now,
        shifts=active_shifts,
        ended=_update_ended(previous, {shift.zone_id for shift in active_shifts}, now),
    )


def record_failure(previous: ZonalShiftRecord | None, error: str, now: datetime) -> ZonalShiftRecord:
    """Return the record after ARC did not respond: the last known shifts apply until they expire."""
    shifts = () if previous is None else tuple(shift for shift in previous.shifts if shift.is_active(now))
    return ZonalShiftRecord(
        attempted_at=now,
        read_at=None if previous is None else previous.read_at,
        error=error,
        shifts=shifts,
        ended=_update_ended(previous, {shift.zone_id for shift in shifts}, now),
    )


def _update_ended(
    previous: ZonalShiftRecord | None, active_zone_ids: set[str], now: datetime
) -> tuple[EndedShift, ...]:
    """Return the recently ended shifts of zones that have no shift now."""
    if previous is None:
        return ()
    ended_shifts = {ended.shift: ended for ended in previous.ended if now - ended.ended_at < CLEARED_EVENT_PERIOD}
    for shift in previous.shifts:
        ended_shifts.setdefault(shift, EndedShift(shift=shift, ended_at=min(now, shift.expires_at or now)))
    return tuple(
        sorted(
            ended
            for ended in ended_shifts.values()
            if ended.shift.zone_id not in active_zone_ids and now - ended.ended_at < CLEARED_EVENT_PERIOD
        )
    )
