"""Commitments in the planner: what is left of them pays for new nodes, once, and further nodes cost their price."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.ec2.commitments import Commitments, OnDemandInstance, ReservedInstances, SavingsPlan
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import (
    NOW,
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import build_placement_actions, solve

BOTH = ("on-demand", "spot")
LARGE, XLARGE, OTHER = (
    make_instance_type("m5.large", 2, capacity_types=BOTH),
    make_instance_type("m5.xlarge", 4, capacity_types=BOTH),
    make_instance_type("c5.xlarge", 4, capacity_types=BOTH, price=0.19),
)
TYPES = (LARGE, XLARGE, OTHER)
REGIONAL = ReservedInstances(reservation_id="ri", instance_type="m5.large", count=2)
ZONAL = ReservedInstances(reservation_id="zonal", instance_type="m5.xlarge", count=1, zone="b")
PLAN = SavingsPlan(
    plan_id="sp",
    kind="compute",
    commitment_usd_per_hour=0.3,
    rates=(("c5.xlarge", 0.15), ("m5.large", 0.07), ("m5.xlarge", 0.14)),
)


def make_cluster(
    *pods: Pod, commitments: Commitments | None, types: tuple[InstanceType, ...] = TYPES, **fields: object
) -> ClusterSnapshot:
    catalog = Catalog(region="nowhere", instance_types=types, commitments=commitments)
    return make_cluster_snapshot(*pods, types=types, **({"catalog": catalog} | fields))


def make_pods(count: int, cpu: str = "4", **spec: Any) -> tuple[Pod, ...]:
    return tuple(make_pod(f"p{number}", cpu, **spec) for number in range(count))


def list_nodes(placement: Placement) -> list[tuple[str, str, float]]:
    """Return instance type, capacity type and price of each new node, sorted."""
    return sorted(
        (node.cheapest.instance_type, node.cheapest.capacity_type, round(node.cheapest.price_usd_per_hour, 4))
        for node in placement.new_nodes
    )


SPOT = ("c5.xlarge", "spot", 0.076)


@pytest.mark.parametrize(
    ("commitments", "nodes"),
    [
        (None, [SPOT, SPOT, SPOT]),
        (Commitments(reserved=(REGIONAL,)), [SPOT, SPOT, ("m5.xlarge", "on-demand", 0.0)]),
        (Commitments(reserved=(ZONAL,)), [SPOT, SPOT, ("m5.xlarge", "on-demand", 0.0)]),
        (Commitments(plans=(PLAN,)), [("c5.xlarge", "on-demand", 0.0), ("c5.xlarge", "on-demand", 0.0), SPOT]),
    ],
)
def test_nodes_that_commitments_cover_cost_nothing_and_further_nodes_their_price(
    commitments: Commitments | None, nodes: list[tuple[str, str, float]]
) -> None:
    placement = solve(make_cluster(*make_pods(3), commitments=commitments))
    assert list_nodes(placement) == nodes
    covered = [node for node in placement.new_nodes if node.cheapest.commitments]
    assert all(node.requirements[CAPACITY_TYPE].values == {"on-demand"} for node in covered)
    assert len(covered) == sum(1 for node in nodes if node[1] == "on-demand")


def test_node_for_zonal_reserved_instances_is_launched_in_their_zone() -> None:
    [node] = solve(make_cluster(*make_pods(1), commitments=Commitments(reserved=(ZONAL,)))).new_nodes
    assert node.requirements[ZONE].values == {"b"}
    assert node.instance_types == ("m5.xlarge",)
    assert (node.cheapest.commitments, node.cheapest.list_usd_per_hour) == (("zonal",), 0.2)


def test_reason_names_the_commitment_and_what_it_pays() -> None:
    cluster = make_cluster(*make_pods(1), commitments=Commitments(reserved=(ZONAL,)))
    reasons = str(build_placement_actions(cluster, solve(cluster)))
    assert (
        "m5.xlarge on-demand in b ($0.0000/h; zonal pays $0.2000/h, so it costs less than other offerings)" in reasons
    )


def test_partly_covered_node_costs_the_rest_if_that_is_cheaper_than_spot() -> None:
    plan = replace(PLAN, commitment_usd_per_hour=0.12)
    [node] = solve(make_cluster(*make_pods(1), commitments=Commitments(plans=(plan,)))).new_nodes
    assert node.cheapest.capacity_type == "on-demand"
    assert node.cheapest.price_usd_per_hour == pytest.approx(0.2 * 0.02 / 0.14, abs=1e-6)
    small_plan = replace(PLAN, commitment_usd_per_hour=0.02)
    [node] = solve(make_cluster(*make_pods(1), commitments=Commitments(plans=(small_plan,)))).new_nodes
    assert (node.cheapest.capacity_type, node.cheapest.commitments) == ("spot", ())


def test_running_nodes_and_instances_of_others_use_commitments_first() -> None:
    labels = {INSTANCE_TYPE: "m5.xlarge", CAPACITY_TYPE: "on-demand"}
    node, claim = attach_claim(make_node("n", labels=labels))
    commitments = Commitments(reserved=(REGIONAL,))
    full = make_pod("full", "4", on="n")
    cluster = make_cluster(*make_pods(1), full, commitments=commitments, nodes=(node,), node_claims=(claim,))
    assert list_nodes(solve(cluster)) == [SPOT]
    other_instance = OnDemandInstance(
        instance_id="m5.large/a", instance_type="m5.large", zone="a", usd_per_hour=0.1, hours=2.0
    )
    cluster = make_cluster(*make_pods(1), commitments=replace(commitments, other_instances=(other_instance,)))
    assert list_nodes(solve(cluster)) == [SPOT]


def test_claim_without_an_instance_uses_what_it_may_become() -> None:
    _, claim = attach_claim(make_node("n"))
    requirements = make_requirements(
        (CAPACITY_TYPE, "In", ("on-demand",)), (INSTANCE_TYPE, "In", ("m5.large", "m5.xlarge"))
    )
    claim = replace(claim, provider_id="", node_name="", requirements=requirements, requests=XLARGE.capacity)
    full = make_pods(1)
    cluster = make_cluster(*full, commitments=Commitments(reserved=(REGIONAL,)), node_claims=(claim,))
    placement = solve(cluster)
    assert all(not node.cheapest.commitments for node in placement.new_nodes)


def test_replacement_of_a_covered_node_can_use_its_commitment() -> None:
    labels = {INSTANCE_TYPE: "m5.xlarge", CAPACITY_TYPE: "on-demand"}
    node, claim = attach_claim(make_node("n", labels=labels))
    cluster = make_cluster(
        make_pod("moves", "4", on="n"),
        commitments=Commitments(reserved=(REGIONAL,)),
        nodes=(node,),
        node_claims=(claim,),
    )
    placement = solve(cluster, pods=cluster.pods, excluded=frozenset({"n"}))
    assert list_nodes(placement) == [("m5.xlarge", "on-demand", 0.0)]


def test_commitments_outside_of_their_term_change_nothing() -> None:
    over = replace(REGIONAL, ends_at=NOW)
    later = replace(REGIONAL, starts_at=NOW + timedelta(hours=1))
    for item in (over, later):
        assert list_nodes(solve(make_cluster(*make_pods(1), commitments=Commitments(reserved=(item,))))) == [SPOT]


def test_price_of_a_node_overlay_takes_precedence() -> None:
    overlaid = tuple(
        replace(kind, offerings=tuple(replace(offer, is_overlaid=True) for offer in kind.offerings)) for kind in TYPES
    )
    cluster = make_cluster(*make_pods(1), commitments=Commitments(reserved=(REGIONAL,)), types=overlaid)
    assert list_nodes(solve(cluster)) == [SPOT]


def test_windows_nodes_are_not_covered() -> None:
    windows = tuple(
        replace(kind, requirements=kind.requirements.without((OS,)) & make_requirements((OS, "In", ("windows",))))
        for kind in TYPES
    )
    pods = make_pods(1, tolerations=())
    placement = solve(make_cluster(*pods, commitments=Commitments(reserved=(REGIONAL,)), types=windows))
    assert all(not node.cheapest.commitments for node in placement.new_nodes)


def test_pods_that_require_spot_get_spot() -> None:
    pods = make_pods(1, node_selector=(("karpenter.sh/capacity-type", "spot"),))
    assert list_nodes(solve(make_cluster(*pods, commitments=Commitments(reserved=(REGIONAL,))))) == [SPOT]


def test_min_values_of_capacity_types_are_kept() -> None:
    requirements = make_requirements((CAPACITY_TYPE, "In", BOTH), minimum={CAPACITY_TYPE: 2})
    cluster = make_cluster(
        *make_pods(1),
        commitments=Commitments(reserved=(REGIONAL,)),
        node_pools=(make_node_pool(requirements=requirements),),
    )
    [node] = solve(cluster).new_nodes
    assert node.cheapest.commitments == ()


COMMITMENTS = st.builds(
    lambda count, zonal_count, usd: Commitments(
        reserved=(replace(REGIONAL, count=count), replace(ZONAL, count=zonal_count)),
        plans=(replace(PLAN, commitment_usd_per_hour=usd),),
    ),
    st.integers(1, 4),
    st.integers(1, 2),
    st.floats(0.01, 0.5),
)
PODS = st.lists(st.sampled_from(("500m", "1", "2", "4")), min_size=1, max_size=8).map(
    lambda sizes: tuple(make_pod(f"p{number}", cpu) for number, cpu in enumerate(sizes))
)
GREEDY = SchedulingOptions(packing="Greedy")


@given(PODS, COMMITMENTS)
def test_a_plan_never_uses_more_than_is_left(pods: tuple[Pod, ...], commitments: Commitments) -> None:
    placement = solve(make_cluster(*pods, commitments=commitments))
    plan_usd = commitments.plans[0].commitment_usd_per_hour
    saved_usd = sum(
        node.cheapest.list_usd_per_hour - node.cheapest.price_usd_per_hour
        for node in placement.new_nodes
        if node.cheapest.commitments
    )
    max_saved_usd = 0.1 * commitments.reserved[0].count + 0.2 * commitments.reserved[1].count + plan_usd * 0.2 / 0.14
    assert saved_usd <= max_saved_usd + 1e-6
    assert not placement.unschedulable


@given(PODS, COMMITMENTS)
def test_order_of_pods_does_not_matter(pods: tuple[Pod, ...], commitments: Commitments) -> None:
    assert solve(make_cluster(*pods, commitments=commitments)) == solve(
        make_cluster(*pods[::-1], commitments=commitments)
    )


@given(PODS, COMMITMENTS)
def test_removing_commitments_never_makes_a_plan_cheaper(pods: tuple[Pod, ...], commitments: Commitments) -> None:
    price = solve(make_cluster(*pods, commitments=commitments)).price_usd_per_hour
    for fewer_commitments in (
        replace(commitments, plans=()),
        replace(commitments, reserved=commitments.reserved[:1]),
        replace(commitments, reserved=()),
        None,
    ):
        other_placement = solve(make_cluster(*pods, commitments=fewer_commitments))
        assert other_placement.price_usd_per_hour >= price - 1e-6
