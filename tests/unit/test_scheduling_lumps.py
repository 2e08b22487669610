"""Lumps: few, all items in one of them, and each with a row for all that is in it."""

from itertools import product

from msgspec.structs import replace

from shared.model.resources import resources
from shared.scheduling.advice import advise
from shared.scheduling.lumps import MOST, lumps
from shared.scheduling.solve import solve
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
