"""Summary figures of a simulated week: one record of a file of results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from sim.soak.consolidation_outcome import CONSOLIDATION_KINDS, ConsolidationOutcome
from sim.soak.soak_run import SoakResult, SoakSample

REASONS: Final = ("Underutilized", "Empty", "Drifted", "")
MAX_EXAMPLES: Final = 5
"""Number of violations and failures that are stored."""


class ConsolidationFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of the consolidations of one kind."""

    count: int
    evictions: int
    savings_usd: float
    """As long as they lasted, at most one day each."""
    overlap_usd: float
    wasted: int
    """Consolidations that cost more than they saved."""
    wasted_evictions: int
    ended_by_launch_within_an_hour: int
    """Consolidations after which the capacity was needed again within an hour."""


class SoakSummary(msgspec.Struct, frozen=True, kw_only=True, tag="week"):
    """Summary figures: means over samples; money in USD per hour."""

    world: str
    policy: str
    label: str
    curve: str
    days: float
    seed: int
    size: float
    mean_pods: float
    mean_nodes: float
    usd_per_hour: float
    evictions_per_pod_day: dict[str, float]
    """By reason; "" if the disruption was involuntary."""
    waiting_pod_share: float
    """Ratio of pods without a node, of all pods in all samples."""
    launches: int
    interruptions: int
    consolidations: dict[str, ConsolidationFigures]
    """By kind."""
    short_lived_nodes: int
    short_lived_without_changes: int
    reverted_nodes: int
    """Short-lived nodes whose predecessors came back."""
    violations: int
    failed_calls: int
    examples: tuple[str, ...] = ()
    """The first violations and failures."""
    hourly_usd: tuple[float, ...] = ()
    """Mean cost of each hour."""
    bill_usd_per_hour: float | None = None
    """Spot instances, what commitments do not cover, and the commitments; None if the account has no commitments."""
    unused_usd_per_hour: float = 0.0
    """The unused part of the commitments."""
    invocations: dict[str, int] = {}
    cpu_seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, float, int, float]:
        """Identifies the run."""
        return self.world, self.policy, self.days, self.seed, self.size

    @property
    def has_failed(self) -> bool:
        """Whether a budget was violated or an invocation failed."""
        return bool(self.violations or self.failed_calls)

    @property
    def consolidation_count(self) -> int:
        """Number of completed consolidations."""
        return sum(figures.count for figures in self.consolidations.values())

    @property
    def wasted_count(self) -> int:
        """Number of consolidations that cost more than they saved."""
        return sum(figures.wasted for figures in self.consolidations.values())


def build_summary(week: SoakResult, *, label: str = "", curve: str = "", cpu_seconds: float = 0.0) -> SoakSummary:
    """Return the summary of *week*; *label* and *curve* are those of its policy."""
    mean_pods = _compute_mean(sample.running for sample in week.samples)
    pod_days = mean_pods * week.days
    count_by_reason = Counter(eviction.reason for eviction in week.evictions)
    samples_per_hour = 12
    costs = [sample.usd_per_hour for sample in week.samples]
    return SoakSummary(
        world=week.world,
        policy=week.policy,
        label=label or week.policy,
        curve=curve,
        days=week.days,
        seed=week.seed,
        size=week.size,
        mean_pods=mean_pods,
        mean_nodes=_compute_mean(sample.nodes for sample in week.samples),
        usd_per_hour=_compute_mean(costs),
        evictions_per_pod_day={reason: round(count_by_reason[reason] / pod_days, 3) for reason in REASONS},
        waiting_pod_share=round(_compute_waiting_ratio(week.samples), 6),
        launches=week.launches,
        interruptions=week.interruptions,
        consolidations={
            kind: _sum_outcomes([outcome for outcome in week.consolidations if outcome.kind == kind])
            for kind in CONSOLIDATION_KINDS
        },
        short_lived_nodes=len(week.short_lived_nodes),
        short_lived_without_changes=len(week.short_lived_without_changes),
        reverted_nodes=sum(node.is_reverted for node in week.short_lived_without_changes),
        violations=len(week.violations),
        failed_calls=len(week.failed_invocations),
        examples=(*week.violations[:MAX_EXAMPLES], *week.failed_invocations[:MAX_EXAMPLES]),
        hourly_usd=tuple(
            _compute_mean(costs[start : start + samples_per_hour]) for start in range(0, len(costs), samples_per_hour)
        ),
        bill_usd_per_hour=_compute_mean(hour.total_usd for hour in week.bill) if week.bill else None,
        unused_usd_per_hour=_compute_mean(hour.unused_usd for hour in week.bill),
        invocations=dict(week.invocations),
        cpu_seconds=round(cpu_seconds, 1),
    )


def _sum_outcomes(outcomes: Sequence[ConsolidationOutcome]) -> ConsolidationFigures:
    wasted_outcomes = [outcome for outcome in outcomes if outcome.net_usd < 0]
    return ConsolidationFigures(
        count=len(outcomes),
        evictions=sum(outcome.evictions for outcome in outcomes),
        savings_usd=round(sum(outcome.savings_usd_per_hour * outcome.hours for outcome in outcomes), 3),
        overlap_usd=round(sum(outcome.overlap_usd for outcome in outcomes), 3),
        wasted=len(wasted_outcomes),
        wasted_evictions=sum(outcome.evictions for outcome in wasted_outcomes),
        ended_by_launch_within_an_hour=sum(outcome.ended_by == "launch" and outcome.hours <= 1 for outcome in outcomes),
    )


def _compute_mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 4) if numbers else 0.0


def _compute_waiting_ratio(samples: Sequence[SoakSample]) -> float:
    waiting, running = sum(sample.waiting for sample in samples), sum(sample.running for sample in samples)
    return waiting / max(1, waiting + running)
