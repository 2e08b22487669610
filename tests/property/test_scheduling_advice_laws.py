"""Laws of advice: every pod once, no node overfull, nothing dearer by mending."""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.model.pods import PodSpec
from shared.scheduling.advice import Advice, advise
from shared.scheduling.demand import PodClass
from shared.scheduling.filling import Filler, Manner, Pattern
from shared.scheduling.market import Market
from shared.scheduling.mending import Mender
from shared.scheduling.patterns import shopped
from shared.scheduling.stalls import Row
from shared.scheduling.stock import Stock
from shared.scheduling.wanted import ALONE, UNBOUNDED, Item
from shared.scheduling.worth import Appraiser, Worth

ROWS = ((2000, 4 << 30, 0.09), (4000, 16 << 30, 0.2), (8000, 64 << 30, 0.5), (16000, 32 << 30, 0.7))
UNIT = (1000.0, float(4 << 30), 10.0)
NEEDS = st.tuples(st.integers(50, 4000), st.integers(1 << 27, 8 << 30), st.just(1))
WANTED = st.lists(st.tuples(NEEDS, st.integers(1, 30), st.sampled_from((0, 0, 1, 2))), min_size=1, max_size=8)
MANNERS = st.builds(
    Manner,
    strict=st.integers(0, 9),
    at_a_time=st.sampled_from((1, 4, 1000)),
    faithful=st.booleans(),
    mixed=st.booleans(),
)


def one_class(need: tuple[int, ...]) -> PodClass:
    """A class of pods of which nothing but the need is known."""
    return PodClass(
        spec=PodSpec(), stages=(), bound=(), counted=(), selecting=(), need=need, alternatives=(), aims=(), pods=[]
    )


def made(wanted: list[tuple[tuple[int, ...], int, int]]) -> Market:
    """Answer a market of four types for items of (cpu, memory and pods; count; how many a node may have, 0: any)."""
    items = [
        Item(
            number=number,
            pods=one_class((*need[:2], 0, need[2])),
            zone="",
            count=count,
            most=most or UNBOUNDED,
            group=number if most else ALONE,
            where=(),
            scaled=tuple(amount / unit for amount, unit in zip(need, UNIT, strict=True)),
        )
        for number, (need, count, most) in enumerate(wanted)
    ]
    items.sort(key=lambda item: (item.size, item.number))
    stock = Stock([item.pods.need for item in items])
    rows = [
        Row(
            template=0,
            bit=1 << place,
            name=f"type-{place}",
            kind=("on-demand", "", "", "a"),
            price=price,
            room=(cpu, memory, 0, 50),
            scaled=(cpu / UNIT[0], memory / UNIT[1], 50 / UNIT[2]),
        )
        for place, (cpu, memory, price) in enumerate(ROWS)
    ]
    return Market(items=items, stock=stock, rows=rows, open_to=[stock.fitting(row.room, -1) for row in rows])


def assert_holds(market: Market, nodes: list[Pattern]) -> None:
    """Every pod has one place, and no node more than it has room for."""
    held: Counter[int] = Counter()
    for node in nodes:
        room = market.rows[node.row].room
        for axis, have in enumerate(room):
            assert sum(some * market.items[item].pods.need[axis] for item, some in node.pods) <= have
        for item, some in node.pods:
            assert 0 < some <= market.items[item].most
            held[item] += some
    assert dict(held) == {place: item.count for place, item in enumerate(market.items)}


@settings(max_examples=30)
@given(WANTED)
def test_whatever_is_advised_holds_each_pod_once_the_cheapest_way_first(
    wanted: list[tuple[tuple[int, ...], int, int]],
) -> None:
    market = made(wanted)
    plans = advise(market)
    assert [one.price for one in plans] == sorted(one.price for one in plans)
    for one in plans:
        nodes = [each.pattern for each in one.bought for _ in range(each.count)]
        assert_holds(market, nodes)
        assert one.price == pytest.approx(sum(market.rows[node.row].price for node in nodes))


@settings(max_examples=30)
@given(WANTED, MANNERS, st.integers(0, 400))
def test_mending_keeps_all_pods_and_never_costs_more(
    wanted: list[tuple[tuple[int, ...], int, int]], manner: Manner, effort: int
) -> None:
    market = made(wanted)
    counts = [item.count for item in market.items]
    appraiser = Appraiser(market)
    filler = Filler(market, list(counts))
    nodes = [one.pattern for one in shopped(market, appraiser, filler, manner) for _ in range(one.count)]
    assert_holds(market, nodes)
    mender = Mender(market, appraiser.worth(counts), nodes)
    before = mender.price
    mender.run(effort)
    assert mender.price <= before + 1e-9
    assert_holds(market, mender.nodes)


@settings(max_examples=30)
@given(
    WANTED,
    st.integers(0, 30),
    st.lists(st.tuples(st.floats(-1, 3), st.sampled_from((-0.3, 0.0, 5e-18, 1.0))), min_size=8, max_size=8),
)
@example([((900, 1 << 30, 1), 5, 0)], 7, [(-0.2, 5e-18)] * 8)
def test_a_node_is_filled_with_what_is_there_whatever_pods_and_room_are_worth(
    wanted: list[tuple[tuple[int, ...], int, int]], strict: int, odd: list[tuple[float, float]]
) -> None:
    market = made(wanted)
    counts = [item.count for item in market.items]
    rows = len(market.rows)
    known = Worth(
        items=tuple(worth for worth, _ in odd[: len(counts)]),
        prices=tuple((price, abs(price), 0.0) for _, price in odd[:rows]),
        rows=(1.0,) * rows,
        nodes=(1.0,) * rows,
        mixes=((),) * rows,
        total=1.0,
    )
    for row in range(rows):
        filler = Filler(market, list(counts))
        pattern = filler.fill(row, known, Manner(strict=strict))
        assert all(item in range(len(counts)) and 0 < some <= counts[item] for item, some in pattern.pods)
        filler.take(pattern.pods, 1)
        assert min(filler.left) >= 0


def test_without_effort_there_is_one_way_and_no_more() -> None:
    market = made([((900, 3 << 30, 1), 40, 0), ((300, 1 << 30, 1), 40, 0)])
    assert len(advise(market, effort=0)) == 1
    assert advise(market, effort=0)[0].price >= advise(market)[0].price


def test_where_nothing_can_be_bought_nothing_is_advised() -> None:
    market = made([((64_000, 1 << 30, 1), 3, 0)])
    assert advise(market) == (Advice(),)
