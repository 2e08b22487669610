"""Lumps: few, all items in one of them, and each with a row for all that is in it."""

from itertools import product

import pytest
from msgspec.structs import replace

from shared.model.resources import resources
from shared.scheduling.advice import advise
from shared.scheduling.lumps import MOST, lumps
from shared.scheduling.market import Market
from shared.scheduling.solve import solve
from shared.scheduling.wanted import ALONE, UNBOUNDED
from shared.scheduling.worth import Appraiser
from tests.property.test_scheduling_advice_laws import made
from tests.unit.catalogues import instance_type, needs, pod, pool, world

GI = 1 << 30


def test_very_many_shapes_and_sizes_are_thrown_together() -> None:
    cores = (20, 40, 60, 90, 130, 190, 300, 500, 900, 2_000, 7_000)
    shapes = [(cpu, gib * GI // 16, 1) for cpu, gib in product(cores, (1, 3, 10, 30, 100, 300, 900))]
    market = made([(need, 2, 0) for need in shapes])
    found = lumps(market)
    assert len(found) <= MOST
    assert sorted(item for lump in found for item in lump.items) == [
        place for place in range(len(market.items)) if any(open_ >> place & 1 for open_ in market.open_to)
    ]
    assert advise(market)[0].price > 0


def test_a_lump_for_which_no_row_holds_all_is_parted() -> None:
    market = made([((500, GI, 1), 3, 0), ((510, GI, 1), 3, 0), ((520, GI, 1), 3, 0), ((530, GI, 1), 3, 0)])
    whole = replace(market, open_to=[0b0111, 0b1111, 0b1110, 0b0010])
    assert [lump.items for lump in lumps(whole)] == [[0, 1, 2, 3]]
    parted = replace(market, open_to=[0b0001, 0b1100, 0b0001, 0])
    assert [lump.items for lump in lumps(parted)] == [[0], [2, 3]]


def test_items_of_which_a_node_holds_only_so_many_keep_their_bound() -> None:
    market = made([((500, GI, 1), 6, 1), ((1500, 4 * GI, 1), 6, 2), ((300, GI // 2, 1), 40, 0)])
    assert {lump.most for lump in lumps(market)} > {1, 2}


def shared_groups(shapes: int, groups: int) -> Market:
    """Answer a market for so many sizes of pod, each of them in each of so many groups, and in none."""
    sizes = [(100 + 40 * number, (1 + number % 4) * GI // 4, 1) for number in range(shapes)]
    market = made([(need, 3, 1) for need in sizes for _ in range(groups + 1)])
    for place, item in enumerate(sorted(market.items, key=lambda item: item.number)):
        group = place % (groups + 1)
        item.group, item.most = (ALONE, UNBOUNDED) if group == groups else (group, 1)
    return market


def test_groups_of_many_sizes_have_one_row_each_and_share_those_of_their_sizes() -> None:
    market = shared_groups(30, 4)
    found = lumps(market)
    slots = {lump.slot for lump in found if lump.group != ALONE}
    rows = {lump.row for lump in found}
    assert len(slots) == 4
    assert not slots & rows
    assert {lump.slot for lump in found if lump.group == ALONE} == {-1}
    assert len(rows) < len(found) / 3
    assert sorted(item for lump in found for item in lump.items) == list(range(len(market.items)))
    grouped = next(lump for lump in found if lump.slot >= 0)
    assert grouped.rows() == ((grouped.row, 1.0), (grouped.slot, grouped.pods))


def test_a_place_in_a_group_is_worth_what_it_keeps_nodes_small_for() -> None:
    market = shared_groups(30, 4)
    known = Appraiser(market).worth([item.count for item in market.items])
    by_number = {item.number: worth for item, worth in zip(market.items, known.items, strict=True)}
    for number in range(0, 150, 5):
        assert min(by_number[number + group] for group in range(4)) >= by_number[number + 4] * (1 - 1e-9)
    assert known.total <= advise(market)[0].price


def test_with_less_effort_worths_are_reckoned_less_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.scheduling.worth.LEAST", 1)
    market = shared_groups(40, 6)
    counts = [item.count for item in market.items]
    short, long = Appraiser(market, 0), Appraiser(market)
    assert 0 < short.worth(counts).total <= long.worth(counts).total * (1 + 1e-9)
    assert short.steps < long.steps


def test_pools_that_taint_keeps_pods_from_and_pools_that_are_full_are_not_advised() -> None:
    types = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=9.6))
    arm = needs(("kubernetes.io/arch", "In", ("arm64",)))
    pools = (
        pool("full", weight=30, limits=resources({"cpu": 1_000})),
        pool("arm", weight=20, requirements=arm),
        pool("plain"),
    )
    found = solve(world(*(pod(f"p-{number:02d}") for number in range(40)), types=types, node_pools=pools))
    assert {made.node_pool for made in found.new_nodes} == {"plain"}
    assert len(found.new_nodes) == 10
