"""Schedules of disruption budgets: cron in robfig's dialect, in UTC unless something else is asked for.

Five fields or a descriptor. Every field is expanded here by robfig's rules, and cronsim, whose dialect is another,
is given plain lists of numbers. Known difference: a date that never comes is an error here, not always.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import msgspec
from cronsim import CronSim, CronSimError

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_DAYS: Final = {name: number for number, name in enumerate(_DAY_NAMES)}


class _Field(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    low: int
    high: int
    words: dict[str, int] = {}


_FIELDS: Final = (
    _Field(name="minute", low=0, high=59),
    _Field(name="hour", low=0, high=23),
    _Field(name="day of month", low=1, high=31),
    _Field(name="month", low=1, high=12, words=_MONTHS),
    _Field(name="day of week", low=0, high=6, words=_DAYS),
)


def is_open(schedule: str, duration: timedelta, now: datetime, zone: tzinfo = UTC) -> bool:
    """Whether a hit of *schedule* lies in the last *duration*: open at the hit itself, closed when it is over.

    The schedule is what clocks in *zone* show. A time that a change of clocks skips is taken to be right after it, one
    that comes twice comes the first time; a duration is what passes, whatever clocks show.

    Raises:
        ValueError: *schedule* is not valid, or never comes.
    """
    plain, began = plain_schedule(schedule), now - duration
    try:
        hits = (one.astimezone(UTC) for one in CronSim(plain, began.astimezone(zone)))
        # In the hour that comes twice cronsim begins with hits of the first time.
        opened = next(one for one in hits if one > began)
    except (CronSimError, StopIteration, OverflowError):
        raise ValueError(f"schedule {schedule!r} never comes") from None
    return opened <= now


def plain_schedule(schedule: str) -> str:
    """Write *schedule* with lists of numbers and stars only.

    >>> plain_schedule("*/20 9-11 * * mon,fri"), plain_schedule("@weekly")
    ('0,20,40 9,10,11 * * 1,5', '0 0 * * 0')

    Raises:
        ValueError: it is not five fields nor a descriptor, or a field is not valid.
    """
    parts = _DESCRIPTORS.get(schedule.strip(), schedule).split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"schedule {schedule!r} is neither five fields nor a descriptor such as @daily")
    return " ".join(_plain(part, field) for part, field in zip(parts, _FIELDS, strict=True))


def _plain(part: str, field: _Field) -> str:
    numbers: set[int] = set()
    star = False
    for term in part.split(","):
        spread, slash, step_text = term.partition("/")
        step = _number(step_text, field, {}) if slash else 1
        if step < 1:
            raise ValueError(f"{field.name} {part!r}: a step is at least 1")
        star |= spread in ("*", "?") and step == 1
        low, high = _range(spread, field, stepped=bool(slash))
        numbers.update(range(low, high + 1, step))
    return "*" if star else ",".join(str(number) for number in sorted(numbers))


def _range(spread: str, field: _Field, *, stepped: bool) -> tuple[int, int]:
    if spread in ("*", "?"):
        return field.low, field.high
    low_text, dash, high_text = spread.partition("-")
    low = _number(low_text, field, field.words)
    high = _number(high_text, field, field.words) if dash else field.high if stepped else low
    if not field.low <= low <= high <= field.high:
        raise ValueError(f"{field.name} {spread!r} is not a range within {field.low}-{field.high}")
    return low, high


def _number(text: str, field: _Field, words: dict[str, int]) -> int:
    if text.lower() in words:
        return words[text.lower()]
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{field.name}: {text!r} is not a number")
    return int(text)
