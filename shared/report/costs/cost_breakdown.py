"""Cost breakdown: the costs of several days, summed by NodePool, instance type, capacity type or label."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from shared.report.costs.daily_report import CostShare, DailyReport

GROUP_KEYS: Final[Mapping[str, Callable[[CostShare], str]]] = {
    "pool": lambda share: share.pool,
    "type": lambda share: share.instance_type,
    "capacity-type": lambda share: share.capacity_type,
    "label": lambda share: share.label,
}


class CostBreakdown(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The costs of one group of nodes over all days."""

    name: str
    nodes: int
    """Summed over the days: a node that exists on two days counts twice."""
    node_hours: float
    usd: float
    on_demand_usd: float
    idle_usd: float


def compute_breakdown(days: Iterable[DailyReport], group_key: str) -> tuple[CostBreakdown, ...]:
    """Return the costs of *days* grouped by *group_key*, a key of `GROUP_KEYS`, most expensive first."""
    shares_by_name: dict[str, list[CostShare]] = defaultdict(list)
    for report in days:
        for share in report.shares:
            shares_by_name[GROUP_KEYS[group_key](share)].append(share)
    parts = [_sum_shares(name, group_shares) for name, group_shares in shares_by_name.items()]
    return tuple(sorted(parts, key=lambda part: (-part.usd, -part.node_hours, part.name)))


def _sum_shares(name: str, shares: Iterable[CostShare]) -> CostBreakdown:
    share_list = list(shares)

    def sum_amounts(amount: Callable[[CostShare], float]) -> float:
        return round(sum(map(amount, share_list)), 6)

    return CostBreakdown(
        name=name,
        nodes=sum(share.nodes for share in share_list),
        node_hours=sum_amounts(lambda share: share.node_hours),
        usd=sum_amounts(lambda share: share.usd),
        on_demand_usd=sum_amounts(lambda share: share.on_demand_usd),
        idle_usd=sum_amounts(lambda share: share.idle_usd),
    )
