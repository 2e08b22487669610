"""Spot shares of workloads: how many pods of an owner are planned on Spot nodes."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, ON_DEMAND_BASE, SPOT_SHARE, SPOT_SHARE_UNIT
from shared.model.core.metadata import OwnerReference
from shared.model.decisions.placement import Placement
from shared.model.karpenter.spot_share import SpotShare
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import make_cluster_snapshot, make_instance_type, make_node, make_pod
from tests.support.disruption_fleet import BOTH as SIZES
from tests.support.disruption_fleet import decide_disruption, make_fleet, make_node_with_pods
from tests.support.snapshot_decisions import solve

BOTH = ("on-demand", "spot")
ONE_SIZE = (make_instance_type("m.04", 4, capacity_types=BOTH),)


def make_shared_pod(name: str, owner: str = "web-1", cpu: str = "4", percent: str = "50", base: str = "") -> Pod:
    pod = make_pod(name, cpu, owners=(OwnerReference(kind="ReplicaSet", name=owner, api_version="apps/v1", uid=owner),))
    texts = {SPOT_SHARE: percent, ON_DEMAND_BASE: base}
    annotations = tuple(sorted((key, text) for key, text in texts.items() if text))
    return replace(pod, meta=replace(pod.meta, annotations=annotations))


def make_shared_pods(count: int, owner: str = "web-1", **texts: str) -> tuple[Pod, ...]:
    return tuple(make_shared_pod(f"{owner}-{number:02d}", owner, **texts) for number in range(count))


def bind(pods: tuple[Pod, ...], node: str) -> tuple[Pod, ...]:
    return tuple(replace(pod, node_name=node, phase="Running", conditions=()) for pod in pods)


def make_capacity(name: str, capacity_type: str) -> Node:
    return make_node(name, "16", labels={CAPACITY_TYPE: capacity_type})


def count_spot_pods(placement: Placement, cluster: ClusterSnapshot) -> Counter[str]:
    """Return the number of placed pods on nodes that may be Spot, by the first part of the pod's name."""
    spot_nodes = {node.name for node in cluster.nodes if node.meta.get_label(CAPACITY_TYPE) == "spot"}
    names = [name for fit in placement.existing if fit.node in spot_nodes for name in fit.pods]
    names += [
        name for node in placement.new_nodes if node.requirements[CAPACITY_TYPE].has("spot") for name in node.pods
    ]
    return Counter(name.partition("/")[2][: len("web-1")] for name in names)


@pytest.mark.parametrize(
    ("percent", "base", "spot"), [("50", "2", 4), ("50", "", 5), ("100", "3", 7), ("0", "", 0), ("", "4", 6)]
)
@pytest.mark.parametrize("cpu", ["4", "1"])
def test_of_ten_pods_the_base_is_on_demand_and_of_the_others_at_most_the_share_is_spot(
    percent: str, base: str, spot: int, cpu: str
) -> None:
    cluster = make_cluster_snapshot(*make_shared_pods(10, cpu=cpu, percent=percent, base=base), types=ONE_SIZE)
    placement = solve(cluster)
    assert not placement.unschedulable
    spot_pods = count_spot_pods(placement, cluster)["web-1"]
    assert spot_pods == spot if cpu == "4" else spot_pods <= spot


def test_each_replica_set_is_counted_alone() -> None:
    pods = (*make_shared_pods(4, "web-1"), *make_shared_pods(6, "web-2"), make_pod("other", "4"))
    cluster = make_cluster_snapshot(*pods, types=ONE_SIZE)
    assert count_spot_pods(solve(cluster), cluster) == {"web-1": 2, "web-2": 3, "other": 1}


def test_running_pods_count_where_they_are() -> None:
    pods = make_shared_pods(8)
    nodes = (make_capacity("od", "on-demand"), make_capacity("spot", "spot"))
    placed = (*bind(pods[:1], "od"), *bind(pods[1:4], "spot"), *pods[4:])
    cluster = make_cluster_snapshot(*placed, nodes=nodes, types=ONE_SIZE)
    assert count_spot_pods(solve(cluster), cluster)["web-1"] == 1


def test_pods_over_the_share_get_on_demand_nodes_although_a_spot_node_has_free_resources() -> None:
    cluster = make_cluster_snapshot(*make_shared_pods(2), nodes=(make_capacity("spot", "spot"),), types=ONE_SIZE)
    placement = solve(cluster)
    assert [fit.pods for fit in placement.existing] == [("shop/web-1-01",)]
    (new_node,) = placement.new_nodes
    assert new_node.pods == ("shop/web-1-00",)
    assert not new_node.requirements[CAPACITY_TYPE].has("spot")


def test_pods_of_a_lost_spot_node_may_be_on_spot_again() -> None:
    pods = make_shared_pods(4)
    placed = (*bind(pods[:2], "od"), *pods[2:])
    cluster = make_cluster_snapshot(*placed, nodes=(make_capacity("od", "on-demand"),), types=ONE_SIZE)
    cluster = replace(cluster, nodes=(replace(cluster.nodes[0], unschedulable=True),))
    assert count_spot_pods(solve(cluster), cluster)["web-1"] == 2


def test_pod_that_waits_for_its_first_scheduling_does_not_raise_the_number_of_spot_pods() -> None:
    new_pods = tuple(replace(pod, conditions=()) for pod in make_shared_pods(6)[2:])
    cluster = make_cluster_snapshot(*make_shared_pods(2), *new_pods, types=ONE_SIZE)
    assert count_spot_pods(solve(cluster), cluster)["web-1"] == 1


def test_event_of_a_refused_pod_has_the_share_of_its_workload() -> None:
    types = (make_instance_type("m.04", 4, capacity_types=("spot",)),)
    placement = solve(make_cluster_snapshot(*make_shared_pods(2), types=types))
    (refused_pod,) = placement.unschedulable
    assert refused_pod.message.endswith(
        "; its workload has a Spot share (joiner.dev/spot-share-percent): 0 of 2 pods are Spot, at most 1 may be (50 %)"
    )


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        (SPOT_SHARE, "half", "joiner.dev/spot-share-percent: 'half' is not a whole number from 0 to 100"),
        (SPOT_SHARE_UNIT, "nodes", "joiner.dev/spot-share-unit: 'nodes' is not a unit: write pods"),
    ],
)
def test_pod_with_an_invalid_share_is_invalid(key: str, text: str, problem: str) -> None:
    pod = make_pod("p")
    pod = replace(pod, meta=replace(pod.meta, annotations=((key, text),)))
    (refused_pod,) = solve(make_cluster_snapshot(pod)).unschedulable
    assert refused_pod.reason == "InvalidPod"
    assert problem in refused_pod.message


def test_share_of_everything_changes_no_plan() -> None:
    pods = tuple(make_shared_pod(f"p{number:02d}", cpu=str(1 + number % 5), percent="100") for number in range(30))
    plain_pods = tuple(replace(pod, meta=replace(pod.meta, annotations=())) for pod in pods)
    assert solve(make_cluster_snapshot(*pods, types=SIZES)) == solve(make_cluster_snapshot(*plain_pods, types=SIZES))


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(("pending", "od", "spot")), min_size=1, max_size=20),
    st.integers(0, 100),
    st.integers(0, 5),
    st.permutations(range(20)),
)
def test_no_plan_exceeds_the_share_of_a_workload(
    places: list[str], percent: int, base: int, numbers: list[int]
) -> None:
    pods = tuple(
        make_shared_pod(f"web-1-{numbers[index]:02d}", cpu="1", percent=str(percent), base=str(base))
        for index in range(len(places))
    )
    placed = tuple(
        pod if place == "pending" else bind((pod,), place)[0] for pod, place in zip(pods, places, strict=True)
    )
    nodes = (make_capacity("od", "on-demand"), make_capacity("spot", "spot"))
    cluster = make_cluster_snapshot(*placed, nodes=nodes, types=ONE_SIZE)
    placement = solve(cluster)
    new_spot_pods = count_spot_pods(placement, cluster)["web-1"]
    max_spot = SpotShare(percent=percent, base=base, unit="pods").compute_max_spot(len(places))
    assert new_spot_pods <= max(0, max_spot - places.count("spot"))
    assert not placement.unschedulable


@pytest.mark.parametrize(("percent", "is_removed"), [("100", True), ("50", False)])
def test_consolidation_moves_no_pod_to_spot_nodes_over_the_share(percent: str, *, is_removed: bool) -> None:
    pods = make_shared_pods(4, cpu="1", percent=percent)
    machines = (
        make_node_with_pods("od", *pods[:2], cpu=4, capacity_type="on-demand"),
        make_node_with_pods("spot", *pods[2:], cpu=4, capacity_type="spot"),
    )
    decision = decide_disruption(make_fleet(*machines, types=SIZES))
    removed = {name for command in decision.commands for name in command.list_node_names()}
    moved_to_spot = [
        replacement
        for command in decision.commands
        for replacement in command.replacements
        if "od" in command.list_node_names() and replacement.claim.requirements[CAPACITY_TYPE].has("spot")
    ]
    assert bool("od" in removed and (moved_to_spot or "spot" not in removed)) is is_removed
