"""What a simulated week says in figures."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from sim.weeks.week import Sample, Week

REASONS: Final = ("Underutilized", "Empty", "Drifted", "")
WORDS: Final[Mapping[str, str]] = {"": "EC2 took the machine"}


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Means are over samples; money is USD per hour."""

    days: float
    seed: int
    mean_pods: float
    mean_nodes: float
    mean_usd_per_hour: float
    without_usd_per_hour: float
    """The same churn with consolidation switched off."""
    ideal_usd_per_hour: float
    """All pods placed anew by our own solver, hour by hour."""
    bound_usd_per_hour: float
    """What no fleet can cost less than, every day."""
    over_ideal_percent: float
    """Ours at the same instants, above it."""
    over_bound_percent: float
    evictions_per_pod_day: dict[str, float]
    """By reason; "": nobody chose to."""
    waiting_pod_share: float
    """Of all pods at all samples, those that no node had."""
    waiting_pod_share_without: float
    launched: int
    launched_without: int
    interrupted: int
    consolidations: int
    returns: int
    restless: int
    back: int
    """Of them, those for which what had been before came again."""
    violations: int
    failed_calls: int

    @property
    def saved_percent(self) -> float:
        """What consolidation saves."""
        return 100 * (1 - self.mean_usd_per_hour / self.without_usd_per_hour)


def figures(with_: Week, without: Week) -> Figures:
    """Set *with_* consolidation against the same churn *without*."""
    ideals = [(one.usd_per_hour, one.ideal.repacked) for one in with_.samples if one.ideal is not None]
    bounds = [(one.usd_per_hour, one.ideal.bound) for one in with_.samples if one.ideal and one.ideal.bound is not None]
    pod_days = sum(one.running for one in with_.samples) / len(with_.samples) * with_.days
    counted = Counter(one.reason for one in with_.evictions)
    return Figures(
        days=with_.days,
        seed=with_.seed,
        mean_pods=_mean(one.running for one in with_.samples),
        mean_nodes=_mean(one.nodes for one in with_.samples),
        mean_usd_per_hour=_mean(one.usd_per_hour for one in with_.samples),
        without_usd_per_hour=_mean(one.usd_per_hour for one in without.samples),
        ideal_usd_per_hour=_mean(other for _, other in ideals),
        bound_usd_per_hour=_mean(other for _, other in bounds),
        over_ideal_percent=_over(ideals),
        over_bound_percent=_over(bounds),
        evictions_per_pod_day={reason: round(counted[reason] / pod_days, 3) for reason in REASONS},
        waiting_pod_share=_waiting(with_.samples),
        waiting_pod_share_without=_waiting(without.samples),
        launched=with_.launched,
        launched_without=without.launched,
        interrupted=with_.interrupted,
        consolidations=with_.exchanges,
        returns=len(with_.returns),
        restless=len(with_.restless),
        back=sum(one.is_back for one in with_.restless),
        violations=len(with_.violations) + len(without.violations),
        failed_calls=len(with_.failed) + len(without.failed),
    )


def lines(one: Figures) -> Iterable[str]:
    """Iterate over them as a table of Markdown."""
    above, over = one.over_ideal_percent, one.over_bound_percent
    rows = (
        ("days, seed", f"{one.days:g}, {one.seed}"),
        ("pods, nodes, on average", f"{one.mean_pods:.0f}, {one.mean_nodes:.1f}"),
        ("$/h with consolidation", f"{one.mean_usd_per_hour:.3f}"),
        ("$/h without", f"{one.without_usd_per_hour:.3f} (consolidation saves {one.saved_percent:.1f} %)"),
        ("$/h of an ideal repacking, hourly", f"{one.ideal_usd_per_hour:.3f} (ours is {above:.1f} % above it)"),
        ("$/h that nothing can beat, every day", f"{one.bound_usd_per_hour:.3f} (ours is {over:.1f} % above it)"),
        *(
            (f"evictions per pod and day: {WORDS.get(reason, reason)}", f"{count:.2f}")
            for reason, count in one.evictions_per_pod_day.items()
        ),
        ("pods without a node, with and without", f"{one.waiting_pod_share:.2%}, {one.waiting_pod_share_without:.2%}"),
        ("launches, with and without", f"{one.launched}, {one.launched_without}"),
        ("spot interruptions", str(one.interrupted)),
        ("consolidations carried out", str(one.consolidations)),
        ("nodes they made that went again within the hour", f"{one.returns}; with no change of pods {one.restless}"),
        ("of these, replaced by what had been before", str(one.back)),
        ("violations of a budget of pods or nodes, or of do-not-disrupt", str(one.violations)),
        ("invocations that failed", str(one.failed_calls)),
    )
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {value} |" for name, value in rows)


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return round(sum(some) / len(some), 4) if some else 0.0


def _over(pairs: Iterable[tuple[float, float]]) -> float:
    """Answer by how many percent the first of all *pairs* are above the second."""
    some = list(pairs)
    return round(100 * (sum(one for one, _ in some) / (sum(other for _, other in some) or 1.0) - 1), 2)


def _waiting(samples: Iterable[Sample]) -> float:
    some = list(samples)
    return sum(one.waiting for one in some) / max(1, sum(one.waiting + one.running for one in some))
