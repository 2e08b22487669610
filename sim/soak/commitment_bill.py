"""The bill of a simulated week: spot instances, what commitments do not cover of on-demand instances, and commitments.

AWS applies commitments to the usage of each hour. Within an hour, each sample counts as an equal part of the hour.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from shared.model.ec2.commitments import Commitments, OnDemandInstance
from shared.state.commitments.application import apply_commitments

SAMPLES_PER_HOUR: Final = 12


class RunningInstance(msgspec.Struct, frozen=True, kw_only=True):
    """A running on-demand instance."""

    instance_type: str
    zone: str
    usd_per_hour: float


class BilledHour(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of one hour, in USD."""

    spot_usd: float
    uncovered_usd: float
    """On-demand usage that commitments do not cover."""
    committed_usd: float
    """The commitments, used or not."""
    unused_usd: float
    """The part of them that covers nothing."""

    @property
    def total_usd(self) -> float:
        """What the account pays."""
        return self.spot_usd + self.uncovered_usd + self.committed_usd


Sample = tuple[float, tuple[RunningInstance, ...]]
"""The price of all instances in USD per hour, and the on-demand instances of them."""


def compute_bill(samples: Iterable[Sample], commitments: Commitments) -> tuple[BilledHour, ...]:
    """Return the bill of each complete hour of *samples*, which are `SAMPLES_PER_HOUR` for each hour, in order."""
    all_samples = list(samples)
    hours = len(all_samples) // SAMPLES_PER_HOUR
    return tuple(
        _compute_hour(all_samples[hour * SAMPLES_PER_HOUR : (hour + 1) * SAMPLES_PER_HOUR], commitments)
        for hour in range(hours)
    )


def _compute_hour(samples: Sequence[Sample], commitments: Commitments) -> BilledHour:
    usage = list(_sum_usage(samples))
    use = apply_commitments(usage, commitments.reserved, commitments.plans)
    used_amounts = dict(use.used_by_commitment)
    committed_usd = sum(plan.commitment_usd_per_hour for plan in commitments.plans)
    committed_usd += sum(item.count * item.usd_per_hour for item in commitments.reserved)
    used_usd = sum(used_amounts[plan.plan_id] for plan in commitments.plans)
    used_usd += sum(used_amounts[item.reservation_id] * item.usd_per_hour for item in commitments.reserved)
    total_usd = sum(price for price, _ in samples) / SAMPLES_PER_HOUR
    on_demand_usd = sum(instance.hours * instance.usd_per_hour for instance in usage)
    return BilledHour(
        spot_usd=max(0.0, total_usd - on_demand_usd),
        uncovered_usd=use.uncovered_usd_per_hour,
        committed_usd=committed_usd,
        unused_usd=committed_usd - used_usd,
    )


def _sum_usage(samples: Iterable[Sample]) -> Iterator[OnDemandInstance]:
    """Yield the on-demand usage of an hour, one entry for each instance type and zone."""
    prices: dict[tuple[str, str], float] = {}
    counts: dict[tuple[str, str], int] = {}
    for instance in (instance for _, instances in samples for instance in instances):
        kind = instance.instance_type, instance.zone
        prices[kind] = instance.usd_per_hour
        counts[kind] = counts.get(kind, 0) + 1
    for kind, count in sorted(counts.items()):
        yield OnDemandInstance(
            instance_id="/".join(kind),
            instance_type=kind[0],
            zone=kind[1],
            usd_per_hour=prices[kind],
            hours=count / SAMPLES_PER_HOUR,
        )
