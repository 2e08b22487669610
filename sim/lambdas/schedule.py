"""EventBridge's schedule expressions: ``rate(5 minutes)`` and ``cron(0 8 ? * MON-FRI *)``, in UTC."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from cronsim import CronSim, CronSimError

from sim.lambdas.intrinsics import UnsupportedTemplateError

RATE: Final = re.compile(r"rate\((\d+) (minute|hour|day)(s?)\)")
CRON: Final = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
YEARS: Final = re.compile(r"(\d{4})(?:-(\d{4}))?")
DAY_NUMBER: Final = re.compile(r"(?<![/#\w])[1-7]")
"""A day of the week; not the step behind a slash nor the week behind a hash."""
OPEN_STEP: Final = re.compile(r"(?<!-)\b(\d)/")
"""A step without an end, ``1/2``: cron's week would end with a second Sunday."""


def instants(expression: str, start: datetime) -> Iterator[datetime]:
    """Answer when *expression* rings after *start*, in order; a rate counts from *start*.

    Raises:
        UnsupportedTemplateError: EventBridge would not take it, or it is not understood here.
    """
    if found := RATE.fullmatch(expression):
        count, unit, plural = int(found[1]), found[2], bool(found[3])
        if count > 0 and plural == (count > 1):
            return _every(timedelta(**{f"{unit}s": count}), start)
    elif found := CRON.fullmatch(expression):
        return _cron(found.groups(), start, expression)
    raise UnsupportedTemplateError(f"{expression} is no schedule")


def _every(period: timedelta, start: datetime) -> Iterator[datetime]:
    while True:
        start += period
        yield start


def _cron(fields: tuple[str, ...], start: datetime, expression: str) -> Iterator[datetime]:
    minute, hour, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise UnsupportedTemplateError(f"{expression}: exactly one of day and day of the week must be ?")
    # EventBridge counts days of the week from 1, Sunday; cron from 0.
    weekday = OPEN_STEP.sub(r"\1-6/", DAY_NUMBER.sub(lambda found: str(int(found[0]) - 1), weekday))
    try:
        ticks = CronSim(f"{minute} {hour} {day} {month} {weekday}".replace("?", "*"), start)
    except CronSimError as error:
        raise UnsupportedTemplateError(f"{expression}: {error}") from None
    if year == "*":
        return ticks
    years = _years(year, expression)
    return (tick for tick in takewhile(lambda tick: tick.year <= max(years), ticks) if tick.year in years)


def _years(field: str, expression: str) -> frozenset[int]:
    years: set[int] = set()
    for item in field.split(","):
        found = YEARS.fullmatch(item)
        if not found:
            raise UnsupportedTemplateError(f"{expression}: years {item} are not understood")
        years.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(years)
