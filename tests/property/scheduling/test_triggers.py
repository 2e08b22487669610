"""Provisioning sleeps only while it has nothing to do, and wakes for each thing that it does."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.provisioning.triggers import explain_provisioning_need
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference
from shared.model.decisions.placement import Placement
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    DAEMON_OWNER,
    NOW,
    attach_claim,
    make_cluster_snapshot,
    make_node,
    make_node_class,
    make_pod,
)
from tests.support.snapshot_decisions import build_placement_actions, plan_launches, solve

READY = Condition(type="Ready", status="True", observed_generation=1)
SOON = NOW + timedelta(minutes=1)
OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="u")


def build_deleted_meta(resource: Node | NodeClaim | EC2NodeClass) -> ObjectMeta:
    return replace(resource.meta, deleted_at=SOON)


def build_resting_cluster() -> ClusterSnapshot:
    """A cluster in which nothing waits."""
    joined_node, claim = attach_claim(make_node("n1"))
    pods = (make_pod("runs", on="n1", owners=(OWNER,)), make_pod("elsewhere", on="n2"))
    return make_cluster_snapshot(*pods, nodes=(joined_node, make_node("n2")), node_claims=(claim,))


def limit_to_trigger_lists(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return only the objects that the first, partial snapshot contains."""
    pods = tuple(pending_pod for pending_pod in cluster.pods if not pending_pod.node_name)
    return ClusterSnapshot(
        taken_at=cluster.taken_at,
        pods=pods,
        nodes=cluster.nodes,
        node_claims=cluster.node_claims,
        node_classes=cluster.node_classes,
    )


def test_provisioning_is_skipped_when_nothing_is_pending() -> None:
    assert explain_provisioning_need(ClusterState(limit_to_trigger_lists(build_resting_cluster()))) == ""


RESTING_CLUSTER = build_resting_cluster()
[CLAIM] = RESTING_CLUSTER.node_claims
MINE, FOREIGN = RESTING_CLUSTER.nodes
ENDING = Condition(type="InstanceTerminating", status="True")
UNSCHEDULED = make_pod("new")
TRIED_LATER = replace(UNSCHEDULED, conditions=())


@pytest.mark.parametrize(
    ("cluster", "word"),
    [
        (replace(RESTING_CLUSTER, pods=(*RESTING_CLUSTER.pods, UNSCHEDULED)), "pods are pending"),
        (
            replace(RESTING_CLUSTER, node_claims=(replace(CLAIM, meta=build_deleted_meta(CLAIM)),)),
            "pods of terminating nodes",
        ),
        (replace(RESTING_CLUSTER, node_claims=(replace(CLAIM, conditions=(ENDING,)),)), "pods of terminating nodes"),
        (
            replace(RESTING_CLUSTER, nodes=(MINE, replace(FOREIGN, meta=build_deleted_meta(FOREIGN)))),
            "pods of terminating nodes",
        ),
        (replace(RESTING_CLUSTER, node_claims=(replace(CLAIM, provider_id=""),)), "NodeClaims wait"),
        (replace(RESTING_CLUSTER, node_classes=(replace(make_node_class(), conditions=()),)), "not resolved"),
    ],
)
def test_provisioning_runs_for_pending_work(cluster: ClusterSnapshot, word: str) -> None:
    assert word in explain_provisioning_need(ClusterState(limit_to_trigger_lists(cluster)))


@pytest.mark.parametrize(
    "cluster",
    [
        replace(RESTING_CLUSTER, pods=(*RESTING_CLUSTER.pods, TRIED_LATER)),
        replace(
            RESTING_CLUSTER,
            pods=(*RESTING_CLUSTER.pods, replace(UNSCHEDULED, meta=replace(UNSCHEDULED.meta, owners=(DAEMON_OWNER,)))),
        ),
        replace(
            RESTING_CLUSTER,
            node_classes=(replace(make_node_class(), meta=build_deleted_meta(make_node_class()), conditions=()),),
        ),
        replace(RESTING_CLUSTER, nodes=(replace(MINE, meta=build_deleted_meta(MINE)), FOREIGN)),
        make_cluster_snapshot(),
    ],
)
def test_provisioning_is_skipped_for_irrelevant_changes(cluster: ClusterSnapshot) -> None:
    assert explain_provisioning_need(ClusterState(limit_to_trigger_lists(cluster))) == ""
    assert has_nothing_to_do(cluster)


def has_nothing_to_do(cluster: ClusterSnapshot) -> bool:
    placement = solve(cluster)
    plan = plan_launches(cluster)
    return (
        placement == Placement()
        and not build_placement_actions(cluster, placement)
        and not plan.launches
        and not plan.unlaunchable
    )


PODS = st.builds(
    lambda name, on, given, daemon: replace(
        make_pod(name, on=on, owners=(DAEMON_OWNER if daemon else OWNER,)), **given
    ),
    st.sampled_from("abc"),
    st.sampled_from(["", "", "n1", "n2", "n3"]),
    st.sampled_from([{}, {"conditions": ()}, {"nominated_node_name": "n1"}, {"phase": "Failed"}]),
    st.booleans(),
)


@st.composite
def generate_cluster(draw: st.DrawFn) -> ClusterSnapshot:
    nodes, claims = [], []
    for name in draw(st.sets(st.sampled_from(["n1", "n2", "n3"]))):
        drawn_node, claim = attach_claim(make_node(name))
        if draw(st.booleans()):
            claim = replace(claim, provider_id=draw(st.sampled_from(["", claim.provider_id, claim.provider_id])))
            claim = replace(claim, conditions=draw(st.sampled_from([(), (), (READY,), (ENDING,)])))
            claims.append(replace(claim, meta=build_deleted_meta(claim)) if draw(st.integers(0, 5)) == 5 else claim)
        if draw(st.booleans()):
            nodes.append(
                replace(drawn_node, meta=build_deleted_meta(drawn_node)) if draw(st.integers(0, 5)) == 5 else drawn_node
            )
    some_class = make_node_class()
    classes = draw(st.sampled_from([(some_class,), (some_class,), (), (replace(some_class, conditions=()),)]))
    pods: dict[str, Pod] = {drawn_pod.name: drawn_pod for drawn_pod in draw(st.lists(PODS, max_size=3))}
    return make_cluster_snapshot(*pods.values(), nodes=tuple(nodes), node_claims=tuple(claims), node_classes=classes)


@given(generate_cluster())
def test_skipped_provisioning_misses_no_action(cluster: ClusterSnapshot) -> None:
    if not explain_provisioning_need(ClusterState(limit_to_trigger_lists(cluster))):
        assert has_nothing_to_do(cluster)
