"""What commitments cover of the nodes in the cost ledger, hour by hour."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cli.cost.commitments.document import CommitmentsDocument, ReservedInstancesEntry, SavingsPlanEntry
from shared.decide.launch.money.commitments import apply_commitments
from shared.model.core.labels import ON_DEMAND
from shared.model.core.units import parse_instant
from shared.model.ec2.commitments import CommitmentUse, OnDemandInstance, ReservedInstances, SavingsPlan
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger

_REGION_PATTERN: Final = re.compile(r"[a-z]+(?:-[a-z]+)+-\d+")
"""The region at the start of the name of a zone."""


class CommitmentHour(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What commitments cover in an hour; amounts in USD."""

    hour: datetime
    """Its start, UTC."""
    committed_usd: float
    """Cost of the commitments, used or not."""
    unused_usd: float
    """The part of it that covers no node of this cluster."""
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
        """The part that covers no node of this cluster."""
        return self.committed_usd - self.used_usd


class CommitmentUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The use of all commitments in the complete hours of a ledger."""

    day: str
    hours: tuple[CommitmentHour, ...]
    commitments: tuple[CommitmentTotals, ...]
    """Sorted by id; those that were active in at least one hour."""
    other_regions: tuple[str, ...]
    """Ids of commitments for other regions, which are not counted."""


def compute_commitment_usage(document: CommitmentsDocument, ledger: CostLedger) -> CommitmentUsage:
    """Return what the commitments of *document* cover of the nodes in *ledger*, for each complete hour."""
    regions = {region for lifetime in ledger.lives if (region := _get_region(lifetime.zone))}
    is_local = {entry.id: _is_local(entry, regions) for entry in _list_entries(document)}
    hours: list[CommitmentHour] = []
    totals: dict[str, CommitmentTotals] = {}
    for hour in _iterate_hours(ledger):
        entries = [entry for entry in _list_entries(document) if is_local[entry.id] and _is_active(entry, hour)]
        instances = list(_list_instances(ledger, hour))
        use = _apply_entries(entries, instances)
        amounts = list(_compute_amounts(entries, use))
        for amount in amounts:
            previous = totals.get(amount.id, msgspec.structs.replace(amount, committed_usd=0.0, used_usd=0.0))
            totals[amount.id] = msgspec.structs.replace(
                amount,
                committed_usd=previous.committed_usd + amount.committed_usd,
                used_usd=previous.used_usd + amount.used_usd,
            )
        total_usd = sum(instance.hours * instance.usd_per_hour for instance in instances)
        hours.append(
            CommitmentHour(
                hour=hour,
                committed_usd=sum((amount.committed_usd for amount in amounts), 0.0),
                unused_usd=sum((amount.unused_usd for amount in amounts), 0.0),
                covered_usd=max(0.0, total_usd - use.uncovered_usd_per_hour),
                uncovered_usd=float(use.uncovered_usd_per_hour),
            )
        )
    return CommitmentUsage(
        day=f"{ledger.day:%Y-%m-%d}",
        hours=tuple(hours),
        commitments=tuple(totals[identifier] for identifier in sorted(totals)),
        other_regions=tuple(sorted(identifier for identifier, is_here in is_local.items() if not is_here)),
    )


def _list_entries(document: CommitmentsDocument) -> tuple[SavingsPlanEntry | ReservedInstancesEntry, ...]:
    return (*document.savings_plans, *document.reserved_instances)


def _get_region(zone: str) -> str:
    match = _REGION_PATTERN.match(zone)
    return match[0] if match is not None else ""


def _is_local(entry: SavingsPlanEntry | ReservedInstancesEntry, regions: set[str]) -> bool:
    """Return whether *entry* can apply in *regions*; without nodes, the region is unknown, and every entry can."""
    zone_region = _get_region(entry.zone or "") if isinstance(entry, ReservedInstancesEntry) else ""
    region = entry.region or zone_region
    return not region or not regions or region in regions


def _is_active(entry: SavingsPlanEntry | ReservedInstancesEntry, hour: datetime) -> bool:
    return (entry.start is None or parse_instant(entry.start) <= hour) and hour < parse_instant(entry.end)


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


def _apply_entries(
    entries: Iterable[SavingsPlanEntry | ReservedInstancesEntry], instances: list[OnDemandInstance]
) -> CommitmentUse:
    prices = {instance.instance_type: instance.usd_per_hour for instance in instances}
    reserved: list[ReservedInstances] = []
    plans: list[SavingsPlan] = []
    for entry in entries:
        if isinstance(entry, SavingsPlanEntry):
            plans.append(_build_plan(entry, prices))
        else:
            reserved.append(
                ReservedInstances(
                    reservation_id=entry.id,
                    instance_type=entry.instance_type,
                    count=entry.count,
                    zone=entry.zone or "",
                )
            )
    return apply_commitments(instances, reserved, plans)


def _build_plan(entry: SavingsPlanEntry, prices: dict[str, float]) -> SavingsPlan:
    """Build the plan of *entry* with its rates for the instance types in *prices*: by type, else by family."""
    rates: dict[str, float] = {}
    for rate in sorted(entry.rates, key=lambda rate: rate.instance_type is not None):
        for name, price in prices.items():
            if name == rate.instance_type or name.partition(".")[0] == rate.instance_family:
                rates[name] = rate.usd_per_hour or price * (1 - (rate.discount_percent or 0.0) / 100)
    return SavingsPlan(
        plan_id=entry.id,
        kind="compute" if entry.type == "Compute" else "ec2-instance",
        commitment_usd_per_hour=entry.usd_per_hour,
        instance_family=entry.instance_family or "",
        rates=tuple(sorted(rates.items())),
    )


def _compute_amounts(
    entries: Iterable[SavingsPlanEntry | ReservedInstancesEntry], use: CommitmentUse
) -> Iterator[CommitmentTotals]:
    """Yield the cost and the use of each commitment in an hour."""
    used = dict(use.used_by_commitment)
    for entry in entries:
        if isinstance(entry, SavingsPlanEntry):
            yield CommitmentTotals(
                id=entry.id, type=entry.type, committed_usd=entry.usd_per_hour, used_usd=used[entry.id]
            )
        else:
            yield CommitmentTotals(
                id=entry.id,
                type="zonal" if entry.zone is not None else "regional",
                committed_usd=entry.count * entry.usd_per_hour,
                used_usd=used[entry.id] * entry.usd_per_hour,
            )
