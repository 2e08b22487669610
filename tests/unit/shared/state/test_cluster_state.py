"""A snapshot is indexed once, and only as far as it is read."""

import msgspec

from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.kubernetes.node import Node
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import map_nodes_to_claims
from tests.support.disruption_fleet import make_fleet, make_node_with_pods, make_web_pod


def test_every_cluster_state_index_is_computed_once() -> None:
    state = ClusterState(make_fleet(make_node_with_pods("a", make_web_pod("1")), make_node_with_pods("b")))
    assert not {"nodes", "node_by_name", "pods_by_node"} & vars(state).keys()
    assert state.nodes is state.nodes
    assert [node.name for node in state.nodes] == ["a", "b"]
    assert state.node_by_name["a"] is state.nodes[0]
    assert state.pdb_limits is state.pdb_limits


def test_cluster_state_indexes_are_consistent() -> None:
    state = ClusterState(
        make_fleet(make_node_with_pods("a", make_web_pod("1"), make_web_pod("2")), make_node_with_pods("b"))
    )
    assert {node.name for node in state.node_by_claim.values()} == {"a", "b"}
    assert state.pods_by_node["a"] == state.node_by_name["a"].pods
    assert [len(claim_state.pods) for claim_state in state.claim_states] == [2, 0]
    assert state.node_pools.keys() == {pool.name for pool in state.snapshot.node_pools}


def test_first_unreadable_pod_by_name_is_recorded_for_each_node() -> None:
    problems = tuple(Problem(kind="Pod", name=name, message="m", node="a") for name in ("shop/b", "shop/a"))
    state = ClusterState(
        make_fleet(make_node_with_pods("a"), problems=(*problems, Problem(kind="Pod", name="shop/c", message="m")))
    )
    assert state.unreadable_pod_by_node == {"a": "shop/a"}


def test_node_is_mapped_to_the_node_claim_with_its_provider_id_else_with_its_name() -> None:
    claims = (
        make_claim("b", provider_id="aws:///a/i-1"),
        make_claim("a", provider_id="aws:///a/i-1", node_name="other"),
        make_claim("c", node_name="n-2"),
        make_claim("d"),
    )
    nodes = (
        Node(meta=ObjectMeta(name="n-1"), provider_id="aws:///a/i-1"),
        Node(meta=ObjectMeta(name="n-2")),
        Node(meta=ObjectMeta(name="n-3"), provider_id="aws:///a/i-3"),
    )
    cluster = msgspec.structs.replace(make_fleet(), node_claims=claims, nodes=nodes)
    assert map_nodes_to_claims(cluster) == {"n-1": "a", "n-2": "c"}


def make_claim(name: str, *, provider_id: str = "", node_name: str = "") -> NodeClaim:
    meta, node_class = ObjectMeta(name=name), NodeClassRef(name="default")
    return NodeClaim(meta=meta, node_class=node_class, provider_id=provider_id, node_name=node_name)
