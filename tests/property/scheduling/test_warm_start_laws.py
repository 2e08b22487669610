"""Laws of pods that are valued together: advice for some of them holds each, and its bound refuses no plan there is."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from shared.decide.scheduling.optimization.packing_problem import PackingProblem
from shared.decide.scheduling.optimization.patterns import Pattern
from shared.decide.scheduling.optimization.solver import PackingSolution, solve_packing_problem
from shared.decide.scheduling.search.dual_value_warm_start import WarmStart, build_warm_start
from tests.property.scheduling.test_solver_laws import DEMANDS, NEEDS, make_pod_class, make_problem
from tests.support.hypothesis_profiles import limit_examples

SEARCH_EFFORT = 1000
PRICE_TOLERANCE_USD = 1e-9
PARTS = st.lists(st.integers(0, 30), min_size=8, max_size=8)
Demands = list[tuple[tuple[int, ...], int, int]]


def value_all_items(market: PackingProblem) -> WarmStart:
    """Value all items of *market*."""
    return build_warm_start(
        market,
        [(7 * item.class_number, item.pods) for item in sorted(market.items, key=lambda item: item.class_number)],
    )


def limit_counts(market: PackingProblem, parts: list[int]) -> list[int]:
    return [min(part, item.count) for part, item in zip(parts, market.items, strict=False)]


def list_patterns(advice: PackingSolution) -> list[Pattern]:
    return [selected.pattern for selected in advice.selected_patterns for _ in range(selected.count)]


@limit_examples(40)
@given(DEMANDS, PARTS)
def test_warm_started_solution_for_a_subset_holds_each_pod_once(demands: Demands, parts: list[int]) -> None:
    market = make_problem(demands)
    counts = limit_counts(market, parts)
    nodes = list_patterns(value_all_items(market).solve(counts, SEARCH_EFFORT))
    placed_counts = [0] * len(counts)
    for node in nodes:
        room = market.bin_types[node.bin_type].capacity
        for axis, have in enumerate(room):
            assert sum(amount * market.items[item].pods.request_vector[axis] for item, amount in node.pods) <= have
        for item, count in node.pods:
            assert 0 < count <= market.items[item].max_per_node
            placed_counts[item] += count
    assert placed_counts == counts


@limit_examples(40)
@given(DEMANDS, PARTS)
def test_lower_bound_from_all_pods_is_valid_for_any_subset(demands: Demands, parts: list[int]) -> None:
    market = make_problem(demands)
    counts = limit_counts(market, parts)
    remaining_demands = [
        (need, count, max_per_node)
        for (need, _, max_per_node), count in zip(demands, sort_by_class_number(market, counts), strict=True)
        if count
    ]
    if remaining_demands:
        best = solve_packing_problem(make_problem(remaining_demands))[0]
        assert value_all_items(market).compute_lower_bound(counts) <= best.price + PRICE_TOLERANCE_USD


@limit_examples(40)
@given(DEMANDS, PARTS, st.floats(0.5, 2.0))
def test_price_bound_does_not_change_the_accepted_solution(demands: Demands, parts: list[int], share: float) -> None:
    market = make_problem(demands)
    warm_start, counts = value_all_items(market), limit_counts(market, parts)
    free = warm_start.solve(counts, SEARCH_EFFORT)
    max_price = free.price * share
    bounded = warm_start.solve(counts, SEARCH_EFFORT, max_price)
    assert (bounded.price <= max_price) == (free.price <= max_price)
    if free.price <= max_price:
        assert bounded == free
    elif bounded != free:
        assert bounded.selected_patterns == ()


@given(st.lists(st.tuples(NEEDS, st.integers(1, 5), st.just(0)), min_size=1, max_size=4))
def test_empty_offering_list_returns_an_empty_solution(demands: Demands) -> None:
    market = make_problem(demands)
    market.bin_types, market.accepted_items = [], []
    warm_start = value_all_items(market)
    assert warm_start.item_numbers == {}
    assert warm_start.solve([0] * len(market.items), SEARCH_EFFORT, inf) == PackingSolution()


def sort_by_class_number(market: PackingProblem, counts: list[int]) -> list[int]:
    """Sort *counts*, which are by item, in the order of the demands."""
    pairs = sorted((item.class_number, count) for item, count in zip(market.items, counts, strict=True))
    return [count for _, count in pairs]


@given(DEMANDS)
def test_unvalued_pod_classes_are_ordered_by_first_fit(demands: Demands) -> None:
    warm_start = value_all_items(make_problem(demands))
    numbers = [place for place, _ in warm_start.classes]
    stranger, valued_class = make_pod_class((100, 1 << 27, 0, 1)), make_pod_class((200, 1 << 27, 0, 1))
    turned = warm_start.order_classes({numbers[-1]: valued_class, 7 * len(demands): stranger})
    assert [pod_class for pod_class in turned if pod_class in (valued_class, stranger)] == [valued_class, stranger]
    assert turned.index(valued_class) == len(demands) - 1
    assert not any(pod_class.pods for pod_class in turned[: len(demands) - 1])
