"""Options per function, like ``provision=3008,disrupt=2048``; other functions keep the default."""

from collections.abc import Iterator, Mapping
from typing import Final

from shared.settings_text import LOG_LEVELS, LogLevel, split_list

SCHEDULED_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt")
FUNCTION_NAMES: Final = (*SCHEDULED_FUNCTIONS, "interrupt", "catalog", "watch", "installer")
Range = tuple[int, int]
"""Minimum and maximum."""

MEMORY_RANGE_MB: Final[Mapping[str, Range]] = dict.fromkeys(FUNCTION_NAMES, (256, 10_240))
INTERVAL_RANGE_MINUTES: Final[Mapping[str, Range]] = {**dict.fromkeys(SCHEDULED_FUNCTIONS, (1, 4)), "catalog": (1, 30)}
"""With longer intervals than four minutes, the alarm for missing successes would fire."""
RESERVED_CONCURRENCY_RANGE: Final[Mapping[str, Range]] = {
    **dict.fromkeys((*SCHEDULED_FUNCTIONS, "catalog", "watch"), (3, 100)),
    "interrupt": (5, 100),
}
"""At least the maximum concurrency of its queue plus one scheduled run; messages throttled too often end as dead
letters.
"""


def parse_numbers(text: str, *, limits: Mapping[str, Range]) -> dict[str, int]:
    """Parse numbers per function.

    >>> parse_numbers("provision=3008, disrupt=2048", limits=MEMORY_RANGE_MB)
    {'provision': 3008, 'disrupt': 2048}

    Raises:
        ValueError: the message contains the expected value.
    """
    number_by_function: dict[str, int] = {}
    for name, value in _parse_pairs(text):
        if name not in limits:
            raise ValueError(f"{name!r} is not a function: use NAME=NUMBER,NAME=NUMBER with {', '.join(limits)}")
        minimum, maximum = limits[name]
        if not value.isascii() or not value.isdigit() or not minimum <= int(value) <= maximum:
            raise ValueError(f"{name} is {value!r}: must be {minimum} to {maximum}")
        number_by_function[name] = int(value)
    return number_by_function


def parse_log_levels(text: str) -> dict[str, LogLevel]:
    """Parse the log level of each function: a level for all, then levels of single functions by name.

    >>> parse_log_levels("WARNING,provision=DEBUG")["provision"]
    'DEBUG'
    >>> parse_log_levels("WARNING")["disrupt"]
    'WARNING'

    Raises:
        ValueError: the message contains the expected value.
    """
    level_by_function: dict[str, LogLevel] = dict.fromkeys(FUNCTION_NAMES, "INFO")
    for name, value in _parse_pairs(text):
        level = next((level for level in LOG_LEVELS if level == (value or name)), None)
        if level is None or (value and name not in FUNCTION_NAMES):
            part = f"{name}={value}" if value else name
            raise ValueError(f"{part!r}: must be {' or '.join(LOG_LEVELS)}, for all functions or as NAME=DEBUG")
        level_by_function |= {name: level} if value else dict.fromkeys(FUNCTION_NAMES, level)
    return level_by_function


def _parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in split_list(text):
        name, _, value = part.partition("=")
        yield name.strip(), value.strip()
