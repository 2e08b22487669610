"""What annotations of a NodePool say about disruption: ours, where Karpenter's own fields have no word for it.

    joiner.dev/minimum-savings-usd-per-hour: "0.05"
    joiner.dev/minimum-savings-percent: "10"
    joiner.dev/budget-time-zone: Europe/Berlin              in which the schedules of its budgets are read
    joiner.dev/disruption-windows: "0 22 * * mon-fri 8h; 0 0 * * sat 48h"
                                                            only then; in the same time zone
    joiner.dev/expiry-jitter-percent: "10"                  nodes born together expire one after the other
    joiner.dev/image-soak: 24h                              one node runs a new image so long before the others follow

What cannot be read allows nothing.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from shared.disruption.cron import is_open
from shared.model.labels import (
    BUDGET_TIME_ZONE,
    DISRUPTION_WINDOWS,
    EXPIRY_JITTER,
    IMAGE_SOAK,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
)
from shared.model.nodepools import NodePool
from shared.model.objects import Pairs
from shared.model.units import parse_duration
from shared.scheduling.lifetimes import MOST, jitter_percent

_FIELDS: Final = 5
_MOST_PERCENT: Final = 100


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which disruption may be."""

    schedule: str
    duration: timedelta


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """The annotations, read."""

    minimum_usd_per_hour: float = 0.0
    minimum_percent: float = 0.0
    zone: str = "UTC"
    windows: tuple[Window, ...] = ()
    """None at all: any time."""
    image_soak: timedelta = timedelta()
    """How long one node runs a new image before the others drift for it; nothing: they all do at once."""
    expiry_jitter_percent: int = 0
    """What `shared.scheduling.lifetimes` makes of it."""
    problems: tuple[str, ...] = ()
    """What could not be read, with the annotation's name."""

    def is_open(self, now: datetime) -> bool:
        """Whether *now* is in some window."""
        zone = time_zone(self.zone)
        return not self.windows or any(is_open(one.schedule, one.duration, now, zone) for one in self.windows)


def knobs_of(pool: NodePool) -> Knobs:
    """Read the annotations of *pool*."""
    return _read(tuple(pair for pair in pool.meta.annotations if pair[0] in _READERS))


@lru_cache(maxsize=256)
def _read(annotations: Pairs) -> Knobs:
    found: dict[str, object] = {}
    problems: list[str] = []
    for key, text in annotations:
        field, reader = _READERS[key]
        try:
            found[field] = reader(text)
        except ValueError as error:
            problems.append(f"{key}: {error}")
    knobs = msgspec.convert(found, Knobs, from_attributes=True)
    return msgspec.structs.replace(knobs, problems=tuple(problems))


@lru_cache(maxsize=64)
def time_zone(name: str) -> tzinfo:
    """Answer the time zone called *name*.

    Raises:
        ValueError: there is none.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"{name!r} is no time zone: write one like Europe/Berlin") from None


def _amount(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no amount: write one like 0.05") from None
    if not 0 <= found < float("inf"):
        raise ValueError(f"{text!r} is no amount from 0")
    return found


def _percent(text: str) -> float:
    found = _amount(text.removesuffix("%"))
    if found > _MOST_PERCENT:
        raise ValueError(f"{text!r} is more than everything")
    return found


def _zone(text: str) -> str:
    time_zone(text)
    return text


def _windows(text: str) -> tuple[Window, ...]:
    return tuple(_window(part) for part in text.split(";") if part.strip())


def _window(text: str) -> Window:
    parts = text.split()
    count = 1 if parts[0].startswith("@") else _FIELDS
    if len(parts) != count + 1:
        raise ValueError(f"{text.strip()!r} is not a schedule and a duration, like 0 22 * * mon-fri 8h")
    window = Window(schedule=" ".join(parts[:count]), duration=parse_duration(parts[count]))
    if window.duration <= timedelta():
        raise ValueError(f"{text.strip()!r} lasts no time")
    is_open(window.schedule, window.duration, datetime(2026, 1, 1, tzinfo=UTC))
    return window


def _soak(text: str) -> timedelta:
    found = parse_duration(text)
    if found < timedelta():
        raise ValueError(f"{text!r} is less than nothing: write one like 24h")
    return found


def _jitter(text: str) -> int:
    found = jitter_percent(text)
    if not found and text not in ("0", "0%"):
        raise ValueError(f"{text!r} is no part of a lifetime: write a number from 0 to {MOST}")
    return found


_READERS: Final = {
    EXPIRY_JITTER: ("expiry_jitter_percent", _jitter),
    IMAGE_SOAK: ("image_soak", _soak),
    MINIMUM_SAVINGS_USD: ("minimum_usd_per_hour", _amount),
    MINIMUM_SAVINGS_PERCENT: ("minimum_percent", _percent),
    BUDGET_TIME_ZONE: ("zone", _zone),
    DISRUPTION_WINDOWS: ("windows", _windows),
}
