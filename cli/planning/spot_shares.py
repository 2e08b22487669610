"""Spot shares as text and as documents."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from shared.model.karpenter.spot_share import MILLI, ShareUsage, SpotShare

UsedShares: TypeAlias = Mapping[str, tuple[SpotShare, ShareUsage]]
"""By NodePool."""


def list_share_texts(shares: UsedShares, suffix: str = "") -> Iterator[str]:
    """Yield the usage of each share, with *suffix*."""
    for pool, (share, usage) in shares.items():
        yield f"Spot share of NodePool {pool}: {share.format_usage(usage)}{suffix}"


def build_share_documents(shares: UsedShares) -> list[dict[str, Any]]:
    """Return the shares as documents, in nodes or vCPU."""
    return [_build_share_document(pool, share, usage) for pool, (share, usage) in shares.items()]


def _build_share_document(pool: str, share: SpotShare, usage: ShareUsage) -> dict[str, Any]:
    divisor = MILLI if share.unit == "vcpu" else 1
    return {
        "nodePool": pool,
        "unit": share.unit,
        "percent": share.percent,
        "onDemandBase": share.base / divisor,
        "spot": usage.spot / divisor,
        "total": usage.total / divisor,
        "maxSpot": share.compute_max_spot(usage.total) / divisor,
    }
