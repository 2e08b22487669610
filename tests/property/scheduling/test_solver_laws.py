"""Laws of packing solutions: each pod once, no node overcommitted, no higher price after improvement."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.decide.scheduling.instance_types.resource_index import ResourceIndex
from shared.decide.scheduling.optimization.bin_types import BinType
from shared.decide.scheduling.optimization.dual_values import DualValueSolver
from shared.decide.scheduling.optimization.items import NO_HOST_GROUP, UNLIMITED_COUNT, Item
from shared.decide.scheduling.optimization.large_neighborhood_search import LargeNeighborhoodSearch
from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem
from shared.decide.scheduling.optimization.pattern_selection import select_patterns
from shared.decide.scheduling.optimization.patterns import FillStrategy, Pattern, PatternFiller
from shared.decide.scheduling.optimization.solver import PackingSolution, solve_packing_problem
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.model.kubernetes.pod import PodSpec
from tests.support.hypothesis_profiles import limit_examples

ROWS = ((2000, 4 << 30, 0.09), (4000, 16 << 30, 0.2), (8000, 64 << 30, 0.5), (16000, 32 << 30, 0.7))
UNIT = (1000.0, float(4 << 30), 10.0)
NEEDS = st.tuples(st.integers(50, 4000), st.integers(1 << 27, 8 << 30), st.just(1))
DEMANDS = st.lists(st.tuples(NEEDS, st.integers(1, 30), st.sampled_from((0, 0, 1, 2))), min_size=1, max_size=8)
MANNERS = st.builds(
    FillStrategy,
    value_exponent=st.integers(0, 9),
    batch_divisor=st.sampled_from((1, 4, 1000)),
    follows_lp_counts=st.booleans(),
    follows_lp_contents=st.booleans(),
)


def make_pod_class(need: tuple[int, ...]) -> PodEquivalenceClass:
    """A class of pods of which nothing but the need is known."""
    return PodEquivalenceClass(
        spec=PodSpec(),
        stages=(),
        binding_groups=(),
        counting_groups=(),
        selecting_groups=(),
        request_vector=need,
        volume_alternatives=(),
        compiled_stages=(),
        pods=[],
    )


def make_problem(demands: list[tuple[tuple[int, ...], int, int]]) -> PackingProblem:
    """Build a packing problem of four instance types.

    The items are (CPU, memory and pods; count; maximum per node, where 0 is unlimited).
    """
    items = [
        Item(
            class_number=number,
            pods=make_pod_class((*need[:2], 0, need[2])),
            zone="",
            count=count,
            max_per_node=max_per_node or UNLIMITED_COUNT,
            host_group=number if max_per_node else NO_HOST_GROUP,
            launchable=(),
            scaled_need=tuple(amount / unit for amount, unit in zip(need, UNIT, strict=True)),
        )
        for number, (need, count, max_per_node) in enumerate(demands)
    ]
    items.sort(key=lambda item: (item.size, item.class_number))
    stock = ResourceIndex([item.pods.request_vector for item in items])
    rows = [
        BinType(
            template=0,
            bit=1 << place,
            name=f"type-{place}",
            offering_kind=("on-demand", "", "", "a"),
            price=price,
            capacity=(cpu, memory, 0, 50),
            scaled_capacity=(cpu / UNIT[0], memory / UNIT[1], 50 / UNIT[2]),
        )
        for place, (cpu, memory, price) in enumerate(ROWS)
    ]
    return PackingProblem(
        items=items,
        resource_index=stock,
        bin_types=rows,
        accepted_items=[stock.filter_fitting(row.capacity, -1) for row in rows],
    )


def assert_holds(market: PackingProblem, nodes: list[Pattern]) -> None:
    """Every pod has one place, and no node more than it has room for."""
    placed_counts: Counter[int] = Counter()
    for node in nodes:
        room = market.bin_types[node.bin_type].capacity
        for axis, have in enumerate(room):
            assert sum(amount * market.items[item].pods.request_vector[axis] for item, amount in node.pods) <= have
        for item, count in node.pods:
            assert 0 < count <= market.items[item].max_per_node
            placed_counts[item] += count
    assert dict(placed_counts) == {place: item.count for place, item in enumerate(market.items)}


@limit_examples(30)
@given(DEMANDS)
def test_every_packing_solution_holds_each_pod_once_and_solutions_are_sorted_by_price(
    demands: list[tuple[tuple[int, ...], int, int]],
) -> None:
    market = make_problem(demands)
    plans = solve_packing_problem(market)
    assert [solution.price for solution in plans] == sorted(solution.price for solution in plans)
    for plan in plans:
        nodes = [selected.pattern for selected in plan.selected_patterns for _ in range(selected.count)]
        assert_holds(market, nodes)
        assert plan.price == pytest.approx(sum(market.bin_types[node.bin_type].price for node in nodes))


@limit_examples(30)
@given(DEMANDS, MANNERS, st.integers(0, 400))
def test_neighborhood_search_keeps_all_pods_and_never_raises_the_price(
    demands: list[tuple[tuple[int, ...], int, int]], manner: FillStrategy, effort: int
) -> None:
    market = make_problem(demands)
    counts = [item.count for item in market.items]
    appraiser = DualValueSolver(market)
    filler = PatternFiller(market, list(counts))
    nodes = [
        selected.pattern
        for selected in select_patterns(market, appraiser, filler, manner)
        for _ in range(selected.count)
    ]
    assert_holds(market, nodes)
    mender = LargeNeighborhoodSearch(market, appraiser.compute_dual_values(counts), nodes)
    before = mender.price
    mender.improve(effort)
    assert mender.price <= before + 1e-9
    assert_holds(market, mender.nodes)


@limit_examples(30)
@given(
    DEMANDS,
    st.integers(0, 30),
    st.lists(st.tuples(st.floats(-1, 3), st.sampled_from((-0.3, 0.0, 5e-18, 1.0))), min_size=8, max_size=8),
)
@example([((900, 1 << 30, 1), 5, 0)], 7, [(-0.2, 5e-18)] * 8)
def test_filled_bin_contains_only_available_pods_for_any_dual_values(
    demands: list[tuple[tuple[int, ...], int, int]], strict: int, odd: list[tuple[float, float]]
) -> None:
    market = make_problem(demands)
    counts = [item.count for item in market.items]
    rows = len(market.bin_types)
    dual_values = DualValues(
        item_values=tuple(worth for worth, _ in odd[: len(counts)]),
        resource_prices=tuple((price, abs(price), 0.0) for _, price in odd[:rows]),
        value_ratios=(1.0,) * rows,
        node_counts=(1.0,) * rows,
        lp_contents=((),) * rows,
        lower_bound=1.0,
    )
    for row in range(rows):
        filler = PatternFiller(market, list(counts))
        pattern = filler.fill_bin(row, dual_values, FillStrategy(value_exponent=strict))
        assert all(item in range(len(counts)) and 0 < amount <= counts[item] for item, amount in pattern.pods)
        filler.take_pods(pattern.pods, 1)
        assert min(filler.remaining_counts) >= 0


def test_zero_search_effort_returns_a_single_solution() -> None:
    market = make_problem([((900, 3 << 30, 1), 40, 0), ((300, 1 << 30, 1), 40, 0)])
    assert len(solve_packing_problem(market, effort=0)) == 1
    assert solve_packing_problem(market, effort=0)[0].price >= solve_packing_problem(market)[0].price


def test_unpackable_pods_return_an_empty_solution() -> None:
    market = make_problem([((64_000, 1 << 30, 1), 3, 0)])
    assert solve_packing_problem(market) == (PackingSolution(),)
