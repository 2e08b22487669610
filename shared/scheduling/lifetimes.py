"""How old a node may become. Nodes that were born together need not end together: a NodePool may say by how much."""

from datetime import timedelta
from hashlib import sha256
from typing import Final

from shared.model.labels import EXPIRY_JITTER
from shared.model.nodepools import NodePool

MOST: Final = 50
"""Per cent: nodes become at least half as old as they may."""
_PARTS: Final = 2**32


def expire_after(pool: NodePool, claim: str) -> timedelta | None:
    """Answer how old *claim* may become: what the pool says, less a part that its name decides; whole seconds."""
    percent = jitter_percent(pool.meta.annotation(EXPIRY_JITTER) or "0") if pool.expire_after else 0
    if not pool.expire_after or not percent:
        return pool.expire_after
    part = int.from_bytes(sha256(claim.encode()).digest()[:4]) / _PARTS
    return timedelta(seconds=int(pool.expire_after.total_seconds() * (1 - part * percent / 100)))


def jitter_percent(text: str) -> int:
    """Read the annotation; what cannot be read is none.

    >>> jitter_percent("10"), jitter_percent("10%"), jitter_percent("much")
    (10, 10, 0)
    """
    digits = text.removesuffix("%")
    found = int(digits) if digits.isascii() and digits.isdecimal() else 0
    return found if found <= MOST else 0
