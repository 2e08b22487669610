"""What commitments cover of the nodes in the cost ledger, hour by hour."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.labels import ON_DEMAND
from shared.model.ec2.commitments import Commitments, CommitmentUse, OnDemandInstance
from shared.report.costs.cost_ledger import ONE_HOUR, CommitmentHour, CostLedger
from shared.state.commitments.application import apply_commitments

_PLAN_TYPES: Final = {"compute": "Compute", "ec2-instance": "EC2Instance"}


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


def compute_commitment_usage(commitments: Commitments, ledger: CostLedger) -> CommitmentUsage:
    """Return what *commitments* cover of the nodes in *ledger*, for each complete hour."""
    hours: list[CommitmentHour] = []
    totals: dict[str, CommitmentTotals] = {}
    for hour in _iterate_hours(ledger):
        commitment_hour, amounts = compute_commitment_hour(commitments, ledger, hour)
        for amount in amounts:
            previous = totals.get(amount.id, msgspec.structs.replace(amount, committed_usd=0.0, used_usd=0.0))
            totals[amount.id] = msgspec.structs.replace(
                amount,
                committed_usd=previous.committed_usd + amount.committed_usd,
                used_usd=previous.used_usd + amount.used_usd,
            )
        hours.append(commitment_hour)
    return CommitmentUsage(
        day=f"{ledger.day:%Y-%m-%d}",
        hours=tuple(hours),
        commitments=tuple(totals[identifier] for identifier in sorted(totals)),
        other_regions=commitments.other_regions,
    )


def compute_commitment_hour(
    commitments: Commitments, ledger: CostLedger, hour: datetime
) -> tuple[CommitmentHour, tuple[CommitmentTotals, ...]]:
    """Return what *commitments* cover of the nodes in *ledger* in the hour that begins at *hour*, and the use of each.

    The other instances of the account count in each hour: they use a part of the commitments.
    """
    active = commitments.select_active(hour)
    instances = list(_list_instances(ledger, hour))
    use = apply_commitments((*instances, *_list_other_instances(active)), active.reserved, active.plans)
    amounts = tuple(_compute_amounts(active, use))
    total_usd = sum(instance.hours * instance.usd_per_hour for instance in instances)
    uncovered_usd = _sum_instances(use.uncovered_usd_by_instance, instances)
    commitment_hour = CommitmentHour(
        hour=hour,
        committed_usd=sum((amount.committed_usd for amount in amounts), 0.0),
        unused_usd=sum((amount.unused_usd for amount in amounts), 0.0),
        covered_usd=max(0.0, total_usd - uncovered_usd),
        uncovered_usd=uncovered_usd,
        paid_usd=_sum_instances(use.paid_usd_by_instance, instances),
    )
    return commitment_hour, amounts


def with_commitment_hour(ledger: CostLedger, commitments: Commitments | None) -> CostLedger:
    """Return *ledger* with what *commitments* cover in its last hour; None: the setting `commitments` is off."""
    if commitments is None:
        return ledger
    commitment_hour, _ = compute_commitment_hour(commitments, ledger, ledger.until - ONE_HOUR)
    return msgspec.structs.replace(ledger, commitment_hours=(*ledger.commitment_hours, commitment_hour))


def _list_other_instances(commitments: Commitments) -> Iterator[OnDemandInstance]:
    for position, instance in enumerate(commitments.other_instances):
        yield msgspec.structs.replace(instance, instance_id=f"/{position:06}")


def _sum_instances(amounts: Iterable[tuple[str, float]], instances: Iterable[OnDemandInstance]) -> float:
    """Return the sum of the *amounts* of *instances*, without those of other instances."""
    amount_by_instance = dict(amounts)
    return sum((amount_by_instance.get(instance.instance_id, 0.0) for instance in instances), 0.0)


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
