"""The law of the lower bound: no plan is below it; and what is proved with few columns is true with all of them."""

import pytest
from hypothesis import given

from shared.model.decisions.placement import SchedulingOptions
from sim.lower_bound import integer_program
from sim.lower_bound.integer_program import compute_lower_bound
from tests.property.scheduling.test_scheduling_laws import Recipe, generate_recipes
from tests.support.hypothesis_profiles import limit_examples
from tests.support.snapshot_decisions import solve

PRICE_TOLERANCE_USD = 1e-6


@limit_examples(40)
@given(generate_recipes())
def test_no_plan_costs_less_than_the_lower_bound(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    placement = solve(cluster)
    integer_bound = compute_lower_bound(cluster, placement, SchedulingOptions())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_program, "MAX_INTEGER_COLUMNS", 0)
        fluid = compute_lower_bound(cluster, placement, SchedulingOptions())
    assert fluid - PRICE_TOLERANCE_USD <= integer_bound <= placement.price_usd_per_hour + PRICE_TOLERANCE_USD
