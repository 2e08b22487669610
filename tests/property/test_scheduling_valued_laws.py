"""Laws of pods that are valued together: advice for some of them holds each, and its bound refuses no plan there is."""

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.scheduling.advice import Advice, advise
from shared.scheduling.filling import Pattern
from shared.scheduling.market import Market
from shared.scheduling.valued import Valued, valued
from tests.property.test_scheduling_advice_laws import NEEDS, WANTED, made, one_class

EFFORT = 1000
SLACK = 1e-9
PARTS = st.lists(st.integers(0, 30), min_size=8, max_size=8)
Wanted = list[tuple[tuple[int, ...], int, int]]


def of(market: Market) -> Valued:
    """Value all items of *market*."""
    return valued(market, [(7 * item.number, item.pods) for item in sorted(market.items, key=lambda item: item.number)])


def some_of(market: Market, parts: list[int]) -> list[int]:
    return [min(part, item.count) for part, item in zip(parts, market.items, strict=False)]


def nodes_of(advice: Advice) -> list[Pattern]:
    return [one.pattern for one in advice.bought for _ in range(one.count)]


@settings(max_examples=40)
@given(WANTED, PARTS)
def test_advice_for_some_of_the_pods_holds_each_of_them_once(wanted: Wanted, parts: list[int]) -> None:
    market = made(wanted)
    counts = some_of(market, parts)
    nodes = nodes_of(of(market).advise(counts, EFFORT))
    held = [0] * len(counts)
    for node in nodes:
        room = market.rows[node.row].room
        for axis, have in enumerate(room):
            assert sum(some * market.items[item].pods.need[axis] for item, some in node.pods) <= have
        for item, some in node.pods:
            assert 0 < some <= market.items[item].most
            held[item] += some
    assert held == counts


@settings(max_examples=40)
@given(WANTED, PARTS)
def test_no_plan_for_some_of_the_pods_costs_less_than_the_bound_of_all_says(wanted: Wanted, parts: list[int]) -> None:
    market = made(wanted)
    counts = some_of(market, parts)
    left = [(one, some, most) for (one, _, most), some in zip(wanted, by_number(market, counts), strict=True) if some]
    if left:
        best = advise(made(left))[0]
        assert of(market).bound(counts) <= best.price + SLACK


@settings(max_examples=40)
@given(WANTED, PARTS, st.floats(0.5, 2.0))
def test_what_would_be_taken_without_the_bound_is_taken_with_it(wanted: Wanted, parts: list[int], share: float) -> None:
    market = made(wanted)
    known, counts = of(market), some_of(market, parts)
    free = known.advise(counts, EFFORT)
    most = free.price * share
    bounded = known.advise(counts, EFFORT, most)
    assert (bounded.price <= most) == (free.price <= most)
    if free.price <= most:
        assert bounded == free
    elif bounded != free:
        assert bounded.bought == ()


@given(st.lists(st.tuples(NEEDS, st.integers(1, 5), st.just(0)), min_size=1, max_size=4))
def test_where_nothing_is_on_offer_nothing_is_bought(wanted: Wanted) -> None:
    market = made(wanted)
    market.rows, market.open_to = [], []
    known = of(market)
    assert known.items == {}
    assert known.advise([0] * len(market.items), EFFORT, inf) == Advice()


def by_number(market: Market, counts: list[int]) -> list[int]:
    """Answer *counts*, which are by item, in the order in which pods were wanted."""
    pairs = sorted((item.number, count) for item, count in zip(market.items, counts, strict=True))
    return [count for _, count in pairs]


@given(WANTED)
def test_classes_that_were_not_valued_are_left_to_first_fit(wanted: Wanted) -> None:
    known = of(made(wanted))
    numbers = [place for place, _ in known.classes]
    stranger, some = one_class((100, 1 << 27, 0, 1)), one_class((200, 1 << 27, 0, 1))
    turned = known.in_turn({numbers[-1]: some, 7 * len(wanted): stranger})
    assert [one for one in turned if one in (some, stranger)] == [some, stranger]
    assert turned.index(some) == len(wanted) - 1
    assert not any(one.pods for one in turned[: len(wanted) - 1])
