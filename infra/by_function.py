"""Choices for single functions, ``provision=3008,disrupt=2048``: who is not named has what is usual."""

from collections.abc import Iterator, Mapping
from typing import Final

from shared.settings import LEVELS

TICKING: Final = ("provision", "lifecycle", "disrupt")
NAMES: Final = (*TICKING, "interrupt", "catalog", "watch", "installer")
Range = tuple[int, int]
"""The least and the most."""

MEMORY_MB: Final[Mapping[str, Range]] = dict.fromkeys(NAMES, (256, 10_240))
EVERY_MINUTES: Final[Mapping[str, Range]] = {**dict.fromkeys(TICKING, (1, 4)), "catalog": (1, 30)}
"""Less often than every four minutes, and the alarm over silence rings."""
RESERVED: Final[Mapping[str, Range]] = {
    **dict.fromkeys((*TICKING, "catalog", "watch"), (3, 100)),
    "interrupt": (5, 100),
}
"""No less than what its queue sends at once and a tick: messages that are throttled too often end as dead letters."""


def numbers(knob: str, text: str, limits: Mapping[str, Range]) -> dict[str, int]:
    """Read numbers by function.

    >>> numbers("memory-mb", "provision=3008, disrupt=2048", MEMORY_MB)
    {'provision': 3008, 'disrupt': 2048}

    Raises:
        ValueError: the message names the *knob* and what it wants.
    """
    found: dict[str, int] = {}
    for name, value in _pairs(text):
        if name not in limits:
            raise ValueError(f"joiner:{knob}: {name!r} is none of {', '.join(limits)}: want NAME=NUMBER,NAME=NUMBER")
        least, most = limits[name]
        if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
            raise ValueError(f"joiner:{knob}: {name} is {value!r}: want {least} to {most}")
        found[name] = int(value)
    return found


def levels(knob: str, text: str) -> dict[str, str]:
    """Read how much each function tells: a level for all, then, by name, those of single ones.

    >>> levels("log-level", "WARNING,provision=DEBUG")["provision"], levels("log-level", "WARNING")["disrupt"]
    ('DEBUG', 'WARNING')

    Raises:
        ValueError: the message names the *knob* and what it wants.
    """
    found = dict.fromkeys(NAMES, "INFO")
    for name, value in _pairs(text):
        level = value or name
        if level not in LEVELS or (value and name not in NAMES):
            raise ValueError(f"joiner:{knob} has {name}={value}: want {' or '.join(LEVELS)}, for all or as NAME=DEBUG")
        found |= {name: level} if value else dict.fromkeys(NAMES, level)
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = part.partition("=")
        yield name.strip(), value.strip()
