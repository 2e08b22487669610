"""Spot shares of NodePools in the planner."""

from itertools import product
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ON_DEMAND_BASE, SPOT_SHARE, SPOT_SHARE_UNIT
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import CPU
from shared.model.decisions.placement import NewNodeClaim, Placement, SchedulingOptions
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.spot_share import ShareUsage, find_spot_share
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.spot_shares.node_pool_shares import compute_share_usages, find_spot_shares
from tests.support.catalogues import (
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

BOTH = ("on-demand", "spot")
ONE_SIZE = (make_instance_type("m.04", 4, capacity_types=BOTH),)
SIZES = tuple(make_instance_type(f"m.{cpu:02d}", cpu, capacity_types=BOTH) for cpu in (2, 4, 8, 16))
CPU_BY_TYPE = {kind.name: kind.capacity[CPU] for kind in SIZES}


def make_shared_pool(percent: str, base: str = "", unit: str = "", name: str = "default", **fields: object) -> NodePool:
    texts = {SPOT_SHARE: percent, ON_DEMAND_BASE: base, SPOT_SHARE_UNIT: unit}
    annotations = tuple(sorted((key, text) for key, text in texts.items() if text))
    return make_node_pool(name, meta=ObjectMeta(name=name, annotations=annotations), **fields)


def make_full_pods(count: int, node_selector: tuple[tuple[str, str], ...] = ()) -> tuple[Pod, ...]:
    return tuple(make_pod(f"p{number:02d}", "4", node_selector=node_selector) for number in range(count))


def may_be_spot(node: NewNodeClaim) -> bool:
    return node.requirements[CAPACITY_TYPE].has("spot")


def count_spot(placement: Placement) -> tuple[int, int]:
    """Return the number of new nodes that may be Spot, and of all new nodes."""
    return sum(map(may_be_spot, placement.new_nodes)), len(placement.new_nodes)


def make_running(name: str, capacity_type: str, instance_type: str = "m.04") -> Node:
    node_labels = {INSTANCE_TYPE: instance_type, "topology.kubernetes.io/zone": "a", CAPACITY_TYPE: capacity_type}
    return make_node(name, "0", labels=node_labels | {NODEPOOL: "default"})


def measure(cluster: ClusterSnapshot, placement: Placement) -> ShareUsage:
    """Return the usage of the share of NodePool default after *placement*, in the worst case."""
    shares = find_spot_shares(cluster)
    usage = compute_share_usages(shares, ClusterState(cluster).nodes, cluster)["default"]
    for node in placement.new_nodes:
        amounts = [CPU_BY_TYPE[name] for name in node.instance_types]
        is_spot = may_be_spot(node)
        amount = (max if is_spot else min)(amounts) if shares["default"].unit == "vcpu" else 1
        usage += ShareUsage(spot=amount if is_spot else 0, total=amount)
    return usage


@pytest.mark.parametrize(
    ("percent", "base", "spot"),
    [("50", "2", 4), ("50", "", 5), ("100", "3", 7), ("0", "", 0), ("70", "10", 0), ("33", "1", 2), ("", "4", 6)],
)
@pytest.mark.parametrize("packing", ["Priced", "Greedy"])
def test_of_ten_nodes_the_base_is_on_demand_and_of_the_others_at_most_the_share_is_spot(
    percent: str, base: str, spot: int, packing: Literal["Priced", "Greedy"]
) -> None:
    cluster = make_cluster_snapshot(*make_full_pods(10), types=ONE_SIZE, node_pools=(make_shared_pool(percent, base),))
    placement = solve(cluster, options=SchedulingOptions(packing=packing))
    assert count_spot(placement) == (spot, 10)


def test_spot_node_may_still_be_launched_on_demand_but_not_the_other_way_round() -> None:
    cluster = make_cluster_snapshot(*make_full_pods(2), types=ONE_SIZE, node_pools=(make_shared_pool("50"),))
    allowed = sorted(sorted(node.requirements[CAPACITY_TYPE].values) for node in solve(cluster).new_nodes)
    assert allowed == [["on-demand"], ["on-demand", "spot"]]


def test_running_nodes_count() -> None:
    nodes = tuple(make_running(f"n{number}", "on-demand") for number in range(3))
    cluster = make_cluster_snapshot(
        *make_full_pods(3), nodes=nodes, types=ONE_SIZE, node_pools=(make_shared_pool("50"),)
    )
    assert count_spot(solve(cluster)) == (3, 3)
    nodes = tuple(make_running(f"n{number}", "spot") for number in range(3))
    assert count_spot(solve(replace(cluster, nodes=nodes))) == (0, 3)


def test_interrupted_spot_nodes_do_not_count() -> None:
    pairs = [attach_claim(make_running(f"n{number}", kind)) for number, kind in enumerate(("spot", "on-demand"))]
    cluster = make_cluster_snapshot(
        *make_full_pods(1),
        nodes=tuple(node for node, _ in pairs),
        node_claims=tuple(claim for _, claim in pairs),
        types=ONE_SIZE,
        node_pools=(make_shared_pool("50"),),
    )
    assert count_spot(solve(cluster)) == (0, 1)
    interrupted = replace(pairs[0][1], meta=replace(pairs[0][1].meta, deleted_at=cluster.taken_at))
    assert count_spot(solve(replace(cluster, node_claims=(interrupted, pairs[1][1])))) == (1, 1)


def test_pod_that_needs_spot_is_refused_with_the_amounts_and_the_fix() -> None:
    pods = make_full_pods(2, node_selector=((CAPACITY_TYPE, "spot"),))
    cluster = make_cluster_snapshot(
        *pods,
        nodes=(make_running("n", "on-demand"),),
        types=ONE_SIZE,
        node_pools=(make_shared_pool("50"),),
    )
    placement = solve(cluster)
    assert count_spot(placement) == (1, 1)
    assert [pod.reason for pod in placement.unschedulable] == ["LimitExceeded"]
    assert placement.unschedulable[0].message == (
        "NodePool default: the pod needs a Spot node, which would exceed the Spot share: 1 of 2 nodes are Spot, at "
        "most 1 may be (50 %); to fix: increase joiner.dev/spot-share-percent, or allow on-demand in the pod"
    )


def test_refusal_names_the_base_if_there_is_one() -> None:
    pod = make_pod("p", "4", node_selector=((CAPACITY_TYPE, "spot"),))
    placement = solve(make_cluster_snapshot(pod, types=ONE_SIZE, node_pools=(make_shared_pool("50", "2"),)))
    assert placement.unschedulable[0].message.endswith(
        "0 of 0 nodes are Spot, at most 0 may be (50 % of the nodes above the base of 2); to fix: increase "
        "joiner.dev/spot-share-percent, decrease joiner.dev/on-demand-base, or allow on-demand in the pod"
    )


def test_pod_that_needs_spot_gets_it_after_on_demand_nodes_of_the_same_plan() -> None:
    spot_pod = make_pod("a", "4", node_selector=((CAPACITY_TYPE, "spot"),))
    pods = (spot_pod, *make_full_pods(3))
    cluster = make_cluster_snapshot(*pods, types=ONE_SIZE, node_pools=(make_shared_pool("50"),))
    placement = solve(cluster)
    assert not placement.unschedulable
    assert count_spot(placement) == (2, 4)


@pytest.mark.parametrize("unit", ["nodes", "vcpu"])
def test_without_effect_the_plan_is_as_without_the_annotations(unit: str) -> None:
    pods = tuple(make_pod(f"p{number:02d}", str(1 + number % 5)) for number in range(30))
    plain = solve(make_cluster_snapshot(*pods, types=SIZES))
    shared = solve(make_cluster_snapshot(*pods, types=SIZES, node_pools=(make_shared_pool("100", "0", unit),)))
    assert shared == plain


@pytest.mark.parametrize("allowed", ["spot", "on-demand"])
def test_share_of_a_node_pool_with_one_capacity_type_has_no_effect(allowed: str) -> None:
    requirements = make_requirements((CAPACITY_TYPE, "In", (allowed,)))
    cluster = make_cluster_snapshot(
        *make_full_pods(4), types=ONE_SIZE, node_pools=(make_shared_pool("50", requirements=requirements),)
    )
    assert len(solve(cluster).new_nodes) == 4
    assert find_spot_share(cluster.node_pools[0]) is None


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        (("half", "", ""), "joiner.dev/spot-share-percent: 'half' is not a whole number from 0 to 100"),
        (("101", "", ""), "joiner.dev/spot-share-percent: '101' is not a whole number from 0 to 100"),
        (("50", "-1", ""), "joiner.dev/on-demand-base: '-1' is not a whole number from 0 to 1,000,000"),
        (("50", "", "pods"), "joiner.dev/spot-share-unit: 'pods' is not a unit: write nodes, vcpu"),
    ],
)
def test_node_pool_with_an_invalid_share_launches_nothing(annotations: tuple[str, str, str], problem: str) -> None:
    placement = solve(make_cluster_snapshot(make_pod("p"), types=SIZES, node_pools=(make_shared_pool(*annotations),)))
    assert not placement.new_nodes
    assert problem in placement.unschedulable[0].message


POD_SIZES = st.lists(st.sampled_from(("1", "2", "3", "5", "9")), min_size=1, max_size=25)


@settings(max_examples=40)
@given(
    POD_SIZES,
    st.integers(0, 100),
    st.integers(0, 6),
    st.sampled_from(("nodes", "vcpu")),
    st.lists(st.sampled_from(BOTH), max_size=4),
    st.lists(st.sampled_from(("", "spot", "on-demand")), min_size=25, max_size=25),
)
@example(
    sizes=["9", "9", "9", "1", "9", "9", "1"],
    percent=79,
    base=2,
    unit="vcpu",
    running=[],
    selected=["spot", "", "spot", "on-demand", "", "on-demand", "on-demand"],
)  # an on-demand node of the packing solution gets no pods
def test_no_plan_exceeds_a_share_for_any_pods(
    sizes: list[str], percent: int, base: int, unit: str, running: list[str], selected: list[str]
) -> None:
    pods = tuple(
        make_pod(f"p{number:02d}", size, node_selector=((CAPACITY_TYPE, selected[number]),) if selected[number] else ())
        for number, size in enumerate(sizes)
    )
    pool = make_shared_pool(str(percent), str(base), unit)
    nodes = tuple(make_running(f"n{number}", kind) for number, kind in enumerate(running))
    cluster = make_cluster_snapshot(*pods, nodes=nodes, types=SIZES, node_pools=(pool,))
    share = find_spot_share(pool)
    placement = solve(cluster)
    if share is not None:
        before = compute_share_usages(find_spot_shares(cluster), ClusterState(cluster).nodes, cluster)["default"]
        after = measure(cluster, placement)
        assert share.measure_excess(after) <= share.measure_excess(before)
        assert after.spot == before.spot or not share.measure_excess(after)
    refused = {pod.pod for pod in placement.unschedulable}
    assert all(f"shop/p{number:02d}" not in refused for number in range(len(sizes)) if selected[number] != "spot")


@pytest.mark.parametrize(("percent", "base"), tuple(product(("20", "50", "80"), ("", "8"))))
def test_shares_in_vcpu_are_used_as_far_as_sizes_allow(percent: str, base: str) -> None:
    pods = tuple(make_pod(f"p{number:02d}", "3500m") for number in range(20))
    cluster = make_cluster_snapshot(*pods, types=SIZES, node_pools=(make_shared_pool(percent, base, "vcpu"),))
    share, usage = find_spot_share(cluster.node_pools[0]), measure(cluster, solve(cluster))
    assert share is not None
    assert share.compute_max_spot(usage.total) - usage.spot <= 16_000


def make_two_price_type(name: str, memory_gi: int, on_demand: float, spot: float) -> InstanceType:
    kind = make_instance_type(name, 4, memory_gi, capacity_types=BOTH)
    prices = {"on-demand": on_demand, "spot": spot}
    offerings = (replace(offer, price_usd_per_hour=prices[offer.capacity_type]) for offer in kind.offerings)
    return replace(kind, offerings=tuple(offerings))


def test_nodes_are_also_selected_by_on_demand_prices() -> None:
    # With Spot prices, nodes for four pods are cheaper; with on-demand prices, nodes for one pod.
    types = (make_two_price_type("large", 32, 1.0, 0.1), make_two_price_type("small", 8, 0.2, 0.09))
    pods = tuple(make_pod(f"p{number:02d}", "1", memory="8Gi") for number in range(40))
    placement = solve(make_cluster_snapshot(*pods, types=types, node_pools=(make_shared_pool("0"),)))
    assert placement.price_usd_per_hour == pytest.approx(8.0)
