"""A snapshot is indexed once, and only as far as it is read."""

from shared.model.core.metadata import Problem
from shared.state.cluster_state import ClusterState
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
