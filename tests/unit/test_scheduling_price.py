"""What plans cost: the cheaper of several, few nodes where that is as good, no more than the greedy one."""

from types import SimpleNamespace
from typing import Any

from shared.model.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.resources import resources
from shared.model.selectors import selector
from shared.scheduling import filling
from shared.scheduling.placement import Options
from shared.scheduling.solve import solve
from tests.unit.catalogues import daemon, instance_type, needs, node, pod, pool, world

DEAR_LARGE = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=9.6))
SHAPES = (
    instance_type("cpu", 16, 32, price=0.8),
    instance_type("even", 16, 64, price=1.0),
    instance_type("memory", 16, 128, price=1.2),
)


def many(count: int, app: str = "web", cpu: str = "1", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    """Equal pods."""
    return [pod(f"{app}-{number}", cpu, memory, labels={"app": app}, **spec) for number in range(count)]


def test_an_item_worth_less_than_nothing_is_no_more_where_a_node_costs_next_to_nothing() -> None:
    item: Any = SimpleNamespace(scaled=(1.0,), pods=SimpleNamespace(need=(1, 1, 0, 1)))
    market: Any = SimpleNamespace(items=(item,), rows=(SimpleNamespace(room=(1, 1, 0, 1)),))
    known: Any = SimpleNamespace(items=(-0.15,), prices=((5e-18,),))
    look = filling._Look(known, 0, market, 30, is_full=False)  # noqa: SLF001 - no small market has such prices
    assert look.at(0) == (0.0, 0.0, 0.0)


def test_small_nodes_are_bought_where_the_large_ones_cost_more() -> None:
    found = solve(world(*many(60), types=DEAR_LARGE))
    assert found.greedy_usd_per_hour == 9.6
    assert round(found.price_usd_per_hour, 6) == 3.0
    assert {made.cheapest.instance_type for made in found.new_nodes} == {"small"}


def test_greedy_can_be_asked_for() -> None:
    found = solve(world(*many(60), types=DEAR_LARGE), options=Options(packing="Greedy"))
    assert found.price_usd_per_hour == found.greedy_usd_per_hour == 9.6


def test_where_prices_are_alike_nodes_are_few() -> None:
    assert len(solve(world(*many(32, cpu="500m"))).new_nodes) == 1


def test_a_small_batch_is_not_scattered_for_a_small_saving() -> None:
    types = (instance_type("small", 2, price=0.09), instance_type("large", 8, price=0.4))
    assert len(solve(world(*many(8), types=types)).new_nodes) == 1


def test_pods_of_unlike_shape_go_to_types_of_their_shape_or_fill_one_together() -> None:
    lean, fat = many(150, "lean", "1", "2Gi"), many(150, "fat", "1", "8Gi")
    found = solve(world(*lean, *fat, types=SHAPES))
    assert found.price_usd_per_hour <= 1.03 * (150 / 16 * 0.8 + 150 / 16 * 1.2)


def test_zones_that_pods_must_share_are_bought_in_each_at_its_own_price() -> None:
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector({"app": "web"})),)
    found = solve(world(*many(90, spread=spread), types=DEAR_LARGE))
    assert round(found.price_usd_per_hour, 6) == round(24 * 0.2, 6)
    by_zone = dict.fromkeys("abc", 0)
    for made in found.new_nodes:
        [zone] = made.requirements[ZONE].values
        by_zone[zone] += len(made.pods)
    assert set(by_zone.values()) == {30}


def test_pods_that_keep_apart_get_small_nodes() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "web"})),)
    found = solve(world(*many(40, pod_anti_affinity=apart), types=DEAR_LARGE))
    assert len(found.new_nodes) == 40
    assert round(found.price_usd_per_hour, 6) == 8.0


def test_hosts_that_pods_are_spread_over_hold_no_more_than_the_skew() -> None:
    spread = (SpreadConstraint(topology_key=HOSTNAME, max_skew=2, selector=selector({"app": "web"})),)
    found = solve(world(*many(40, spread=spread), types=DEAR_LARGE))
    assert {len(made.pods) for made in found.new_nodes} == {2}


def test_every_type_that_is_nearly_as_cheap_is_listed() -> None:
    twin, third = instance_type("twin", 4, 16, price=0.21), instance_type("third", 4, 16, price=0.9)
    more = tuple(instance_type(f"more-{number:02d}", 4, 16, price=1.0 + number) for number in range(12))
    found = solve(world(*many(60), types=(*DEAR_LARGE, twin, third, *more)))
    assert {made.instance_types[:3] for made in found.new_nodes} == {("small", "twin", "third")}
    assert {len(made.instance_types) for made in found.new_nodes} == {10}


def test_variety_that_the_pool_asks_for_is_kept() -> None:
    twin = instance_type("twin", 4, 16, price=0.21)
    some = pool(requirements=needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 2}))
    found = solve(world(*many(60), types=(*DEAR_LARGE, twin), node_pools=(some,)))
    assert not found.unschedulable
    assert all(len(made.instance_types) >= 2 for made in found.new_nodes)
    assert found.price_usd_per_hour < 9.6


def test_limits_hold_for_whatever_a_cheaper_node_may_become() -> None:
    some = pool(limits=resources({"cpu": 64_000}))
    types = (*DEAR_LARGE, instance_type("twin", 32, 128, price=0.21))
    found = solve(world(*many(60), types=types, node_pools=(some,)))
    capacity = {one.name: one.capacity["cpu"] for one in types}
    assert not found.unschedulable
    assert sum(max(capacity[name] for name in made.instance_types) for made in found.new_nodes) <= 64_000


def test_what_stands_is_filled_before_anything_is_bought() -> None:
    found = solve(world(*many(60), types=DEAR_LARGE, nodes=(node("here", "40"),)))
    assert [len(fit.pods) for fit in found.existing] == [16]
    assert round(found.price_usd_per_hour, 6) == 2.2


def test_daemons_make_many_nodes_dear() -> None:
    heavy = daemon("agent", "3", "1Gi")
    found = solve(world(*many(60), types=DEAR_LARGE, daemon_sets=(heavy,)))
    assert found.price_usd_per_hour == 9.6


def test_the_heavier_pool_is_used_though_the_lighter_is_cheaper() -> None:
    pools = (
        pool("heavy", weight=10, requirements=needs((INSTANCE_TYPE, "In", ("large",)))),
        pool("light", requirements=needs((INSTANCE_TYPE, "In", ("small",)))),
    )
    found = solve(world(*many(60), types=DEAR_LARGE, node_pools=pools))
    assert {made.node_pool for made in found.new_nodes} == {"heavy"}
