"""What commitments cover of the nodes in the cost ledger, hour by hour."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.labels import ON_DEMAND
from shared.model.ec2.commitments import Commitments, CommitmentUse, OnDemandInstance
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger
from shared.state.commitments.application import apply_commitments
from shared.store.commitments import CommitmentsDocument, build_commitments, find_region

_PLAN_TYPES: Final = {"compute": "Compute", "ec2-instance": "EC2Instance"}


class CommitmentHour(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What commitments cover in an hour; amounts in USD."""

    hour: datetime
    """Its start, UTC."""
    committed_usd: float
    """Cost of the commitments, used or not."""
    unused_usd: float
    """The part of it that covers no known instance."""
    covered_usd: float
    """What the covered usage would cost on demand."""
    uncovered_usd: float
    """On-demand cost that no commitment covers."""


class CommitmentTotals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The use of one commitment, summed over the hours; amounts in USD."""

    id: str
    type: str
    """`Compute`, `EC2Instance`, `regional` or `zonal`."""
    committed_usd: float
    used_usd: float

    @property
    def unused_usd(self) -> float:
        """The part that covers no known instance."""
        return self.committed_usd - self.used_usd


class CommitmentUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The use of all commitments in the complete hours of a ledger."""

    day: str
    hours: tuple[CommitmentHour, ...]
    commitments: tuple[CommitmentTotals, ...]
    """Sorted by id; those that were active in at least one hour."""
    other_regions: tuple[str, ...]
    """Ids of commitments for other regions, which are not counted."""


def convert_document(document: CommitmentsDocument, ledger: CostLedger) -> Commitments:
    """Return the commitments of *document* for the regions and the instance types of *ledger*."""
    regions = {region for lifetime in ledger.lives if (region := find_region(lifetime.zone))}
    prices = {lifetime.instance_type: lifetime.on_demand_usd_per_hour for lifetime in ledger.lives}
    return build_commitments(document, regions, prices)


def compute_commitment_usage(commitments: Commitments, ledger: CostLedger) -> CommitmentUsage:
    """Return what *commitments* cover of the nodes in *ledger*, for each complete hour.

    The other instances of the account count in each hour: they use a part of the commitments.
    """
    hours: list[CommitmentHour] = []
    totals: dict[str, CommitmentTotals] = {}
    for hour in _iterate_hours(ledger):
        active = commitments.select_active(hour)
        instances = list(_list_instances(ledger, hour))
        use = apply_commitments((*instances, *_list_other_instances(active)), active.reserved, active.plans)
        amounts = list(_compute_amounts(active, use))
        for amount in amounts:
            previous = totals.get(amount.id, msgspec.structs.replace(amount, committed_usd=0.0, used_usd=0.0))
            totals[amount.id] = msgspec.structs.replace(
                amount,
                committed_usd=previous.committed_usd + amount.committed_usd,
                used_usd=previous.used_usd + amount.used_usd,
            )
        total_usd = sum(instance.hours * instance.usd_per_hour for instance in instances)
        uncovered_usd = _sum_uncovered(use, instances)
        hours.append(
            CommitmentHour(
                hour=hour,
                committed_usd=sum((amount.committed_usd for amount in amounts), 0.0),
                unused_usd=sum((amount.unused_usd for amount in amounts), 0.0),
                covered_usd=max(0.0, total_usd - uncovered_usd),
                uncovered_usd=uncovered_usd,
            )
        )
    return CommitmentUsage(
        day=f"{ledger.day:%Y-%m-%d}",
        hours=tuple(hours),
        commitments=tuple(totals[identifier] for identifier in sorted(totals)),
        other_regions=commitments.other_regions,
    )


def _list_other_instances(commitments: Commitments) -> Iterator[OnDemandInstance]:
    for position, instance in enumerate(commitments.other_instances):
        yield msgspec.structs.replace(instance, instance_id=f"/{position:06}")


def _sum_uncovered(use: CommitmentUse, instances: Iterable[OnDemandInstance]) -> float:
    """Return the uncovered cost of *instances*, without that of other instances."""
    uncovered: Mapping[str, float] = dict(use.uncovered_usd_by_instance)
    return float(sum(uncovered[instance.instance_id] for instance in instances))


def _iterate_hours(ledger: CostLedger) -> Iterator[datetime]:
    hour = ledger.since
    while hour + ONE_HOUR <= ledger.until:
        yield hour
        hour += ONE_HOUR


def _list_instances(ledger: CostLedger, hour: datetime) -> Iterator[OnDemandInstance]:
    """Yield the on-demand instances of *hour*, each with the part of the hour in which it ran."""
    hour_end = hour + ONE_HOUR
    for position, lifetime in enumerate(ledger.lives):
        if lifetime.launched is None or lifetime.capacity_type != ON_DEMAND:
            continue
        overlap = min(lifetime.ended or hour_end, hour_end) - max(lifetime.launched, hour)
        if overlap > timedelta():
            yield OnDemandInstance(
                instance_id=f"{lifetime.instance or lifetime.claim}/{position}",
                instance_type=lifetime.instance_type,
                zone=lifetime.zone,
                usd_per_hour=lifetime.on_demand_usd_per_hour,
                hours=overlap / ONE_HOUR,
            )


def _compute_amounts(commitments: Commitments, use: CommitmentUse) -> Iterator[CommitmentTotals]:
    """Yield the cost and the use of each commitment in an hour."""
    used = dict(use.used_by_commitment)
    for plan in commitments.plans:
        yield CommitmentTotals(
            id=plan.plan_id,
            type=_PLAN_TYPES[plan.kind],
            committed_usd=plan.commitment_usd_per_hour,
            used_usd=used[plan.plan_id],
        )
    for item in commitments.reserved:
        yield CommitmentTotals(
            id=item.reservation_id,
            type="zonal" if item.zone else "regional",
            committed_usd=item.count * item.usd_per_hour,
            used_usd=used[item.reservation_id] * item.usd_per_hour,
        )
