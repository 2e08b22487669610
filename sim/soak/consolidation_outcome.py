"""What became of each consolidation: how long its savings lasted, and whether they exceeded its cost."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from sim.soak.monitor import PodEviction
from sim.soak.node_replacements import ClaimLife, NodeReplacement

MAX_SAVINGS_PERIOD: Final = timedelta(days=1)
"""Savings that last longer are not attributed to the command."""
ONE_HOUR: Final = timedelta(hours=1)
ConsolidationKind = Literal["deletion", "single replacement", "multiple replacement"]
CONSOLIDATION_KINDS: Final[tuple[ConsolidationKind, ...]] = ("deletion", "single replacement", "multiple replacement")
SavingsEnd = Literal["launch", "removal", "day", "end"]


class ConsolidationOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A consolidation and its result."""

    at: datetime
    kind: ConsolidationKind
    node_pools: tuple[str, ...]
    removed: int
    created: int
    evictions: int
    savings_usd_per_hour: float
    hours: float
    """How long the savings lasted."""
    ended_by: SavingsEnd
    """A launch for pending pods in one of its NodePools, the removal of a node that it created, one day, or the end."""
    overlap_usd: float
    """Cost of the new nodes until the old ones had ended."""

    @property
    def net_usd(self) -> float:
        """What the consolidation saved, without a price of evictions."""
        return self.savings_usd_per_hour * self.hours - self.overlap_usd


def evaluate_consolidations(
    replacements: Iterable[NodeReplacement],
    life_by_claim: Mapping[str, ClaimLife],
    evictions: Iterable[PodEviction],
    end: datetime,
) -> tuple[ConsolidationOutcome, ...]:
    """Return the outcomes of *replacements* in their order, at the *end* of the simulation."""
    evictions_by_claim = Counter(eviction.claim for eviction in evictions if eviction.reason == "Underutilized")
    return tuple(
        _evaluate_consolidation(replacement, life_by_claim, evictions_by_claim, end) for replacement in replacements
    )


def _evaluate_consolidation(
    replacement: NodeReplacement,
    life_by_claim: Mapping[str, ClaimLife],
    evictions_by_claim: Mapping[str, int],
    end: datetime,
) -> ConsolidationOutcome:
    removed_lives = [life_by_claim[name] for name in replacement.removed_claims]
    created_lives = [life_by_claim[name] for name in replacement.created_claims if name in life_by_claim]
    ends: list[tuple[datetime, SavingsEnd]] = [(replacement.at + MAX_SAVINGS_PERIOD, "day"), (end, "end")]
    ends += [
        (life.created_at, "launch")
        for life in life_by_claim.values()
        if not life.command_id and life.node_pool in replacement.node_pools and life.created_at > replacement.at
    ]
    ends += [(life.deleted_at, "removal") for life in created_lives if life.deleted_at is not None]
    ended_at, ended_by = min(ends)
    overlap_end = max((life.ended_at or end for life in removed_lives), default=replacement.at)
    overlap_usd = sum(life.price_usd_per_hour * ((overlap_end - life.created_at) / ONE_HOUR) for life in created_lives)
    return ConsolidationOutcome(
        at=replacement.at,
        kind=_classify_consolidation(replacement),
        node_pools=replacement.node_pools,
        removed=len(replacement.removed_claims),
        created=len(replacement.created_claims),
        evictions=sum(evictions_by_claim.get(name, 0) for name in replacement.removed_claims),
        savings_usd_per_hour=round(replacement.savings_usd_per_hour, 5),
        hours=round(max(timedelta(), ended_at - replacement.at) / ONE_HOUR, 3),
        ended_by=ended_by,
        overlap_usd=round(overlap_usd, 5),
    )


def _classify_consolidation(replacement: NodeReplacement) -> ConsolidationKind:
    if not replacement.created_claims:
        return "deletion"
    return "single replacement" if len(replacement.removed_claims) == 1 else "multiple replacement"
