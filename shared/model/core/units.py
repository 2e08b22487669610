"""Quantities, durations and instants as spelled in the Kubernetes API.

Fractions are rounded away from zero, as in apimachinery: a request is never underestimated.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_UP, Decimal
from typing import Final

_FACTOR_BY_SUFFIX: Final = (
    {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
    | {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
    | {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}
)
_QUANTITY_PATTERN: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)(?P<suffix>\D*)"
)


EARLIEST_INSTANT: Final = datetime.min.replace(tzinfo=UTC)
BYTES_PER_MIB: Final = 1024**2
BYTES_PER_GIB: Final = 1024**3
HOURS_PER_MONTH: Final = 730
"""As AWS calculates monthly prices."""
MAX_QUANTITY: Final = 2**60
"""More than any real amount, and small enough that sums of it can be encoded as JSON."""


def parse_quantity(text: str, *, per_unit: int = 1) -> int:
    """Parse *text* as a count of ``1/per_unit``; larger amounts than `MAX_QUANTITY` are reduced to it.

    >>> parse_quantity("1.5Gi"), parse_quantity("250m", per_unit=1000)
    (1610612736, 250)

    Raises:
        ValueError: *text* is not a Kubernetes quantity.
    """
    match = _QUANTITY_PATTERN.fullmatch(text)
    if match is None or match["suffix"] not in _FACTOR_BY_SUFFIX:
        raise ValueError(f"not a quantity: {text!r}")
    amount = Decimal(match["number"]) * _FACTOR_BY_SUFFIX[match["suffix"]] * per_unit
    return max(-MAX_QUANTITY, min(MAX_QUANTITY, int(amount.to_integral_value(ROUND_UP))))


def compute_percentage(total: int, percent: int) -> int:
    """Return *percent* percent of *total*, rounded up, as Kubernetes rounds percentages of nodes and replicas.

    >>> compute_percentage(11, 10)
    2
    """
    return -(-total * percent // 100)


def is_quantity(text: str) -> bool:
    """Return whether *text* is a Kubernetes quantity.

    >>> is_quantity("1.5Gi"), is_quantity("much")
    (True, False)
    """
    match = _QUANTITY_PATTERN.fullmatch(text)
    return match is not None and match["suffix"] in _FACTOR_BY_SUFFIX


MAX_DURATION: Final = timedelta(hours=2562047)
"""The longest duration Go can count in nanoseconds: 292 years."""
_DURATION_PART_PATTERN: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")
_SECONDS_PER_UNIT: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def parse_duration(text: str) -> timedelta:
    """Parse a Go duration.

    >>> parse_duration("1h30m"), parse_duration("720h").days
    (datetime.timedelta(seconds=5400), 30)

    Raises:
        ValueError: *text* is not a duration.
    """
    body = text[1:] if text.startswith(("-", "+")) else text
    parts = _DURATION_PART_PATTERN.findall(body)
    if body != "0" and (not parts or "".join(number + unit for number, unit in parts) != body):
        raise ValueError(f"not a duration: {text!r}")
    seconds = sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    if seconds > MAX_DURATION.total_seconds():
        raise ValueError(f"too long: {text!r}")
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def parse_nillable_duration(text: str) -> timedelta | None:
    """Parse a Go duration, or None for ``Never``.

    Raises:
        ValueError: *text* is neither.
    """
    return None if text == "Never" else parse_duration(text)


def format_duration(duration: timedelta | None) -> str:
    """Return a duration as in Karpenter's objects; None is ``Never``.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(seconds=30)), format_duration(timedelta())
    ('1h30m', '30s', '0s')
    """
    if duration is None:
        return "Never"
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def parse_instant(text: str) -> datetime:
    """Parse an RFC 3339 instant as aware UTC.

    >>> parse_instant("2026-11-21T08:00:00Z").isoformat()
    '2026-11-21T08:00:00+00:00'

    Raises:
        ValueError: *text* is not an instant with an offset.
    """
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"no offset: {text!r}")
    return instant.astimezone(UTC)


def format_instant(instant: datetime) -> str:
    """Return an instant in the format of Kubernetes: RFC 3339 in UTC, whole seconds."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
