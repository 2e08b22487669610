"""Goals of `make bench`: how much faster than Karpenter a workload is planned, and its price above the lower bound."""

from collections.abc import Mapping
from typing import Final

import msgspec

PRICE_NOISE_RATIO: Final = 1.01
"""A price ratio misses its goal if it is higher by more than this factor: small changes of a search move prices."""


class PlanGoal(msgspec.Struct, frozen=True, kw_only=True):
    """Goals for one workload; None: there is no goal."""

    max_price_ratio: float
    """Price divided by the lower bound."""
    karpenter_seconds: float | None = None
    """How long Karpenter takes for the workload on two cores."""
    min_speedup: float | None = None
    """Karpenter's time divided by ours; it depends on the computer, so a miss is no error."""

    def format_speedup(self, plan_seconds: float) -> str:
        """Return Karpenter's time divided by *plan_seconds*, and its goal."""
        if self.karpenter_seconds is None:
            return f"{'-':>11}{'-':>6}"
        goal = "-" if self.min_speedup is None else f"{self.min_speedup:.0f}"
        return f"{self.karpenter_seconds / plan_seconds:11.0f}{goal:>6}"

    def is_missed_by(self, price_ratio: float) -> bool:
        """Return whether *price_ratio* is above the goal by more than noise."""
        return price_ratio > self.max_price_ratio * PRICE_NOISE_RATIO


DEFAULT_GOAL: Final = PlanGoal(max_price_ratio=1.05)
DIVERSE_GOAL: Final = PlanGoal(max_price_ratio=1.25)
"""The lower bound ignores affinity between pods."""
GOALS: Final[Mapping[str, PlanGoal]] = {
    "deployments-10000": PlanGoal(max_price_ratio=1.05, karpenter_seconds=12, min_speedup=25),
    "distinct-5000": PlanGoal(max_price_ratio=1.05, karpenter_seconds=4.9, min_speedup=10),
    "diverse-5000": DIVERSE_GOAL,
    "diverse-10000": DIVERSE_GOAL,
    "diverse-20000": PlanGoal(max_price_ratio=1.25, karpenter_seconds=63, min_speedup=100),
    "diverse-40000": DIVERSE_GOAL,
    "preferences-4000": PlanGoal(max_price_ratio=2.0, karpenter_seconds=45),  # each pod prefers a node of its own
}


def get_goal(workload_name: str) -> PlanGoal:
    """Return the goal for a workload."""
    return GOALS.get(workload_name, DEFAULT_GOAL)
