"""Time zones by name. The package tzdata has the database: the Lambda runtime need not have one."""

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=64)
def get_time_zone(name: str) -> tzinfo:
    """Return the time zone *name*.

    Raises:
        ValueError: there is no such time zone.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"{name!r} is not a time zone: write a name like Europe/Berlin") from None
