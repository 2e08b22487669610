"""What plans cost: the cheapest of several plans, few nodes at equal price, never more than the greedy plan."""

from types import SimpleNamespace
from typing import Any

from shared.decide.scheduling.optimization import patterns
from shared.model.core.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.core.resources import build_resources
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from tests.support.catalogues import (
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

EXPENSIVE_LARGE_TYPES = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=9.6))
SHAPES = (
    make_instance_type("cpu", 16, 32, price=0.8),
    make_instance_type("even", 16, 64, price=1.0),
    make_instance_type("memory", 16, 128, price=1.2),
)


def make_equal_pods(count: int, app: str = "web", cpu: str = "1", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    """Return *count* equal pods."""
    return [make_pod(f"{app}-{number}", cpu, memory, labels={"app": app}, **spec) for number in range(count)]


def test_an_item_worth_less_than_nothing_is_no_more_where_a_node_costs_next_to_nothing() -> None:
    item: Any = SimpleNamespace(scaled_need=(1.0,), pods=SimpleNamespace(request_vector=(1, 1, 0, 1)))
    market: Any = SimpleNamespace(items=(item,), bin_types=(SimpleNamespace(capacity=(1, 1, 0, 1)),))
    dual_values: Any = SimpleNamespace(item_values=(-0.15,), resource_prices=((5e-18,),))
    scorer = patterns._ItemScorer(dual_values, 0, market, 30, is_pod_limited=False)  # noqa: SLF001 - no small market has such prices
    assert scorer.compute_score_vector(0) == (0.0, 0.0, 0.0)


def test_small_nodes_are_bought_where_the_large_ones_cost_more() -> None:
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES))
    assert placement.greedy_usd_per_hour == 9.6
    assert round(placement.price_usd_per_hour, 6) == 3.0
    assert {new_node.cheapest.instance_type for new_node in placement.new_nodes} == {"small"}


def test_greedy_can_be_asked_for() -> None:
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES),
        options=SchedulingOptions(packing="Greedy"),
    )
    assert placement.price_usd_per_hour == placement.greedy_usd_per_hour == 9.6


def test_where_prices_are_alike_nodes_are_few() -> None:
    assert len(solve(make_cluster_snapshot(*make_equal_pods(32, cpu="500m"))).new_nodes) == 1


def test_a_small_batch_is_not_scattered_for_a_small_saving() -> None:
    types = (make_instance_type("small", 2, price=0.09), make_instance_type("large", 8, price=0.4))
    assert len(solve(make_cluster_snapshot(*make_equal_pods(8), types=types)).new_nodes) == 1


def test_pods_of_unlike_shape_go_to_types_of_their_shape_or_fill_one_together() -> None:
    lean, fat = make_equal_pods(150, "lean", "1", "2Gi"), make_equal_pods(150, "fat", "1", "8Gi")
    placement = solve(make_cluster_snapshot(*lean, *fat, types=SHAPES))
    assert placement.price_usd_per_hour <= 1.03 * (150 / 16 * 0.8 + 150 / 16 * 1.2)


def test_zones_that_pods_must_share_are_bought_in_each_at_its_own_price() -> None:
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector({"app": "web"})),)
    placement = solve(make_cluster_snapshot(*make_equal_pods(90, spread=spread), types=EXPENSIVE_LARGE_TYPES))
    assert round(placement.price_usd_per_hour, 6) == round(24 * 0.2, 6)
    by_zone = dict.fromkeys("abc", 0)
    for new_node in placement.new_nodes:
        [zone] = new_node.requirements[ZONE].values
        by_zone[zone] += len(new_node.pods)
    assert set(by_zone.values()) == {30}


def test_pods_that_keep_apart_get_small_nodes() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "web"})),)
    placement = solve(make_cluster_snapshot(*make_equal_pods(40, pod_anti_affinity=apart), types=EXPENSIVE_LARGE_TYPES))
    assert len(placement.new_nodes) == 40
    assert round(placement.price_usd_per_hour, 6) == 8.0


def test_hosts_that_pods_are_spread_over_hold_no_more_than_the_skew() -> None:
    spread = (SpreadConstraint(topology_key=HOSTNAME, max_skew=2, selector=build_label_selector({"app": "web"})),)
    placement = solve(make_cluster_snapshot(*make_equal_pods(40, spread=spread), types=EXPENSIVE_LARGE_TYPES))
    assert {len(new_node.pods) for new_node in placement.new_nodes} == {2}


def test_every_type_that_is_nearly_as_cheap_is_listed() -> None:
    twin, third = make_instance_type("twin", 4, 16, price=0.21), make_instance_type("third", 4, 16, price=0.9)
    extra_types = tuple(make_instance_type(f"more-{number:02d}", 4, 16, price=1.0 + number) for number in range(12))
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=(*EXPENSIVE_LARGE_TYPES, twin, third, *extra_types))
    )
    assert {new_node.instance_types[:3] for new_node in placement.new_nodes} == {("small", "twin", "third")}
    assert {len(new_node.instance_types) for new_node in placement.new_nodes} == {10}


def test_variety_that_the_pool_asks_for_is_kept() -> None:
    twin = make_instance_type("twin", 4, 16, price=0.21)
    node_pool = make_node_pool(
        requirements=make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 2})
    )
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=(*EXPENSIVE_LARGE_TYPES, twin), node_pools=(node_pool,))
    )
    assert not placement.unschedulable
    assert all(len(new_node.instance_types) >= 2 for new_node in placement.new_nodes)
    assert placement.price_usd_per_hour < 9.6


def test_limits_hold_for_whatever_a_cheaper_node_may_become() -> None:
    node_pool = make_node_pool(limits=build_resources({"cpu": 64_000}))
    types = (*EXPENSIVE_LARGE_TYPES, make_instance_type("twin", 32, 128, price=0.21))
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=types, node_pools=(node_pool,)))
    capacity = {instance_type.name: instance_type.capacity["cpu"] for instance_type in types}
    assert not placement.unschedulable
    assert sum(max(capacity[name] for name in new_node.instance_types) for new_node in placement.new_nodes) <= 64_000


def test_what_stands_is_filled_before_anything_is_bought() -> None:
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES, nodes=(make_node("here", "40"),))
    )
    assert [len(fit.pods) for fit in placement.existing] == [16]
    assert round(placement.price_usd_per_hour, 6) == 2.2


def test_daemons_make_many_nodes_dear() -> None:
    heavy = make_daemon_set("agent", "3", "1Gi")
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES, daemon_sets=(heavy,)))
    assert placement.price_usd_per_hour == 9.6


def test_the_heavier_pool_is_used_though_the_lighter_is_cheaper() -> None:
    pools = (
        make_node_pool("heavy", weight=10, requirements=make_requirements((INSTANCE_TYPE, "In", ("large",)))),
        make_node_pool("light", requirements=make_requirements((INSTANCE_TYPE, "In", ("small",)))),
    )
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES, node_pools=pools))
    assert {new_node.node_pool for new_node in placement.new_nodes} == {"heavy"}
