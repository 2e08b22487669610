"""Text for people: counts, lists, durations, money and bytes, in the same format in every command, event and page."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_BYTE_UNITS: Final = ("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)


def format_count(number: int, noun: str) -> str:
    """Format *number* with *noun*, in the plural if needed.

    >>> format_count(1, "pod"), format_count(1200, "pod"), format_count(2, "class"), format_count(3, "policy")
    ('1 pod', '1,200 pods', '2 classes', '3 policies')
    """
    return f"{number:,} {noun if number == 1 else pluralize(noun)}"


def pluralize(noun: str) -> str:
    """Return the plural of a regular English *noun*.

    >>> pluralize("node"), pluralize("batch"), pluralize("day"), pluralize("capacity")
    ('nodes', 'batches', 'days', 'capacities')
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def join_names(names: Iterable[str], max_names: int | None = None) -> str:
    """Join *names* with commas: at most *max_names* of them, and the number of the others.

    >>> join_names("abcde", 3), join_names("ab", 3), join_names("abcde")
    ('a, b, c and 2 more', 'a, b', 'a, b, c, d, e')
    """
    all_names = list(names)
    omitted_count = 0 if max_names is None else len(all_names) - max_names
    return ", ".join(all_names[:max_names]) + (f" and {omitted_count:,} more" if omitted_count > 0 else "")


def format_elapsed(duration: timedelta) -> str:
    """Format *duration* in its two largest units, rounded down; negative durations are ``0s``.

    >>> [format_elapsed(timedelta(seconds=seconds)) for seconds in (35, 46 * 60, 11_555, 90_000, 86_400, -5)]
    ['35s', '46m', '3h12m', '1d1h', '1d', '0s']
    """
    seconds_left = max(int(duration.total_seconds()), 0)
    for position, (unit, length) in enumerate(_UNITS[:-1]):
        if seconds_left >= length:
            smaller_unit, smaller_length = _UNITS[position + 1]
            smaller_count = seconds_left % length // smaller_length
            return f"{seconds_left // length}{unit}" + (f"{smaller_count}{smaller_unit}" if smaller_count else "")
    return f"{seconds_left}s"


def format_usd(amount_usd: float, decimals: int = 2) -> str:
    """Format an amount of money; the sign comes before the currency.

    >>> format_usd(1234.5), format_usd(-0.4), format_usd(0.05374, 4)
    ('$1,234.50', '-$0.40', '$0.0537')
    """
    return f"{'-' if round(amount_usd, decimals) < 0 else ''}${abs(amount_usd):,.{decimals}f}"


def format_usd_per_hour(price_usd_per_hour: float) -> str:
    """Format a price per hour, with four decimals as EC2's price list has.

    >>> format_usd_per_hour(0.0537), format_usd_per_hour(1234.5)
    ('$0.0537/h', '$1,234.5000/h')
    """
    return f"{format_usd(price_usd_per_hour, 4)}/h"


def format_usd_per_month(price_usd_per_month: float) -> str:
    """Format a price per month.

    >>> format_usd_per_month(351.5547)
    '$351.55/month'
    """
    return f"{format_usd(price_usd_per_month)}/month"


def format_bytes(amount_bytes: int) -> str:
    """Format *amount_bytes* in its largest binary unit, with one decimal if it is not a whole number.

    >>> format_bytes(512 * 1024**2), format_bytes(1536), format_bytes(100)
    ('512 MiB', '1.5 KiB', '100 B')
    """
    for unit, length in _BYTE_UNITS:
        if amount_bytes >= length:
            return f"{amount_bytes / length:.1f} {unit}".replace(".0 ", " ")
    return f"{amount_bytes} B"
