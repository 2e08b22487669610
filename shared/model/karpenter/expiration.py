"""When a NodeClaim expires, and when it is deleted for it.

By default that is the same time, as in Karpenter. With the annotation `joiner.dev/graceful-expiration` of its NodePool,
an expired node is replaced as drifted first, and the NodeClaim is deleted only at the end of that period.
"""

from datetime import datetime, timedelta
from typing import Final

from shared.model.core.labels import GRACEFUL_EXPIRATION
from shared.model.core.metadata import Pairs
from shared.model.core.units import parse_duration
from shared.model.karpenter.node_claim import NodeClaim

EXPIRED: Final = "Expired"
"""Drift reason of a node that has reached its expireAfter and is replaced gracefully."""


def compute_expiration_time(claim: NodeClaim) -> datetime | None:
    """Return when *claim* reaches its own expireAfter; None: never."""
    created = claim.meta.created_at
    return created + claim.expire_after if created is not None and claim.expire_after is not None else None


def compute_expiration_deadline(claim: NodeClaim, pool_annotations: Pairs) -> datetime | None:
    """Return when *claim* is deleted because it expired; None: never.

    Raises:
        ValueError: the annotation in *pool_annotations*, those of its NodePool, is invalid.
    """
    expires_at = compute_expiration_time(claim)
    if expires_at is None:
        return None
    return expires_at + parse_graceful_period(dict(pool_annotations).get(GRACEFUL_EXPIRATION, ""))


def parse_graceful_period(text: str) -> timedelta:
    """Return the value of the annotation; 0 without it.

    >>> parse_graceful_period("24h"), parse_graceful_period("")
    (datetime.timedelta(days=1), datetime.timedelta(0))

    Raises:
        ValueError: it is not a duration, or negative.
    """
    period = parse_duration(text) if text else timedelta()
    if period < timedelta():
        raise ValueError(f"{text!r} is negative: write a duration like 24h")
    return period
