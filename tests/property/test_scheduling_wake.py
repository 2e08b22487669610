"""Provisioning sleeps only while it has nothing to do, and wakes for each thing that it does."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.launch.groups import plan_launches
from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, Meta, Owner
from shared.model.pods import Pod
from shared.scheduling.decide import decide
from shared.scheduling.placement import Placement
from shared.scheduling.solve import solve
from shared.scheduling.wake import needs_planning
from tests.unit.catalogues import DAEMON_OWNER, NOW, claimed, node, node_class, pod, world

READY = Condition(type="Ready", status="True", observed_generation=1)
SOON = NOW + timedelta(minutes=1)
OWNER = Owner(api_version="apps/v1", kind="ReplicaSet", name="r", uid="u")


def going(one: Node | NodeClaim | EC2NodeClass) -> Meta:
    return replace(one.meta, deleted_at=SOON)


def at_rest() -> Cluster:
    """A cluster in which nothing waits."""
    some, claim = claimed(node("n1"))
    pods = (pod("runs", on="n1", owners=(OWNER,)), pod("elsewhere", on="n2"))
    return world(*pods, nodes=(some, node("n2")), node_claims=(claim,))


def first_look(cluster: Cluster) -> Cluster:
    """Only what a first look shows."""
    pods = tuple(one for one in cluster.pods if not one.node_name)
    return Cluster(
        taken_at=cluster.taken_at,
        pods=pods,
        nodes=cluster.nodes,
        node_claims=cluster.node_claims,
        node_classes=cluster.node_classes,
    )


def test_it_sleeps_while_nothing_waits() -> None:
    assert needs_planning(first_look(at_rest())) == ""


REST = at_rest()
[CLAIM] = REST.node_claims
MINE, FOREIGN = REST.nodes
ENDING = Condition(type="InstanceTerminating", status="True")
UNSCHEDULED = pod("new")
TRIED_LATER = replace(UNSCHEDULED, conditions=())


@pytest.mark.parametrize(
    ("cluster", "word"),
    [
        (replace(REST, pods=(*REST.pods, UNSCHEDULED)), "pods wait"),
        (replace(REST, node_claims=(replace(CLAIM, meta=going(CLAIM)),)), "nodes are going"),
        (replace(REST, node_claims=(replace(CLAIM, conditions=(ENDING,)),)), "nodes are going"),
        (replace(REST, nodes=(MINE, replace(FOREIGN, meta=going(FOREIGN)))), "nodes are going"),
        (replace(REST, node_claims=(replace(CLAIM, provider_id=""),)), "claims wait"),
        (replace(REST, node_classes=(replace(node_class(), conditions=()),)), "not resolved"),
    ],
)
def test_it_wakes_for(cluster: Cluster, word: str) -> None:
    assert word in needs_planning(first_look(cluster))


@pytest.mark.parametrize(
    "cluster",
    [
        replace(REST, pods=(*REST.pods, TRIED_LATER)),
        replace(REST, pods=(*REST.pods, replace(UNSCHEDULED, meta=replace(UNSCHEDULED.meta, owners=(DAEMON_OWNER,))))),
        replace(REST, node_classes=(replace(node_class(), meta=going(node_class()), conditions=()),)),
        replace(REST, nodes=(replace(MINE, meta=going(MINE)), FOREIGN)),
        world(),
    ],
)
def test_it_does_not_wake_for(cluster: Cluster) -> None:
    assert needs_planning(first_look(cluster)) == ""
    assert sleeps_rightly(cluster)


def sleeps_rightly(cluster: Cluster) -> bool:
    placement = solve(cluster)
    plan = plan_launches(cluster)
    return placement == Placement() and not decide(cluster, placement) and not plan.launches and not plan.unlaunchable


PODS = st.builds(
    lambda name, on, given, daemon: replace(pod(name, on=on, owners=(DAEMON_OWNER if daemon else OWNER,)), **given),
    st.sampled_from("abc"),
    st.sampled_from(["", "", "n1", "n2", "n3"]),
    st.sampled_from([{}, {"conditions": ()}, {"nominated_node_name": "n1"}, {"phase": "Failed"}]),
    st.booleans(),
)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    nodes, claims = [], []
    for name in draw(st.sets(st.sampled_from(["n1", "n2", "n3"]))):
        some, claim = claimed(node(name))
        if draw(st.booleans()):
            claim = replace(claim, provider_id=draw(st.sampled_from(["", claim.provider_id, claim.provider_id])))
            claim = replace(claim, conditions=draw(st.sampled_from([(), (), (READY,), (ENDING,)])))
            claims.append(replace(claim, meta=going(claim)) if draw(st.integers(0, 5)) == 5 else claim)
        if draw(st.booleans()):
            nodes.append(replace(some, meta=going(some)) if draw(st.integers(0, 5)) == 5 else some)
    some_class = node_class()
    classes = draw(st.sampled_from([(some_class,), (some_class,), (), (replace(some_class, conditions=()),)]))
    pods: dict[str, Pod] = {one.name: one for one in draw(st.lists(PODS, max_size=3))}
    return world(*pods.values(), nodes=tuple(nodes), node_claims=tuple(claims), node_classes=classes)


@given(clusters())
def test_whoever_sleeps_misses_nothing(cluster: Cluster) -> None:
    if not needs_planning(first_look(cluster)):
        assert sleeps_rightly(cluster)
