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


def test_item_with_a_negative_value_scores_zero_when_resource_prices_are_near_zero() -> None:
    item: Any = SimpleNamespace(scaled_need=(1.0,), pods=SimpleNamespace(request_vector=(1, 1, 0, 1)))
    market: Any = SimpleNamespace(items=(item,), bin_types=(SimpleNamespace(capacity=(1, 1, 0, 1)),))
    dual_values: Any = SimpleNamespace(item_values=(-0.15,), resource_prices=((5e-18,),))
    scorer = patterns._ItemScorer(dual_values, 0, market, 30, is_pod_limited=False)  # noqa: SLF001 - no small market has such prices
    assert scorer.compute_score_vector(0) == (0.0, 0.0, 0.0)


def test_small_nodes_are_planned_when_large_nodes_cost_more_per_pod() -> None:
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES))
    assert placement.greedy_usd_per_hour == 9.6
    assert round(placement.price_usd_per_hour, 6) == 3.0
    assert {new_node.cheapest.instance_type for new_node in placement.new_nodes} == {"small"}


def test_packing_greedy_skips_the_optimizer() -> None:
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES),
        options=SchedulingOptions(packing="Greedy"),
    )
    assert placement.price_usd_per_hour == placement.greedy_usd_per_hour == 9.6


def test_few_large_nodes_are_planned_at_equal_price() -> None:
    assert len(solve(make_cluster_snapshot(*make_equal_pods(32, cpu="500m"))).new_nodes) == 1


def test_small_batch_of_pods_is_not_split_over_nodes_for_a_small_saving() -> None:
    types = (make_instance_type("small", 2, price=0.09), make_instance_type("large", 8, price=0.4))
    assert len(solve(make_cluster_snapshot(*make_equal_pods(8), types=types)).new_nodes) == 1


def test_cpu_heavy_and_memory_heavy_pods_are_packed_on_matching_or_mixed_instance_types() -> None:
    lean, fat = make_equal_pods(150, "lean", "1", "2Gi"), make_equal_pods(150, "fat", "1", "8Gi")
    placement = solve(make_cluster_snapshot(*lean, *fat, types=SHAPES))
    assert placement.price_usd_per_hour <= 1.03 * (150 / 16 * 0.8 + 150 / 16 * 1.2)


def test_pods_with_zonal_spread_are_planned_at_the_lowest_price_in_each_zone() -> None:
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector({"app": "web"})),)
    placement = solve(make_cluster_snapshot(*make_equal_pods(90, spread=spread), types=EXPENSIVE_LARGE_TYPES))
    assert round(placement.price_usd_per_hour, 6) == round(24 * 0.2, 6)
    by_zone = dict.fromkeys("abc", 0)
    for new_node in placement.new_nodes:
        [zone] = new_node.requirements[ZONE].values
        by_zone[zone] += len(new_node.pods)
    assert set(by_zone.values()) == {30}


def test_pods_with_host_anti_affinity_get_small_nodes() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "web"})),)
    placement = solve(make_cluster_snapshot(*make_equal_pods(40, pod_anti_affinity=apart), types=EXPENSIVE_LARGE_TYPES))
    assert len(placement.new_nodes) == 40
    assert round(placement.price_usd_per_hour, 6) == 8.0


def test_nodes_of_pods_spread_over_hosts_hold_at_most_max_skew_pods() -> None:
    spread = (SpreadConstraint(topology_key=HOSTNAME, max_skew=2, selector=build_label_selector({"app": "web"})),)
    placement = solve(make_cluster_snapshot(*make_equal_pods(40, spread=spread), types=EXPENSIVE_LARGE_TYPES))
    assert {len(new_node.pods) for new_node in placement.new_nodes} == {2}


def test_new_node_lists_the_instance_types_with_nearly_the_same_price() -> None:
    twin, third = make_instance_type("twin", 4, 16, price=0.21), make_instance_type("third", 4, 16, price=0.9)
    extra_types = tuple(make_instance_type(f"more-{number:02d}", 4, 16, price=1.0 + number) for number in range(12))
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=(*EXPENSIVE_LARGE_TYPES, twin, third, *extra_types))
    )
    assert {new_node.instance_types[:3] for new_node in placement.new_nodes} == {("small", "twin", "third")}
    assert {len(new_node.instance_types) for new_node in placement.new_nodes} == {10}


def test_min_values_of_the_node_pool_are_kept_by_the_optimizer() -> None:
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


def test_node_pool_limits_hold_for_the_largest_instance_type_of_a_cheaper_node() -> None:
    node_pool = make_node_pool(limits=build_resources({"cpu": 64_000}))
    types = (*EXPENSIVE_LARGE_TYPES, make_instance_type("twin", 32, 128, price=0.21))
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=types, node_pools=(node_pool,)))
    capacity = {instance_type.name: instance_type.capacity["cpu"] for instance_type in types}
    assert not placement.unschedulable
    assert sum(max(capacity[name] for name in new_node.instance_types) for new_node in placement.new_nodes) <= 64_000


def test_existing_nodes_are_filled_before_new_nodes_are_planned() -> None:
    placement = solve(
        make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES, nodes=(make_node("here", "40"),))
    )
    assert [len(fit.pods) for fit in placement.existing] == [16]
    assert round(placement.price_usd_per_hour, 6) == 2.2


def test_daemon_set_overhead_makes_many_small_nodes_more_expensive() -> None:
    heavy = make_daemon_set("agent", "3", "1Gi")
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES, daemon_sets=(heavy,)))
    assert placement.price_usd_per_hour == 9.6


def test_heavier_node_pool_is_used_although_the_lighter_one_is_cheaper() -> None:
    pools = (
        make_node_pool("heavy", weight=10, requirements=make_requirements((INSTANCE_TYPE, "In", ("large",)))),
        make_node_pool("light", requirements=make_requirements((INSTANCE_TYPE, "In", ("small",)))),
    )
    placement = solve(make_cluster_snapshot(*make_equal_pods(60), types=EXPENSIVE_LARGE_TYPES, node_pools=pools))
    assert {new_node.node_pool for new_node in placement.new_nodes} == {"heavy"}
