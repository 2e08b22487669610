"""Summary figures of a simulated week."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from sim.soak.soak_run import SoakResult, SoakSample

REASONS: Final = ("Underutilized", "Empty", "Drifted", "")
REASON_TEXTS: Final[Mapping[str, str]] = {"": "interruption by EC2"}


class SoakSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary figures: means over samples; money in USD per hour."""

    days: float
    seed: int
    mean_pods: float
    mean_nodes: float
    mean_usd_per_hour: float
    without_usd_per_hour: float
    """The same churn without consolidation."""
    ideal_usd_per_hour: float
    """All pods placed on new nodes by our own solver, hourly."""
    bound_usd_per_hour: float
    """Lower bound of the cost of any set of nodes, daily."""
    over_ideal_percent: float
    """How far the actual cost at the same instants is above the ideal."""
    over_bound_percent: float
    evictions_per_pod_day: dict[str, float]
    """By reason; "" if the disruption was involuntary."""
    waiting_pod_share: float
    """Ratio of pods without a node, of all pods in all samples."""
    waiting_pod_share_without: float
    launches: int
    launches_without: int
    interruptions: int
    consolidations: int
    short_lived_nodes: int
    short_lived_without_changes: int
    reverted_nodes: int
    """Short-lived nodes whose predecessors came back."""
    violations: int
    failed_calls: int

    @property
    def saved_percent(self) -> float:
        """Savings of consolidation."""
        return 100 * (1 - self.mean_usd_per_hour / self.without_usd_per_hour)

    @property
    def has_failed(self) -> bool:
        """Whether a budget was violated, a replacement was reverted without a reason, or an invocation failed."""
        return bool(self.violations or self.reverted_nodes or self.failed_calls)


def build_summary(consolidated_week: SoakResult, unconsolidated_week: SoakResult) -> SoakSummary:
    """Return the summary of a week with consolidation and of the same churn without."""
    ideals = [
        (sample.usd_per_hour, sample.ideal.repacked) for sample in consolidated_week.samples if sample.ideal is not None
    ]
    bounds = [
        (sample.usd_per_hour, sample.ideal.bound)
        for sample in consolidated_week.samples
        if sample.ideal and sample.ideal.bound is not None
    ]
    samples = consolidated_week.samples
    pod_days = sum(sample.running for sample in samples) / len(samples) * consolidated_week.days
    count_by_reason = Counter(eviction.reason for eviction in consolidated_week.evictions)
    return SoakSummary(
        days=consolidated_week.days,
        seed=consolidated_week.seed,
        mean_pods=_compute_mean(sample.running for sample in consolidated_week.samples),
        mean_nodes=_compute_mean(sample.nodes for sample in consolidated_week.samples),
        mean_usd_per_hour=_compute_mean(sample.usd_per_hour for sample in consolidated_week.samples),
        without_usd_per_hour=_compute_mean(sample.usd_per_hour for sample in unconsolidated_week.samples),
        ideal_usd_per_hour=_compute_mean(ideal_cost for _, ideal_cost in ideals),
        bound_usd_per_hour=_compute_mean(bound_cost for _, bound_cost in bounds),
        over_ideal_percent=_compute_excess_percent(ideals),
        over_bound_percent=_compute_excess_percent(bounds),
        evictions_per_pod_day={reason: round(count_by_reason[reason] / pod_days, 3) for reason in REASONS},
        waiting_pod_share=_compute_waiting_ratio(consolidated_week.samples),
        waiting_pod_share_without=_compute_waiting_ratio(unconsolidated_week.samples),
        launches=consolidated_week.launches,
        launches_without=unconsolidated_week.launches,
        interruptions=consolidated_week.interruptions,
        consolidations=consolidated_week.replacements,
        short_lived_nodes=len(consolidated_week.short_lived_nodes),
        short_lived_without_changes=len(consolidated_week.short_lived_without_changes),
        reverted_nodes=sum(node.is_reverted for node in consolidated_week.short_lived_without_changes),
        violations=len(consolidated_week.violations) + len(unconsolidated_week.violations),
        failed_calls=len(consolidated_week.failed_invocations) + len(unconsolidated_week.failed_invocations),
    )


def format_lines(summary: SoakSummary) -> Iterable[str]:
    """Yield the figures as a Markdown table."""
    above_ideal_percent, above_bound_percent = summary.over_ideal_percent, summary.over_bound_percent
    rows = (
        ("days, seed", f"{summary.days:g}, {summary.seed}"),
        ("mean number of pods, of nodes", f"{summary.mean_pods:.0f}, {summary.mean_nodes:.1f}"),
        ("$/h with consolidation", f"{summary.mean_usd_per_hour:.3f}"),
        (
            "$/h without consolidation",
            f"{summary.without_usd_per_hour:.3f} (consolidation saves {summary.saved_percent:.1f} %)",
        ),
        (
            "$/h of an ideal repacking, computed every hour",
            f"{summary.ideal_usd_per_hour:.3f} (actual cost: {above_ideal_percent:.1f} % higher)",
        ),
        (
            "lower bound of $/h, computed every day",
            f"{summary.bound_usd_per_hour:.3f} (actual cost: {above_bound_percent:.1f} % higher)",
        ),
        *(
            (f"evictions per pod and day: {REASON_TEXTS.get(reason, reason)}", f"{count:.2f}")
            for reason, count in summary.evictions_per_pod_day.items()
        ),
        (
            "pods without a node, with and without consolidation",
            f"{summary.waiting_pod_share:.2%}, {summary.waiting_pod_share_without:.2%}",
        ),
        ("launches, with and without consolidation", f"{summary.launches}, {summary.launches_without}"),
        ("Spot interruptions", str(summary.interruptions)),
        ("completed consolidations", str(summary.consolidations)),
        (
            "replacement nodes that consolidation removed within an hour",
            f"{summary.short_lived_nodes}; without a change of pods: {summary.short_lived_without_changes}",
        ),
        ("of these, replaced by the previous instance types", str(summary.reverted_nodes)),
        ("violations of PodDisruptionBudgets, disruption budgets or do-not-disrupt", str(summary.violations)),
        ("failed invocations", str(summary.failed_calls)),
    )
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {value} |" for name, value in rows)


def _compute_mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 4) if numbers else 0.0


def _compute_excess_percent(pairs: Iterable[tuple[float, float]]) -> float:
    """Return by how many percent the sum of the first values of *pairs* exceeds the sum of the second values."""
    cost_pairs = list(pairs)
    actual_cost, reference_cost = (sum(costs[position] for costs in cost_pairs) for position in (0, 1))
    return round(100 * (actual_cost / (reference_cost or 1.0) - 1), 2)


def _compute_waiting_ratio(samples: Sequence[SoakSample]) -> float:
    waiting, running = sum(sample.waiting for sample in samples), sum(sample.running for sample in samples)
    return waiting / max(1, waiting + running)
