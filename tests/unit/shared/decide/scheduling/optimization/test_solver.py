"""Packing advice: which nodes are bought for which pods, and a plan that follows the advice stays as cheap."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.search import plan_search
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.core.resources import build_resources
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.ec2.launch_template import BlockDevice
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from tests.support.catalogues import (
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_class,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

BOTH = ("spot", "on-demand")
MIXED = tuple(
    make_instance_type(name, cpu, memory, price=price, capacity_types=BOTH)
    for name, cpu, memory, price in (
        ("lean", 16, 32, 0.80),
        ("even", 16, 64, 1.00),
        ("fat", 16, 128, 1.30),
        ("huge", 96, 384, 8.00),
        ("tiny", 4, 16, 0.26),
    )
)


def make_equal_pods(count: int, app: str = "web", cpu: str = "1", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    """Return *count* equal pods."""
    return [make_pod(f"{app}-{number:03d}", cpu, memory, labels={"app": app}, **spec) for number in range(count)]


def make_varied_pods(count: int, **spec: Any) -> list[Pod]:
    """Return pods of all shapes, no two of them alike."""
    return [
        make_pod(f"odd-{number:03d}", f"{100 + number * 37 % 3000}m", f"{200 + number * 911 % 9000}Mi", **spec)
        for number in range(count)
    ]


def build_volume_cluster(gib: int) -> ClusterSnapshot:
    """Return pods for three large nodes or 24 small ones, and a node class with a volume of *gib*."""
    types = (make_instance_type("small", 4, price=0.2), make_instance_type("large", 32, price=1.8))
    volume_class = replace(
        make_node_class(), block_devices=(BlockDevice(device_name="/dev/xvda", volume_size_gib=gib),)
    )
    return make_cluster_snapshot(*make_equal_pods(96), types=types, node_classes=(volume_class,))


def count_capacity_types(placement: Placement) -> Counter[str]:
    """Count the nodes by the capacity type of their cheapest offering."""
    return Counter(new_node.cheapest.capacity_type for new_node in placement.new_nodes)


def test_plan_for_pods_of_many_shapes_costs_at_most_5_percent_more_than_the_lower_bound() -> None:
    pods = make_varied_pods(400)
    placement = solve(make_cluster_snapshot(*pods, types=MIXED))
    cores = sum(pod.spec.requests["cpu"] for pod in pods) / 1000
    gib = sum(pod.spec.requests["memory"] for pod in pods) / 2**30
    assert not placement.unschedulable
    per_gib = (1.30 - 1.00) / 64
    assert placement.price_usd_per_hour <= 1.05 * 0.4 * (cores * (1.00 - 64 * per_gib) / 16 + gib * per_gib)


@pytest.mark.parametrize(("gib", "expected_type"), [(20, "small"), (2000, "large")])
def test_cost_of_ebs_volumes_per_node_makes_large_nodes_preferable(gib: int, expected_type: str) -> None:
    placement = solve(build_volume_cluster(gib))
    assert {new_node.cheapest.instance_type for new_node in placement.new_nodes} == {expected_type}


def test_additional_cost_per_node_affects_the_plan_but_not_its_price() -> None:
    plain, charged = (
        solve(build_volume_cluster(0)),
        solve(build_volume_cluster(0), options=SchedulingOptions(node_cost_usd_per_hour=0.3)),
    )
    assert {new_node.cheapest.instance_type for new_node in plain.new_nodes} == {"small"}
    assert {new_node.cheapest.instance_type for new_node in charged.new_nodes} == {"large"}
    assert charged.price_usd_per_hour > plain.price_usd_per_hour
    assert charged.price_usd_per_hour == pytest.approx(1.8 * len(charged.new_nodes))


def test_plan_with_a_higher_total_node_cost_than_the_greedy_plan_is_not_chosen() -> None:
    options = SchedulingOptions(node_cost_usd_per_hour=10.0)
    placement = solve(build_volume_cluster(0), options=options)
    assert len(placement.new_nodes) <= len(
        solve(build_volume_cluster(0), options=replace(options, packing="Greedy")).new_nodes
    )


def test_plan_with_fewer_nodes_is_chosen_at_equal_price() -> None:
    types = tuple(make_instance_type(f"m-{cpu:03d}", cpu) for cpu in (4, 8, 16, 32))
    pods = make_equal_pods(320, memory="3Gi")
    placement = solve(make_cluster_snapshot(*pods, types=types))
    assert len(placement.new_nodes) == 10


def test_pods_that_require_on_demand_do_not_move_other_pods_to_on_demand_nodes() -> None:
    firm = make_requirements((CAPACITY_TYPE, "In", ("on-demand",)))
    pods = [
        *make_varied_pods(120),
        *(replace(pod, meta=replace(pod.meta, name=f"firm-{pod.meta.name}")) for pod in make_varied_pods(40)),
    ]
    pods[120:] = [replace(pod, spec=replace(pod.spec, required_terms=(firm,))) for pod in pods[120:]]
    placement = solve(make_cluster_snapshot(*pods, types=MIXED))
    by_kind = count_capacity_types(placement)
    firm_nodes = sum(1 for new_node in placement.new_nodes if any("firm-" in name for name in new_node.pods))
    assert by_kind["on-demand"] == firm_nodes < len(placement.new_nodes)


def test_node_planned_as_spot_still_allows_on_demand() -> None:
    placement = solve(make_cluster_snapshot(*make_varied_pods(120), types=MIXED))
    assert set(count_capacity_types(placement)) == {"spot"}
    assert {new_node.requirements[CAPACITY_TYPE].values for new_node in placement.new_nodes} == {frozenset(BOTH)}


def test_nodes_keep_their_capacity_type_when_pods_spread_over_capacity_types() -> None:
    even = (SpreadConstraint(topology_key=CAPACITY_TYPE, max_skew=1, selector=build_label_selector({"app": "even"})),)
    placement = solve(
        make_cluster_snapshot(*make_varied_pods(120), *make_equal_pods(8, "even", spread=even), types=MIXED)
    )
    assert not placement.unschedulable
    plain = [new_node for new_node in placement.new_nodes if not any("even" in name for name in new_node.pods)]
    assert all(len(new_node.requirements[CAPACITY_TYPE].values) == 1 for new_node in plain)


def test_pods_that_only_match_a_spread_selector_do_not_fix_the_zones_of_spread_pods() -> None:
    even = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector({"tier": "x"})),)
    pods = [
        make_pod(
            f"p-{number:03d}", f"{200 + number}m", "2Gi", labels={"tier": "x"}, spread=even if number % 5 == 0 else ()
        )
        for number in range(200)
    ]
    types = (*MIXED, replace(make_instance_type("cheap", 16, 64, zones=("a",), price=0.7)))
    placement = solve(make_cluster_snapshot(*pods, types=types))
    assert not placement.unschedulable
    assert placement.price_usd_per_hour < 0.9 * placement.greedy_usd_per_hour


def test_optimizer_uses_the_next_node_pool_when_limits_of_the_first_are_reached() -> None:
    pools = (make_node_pool("first", weight=10, limits=build_resources({"cpu": 32_000})), make_node_pool("second"))
    types = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=9.6))
    placement = solve(make_cluster_snapshot(*make_equal_pods(100), types=types, node_pools=pools))
    assert not placement.unschedulable
    assert Counter(new_node.node_pool for new_node in placement.new_nodes) == {"first": 8, "second": 17}
    assert placement.price_usd_per_hour == pytest.approx(5.0)


def test_optimizer_plans_nodes_within_the_remaining_node_pool_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    prices = ((4, 0.3), (16, 0.95), (32, 0.9), (64, 9.6))
    types = tuple(make_instance_type(f"m-{cpu}", cpu, price=price) for cpu, price in prices)
    monkeypatch.setattr(plan_search, "MAX_EFFORT_STEPS", 0)
    monkeypatch.setattr(plan_search, "improve_plans", lambda *_: [])
    placement = solve(
        make_cluster_snapshot(
            *make_equal_pods(78), types=types, node_pools=(make_node_pool(limits=build_resources({"cpu": 80_000})),)
        )
    )
    assert not placement.unschedulable
    assert Counter(new_node.cheapest.instance_type for new_node in placement.new_nodes) == {"m-32": 2, "m-16": 1}


def test_pods_too_large_for_the_remaining_limit_are_planned_in_the_next_node_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = tuple(
        make_instance_type(f"m-{cpu:02d}", cpu, price=price) for cpu, price in ((4, 0.3), (16, 0.5), (64, 3.0))
    )
    monkeypatch.setattr(plan_search, "MAX_EFFORT_STEPS", 0)
    monkeypatch.setattr(plan_search, "improve_plans", lambda *_: [])
    pools = (make_node_pool("first", weight=10, limits=build_resources({"cpu": 20_000})), make_node_pool("second"))
    placement = solve(make_cluster_snapshot(*make_equal_pods(21, cpu="5", memory="3Gi"), types=types, node_pools=pools))
    assert not placement.unschedulable
    by_pool = Counter((new_node.node_pool, new_node.cheapest.instance_type) for new_node in placement.new_nodes)
    assert by_pool == {("first", "m-16"): 1, ("second", "m-16"): 6}


def test_optimizer_uses_the_second_required_term_when_the_first_is_unsatisfiable() -> None:
    terms = (make_requirements((ARCH, "In", ("arm64",))), make_requirements((ARCH, "In", ("amd64",))))
    types = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=9.6))
    placement = solve(make_cluster_snapshot(*make_equal_pods(60, required_terms=terms), types=types))
    assert {new_node.cheapest.instance_type for new_node in placement.new_nodes} == {"small"}
    second_placement = solve(
        make_cluster_snapshot(*make_equal_pods(60, required_terms=terms), types=types, nodes=(make_node("here", "40"),))
    )
    assert [len(fit.pods) for fit in second_placement.existing] == [40 - 24]
    assert len(second_placement.new_nodes) == 11


def test_pods_with_host_anti_affinity_are_planned_on_small_nodes() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "apart"})),)
    pods = [*make_equal_pods(30, "apart", "3", pod_anti_affinity=apart), *make_equal_pods(30, "free", "1")]
    types = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=3.0))
    placement = solve(make_cluster_snapshot(*pods, types=types))
    assert {new_node.cheapest.instance_type for new_node in placement.new_nodes} == {"small"}
    assert len(placement.new_nodes) == 30


def test_daemon_set_overhead_counts_for_each_planned_node() -> None:
    types = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=3.4))
    light = solve(make_cluster_snapshot(*make_equal_pods(120), types=types))
    assert {new_node.cheapest.instance_type for new_node in light.new_nodes} == {"small"}
    heavy = solve(
        make_cluster_snapshot(*make_equal_pods(120), types=types, daemon_sets=(make_daemon_set("agent", "2", "1Gi"),))
    )
    assert {new_node.cheapest.instance_type for new_node in heavy.new_nodes} == {"large"}


def test_min_values_of_instance_types_hold_for_many_different_pods() -> None:
    node_pool = make_node_pool(
        requirements=make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 2})
    )
    placement = solve(make_cluster_snapshot(*make_varied_pods(150), types=MIXED, node_pools=(node_pool,)))
    assert not placement.unschedulable
    assert all(len(new_node.instance_types) >= 2 for new_node in placement.new_nodes)


def test_plan_does_not_depend_on_the_order_of_pods() -> None:
    pods = make_varied_pods(200)
    assert solve(make_cluster_snapshot(*pods, types=MIXED)) == solve(
        make_cluster_snapshot(*reversed(pods), types=MIXED)
    )
