"""What a run creates and costs at most.

List prices in us-east-1 in USD, November 2026, times `REGION_FACTOR` for more expensive regions. Each duration is an
upper bound: a step that takes longer is stopped by its timeout.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

REGION_FACTOR: Final = 1.5
DEFAULT_MAX_COST_USD: Final = 2.0
INSTANCE_USD_PER_HOUR: Final = 0.096
"""The most expensive instance type that a step launches: m5.large, with its 20 GiB gp3 volume and public address."""
SMALL_INSTANCE_USD_PER_HOUR: Final = 0.052
"""m7g.medium, with its 8 GiB gp3 volume and public address."""
FIS_USD_PER_ACTION_MINUTE: Final = 0.10
STACK_USD_PER_HOUR: Final = 0.04
"""Functions, queue polling, alarms, logs, table and bucket: below $20/month, and a share of $3 for the dashboard."""


class CostItem(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of resource that a step creates."""

    description: str
    """With the number: `20 instances for at most 15 minutes`."""
    usd: float = 0.0
    """At most, in us-east-1; 0: free."""

    @property
    def max_usd(self) -> float:
        """At most, in any region."""
        return self.usd * REGION_FACTOR


def build_instance_cost(count: int, minutes: float, *, is_small: bool = False) -> CostItem:
    """Return the cost of *count* instances for at most *minutes*."""
    price = SMALL_INSTANCE_USD_PER_HOUR if is_small else INSTANCE_USD_PER_HOUR
    noun = "instance" if count == 1 else "instances"
    return CostItem(description=f"{count} {noun} for at most {minutes:g} minutes", usd=count * price * minutes / 60)


def compute_total_usd(costs: Iterable[CostItem]) -> float:
    """Return the maximum cost of all *costs* in any region."""
    return sum(cost.max_usd for cost in costs)
