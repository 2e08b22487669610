"""Cron schedules in the dialect of robfig/cron, in UTC unless another time zone is given.

A schedule has five fields or is a descriptor. Each field is expanded here by robfig's rules, and cronsim, which has a
different dialect, receives plain lists of numbers. Known difference: a date that never occurs is an error here; in
robfig/cron it is not always one.
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
    min_value: int
    max_value: int
    number_by_name: dict[str, int] = {}


_FIELDS: Final = (
    _Field(name="minute", min_value=0, max_value=59),
    _Field(name="hour", min_value=0, max_value=23),
    _Field(name="day of month", min_value=1, max_value=31),
    _Field(name="month", min_value=1, max_value=12, number_by_name=_MONTHS),
    _Field(name="day of week", min_value=0, max_value=6, number_by_name=_DAYS),
)


def is_schedule_active(schedule: str, duration: timedelta, now: datetime, zone: tzinfo = UTC) -> bool:
    """Return whether *schedule* was activated within the last *duration*.

    It is active at the activation itself and inactive once the duration is over. The schedule refers to the local time
    of *zone*. A time that a clock change skips is taken as directly after the change; a time that occurs twice counts
    the first time. The duration is elapsed time, independent of clock changes.

    Raises:
        ValueError: *schedule* is invalid, or never activates.
    """
    plain_text, window_start = expand_schedule(schedule), now - duration
    try:
        activations = (activation.astimezone(UTC) for activation in CronSim(plain_text, window_start.astimezone(zone)))
        # In the hour that occurs twice, cronsim starts with the activations of the first occurrence.
        first_activation = next(activation for activation in activations if activation > window_start)
    except (CronSimError, StopIteration, OverflowError):
        raise ValueError(f"schedule {schedule!r} never matches") from None
    return first_activation <= now


def expand_schedule(schedule: str) -> str:
    """Return *schedule* with only lists of numbers and stars.

    >>> expand_schedule("*/20 9-11 * * mon,fri"), expand_schedule("@weekly")
    ('0,20,40 9,10,11 * * 1,5', '0 0 * * 0')

    Raises:
        ValueError: *schedule* is neither five fields nor a descriptor, or a field is invalid.
    """
    parts = _DESCRIPTORS.get(schedule.strip(), schedule).split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"schedule {schedule!r} is neither five fields nor a descriptor such as @daily")
    return " ".join(_expand_field(part, field) for part, field in zip(parts, _FIELDS, strict=True))


def _expand_field(part: str, field: _Field) -> str:
    numbers: set[int] = set()
    is_star = False
    for term in part.split(","):
        range_text, slash, step_text = term.partition("/")
        step = _parse_number(step_text, field, {}) if slash else 1
        if step < 1:
            raise ValueError(f"{field.name} {part!r}: a step is at least 1")
        is_star |= range_text in ("*", "?") and step == 1
        low, high = _parse_range(range_text, field, has_step=bool(slash))
        numbers.update(range(low, high + 1, step))
    return "*" if is_star else ",".join(str(number) for number in sorted(numbers))


def _parse_range(range_text: str, field: _Field, *, has_step: bool) -> tuple[int, int]:
    if range_text in ("*", "?"):
        return field.min_value, field.max_value
    low_text, dash, high_text = range_text.partition("-")
    low = _parse_number(low_text, field, field.number_by_name)
    high = _parse_number(high_text, field, field.number_by_name) if dash else field.max_value if has_step else low
    if not field.min_value <= low <= high <= field.max_value:
        raise ValueError(f"{field.name} {range_text!r} is not a range within {field.min_value}-{field.max_value}")
    return low, high


def _parse_number(text: str, field: _Field, number_by_name: dict[str, int]) -> int:
    if text.lower() in number_by_name:
        return number_by_name[text.lower()]
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{field.name}: {text!r} is not a number")
    return int(text)
