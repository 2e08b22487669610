"""The daily cost report that `joiner cost` reads: one document per day, ``costs/2026-11-22.json`` in the bucket."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.report.costs.cost_ledger import ONE_HOUR, CommitmentHour, CostLedger
from shared.report.costs.node_lifetimes import NodeLifetime

MAX_EXPENSIVE_NODES: Final = 20


class CostShare(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Nodes with equal NodePool, capacity type, instance type and label, and their cost in USD on this day."""

    pool: str = ""
    capacity_type: str = ""
    instance_type: str = ""
    label: str = ""
    """The value of the label `DailyReport.label`."""
    nodes: int
    """Number of nodes, at the same time or one after the other."""
    node_hours: float
    usd: float
    on_demand_usd: float
    """Cost of the same hours on demand."""
    idle_usd: float
    """Part of *usd* for resources that no pod requested."""
    unpriced_hours: float = 0.0
    """Part of *node_hours* from nodes without a known price, which count as $0."""


class ExpensiveNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One node and its cost on this day."""

    claim: str
    instance: str = ""
    pool: str
    instance_type: str
    capacity_type: str
    hours: float
    usd: float
    idle_usd: float


class DailyReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The costs of a day, or of a part of it."""

    day: str
    """``2026-11-22``, UTC."""
    cluster: str
    since: datetime
    until: datetime
    label: str = ""
    """The node label that costs are grouped by, besides the other groupings."""
    usd: float
    node_hours: float
    saved_by_spot_usd: float
    """How much more the same hours would have cost on demand: spot and reserved instances are cheaper."""
    commands: int = 0
    """Number of completed disruption commands."""
    saved_per_hour_usd: float = 0.0
    """Their savings per hour from then on."""
    saved_by_commands_usd: float = 0.0
    """Their savings on this day: each from its completion to the end of the day."""
    idle_usd: float
    shares: tuple[CostShare, ...] = ()
    """Sorted by NodePool, capacity type, instance type and label."""
    most_expensive_nodes: tuple[ExpensiveNode, ...] = msgspec.field(default=(), name="dearest")
    """The `MAX_EXPENSIVE_NODES` nodes with the highest cost, most expensive first."""
    commitment_hours: tuple[CommitmentHour, ...] = ()
    """What commitments cover in each hour; empty with the setting `commitments: off`."""

    @property
    def paid_usd(self) -> float:
        """The cost if covered usage costs what the commitments cost that cover it."""
        return compute_paid_usd(self.usd, self.commitment_hours)


def build_daily_report(ledger: CostLedger, cluster: str, label: str = "") -> DailyReport:
    """Return the report of *ledger*."""
    lifetimes = [lifetime for lifetime in ledger.lives if lifetime.hours]
    shares = _build_shares(lifetimes)
    savings = [(saving.usd_per_hour, (ledger.until - saving.at) / ONE_HOUR) for saving in ledger.savings]
    return DailyReport(
        day=f"{ledger.day:%Y-%m-%d}",
        cluster=cluster,
        since=ledger.since,
        until=ledger.until,
        label=label,
        usd=_round_usd(sum(share.usd for share in shares)),
        node_hours=_round_usd(sum(share.node_hours for share in shares)),
        saved_by_spot_usd=_round_usd(sum(share.on_demand_usd - share.usd for share in shares)),
        commands=len(savings),
        saved_per_hour_usd=_round_usd(sum(rate for rate, _ in savings)),
        saved_by_commands_usd=_round_usd(sum(rate * hours for rate, hours in savings)),
        idle_usd=_round_usd(sum(share.idle_usd for share in shares)),
        shares=shares,
        most_expensive_nodes=_select_expensive_nodes(lifetimes),
        commitment_hours=ledger.commitment_hours,
    )


def compute_paid_usd(usd: float, hours: Iterable[CommitmentHour]) -> float:
    """Return *usd*, the cost at on-demand and spot prices, with covered usage at the rates of commitments."""
    return max(0.0, usd - sum(hour.covered_usd - hour.paid_usd for hour in hours))


def is_complete(report: DailyReport) -> bool:
    """Return whether the report covers the whole day."""
    return report.until - report.since >= timedelta(days=1)


def _build_shares(lifetimes: Iterable[NodeLifetime]) -> tuple[CostShare, ...]:
    lifetimes_by_key: dict[tuple[str, str, str, str], list[NodeLifetime]] = defaultdict(list)
    for lifetime in lifetimes:
        lifetimes_by_key[lifetime.pool, lifetime.capacity_type, lifetime.instance_type, lifetime.label].append(lifetime)
    return tuple(_build_share(key, lifetimes_by_key[key]) for key in sorted(lifetimes_by_key))


def _build_share(key: tuple[str, str, str, str], lifetimes: list[NodeLifetime]) -> CostShare:
    def sum_amounts(amount: Callable[[NodeLifetime], float]) -> float:
        return _round_usd(sum(map(amount, lifetimes)))

    pool, capacity_type, instance_type, label = key
    return CostShare(
        pool=pool,
        capacity_type=capacity_type,
        instance_type=instance_type,
        label=label,
        nodes=len(lifetimes),
        node_hours=sum_amounts(lambda lifetime: lifetime.hours),
        usd=sum_amounts(lambda lifetime: lifetime.usd),
        on_demand_usd=sum_amounts(lambda lifetime: lifetime.on_demand_usd),
        idle_usd=sum_amounts(lambda lifetime: lifetime.idle_usd),
        unpriced_hours=sum_amounts(lambda lifetime: 0.0 if lifetime.usd_per_hour else lifetime.hours),
    )


def _select_expensive_nodes(lifetimes: Iterable[NodeLifetime]) -> tuple[ExpensiveNode, ...]:
    ranked = sorted(lifetimes, key=lambda lifetime: (-lifetime.usd, lifetime.claim, lifetime.instance))
    return tuple(
        ExpensiveNode(
            claim=lifetime.claim,
            instance=lifetime.instance,
            pool=lifetime.pool,
            instance_type=lifetime.instance_type,
            capacity_type=lifetime.capacity_type,
            hours=_round_usd(lifetime.hours),
            usd=_round_usd(lifetime.usd),
            idle_usd=_round_usd(lifetime.idle_usd),
        )
        for lifetime in ranked[:MAX_EXPENSIVE_NODES]
    )


def _round_usd(amount: float) -> float:
    """Round *amount* to the millionth: sums in another order give the same bytes."""
    return round(amount, 6)
