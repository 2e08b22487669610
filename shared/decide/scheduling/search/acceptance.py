"""Acceptance of plans: which plans may be used instead of the greedy plan."""

from typing import Final

import msgspec

from shared.decide.scheduling.packing.plan_completion import Plan

LARGE_SAVING_COST_RATIO: Final = 0.75
"""A large saving: at most this ratio of the greedy plan's cost."""


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Compares plans with the greedy plan.

    Where few pods are pending at a low price, a plan with more nodes than the greedy plan must save a lot.
    """

    greedy: Plan
    is_small: bool

    def has_accepted_node_count(self, plan: Plan) -> bool:
        """Return whether *plan* saves enough for its number of nodes."""
        return (
            not self.is_small
            or plan.count_nodes() <= self.greedy.count_nodes()
            or plan.compute_cost() <= self.greedy.compute_cost() * LARGE_SAVING_COST_RATIO
        )

    def is_improvement(self, plan: Plan, before: Plan, min_saving_ratio: float) -> bool:
        """Return whether *plan* is complete, and cheaper than *before* by the share *min_saving_ratio* of its cost.

        A plan with an accepted number of nodes is not given up for another plan, and replaces a plan without if it
        costs less than the greedy plan.
        """
        if not plan.is_as_complete_as(self.greedy):
            return False
        if self.is_small:
            is_accepted, was_accepted = self.has_accepted_node_count(plan), self.has_accepted_node_count(before)
            if was_accepted and not is_accepted:
                return False
            if is_accepted and not was_accepted:
                return plan.compute_cost() < self.greedy.compute_cost()
        return plan.compute_cost() < before.compute_cost() * (1 - min_saving_ratio)

    def rank(self, plan: Plan) -> tuple[bool, float]:
        """Return the sort key of *plan*: accepted plans first, the cheapest first."""
        return not self.has_accepted_node_count(plan), plan.compute_cost()
