"""Chance that is a function of its arguments: the same words give the same draw, in any order, on any machine."""

from datetime import timedelta
from hashlib import blake2b

_STEPS = 1 << 53


def share(*words: object) -> float:
    """Answer a number in [0, 1), evenly spread over all *words*."""
    return (int.from_bytes(_digest(words, 7), "big") >> 3) / _STEPS


def between(low: timedelta, high: timedelta, *words: object) -> timedelta:
    """Answer a duration in [*low*, *high*), of whole milliseconds."""
    milliseconds = (high - low) // timedelta(milliseconds=1)
    return low + timedelta(milliseconds=int(milliseconds * share(*words)))


def identity(prefix: str, *words: object) -> str:
    """Answer an id as EC2 writes them: ``i-`` and 17 hexadecimal digits, of which the first is 0."""
    return f"{prefix}-0{_digest(words, 8).hex()}"


def uuid(*words: object) -> str:
    """Answer a UUID, as fleets and events have them."""
    text = _digest(words, 16).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _digest(words: tuple[object, ...], size: int) -> bytes:
    return blake2b("\0".join(map(str, words)).encode(), digest_size=size).digest()
