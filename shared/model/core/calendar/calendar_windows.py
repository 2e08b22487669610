"""Windows of the local calendar: when a window starts, when it ends, and whether an instant is in it.

A window has a cron schedule of its starts and a duration, both on the clock of a time zone: a window of 11 hours that
starts at 20:00 ends at 7:00, also in nights in which the clocks change.

- A start or end that a clock change skips is moved to the first minute after the change.
- A start or end that occurs twice counts the first time only.
- Windows that overlap or follow each other without a gap are one window.

Everything is a function of an instant. Nothing is remembered, so nothing can be missed.
"""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec
from cronsim import CronSim, CronSimError

from shared.model.core.calendar.cron_schedule import expand_schedule
from shared.model.core.calendar.time_zones import get_time_zone

MIN_WINDOW_DURATION: Final = timedelta(minutes=1)
MAX_WINDOW_DURATION: Final = timedelta(days=366)
MAX_JOINED_STARTS: Final = 1500
"""A window that starts again this often before it ends is treated as one without an end."""
_SAMPLE_TIME: Final = datetime(2026, 1, 1)  # noqa: DTZ001 - a time of the local clock


class CalendarWindow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A window that recurs."""

    schedule: str
    """Cron schedule of the starts."""
    duration: timedelta
    zone: str = "UTC"

    def is_open(self, at: datetime) -> bool:
        """Return whether *at* is in the window: from its start, until its end."""
        start = self.find_last_start(at)
        return start is not None and at < self._compute_end(start)

    def find_last_start(self, at: datetime) -> datetime | None:
        """Return the last start that is not after *at*; None if there is none."""
        zone = get_time_zone(self.zone)
        local = at.astimezone(zone)
        repeated = _compute_repeated_time(local)
        latest = local.replace(tzinfo=None, microsecond=0) + repeated + timedelta(seconds=1)
        starts = (_convert_to_utc(start, zone) for start in self._iterate_starts(latest, reverse=True))
        return next((start for start in starts if start <= at), None)

    def find_next_start(self, at: datetime) -> datetime | None:
        """Return the first start after *at*; None if there is none."""
        zone = get_time_zone(self.zone)
        local = at.astimezone(zone).replace(tzinfo=None)
        starts = (_convert_to_utc(start, zone) for start in self._iterate_starts(local, reverse=False))
        return next((start for start in starts if start > at), None)

    def find_end(self, at: datetime) -> datetime | None:
        """Return when the window that is open at *at* ends; None if it is not open, or does not end."""
        start = self.find_last_start(at)
        if start is None or (end := self._compute_end(start)) <= at:
            return None
        zone = get_time_zone(self.zone)
        local = start.astimezone(zone).replace(tzinfo=None)
        for later_local in islice(self._iterate_starts(local, reverse=False), MAX_JOINED_STARTS):
            later_start = _convert_to_utc(later_local, zone)
            if later_start > end:
                return end
            end = max(end, self._compute_end(later_start))
        return None

    def find_next_edge(self, at: datetime) -> datetime | None:
        """Return when the window opens or ends next, after *at*; None if it never does."""
        return self.find_end(at) if self.is_open(at) else self.find_next_start(at)

    def _compute_end(self, start: datetime) -> datetime:
        zone = get_time_zone(self.zone)
        return _convert_to_utc(start.astimezone(zone).replace(tzinfo=None, fold=0) + self.duration, zone)

    def _iterate_starts(self, local: datetime, *, reverse: bool) -> Iterator[datetime]:
        """Yield the starts after *local*, or with *reverse* before it, on the local clock."""
        return iter(CronSim(expand_schedule(self.schedule), local, reverse=reverse))


@lru_cache(maxsize=256)
def validate_calendar_window(window: CalendarWindow) -> None:
    """Check *window*.

    Raises:
        ValueError: its schedule, duration or time zone is invalid; the message has the fix.
    """
    get_time_zone(window.zone)
    plain_schedule = expand_schedule(window.schedule)
    if not MIN_WINDOW_DURATION <= window.duration <= MAX_WINDOW_DURATION:
        raise ValueError("the duration is not between 1m and 8784h: write a duration like 11h or 90m")
    try:
        starts = list(islice(CronSim(plain_schedule, _SAMPLE_TIME), 1))
    except CronSimError:
        starts = []
    if not starts:
        raise ValueError(f"schedule {window.schedule!r} never matches: write a date that exists")


def _compute_repeated_time(local: datetime) -> timedelta:
    """Return how much of the local clock is repeated at *local*; 0 except in the second occurrence of an hour."""
    if not local.fold:
        return timedelta()
    first_offset, offset = local.replace(fold=0).utcoffset(), local.utcoffset()
    return (first_offset or timedelta()) - (offset or timedelta())


def _convert_to_utc(local: datetime, zone: tzinfo) -> datetime:
    """Return the first instant at which the clock of *zone* shows *local*, or the first later time that exists."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None, fold=0) == local:
        return instant
    early = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    offset_after = instant.astimezone(zone).utcoffset()
    minutes = range((instant - early) // timedelta(minutes=1))
    skipped = bisect_left(
        minutes, 1, key=lambda minute: (early + timedelta(minutes=minute)).astimezone(zone).utcoffset() == offset_after
    )
    return early + timedelta(minutes=skipped)
