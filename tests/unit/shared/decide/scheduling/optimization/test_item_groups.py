"""Item groups: there are few, every item is in exactly one, and each has a row for all its items."""

from itertools import product

import pytest

from shared.decide.scheduling.optimization.dual_values import DualValueSolver
from shared.decide.scheduling.optimization.item_groups import MAX_ITEM_GROUPS, build_item_groups
from shared.decide.scheduling.optimization.items import NO_HOST_GROUP, UNLIMITED_COUNT
from shared.decide.scheduling.optimization.packing_problem import PackingProblem
from shared.decide.scheduling.optimization.solver import solve_packing_problem
from shared.model.core.resources import build_resources
from tests.property.scheduling.test_solver_laws import make_problem
from tests.support.catalogues import (
    make_cluster_snapshot,
    make_instance_type,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

GI = 1 << 30


def test_item_group_count_stays_below_the_maximum_for_many_pod_shapes() -> None:
    cores = (20, 40, 60, 90, 130, 190, 300, 500, 900, 2_000, 7_000)
    shapes = [(cpu, gib * GI // 16, 1) for cpu, gib in product(cores, (1, 3, 10, 30, 100, 300, 900))]
    market = make_problem([(need, 2, 0) for need in shapes])
    groups = build_item_groups(market.items, market.accepted_items)
    assert len(groups) <= MAX_ITEM_GROUPS
    assert sorted(item for lump in groups for item in lump.items) == [
        place for place in range(len(market.items)) if any(open_ >> place & 1 for open_ in market.accepted_items)
    ]
    assert solve_packing_problem(market)[0].price > 0


def test_item_group_is_split_when_no_bin_type_accepts_all_of_its_items() -> None:
    market = make_problem([((500, GI, 1), 3, 0), ((510, GI, 1), 3, 0), ((520, GI, 1), 3, 0), ((530, GI, 1), 3, 0)])
    assert [lump.items for lump in build_item_groups(market.items, [0b0111, 0b1111, 0b1110, 0b0010])] == [[0, 1, 2, 3]]
    assert [lump.items for lump in build_item_groups(market.items, [0b0001, 0b1100, 0b0001, 0])] == [[0], [2, 3]]


def test_items_with_a_maximum_per_node_keep_it_in_their_item_group() -> None:
    market = make_problem([((500, GI, 1), 6, 1), ((1500, 4 * GI, 1), 6, 2), ((300, GI // 2, 1), 40, 0)])
    assert {lump.max_per_node for lump in build_item_groups(market.items, market.accepted_items)} > {1, 2}


def build_shared_group_problem(shapes: int, groups: int) -> PackingProblem:
    """Return a packing problem with *shapes* pod sizes, each in each of *groups* groups and in no group."""
    sizes = [(100 + 40 * number, (1 + number % 4) * GI // 4, 1) for number in range(shapes)]
    market = make_problem([(need, 3, 1) for need in sizes for _ in range(groups + 1)])
    for place, item in enumerate(sorted(market.items, key=lambda item: item.class_number)):
        group = place % (groups + 1)
        item.host_group, item.max_per_node = (NO_HOST_GROUP, UNLIMITED_COUNT) if group == groups else (group, 1)
    return market


def test_each_host_group_has_one_row_and_shares_the_rows_of_its_pod_sizes() -> None:
    market = build_shared_group_problem(30, 4)
    item_groups = build_item_groups(market.items, market.accepted_items)
    slots = {lump.group_row for lump in item_groups if lump.host_group != NO_HOST_GROUP}
    rows = {lump.row for lump in item_groups}
    assert len(slots) == 4
    assert not slots & rows
    assert {lump.group_row for lump in item_groups if lump.host_group == NO_HOST_GROUP} == {-1}
    assert len(rows) < len(item_groups) / 3
    assert sorted(item for lump in item_groups for item in lump.items) == list(range(len(market.items)))
    grouped = next(lump for lump in item_groups if lump.group_row >= 0)
    assert grouped.list_row_amounts() == ((grouped.row, 1.0), (grouped.group_row, grouped.pods))


def test_pods_with_a_host_group_limit_have_a_dual_value_of_at_least_that_of_unlimited_pods() -> None:
    market = build_shared_group_problem(30, 4)
    dual_values = DualValueSolver(market).compute_dual_values([item.count for item in market.items])
    by_number = {item.class_number: worth for item, worth in zip(market.items, dual_values.item_values, strict=True)}
    for number in range(0, 150, 5):
        assert min(by_number[number + group] for group in range(4)) >= by_number[number + 4] * (1 - 1e-9)
    assert dual_values.lower_bound <= solve_packing_problem(market)[0].price


def test_dual_value_solver_takes_fewer_steps_with_less_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.decide.scheduling.optimization.dual_values.MIN_EFFORT_STEPS", 1)
    market = build_shared_group_problem(40, 6)
    counts = [item.count for item in market.items]
    short, long = DualValueSolver(market, 0), DualValueSolver(market)
    assert (
        0 < short.compute_dual_values(counts).lower_bound <= long.compute_dual_values(counts).lower_bound * (1 + 1e-9)
    )
    assert short.steps < long.steps


def test_optimizer_skips_node_pools_with_incompatible_requirements_or_exhausted_limits() -> None:
    types = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=9.6))
    arm = make_requirements(("kubernetes.io/arch", "In", ("arm64",)))
    pools = (
        make_node_pool("full", weight=30, limits=build_resources({"cpu": 1_000})),
        make_node_pool("arm", weight=20, requirements=arm),
        make_node_pool("plain"),
    )
    placement = solve(
        make_cluster_snapshot(*(make_pod(f"p-{number:02d}") for number in range(40)), types=types, node_pools=pools)
    )
    assert {new_node.node_pool for new_node in placement.new_nodes} == {"plain"}
    assert len(placement.new_nodes) == 10
