"""Laws of price: no plan costs more than the greedy one, and advice is never believed blindly."""

from hypothesis import given
from hypothesis import strategies as st

from shared.decide.scheduling.optimization.linear_programming.fractional_knapsack import (
    FractionalKnapsack,
    KnapsackSolution,
)
from shared.decide.scheduling.optimization.linear_programming.restricted_master_problem import (
    Column,
    RestrictedMasterProblem,
)
from shared.model.decisions.placement import SchedulingOptions
from tests.property.scheduling.test_scheduling_laws import Recipe, generate_recipes, solve_recipe, use_same_worlds
from tests.support.snapshot_decisions import solve

AMOUNTS = st.integers(1, 40).map(float)
NEEDS = st.tuples(AMOUNTS, AMOUNTS, AMOUNTS)


@use_same_worlds
@given(generate_recipes())
def test_priced_plan_places_at_least_as_many_pods_as_greedy_and_costs_no_more(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    greedy, priced = solve(cluster, options=SchedulingOptions(packing="Greedy")), solve_recipe(recipe)
    assert len(priced.unschedulable) <= len(greedy.unschedulable)
    assert priced.price_usd_per_hour <= greedy.price_usd_per_hour + 1e-9
    assert priced.greedy_usd_per_hour == greedy.greedy_usd_per_hour == greedy.price_usd_per_hour


@given(NEEDS, st.lists(st.tuples(NEEDS, AMOUNTS, AMOUNTS), min_size=1, max_size=8), st.integers(0, 8))
def test_fractional_knapsack_solution_is_feasible_and_optimal_after_any_earlier_solve(
    room: tuple[float, ...], fluids: list[tuple[tuple[float, ...], float, float]], removed_index: int
) -> None:
    needs, first = [need for need, _, _ in fluids], [worth for _, worth, _ in fluids]
    second = [0.0 if index == removed_index else worth for index, (_, _, worth) in enumerate(fluids)]
    vessel = FractionalKnapsack(room, needs)
    for worths in (first, second, first):
        bound = vessel.compute_upper_bound(worths)
        solution = vessel.solve(worths)
        _assert_optimal(solution, room, needs, worths)
        assert bound is None or solution.value <= bound * (1 + 1e-6)
        assert (
            vessel.compute_upper_bound(worths) is None
            or abs((vessel.compute_upper_bound(worths) or 0.0) - solution.value) <= 1e-6 * solution.value
        )


def _assert_optimal(
    solution: KnapsackSolution, room: tuple[float, ...], needs: list[tuple[float, ...]], worths: list[float]
) -> None:
    for axis, have in enumerate(room):
        assert sum(amount * needs[index][axis] for index, amount in solution.amounts) <= have * (1 + 1e-6)
    assert all(price >= -1e-6 for price in solution.resource_prices)
    for need, worth in zip(needs, worths, strict=True):
        assert sum(map(float.__mul__, solution.resource_prices, need)) >= worth * (1 - 1e-6)
    room_value = sum(map(float.__mul__, solution.resource_prices, room))
    assert abs(solution.value - room_value) <= 1e-6 * max(1.0, room_value)


@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=6),
    st.lists(st.tuples(AMOUNTS, st.lists(AMOUNTS, min_size=6, max_size=6)), max_size=12),
)
def test_master_problem_cost_decreases_with_every_column_and_equals_its_dual_value(
    rows: list[tuple[float, float]], columns: list[tuple[float, list[float]]]
) -> None:
    demand = [amount for amount, _ in rows]
    master = RestrictedMasterProblem(
        demand, [Column(price=price, amounts=((row, 1.0),)) for row, (_, price) in enumerate(rows)]
    )
    for price, amounts in columns:
        before = master.cost
        master.offer_column(Column(price=price, amounts=tuple(enumerate(amounts[: len(rows)]))))
        assert master.cost <= before * (1 + 1e-6)
        while master.offer_surplus():
            pass
        assert abs(master.cost - sum(map(float.__mul__, master.dual_values, demand))) <= 1e-6 * max(1.0, master.cost)
    assert all(level >= 0 for level in master.levels)
