"""Limits in USD per hour in the planner: of a NodePool and of the cluster, at marginal and at list prices."""

import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, LIMIT_USD, NODEPOOL, ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import NODES, build_resources
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.ec2.commitments import Commitments, ReservedInstances
from shared.model.karpenter.money_limit import LimitPriceKind, MoneyPolicy, convert_to_micro_usd, find_limit_problem
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import (
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_class,
    make_node_pool,
    make_pod,
)
from tests.support.snapshot_decisions import solve

BOTH = ("on-demand", "spot")


def make_limited_pool(limit: str, name: str = "default", **fields: object) -> NodePool:
    return make_node_pool(name, meta=ObjectMeta(name=name, annotations=((LIMIT_USD, limit),)), **fields)


def make_options(
    usd_per_hour: float | None = None, prices: LimitPriceKind = "marginal", volume_price: float = 0.08
) -> SchedulingOptions:
    limit = None if usd_per_hour is None else convert_to_micro_usd(usd_per_hour)
    return SchedulingOptions(
        money=MoneyPolicy(cluster_limit=limit, prices=prices, volume_usd_per_gib_month=volume_price)
    )


def count_new_nodes(placement: Placement) -> int:
    return len(placement.new_nodes)


def make_full_pods(count: int) -> tuple[Pod, ...]:
    """Return pods that each need a node of m.04, which costs $0.20/h."""
    return tuple(make_pod(f"p{number}", "4") for number in range(count))


@pytest.mark.parametrize(
    ("limit", "nodes"), [("0.80", 3), ("0.65", 3), ("0.5999", 2), ("0.2", 1), ("0.1", 0), ("0", 0)]
)
def test_node_pool_launches_no_nodes_above_its_limit(limit: str, nodes: int) -> None:
    types = (make_instance_type("m.04", 4),)
    placement = solve(make_cluster_snapshot(*make_full_pods(3), types=types, node_pools=(make_limited_pool(limit),)))
    assert count_new_nodes(placement) == nodes
    assert len(placement.unschedulable) == 3 - nodes


def test_nodes_of_all_node_pools_count_against_the_limit_of_the_cluster() -> None:
    types = (make_instance_type("m.04", 4),)
    pools = (make_limited_pool("0.25", "first", weight=10), make_node_pool("second"))
    placement = solve(
        make_cluster_snapshot(*make_full_pods(5), types=types, node_pools=pools), options=make_options(0.7)
    )
    assert sorted(node.node_pool for node in placement.new_nodes) == ["first", "second", "second"]
    assert {pod.reason for pod in placement.unschedulable} == {"LimitExceeded"}


def test_message_of_a_refused_pod_has_the_amounts_and_the_fix() -> None:
    types = (make_instance_type("m.04", 4),)
    pools = (make_limited_pool("0.25", "first", weight=10), make_node_pool("second"))
    placement = solve(
        make_cluster_snapshot(*make_full_pods(3), types=types, node_pools=pools), options=make_options(0.5)
    )
    (refused_pod,) = placement.unschedulable
    assert refused_pod.message == (
        "NodePool first: a node costs at least $0.2000/h, $0.0500/h is left of its limit of $0.2500/h: increase "
        "joiner.dev/limit-usd-per-hour; NodePool second: a node costs at least $0.2000/h, $0.1000/h is left of the "
        "limit of the cluster of $0.5000/h: increase limit-usd-per-hour"
    )


@pytest.mark.parametrize(("prices", "nodes"), [("marginal", 5), ("list", 2)])
def test_spot_nodes_count_at_the_spot_price_or_at_the_list_price(prices: LimitPriceKind, nodes: int) -> None:
    types = (make_instance_type("m.04", 4, capacity_types=BOTH),)
    cluster = make_cluster_snapshot(*make_full_pods(6), types=types, node_pools=(make_limited_pool("0.41"),))
    assert count_new_nodes(solve(cluster, options=make_options(prices=prices))) == nodes


def test_node_that_a_pod_narrows_to_on_demand_counts_at_the_on_demand_price() -> None:
    types = (make_instance_type("m.04", 4, capacity_types=BOTH),)
    pods = tuple(make_pod(f"p{number}", "4", node_selector=((CAPACITY_TYPE, "on-demand"),)) for number in range(4))
    cluster = make_cluster_snapshot(*pods, types=types, node_pools=(make_limited_pool("0.41"),))
    assert count_new_nodes(solve(cluster)) == 2


def test_on_demand_node_is_not_opened_within_a_limit_that_only_spot_meets() -> None:
    types = (make_instance_type("m.04", 4, capacity_types=BOTH),)
    pod = make_pod("on-demand", "4", node_selector=((CAPACITY_TYPE, "on-demand"),))
    placement = solve(make_cluster_snapshot(pod, types=types, node_pools=(make_limited_pool("0.1"),)))
    assert [refused_pod.reason for refused_pod in placement.unschedulable] == ["LimitExceeded"]


def test_pod_does_not_make_an_open_spot_node_too_expensive() -> None:
    types = (make_instance_type("m.04", 4, capacity_types=BOTH),)
    pods = (make_pod("big", "3"), make_pod("on-demand", "1", node_selector=((CAPACITY_TYPE, "on-demand"),)))
    cluster = make_cluster_snapshot(*pods, types=types, node_pools=(make_limited_pool("0.1"),))
    placement = solve(cluster)
    assert [node.pods for node in placement.new_nodes] == [("shop/big",)]
    assert [pod.pod for pod in placement.unschedulable] == ["shop/on-demand"]


def test_volumes_count_against_the_limit() -> None:
    types = (make_instance_type("m.04", 4),)
    cluster = make_cluster_snapshot(*make_full_pods(3), types=types, node_pools=(make_limited_pool("0.61"),))
    cluster = replace(cluster, node_classes=(replace(make_node_class(), ami_family="AL2023"),))
    assert count_new_nodes(solve(cluster, options=make_options(volume_price=0.0))) == 3
    # 20 GiB at $7.30 are $0.20/h: a node costs $0.40/h
    assert count_new_nodes(solve(cluster, options=make_options(volume_price=7.3))) == 1


def test_running_nodes_count_at_their_price() -> None:
    types = (make_instance_type("m.04", 4),)
    labels = {INSTANCE_TYPE: "m.04", ZONE: "a", CAPACITY_TYPE: "on-demand", NODEPOOL: "default"}
    node = make_node("running", "1", labels=labels)
    cluster = make_cluster_snapshot(
        *make_full_pods(3), nodes=(node,), types=types, node_pools=(make_limited_pool("0.6"),)
    )
    assert count_new_nodes(solve(cluster)) == 2


def test_plan_uses_the_instance_types_that_are_within_the_limit() -> None:
    pods = tuple(make_pod(f"p{number}", "1") for number in range(8))
    cluster = make_cluster_snapshot(*pods, node_pools=(make_limited_pool("0.45"),))
    placement = solve(cluster)
    assert not placement.unschedulable
    assert placement.price_usd_per_hour <= 0.45


def test_other_limits_hold_next_to_the_limit_in_usd() -> None:
    types = (make_instance_type("m.04", 4),)
    pool = make_limited_pool("9", limits=build_resources({NODES: 2}))
    placement = solve(make_cluster_snapshot(*make_full_pods(3), types=types, node_pools=(pool,)))
    assert count_new_nodes(placement) == 2
    assert "limit of nodes" in placement.unschedulable[0].message


@pytest.mark.parametrize("text", ["ten", "-1", "1e9", "nan"])
def test_node_pool_with_an_invalid_limit_launches_nothing(text: str) -> None:
    placement = solve(make_cluster_snapshot(make_pod("p"), node_pools=(make_limited_pool(text),)))
    assert not placement.new_nodes
    assert f"joiner.dev/limit-usd-per-hour: {text!r} is not" in placement.unschedulable[0].message


def test_limit_of_a_static_node_pool_is_an_error() -> None:
    assert find_limit_problem(make_limited_pool("5", replicas=2)).endswith("use spec.limits.nodes")


def test_high_limit_changes_no_plan() -> None:
    pods = tuple(make_pod(f"p{number}", str(1 + number % 5)) for number in range(40))
    plain = solve(make_cluster_snapshot(*pods))
    limited = solve(make_cluster_snapshot(*pods), options=make_options(1000))
    assert limited.price_usd_per_hour == pytest.approx(plain.price_usd_per_hour)


@pytest.mark.parametrize(("prices", "nodes"), [("marginal", 2), ("list", 1)])
def test_running_nodes_that_commitments_pay_for_count_only_at_list_prices(prices: LimitPriceKind, nodes: int) -> None:
    types = (make_instance_type("m5.xlarge", 4),)
    reserved = ReservedInstances(reservation_id="ri", instance_type="m5.xlarge", count=1)
    labels = {INSTANCE_TYPE: "m5.xlarge", ZONE: "a", CAPACITY_TYPE: "on-demand", NODEPOOL: "default"}
    node, claim = attach_claim(make_node("running", "1", labels=labels))
    cluster = make_cluster_snapshot(
        *make_full_pods(3),
        nodes=(node,),
        node_claims=(claim,),
        node_pools=(make_limited_pool("0.45"),),
        catalog=Catalog(region="nowhere", instance_types=types, commitments=Commitments(reserved=(reserved,))),
    )
    assert count_new_nodes(solve(cluster, options=make_options(prices=prices))) == nodes
