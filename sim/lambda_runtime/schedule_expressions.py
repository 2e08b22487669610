"""EventBridge schedule expressions: ``rate(5 minutes)`` and ``cron(0 8 ? * MON-FRI *)``, in UTC."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from cronsim import CronSim, CronSimError

from sim.lambda_runtime.stack_template.generated_references import UnsupportedTemplateError

RATE_EXPRESSION: Final = re.compile(r"rate\((\d+) (minute|hour|day)(s?)\)")
CRON_EXPRESSION: Final = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
YEAR_RANGE: Final = re.compile(r"(\d{4})(?:-(\d{4}))?")
DAY_NUMBER: Final = re.compile(r"(?<![/#\w])[1-7]")
"""A day of the week; not the step after a slash nor the week after a hash."""
OPEN_STEP: Final = re.compile(r"(?<!-)\b(\d)/")
"""A step without an end, ``1/2``: in cron, the week would end with a second Sunday."""


def list_firing_times(expression: str, start: datetime) -> Iterator[datetime]:
    """Return an iterator of the times after *start* at which *expression* fires, in order; a rate counts from *start*.

    Raises:
        UnsupportedTemplateError: EventBridge would reject it, or it is not supported here.
    """
    if match := RATE_EXPRESSION.fullmatch(expression):
        count, unit, is_plural = int(match[1]), match[2], bool(match[3])
        if count > 0 and is_plural == (count > 1):
            return _iterate_rate(timedelta(**{f"{unit}s": count}), start)
    elif match := CRON_EXPRESSION.fullmatch(expression):
        return _iterate_cron(match.groups(), start, expression)
    raise UnsupportedTemplateError(f"{expression} is no schedule")


def _iterate_rate(period: timedelta, start: datetime) -> Iterator[datetime]:
    while True:
        start += period
        yield start


def _iterate_cron(fields: tuple[str, ...], start: datetime, expression: str) -> Iterator[datetime]:
    minute, hour, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise UnsupportedTemplateError(f"{expression}: exactly one of day and day of the week must be ?")
    # EventBridge counts days of the week from 1 (Sunday), cron from 0.
    weekday = OPEN_STEP.sub(r"\1-6/", DAY_NUMBER.sub(lambda match: str(int(match[0]) - 1), weekday))
    try:
        firing_times = CronSim(f"{minute} {hour} {day} {month} {weekday}".replace("?", "*"), start)
    except CronSimError as error:
        raise UnsupportedTemplateError(f"{expression}: {error}") from None
    if year == "*":
        return firing_times
    years = _parse_years(year, expression)
    return (
        firing_time
        for firing_time in takewhile(lambda firing_time: firing_time.year <= max(years), firing_times)
        if firing_time.year in years
    )


def _parse_years(field: str, expression: str) -> frozenset[int]:
    years: set[int] = set()
    for item in field.split(","):
        match = YEAR_RANGE.fullmatch(item)
        if not match:
            raise UnsupportedTemplateError(f"{expression}: years {item} are not understood")
        years.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(years)
