"""The law of the lower bound: no plan is below it; and what is proved with few columns is true with all of them."""

import pytest
from hypothesis import given, settings

from shared.scheduling.placement import Options
from shared.scheduling.solve import solve
from sim.bound import program
from sim.bound.program import lower_bound
from tests.property.test_scheduling_laws import Recipe, recipes

CLOSE = 1e-6


@settings(max_examples=40)
@given(recipes())
def test_no_plan_costs_less_than_the_bound(recipe: Recipe) -> None:
    cluster = recipe.cluster()
    found = solve(cluster)
    whole = lower_bound(cluster, found, Options())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "WHOLE", 0)
        fluid = lower_bound(cluster, found, Options())
    assert fluid - CLOSE <= whole <= found.price_usd_per_hour + CLOSE
