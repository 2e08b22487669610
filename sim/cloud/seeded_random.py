"""Pseudo-random values that are a pure function of their arguments: the same arguments give the same value.

The result depends neither on the order of the calls nor on the computer.
"""

from datetime import timedelta
from hashlib import blake2b

_FRACTION_STEPS = 1 << 53


def draw_fraction(*seed_parts: object) -> float:
    """Return a number in [0, 1), uniformly distributed over all *seed_parts*."""
    return (int.from_bytes(_hash_seed_parts(seed_parts, 7), "big") >> 3) / _FRACTION_STEPS


def draw_duration(low: timedelta, high: timedelta, *seed_parts: object) -> timedelta:
    """Return a duration in [*low*, *high*), in whole milliseconds."""
    milliseconds = (high - low) // timedelta(milliseconds=1)
    return low + timedelta(milliseconds=int(milliseconds * draw_fraction(*seed_parts)))


def build_resource_id(prefix: str, *seed_parts: object) -> str:
    """Return an id in EC2's format: ``i-`` and 17 hexadecimal digits, of which the first is 0."""
    return f"{prefix}-0{_hash_seed_parts(seed_parts, 8).hex()}"


def build_uuid(*seed_parts: object) -> str:
    """Return a UUID, as used by fleets and events."""
    digits = _hash_seed_parts(seed_parts, 16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _hash_seed_parts(seed_parts: tuple[object, ...], size: int) -> bytes:
    return blake2b("\0".join(map(str, seed_parts)).encode(), digest_size=size).digest()
