"""Advice: what is bought for whom, and that a plan which follows it stays as cheap as it was."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.ec2 import BlockDevice
from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.resources import resources
from shared.model.selectors import selector
from shared.scheduling import attempts
from shared.scheduling.placement import Options, Placement
from shared.scheduling.solve import solve
from tests.unit.catalogues import daemon, instance_type, needs, node, node_class, pod, pool, world

BOTH = ("spot", "on-demand")
MIXED = tuple(
    instance_type(name, cpu, memory, price=price, capacity_types=BOTH)
    for name, cpu, memory, price in (
        ("lean", 16, 32, 0.80),
        ("even", 16, 64, 1.00),
        ("fat", 16, 128, 1.30),
        ("huge", 96, 384, 8.00),
        ("tiny", 4, 16, 0.26),
    )
)


def many(count: int, app: str = "web", cpu: str = "1", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    """Equal pods."""
    return [pod(f"{app}-{number:03d}", cpu, memory, labels={"app": app}, **spec) for number in range(count)]


def odd(count: int, **spec: Any) -> list[Pod]:
    """Pods of which no two are alike, of all shapes."""
    return [
        pod(f"odd-{number:03d}", f"{100 + number * 37 % 3000}m", f"{200 + number * 911 % 9000}Mi", **spec)
        for number in range(count)
    ]


def extra(gib: int) -> Cluster:
    """Pods for three large nodes or 24 small ones, and a node class with a volume of *gib*."""
    types = (instance_type("small", 4, price=0.2), instance_type("large", 32, price=1.8))
    some = replace(node_class(), block_devices=(BlockDevice(device_name="/dev/xvda", volume_size_gib=gib),))
    return world(*many(96), types=types, node_classes=(some,))


def capacity_types(found: Placement) -> Counter[str]:
    """Count the nodes by the capacity type of their cheapest offering."""
    return Counter(made.cheapest.capacity_type for made in found.new_nodes)


def test_pods_of_which_no_two_are_alike_cost_little_more_than_they_need() -> None:
    pods = odd(400)
    found = solve(world(*pods, types=MIXED))
    cores = sum(one.spec.requests["cpu"] for one in pods) / 1000
    gib = sum(one.spec.requests["memory"] for one in pods) / 2**30
    assert not found.unschedulable
    per_gib = (1.30 - 1.00) / 64
    assert found.price_usd_per_hour <= 1.05 * 0.4 * (cores * (1.00 - 64 * per_gib) / 16 + gib * per_gib)


@pytest.mark.parametrize(("gib", "most"), [(20, "small"), (2000, "large")])
def test_volumes_that_come_with_each_node_make_small_nodes_dear(gib: int, most: str) -> None:
    found = solve(extra(gib))
    assert {made.cheapest.instance_type for made in found.new_nodes} == {most}


def test_what_a_node_costs_besides_counts_though_it_is_no_part_of_the_price() -> None:
    plain, charged = solve(extra(0)), solve(extra(0), options=Options(node_cost_usd_per_hour=0.3))
    assert {made.cheapest.instance_type for made in plain.new_nodes} == {"small"}
    assert {made.cheapest.instance_type for made in charged.new_nodes} == {"large"}
    assert charged.price_usd_per_hour > plain.price_usd_per_hour
    assert charged.price_usd_per_hour == pytest.approx(1.8 * len(charged.new_nodes))


def test_a_plan_whose_nodes_cost_more_all_told_than_the_greedy_ones_is_not_taken() -> None:
    options = Options(node_cost_usd_per_hour=10.0)
    found = solve(extra(0), options=options)
    assert len(found.new_nodes) <= len(solve(extra(0), options=replace(options, packing="Greedy")).new_nodes)


def test_of_plans_that_cost_the_same_the_one_with_fewer_nodes_is_bought() -> None:
    types = tuple(instance_type(f"m-{cpu:03d}", cpu) for cpu in (4, 8, 16, 32))
    pods = many(320, memory="3Gi")
    found = solve(world(*pods, types=types))
    assert len(found.new_nodes) == 10


def test_pods_that_must_be_on_demand_do_not_make_spot_nodes_dear() -> None:
    firm = needs((CAPACITY_TYPE, "In", ("on-demand",)))
    pods = [*odd(120), *(replace(one, meta=replace(one.meta, name=f"firm-{one.meta.name}")) for one in odd(40))]
    pods[120:] = [replace(one, spec=replace(one.spec, required_terms=(firm,))) for one in pods[120:]]
    found = solve(world(*pods, types=MIXED))
    by_kind = capacity_types(found)
    firm_nodes = sum(1 for made in found.new_nodes if any("firm-" in name for name in made.pods))
    assert by_kind["on-demand"] == firm_nodes < len(found.new_nodes)


def test_a_node_that_was_bought_as_spot_may_still_become_on_demand() -> None:
    found = solve(world(*odd(120), types=MIXED))
    assert set(capacity_types(found)) == {"spot"}
    assert {made.requirements[CAPACITY_TYPE].values for made in found.new_nodes} == {frozenset(BOTH)}


def test_it_stays_spot_where_pods_are_spread_over_capacity_types() -> None:
    even = (SpreadConstraint(topology_key=CAPACITY_TYPE, max_skew=1, selector=selector({"app": "even"})),)
    found = solve(world(*odd(120), *many(8, "even", spread=even), types=MIXED))
    assert not found.unschedulable
    plain = [made for made in found.new_nodes if not any("even" in name for name in made.pods)]
    assert all(len(made.requirements[CAPACITY_TYPE].values) == 1 for made in plain)


def test_pods_that_others_count_do_not_take_the_zones_of_those_that_are_spread() -> None:
    even = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector({"tier": "x"})),)
    some = [
        pod(f"p-{number:03d}", f"{200 + number}m", "2Gi", labels={"tier": "x"}, spread=even if number % 5 == 0 else ())
        for number in range(200)
    ]
    types = (*MIXED, replace(instance_type("cheap", 16, 64, zones=("a",), price=0.7)))
    found = solve(world(*some, types=types))
    assert not found.unschedulable
    assert found.price_usd_per_hour < 0.9 * found.greedy_usd_per_hour


def test_the_next_pool_is_advised_where_limits_forbid_the_first() -> None:
    pools = (pool("first", weight=10, limits=resources({"cpu": 32_000})), pool("second"))
    types = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=9.6))
    found = solve(world(*many(100), types=types, node_pools=pools))
    assert not found.unschedulable
    assert Counter(made.node_pool for made in found.new_nodes) == {"first": 8, "second": 17}
    assert found.price_usd_per_hour == pytest.approx(5.0)


def test_what_limits_leave_is_bought_by_advice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    prices = ((4, 0.3), (16, 0.95), (32, 0.9), (64, 9.6))
    types = tuple(instance_type(f"m-{cpu}", cpu, price=price) for cpu, price in prices)
    monkeypatch.setattr(attempts, "EFFORT", 0)
    monkeypatch.setattr(attempts, "bettered", lambda *_: [])
    found = solve(world(*many(78), types=types, node_pools=(pool(limits=resources({"cpu": 80_000})),)))
    assert not found.unschedulable
    assert Counter(made.cheapest.instance_type for made in found.new_nodes) == {"m-32": 2, "m-16": 1}


def test_pods_too_large_for_what_limits_leave_are_advised_in_the_next_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    types = tuple(instance_type(f"m-{cpu:02d}", cpu, price=price) for cpu, price in ((4, 0.3), (16, 0.5), (64, 3.0)))
    monkeypatch.setattr(attempts, "EFFORT", 0)
    monkeypatch.setattr(attempts, "bettered", lambda *_: [])
    pools = (pool("first", weight=10, limits=resources({"cpu": 20_000})), pool("second"))
    found = solve(world(*many(21, cpu="5", memory="3Gi"), types=types, node_pools=pools))
    assert not found.unschedulable
    by_pool = Counter((made.node_pool, made.cheapest.instance_type) for made in found.new_nodes)
    assert by_pool == {("first", "m-16"): 1, ("second", "m-16"): 6}


def test_pods_whose_first_wish_no_node_can_grant_are_advised_by_the_next() -> None:
    terms = (needs((ARCH, "In", ("arm64",))), needs((ARCH, "In", ("amd64",))))
    types = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=9.6))
    found = solve(world(*many(60, required_terms=terms), types=types))
    assert {made.cheapest.instance_type for made in found.new_nodes} == {"small"}
    here = solve(world(*many(60, required_terms=terms), types=types, nodes=(node("here", "40"),)))
    assert [len(fit.pods) for fit in here.existing] == [40 - 24]
    assert len(here.new_nodes) == 11


def test_groups_that_few_may_share_a_node_with_are_bought_small_ones() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "apart"})),)
    pods = [*many(30, "apart", "3", pod_anti_affinity=apart), *many(30, "free", "1")]
    types = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=3.0))
    found = solve(world(*pods, types=types))
    assert {made.cheapest.instance_type for made in found.new_nodes} == {"small"}
    assert len(found.new_nodes) == 30


def test_daemons_count_against_each_node_that_is_bought() -> None:
    types = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=3.4))
    light = solve(world(*many(120), types=types))
    assert {made.cheapest.instance_type for made in light.new_nodes} == {"small"}
    heavy = solve(world(*many(120), types=types, daemon_sets=(daemon("agent", "2", "1Gi"),)))
    assert {made.cheapest.instance_type for made in heavy.new_nodes} == {"large"}


def test_minimal_variety_is_bought_for_many_odd_pods_too() -> None:
    some = pool(requirements=needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 2}))
    found = solve(world(*odd(150), types=MIXED, node_pools=(some,)))
    assert not found.unschedulable
    assert all(len(made.instance_types) >= 2 for made in found.new_nodes)


def test_the_same_pods_in_another_order_get_the_same_plan() -> None:
    pods = odd(200)
    assert solve(world(*pods, types=MIXED)) == solve(world(*reversed(pods), types=MIXED))
