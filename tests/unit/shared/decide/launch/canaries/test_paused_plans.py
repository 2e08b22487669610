"""Plans while launches of an EC2NodeClass are paused: one node at a time, as a test."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.provisioning.static_capacity import decide_static_capacity
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.placement import Placement
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    NOW,
    attach_claim,
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
)
from tests.support.failing_launches import with_failed_launches

TYPES = (make_instance_type("m.04", 4),)
"""One instance type, which holds one pod of 3 CPUs."""
DUE = NOW - timedelta(minutes=30)
RECENTLY = NOW - timedelta(minutes=10)


def make_cluster(launched_at: datetime | None, *pods: Any, **fields: Any) -> ClusterSnapshot:
    """Return a cluster whose nodes that were launched at *launched_at* did not register; None: all registered."""
    cluster = make_cluster_snapshot(*pods, types=TYPES, **fields)
    if launched_at is None:
        return cluster
    node_classes = (with_failed_launches(node_class, launched_at) for node_class in cluster.node_classes)
    return replace(cluster, node_classes=tuple(node_classes))


def plan(cluster: ClusterSnapshot) -> Placement:
    return plan_pods(ClusterState(cluster)).placement


def make_waiting_claim() -> NodeClaim:
    _, claim = attach_claim(make_node("waiting"))
    return replace(claim, provider_id="", node_name="", conditions=())


PODS = tuple(make_pod(f"p{number}", "3") for number in range(3))


def test_no_node_is_planned_before_the_test_is_due() -> None:
    placement = plan(make_cluster(RECENTLY, *PODS))
    assert placement.new_nodes == ()
    assert set(locate_pods(placement).values()) == {"NoNodePool"}
    assert "launches are paused: the last 3 nodes of EC2NodeClass default did not register" in (
        placement.unschedulable[0].message
    )


def test_one_node_is_planned_as_a_test_and_other_pods_wait() -> None:
    placement = plan(make_cluster(DUE, *PODS))
    [node] = placement.new_nodes
    assert len(placement.unschedulable) == 2
    assert {item.pod for item in placement.unschedulable}.isdisjoint(node.pods)
    assert placement.unschedulable[0].message == (
        "NodePool default: launches are paused: another node of EC2NodeClass default is tested first"
    )


def test_no_node_is_planned_while_a_claim_waits_for_its_launch() -> None:
    cluster = make_cluster(DUE, *PODS)
    waiting_cluster = replace(cluster, node_claims=(make_waiting_claim(),))
    assert plan(waiting_cluster).new_nodes == ()


def test_classes_whose_nodes_register_are_planned_as_without_the_annotation() -> None:
    cluster = make_cluster(None, *PODS)
    enabled_cluster = replace(
        cluster, node_classes=tuple(with_failed_launches(item, DUE, 2) for item in cluster.node_classes)
    )
    assert len(plan(cluster).new_nodes) == 3
    assert plan(enabled_cluster) == plan(cluster)


def test_static_pool_gets_one_node_claim_for_a_test() -> None:
    def count_created(launched_at: datetime | None) -> int:
        cluster = make_cluster(launched_at, node_pools=(make_node_pool(replicas=3),))
        ready = (Condition(type="Ready", status="True", observed_generation=9),)
        cluster = replace(cluster, node_classes=tuple(replace(item, conditions=ready) for item in cluster.node_classes))
        actions = decide_static_capacity(ClusterState(cluster))
        return sum(isinstance(action, CreateNodeClaim) for action in actions)

    assert [count_created(at) for at in (None, DUE, RECENTLY)] == [3, 1, 0]
