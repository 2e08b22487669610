"""Laws of local search: more effort never makes a plan worse, and trials leave nothing behind."""

import math
from collections.abc import Iterable
from itertools import pairwise
from unittest.mock import patch

from hypothesis import given

from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.packing.plan_completion import Plan, PlanStart
from shared.decide.scheduling.search import local_search, plan_search
from shared.decide.scheduling.search.acceptance import Acceptance
from shared.decide.scheduling.search.neighborhood import Neighborhood
from tests.property.scheduling.test_scheduling_laws import Recipe, generate_recipes, use_same_worlds
from tests.support.snapshot_decisions import solve

EFFORTS = (1, 100, 1000, 6000)


def rank_improved_plans(recipe: Recipe, effort: int) -> list[tuple[bool, float]]:
    """Return the ranks of the plans that local search makes with *effort* steps, the best is the least.

    A plan with an accepted number of nodes is better than a cheaper one without.
    """
    ranks: list[tuple[bool, float]] = []

    def record_ranks(
        plan_start: PlanStart, plans: list[Plan], acceptance: Acceptance, lower_bound: float
    ) -> list[Plan]:
        improved_plans = local_search.improve_plans(plan_start, plans, acceptance, lower_bound)
        for plan in improved_plans:
            has_rejected_node_count, cost = acceptance.rank(plan)
            ranks.append((has_rejected_node_count, round(cost, 9)))
        return improved_plans

    with (
        patch.object(local_search, "MAX_EFFORT_STEPS", effort),
        patch.object(plan_search, "improve_plans", record_ranks),
    ):
        solve(recipe.build_cluster())
    return ranks


@use_same_worlds
@given(generate_recipes())
def test_more_effort_never_gives_a_worse_plan(recipe: Recipe) -> None:
    ranks_by_effort = [rank_improved_plans(recipe, effort) for effort in EFFORTS]
    for less_effort, more_effort in pairwise(ranks_by_effort):
        for rank, better_rank in zip(less_effort, more_effort, strict=True):
            assert better_rank <= rank


class CheckedNeighborhood(Neighborhood):
    """Runs each trial twice, and compares the cost of a kept trial with its estimate."""

    def run_trial(
        self, removed_nodes: Iterable[OpenNodeClaim], max_cpu_milli: int | None, max_cost: float = math.inf
    ) -> Plan:
        """Return the plan of the second trial, which is like the first."""
        nodes = list(removed_nodes)
        first_cost = super().run_trial(nodes, max_cpu_milli, max_cost).compute_cost()
        plan = super().run_trial(nodes, max_cpu_milli, max_cost)
        assert abs(plan.compute_cost() - first_cost) < 1e-9
        self.estimated_cost = first_cost
        return plan

    def keep_trial(self) -> Plan:
        """Return the plan, which costs no more than estimated."""
        plan = super().keep_trial()
        assert plan.compute_cost() <= self.estimated_cost + 1e-9
        return plan


@use_same_worlds
@given(generate_recipes())
def test_trial_that_is_rolled_back_changes_no_later_trial_and_its_cost_is_an_upper_bound(recipe: Recipe) -> None:
    with patch.object(local_search, "Neighborhood", CheckedNeighborhood):
        placement = solve(recipe.build_cluster())
        assert solve(recipe.build_cluster()) == placement
