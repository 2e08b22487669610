"""Node expiration: the maximum age of a node.

A NodePool may set a jitter, so that nodes that were created together do not expire together.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Final

from shared.model.core.labels import EXPIRY_JITTER
from shared.model.karpenter.node_pool import NodePool

MAX_JITTER_PERCENT: Final = 50
"""Nodes reach at least half of their maximum age."""
_HASH_RANGE_SIZE: Final = 2**32


def compute_expire_after(pool: NodePool, claim: str) -> timedelta | None:
    """Return the maximum age of *claim*: the NodePool's value minus a jitter that depends on the name.

    Whole seconds.
    """
    percent = parse_jitter_percent(pool.meta.get_annotation(EXPIRY_JITTER) or "0") if pool.expire_after else 0
    if not pool.expire_after or not percent:
        return pool.expire_after
    fraction = int.from_bytes(sha256(claim.encode()).digest()[:4]) / _HASH_RANGE_SIZE
    return timedelta(seconds=int(pool.expire_after.total_seconds() * (1 - fraction * percent / 100)))


def parse_jitter_percent(text: str) -> int:
    """Return the value of the annotation; 0 if it cannot be parsed or is too large.

    >>> parse_jitter_percent("10"), parse_jitter_percent("10%"), parse_jitter_percent("much")
    (10, 10, 0)
    """
    digits = text.removesuffix("%")
    percent = int(digits) if digits.isascii() and digits.isdecimal() else 0
    return percent if percent <= MAX_JITTER_PERCENT else 0
