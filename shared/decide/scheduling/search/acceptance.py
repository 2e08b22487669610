"""Acceptance of plans: which plans may be used instead of the greedy plan."""

from collections import Counter
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

        No pod moves from a NodePool to one of lower weight: nodes of a NodePool are opened only where those of higher
        weight have no room. A plan with an accepted number of nodes is not given up for another plan, and replaces a
        plan without if it costs less than the greedy plan.
        """
        if plan.compute_cost() >= before.compute_cost() and not self.is_small:
            return False
        if not plan.is_as_complete_as(self.greedy) or not _has_kept_weights(plan, before):
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


def _has_kept_weights(plan: Plan, before: Plan) -> bool:
    """Return whether, for each weight, NodePools of at least this weight have as many pods in *plan* as in *before*.

    Pods that now are on existing nodes count as pods of the highest weight.
    """
    if len({template.pool.weight for template in plan.packing.templates}) <= 1:
        return True
    counts, counts_before = _count_pods_by_weight(plan), _count_pods_by_weight(before)
    surplus = counts_before.total() - counts.total()
    for weight in sorted(counts.keys() | counts_before.keys(), reverse=True):
        surplus += counts[weight] - counts_before[weight]
        if surplus < 0:
            return False
    return True


def _count_pods_by_weight(plan: Plan) -> Counter[int]:
    """Return the number of pods on new nodes by the weight of the NodePool."""
    counts: Counter[int] = Counter()
    for node in plan.packing.open_nodes:
        counts[node.template.pool.weight] += len(node.pods)
    return counts
