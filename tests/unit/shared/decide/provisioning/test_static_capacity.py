"""Static NodePools: how many NodeClaims are created, their names, and which nodes are removed first."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.provisioning.static_capacity import (
    MAX_NODE_CLAIMS_PER_RUN,
    build_slot_name,
    count_static_replicas,
    decide_static_capacity,
    explain_static_change,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    MIN_VALUES_RELAXED,
    NODEPOOL,
    NODEPOOL_HASH,
    NOMINATED_PODS,
    ZONE,
)
from shared.model.core.metadata import Condition, Problem
from shared.model.core.requirements import ANYTHING
from shared.model.core.resources import Resources
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, FollowUp
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    DAEMON_OWNER,
    NOW,
    attach_claim,
    locate_pods,
    make_cluster_snapshot,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

READY = (Condition(type="Ready", status="False", observed_generation=0),)


def make_static_pool(replicas: int, nodes: int | None = None, **fields: Any) -> NodePool:
    limits = None if nodes is None else Resources(amounts=(("nodes", nodes),))
    return replace(make_node_pool(replicas=replicas, limits=limits), **fields)


def make_node_claim(name: str, *, node_pool: str = "default", is_launched: bool = True, **fields: Any) -> NodeClaim:
    _, node_claim = attach_claim(make_node(name))
    meta = replace(node_claim.meta, name=name, uid=f"uid-{name}", labels=((NODEPOOL, node_pool),))
    return replace(
        node_claim, meta=meta, node_name="", provider_id=node_claim.provider_id if is_launched else "", **fields
    )


def list_created_claims(cluster: ClusterSnapshot) -> list[str]:
    return [one.claim.name for one in decide_static_capacity(ClusterState(cluster)) if isinstance(one, CreateNodeClaim)]


def list_deleted_claims(cluster: ClusterSnapshot) -> list[str]:
    return [one.name for one in decide_static_capacity(ClusterState(cluster)) if isinstance(one, DeleteObject)]


@pytest.mark.parametrize(
    ("replicas", "nodes", "claim_count", "count"),
    [(3, None, 0, 3), (3, None, 2, 1), (3, None, 3, 0), (3, 2, 0, 2), (3, 2, 2, 0), (3, 1, 2, 0), (0, None, 0, 0)],
)
def test_static_node_pool_creates_node_claims_up_to_replicas_and_limit(
    replicas: int, nodes: int | None, claim_count: int, count: int
) -> None:
    claims = tuple(make_node_claim(f"n{number}") for number in range(claim_count))
    cluster = make_cluster_snapshot(node_pools=(make_static_pool(replicas, nodes),), node_claims=claims)
    assert (len(list_created_claims(cluster)), list_deleted_claims(cluster)) == (count, [])
    assert bool(explain_static_change(ClusterState(cluster))) == bool(count)


def test_static_node_claim_names_are_deterministic() -> None:
    static_pool = make_static_pool(3)
    cluster = make_cluster_snapshot(node_pools=(static_pool,))
    assert (
        list_created_claims(cluster)
        == list_created_claims(cluster)
        == [build_slot_name(static_pool, slot) for slot in range(3)]
    )
    after = replace(
        cluster,
        node_claims=(
            make_node_claim(build_slot_name(static_pool, 0)),
            make_node_claim(build_slot_name(static_pool, 1)),
        ),
    )
    assert list_created_claims(after) == [build_slot_name(static_pool, 2)]


def test_static_node_claim_name_is_reused_only_after_deletion_completes() -> None:
    static_pool = make_static_pool(2)
    going = make_node_claim(build_slot_name(static_pool, 0))
    going = replace(going, meta=replace(going.meta, deleted_at=NOW))
    cluster = make_cluster_snapshot(
        node_pools=(static_pool,), node_claims=(going, make_node_claim(build_slot_name(static_pool, 1)))
    )
    assert list_created_claims(cluster) == [build_slot_name(static_pool, 2)]


def test_static_node_pool_counts_unreadable_node_claims() -> None:
    static_pool = make_static_pool(1)
    bad = Problem(kind="NodeClaim", name=build_slot_name(static_pool, 0), message="odd")
    assert list_created_claims(make_cluster_snapshot(node_pools=(static_pool,), problems=(bad,))) == []
    unseen = Problem(kind="CustomResourceDefinition", name="nodeclaims.karpenter.sh", message="gone")
    assert list_created_claims(make_cluster_snapshot(node_pools=(static_pool,), problems=(unseen,))) == []


def test_static_node_claim_keeps_the_node_pool_requirements() -> None:
    requirements = make_requirements(
        (INSTANCE_TYPE, "In", ["m.02", "m.04"]), (ZONE, "In", ["a"]), minimum={INSTANCE_TYPE: 2}
    )
    [action, wake] = decide_static_capacity(
        ClusterState(
            make_cluster_snapshot(node_pools=(make_static_pool(1, requirements=requirements, labels=(("team", "x"),)),))
        )
    )
    assert isinstance(wake, FollowUp)
    assert isinstance(action, CreateNodeClaim)
    assert action.claim.requirements[INSTANCE_TYPE] == requirements[INSTANCE_TYPE]
    assert action.claim.requirements[ZONE].values == {"a"}
    labels, notes = dict(action.claim.meta.labels), dict(action.claim.meta.annotations)
    assert (labels["team"], labels[NODEPOOL], action.pods) == ("x", "default", ())
    assert NODEPOOL_HASH in notes
    assert not {MIN_VALUES_RELAXED, NOMINATED_PODS} & set(notes)


def test_static_node_pool_without_requirements_leaves_the_instance_type_open() -> None:
    [action, _] = decide_static_capacity(
        ClusterState(make_cluster_snapshot(node_pools=(make_static_pool(1, requirements=ANYTHING),)))
    )
    assert isinstance(action, CreateNodeClaim)
    assert INSTANCE_TYPE not in action.claim.requirements


def test_disrupted_static_node_claim_is_neither_replaced_again_nor_counted_as_surplus() -> None:
    replaced = make_node_claim("n0", conditions=(Condition(type="DisruptionReason", status="True"),))
    cluster = make_cluster_snapshot(node_pools=(make_static_pool(2),), node_claims=(replaced, make_node_claim("n1")))
    assert (list_created_claims(cluster), list_deleted_claims(cluster)) == ([], [])
    with_replacement = replace(cluster, node_claims=(*cluster.node_claims, make_node_claim("n2")))
    assert (list_created_claims(with_replacement), list_deleted_claims(with_replacement)) == ([], [])


@pytest.mark.parametrize(
    "fields",
    [
        {"node_pools": (make_static_pool(2, conditions=READY),)},
        {"node_classes": ()},
        {"node_pools": (make_static_pool(2, meta=replace(make_node_pool().meta, deleted_at=NOW)),)},
        {"node_pools": (make_node_pool(),)},
    ],
)
def test_unusable_static_node_pool_creates_no_node_claims(fields: dict[str, Any]) -> None:
    assert list_created_claims(make_cluster_snapshot(**({"node_pools": (make_static_pool(2),)} | fields))) == []


def test_static_node_claims_per_run_are_limited() -> None:
    assert (
        len(list_created_claims(make_cluster_snapshot(node_pools=(make_static_pool(10 * MAX_NODE_CLAIMS_PER_RUN),))))
        == MAX_NODE_CLAIMS_PER_RUN
    )


def _make_node_with_pods(name: str, *pods: Any, **fields: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    claimed_node, node_claim = attach_claim(make_node(name), **fields)
    return claimed_node, node_claim, tuple(replace(pod, node_name=name) for pod in pods)


def _make_protected_pod(name: str) -> Any:
    protected_pod = make_pod(name, on="x")
    return replace(protected_pod, meta=replace(protected_pod.meta, annotations=((DO_NOT_DISRUPT, "true"),)))


def _build_static_cluster(*machines: tuple[Any, Any, tuple[Any, ...]], replicas: int, **fields: Any) -> ClusterSnapshot:
    nodes, claims, pods = zip(*machines, strict=True)
    all_pods = [pod for group in pods for pod in group]
    return make_cluster_snapshot(
        *all_pods, node_pools=(make_static_pool(replicas),), nodes=nodes, node_claims=claims, **fields
    )


def test_surplus_static_nodes_are_deleted_lowest_disruption_cost_first() -> None:
    machines = (
        _make_node_with_pods("busy", make_pod("a", on="x"), make_pod("b", on="x")),
        _make_node_with_pods("guarded", _make_protected_pod("c")),
        _make_node_with_pods("quiet", make_pod("d", on="x", owners=(DAEMON_OWNER,))),
        _make_node_with_pods("late", make_pod("e", on="x")),
    )
    coming = make_node_claim("coming", is_launched=False)
    for replicas, expected in (
        (4, ["coming"]),
        (3, ["coming", "claim-quiet"]),
        (2, ["coming", "claim-quiet", "claim-late"]),
        (1, ["coming", "claim-quiet", "claim-late", "claim-busy"]),
        (0, ["coming", "claim-quiet", "claim-late", "claim-busy", "claim-guarded"]),
    ):
        cluster = _build_static_cluster(*machines, replicas=replicas)
        assert list_deleted_claims(replace(cluster, node_claims=(*cluster.node_claims, coming))) == expected


def test_static_node_that_expires_sooner_is_deleted_first_at_equal_pod_cost() -> None:
    def make_aged_node(name: str, hours: int) -> Any:
        aged_node, node_claim, pods = _make_node_with_pods(name, make_pod(f"p-{name}", on="x"))
        meta = replace(node_claim.meta, created_at=NOW - timedelta(hours=hours))
        return aged_node, replace(node_claim, meta=meta, expire_after=timedelta(hours=100)), pods

    assert list_deleted_claims(
        _build_static_cluster(make_aged_node("young", 1), make_aged_node("old", 90), replicas=1)
    ) == ["claim-old"]


def test_static_node_with_an_unreadable_pod_is_deleted_last() -> None:
    bad = Problem(kind="Pod", name="shop/odd", message="odd", node="first")
    machines = (_make_node_with_pods("first"), _make_node_with_pods("second", make_pod("a", on="x")))
    assert list_deleted_claims(_build_static_cluster(*machines, replicas=1, problems=(bad,))) == ["claim-second"]


def test_static_node_pool_creates_no_nodes_for_pods_but_its_nodes_accept_pods() -> None:
    assert locate_pods(solve(make_cluster_snapshot(make_pod("x"), node_pools=(make_static_pool(5),)))) == {
        "x": "NoNodePool"
    }
    existing_node, node_claim, _ = _make_node_with_pods("here")
    assert locate_pods(
        solve(
            make_cluster_snapshot(
                make_pod("x"), node_pools=(make_static_pool(5),), nodes=(existing_node,), node_claims=(node_claim,)
            )
        )
    ) == {"x": "here"}


def test_static_replicas_are_counted_only_for_static_node_pools() -> None:
    assert [
        one.pool.name
        for one in count_static_replicas(
            ClusterState(make_cluster_snapshot(node_pools=(make_node_pool("b"), make_static_pool(1))))
        )
    ] == ["default"]
