"""Laws of price: no plan costs more than the greedy one, and advice is never believed blindly."""

from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.placement import Options
from shared.scheduling.simplex import Column, Fill, Master, Vessel
from shared.scheduling.solve import solve
from tests.property.test_scheduling_laws import Recipe, of_the_same_worlds, recipes, solved

AMOUNTS = st.integers(1, 40).map(float)
NEEDS = st.tuples(AMOUNTS, AMOUNTS, AMOUNTS)


@of_the_same_worlds
@given(recipes())
def test_a_priced_plan_places_what_the_greedy_one_places_and_costs_no_more(recipe: Recipe) -> None:
    cluster = recipe.cluster()
    greedy, priced = solve(cluster, options=Options(packing="Greedy")), solved(recipe)
    assert len(priced.unschedulable) <= len(greedy.unschedulable)
    assert priced.price_usd_per_hour <= greedy.price_usd_per_hour + 1e-9
    assert priced.greedy_usd_per_hour == greedy.greedy_usd_per_hour == greedy.price_usd_per_hour


@given(NEEDS, st.lists(st.tuples(NEEDS, AMOUNTS, AMOUNTS), min_size=1, max_size=8), st.integers(0, 8))
def test_a_fill_has_room_and_its_prices_prove_that_no_other_is_worth_more_whatever_was_there_before(
    room: tuple[float, ...], fluids: list[tuple[tuple[float, ...], float, float]], gone: int
) -> None:
    needs, first = [need for need, _, _ in fluids], [worth for _, worth, _ in fluids]
    second = [0.0 if index == gone else worth for index, (_, _, worth) in enumerate(fluids)]
    vessel = Vessel(room, needs)
    for worths in (first, second, first):
        bound = vessel.most(worths)
        found = vessel.fill(worths)
        _prove(found, room, needs, worths)
        assert bound is None or found.worth <= bound * (1 + 1e-6)
        assert vessel.most(worths) is None or abs((vessel.most(worths) or 0.0) - found.worth) <= 1e-6 * found.worth


def _prove(found: Fill, room: tuple[float, ...], needs: list[tuple[float, ...]], worths: list[float]) -> None:
    for axis, have in enumerate(room):
        assert sum(amount * needs[index][axis] for index, amount in found.amounts) <= have * (1 + 1e-6)
    assert all(price >= -1e-6 for price in found.prices)
    for need, worth in zip(needs, worths, strict=True):
        assert sum(map(float.__mul__, found.prices, need)) >= worth * (1 - 1e-6)
    asked = sum(map(float.__mul__, found.prices, room))
    assert abs(found.worth - asked) <= 1e-6 * max(1.0, asked)


@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=6),
    st.lists(st.tuples(AMOUNTS, st.lists(AMOUNTS, min_size=6, max_size=6)), max_size=12),
)
def test_the_cost_of_a_demand_falls_with_every_column_and_equals_its_worth(
    rows: list[tuple[float, float]], more: list[tuple[float, list[float]]]
) -> None:
    demand = [amount for amount, _ in rows]
    master = Master(demand, [Column(price=price, amounts=((row, 1.0),)) for row, (_, price) in enumerate(rows)])
    for price, amounts in more:
        before = master.cost
        master.offer(Column(price=price, amounts=tuple(enumerate(amounts[: len(rows)]))))
        assert master.cost <= before * (1 + 1e-6)
        while master.give_away():
            pass
        assert abs(master.cost - sum(map(float.__mul__, master.worths, demand))) <= 1e-6 * max(1.0, master.cost)
    assert all(level >= 0 for level in master.level)
