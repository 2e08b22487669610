"""Static NodePools: how many claims are made, under which names, and which nodes go first."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, DeleteObject, FollowUp
from shared.model.cluster import Cluster
from shared.model.labels import (
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    MIN_VALUES_RELAXED,
    NODEPOOL,
    NODEPOOL_HASH,
    NOMINATED_PODS,
    ZONE,
)
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import Condition, Problem
from shared.model.requirements import ANYTHING
from shared.model.resources import Resources
from shared.scheduling.solve import solve
from shared.scheduling.static import MOST, decide_static, slot_name, staffs, wants_change
from tests.unit.catalogues import DAEMON_OWNER, NOW, claimed, needs, node, placed, pod, pool, world

READY = (Condition(type="Ready", status="False", observed_generation=0),)


def static(replicas: int, nodes: int | None = None, **more: Any) -> NodePool:
    limits = None if nodes is None else Resources(amounts=(("nodes", nodes),))
    return replace(pool(replicas=replicas, limits=limits), **more)


def claim(name: str, *, of: str = "default", is_launched: bool = True, **more: Any) -> NodeClaim:
    _, some = claimed(node(name))
    meta = replace(some.meta, name=name, uid=f"uid-{name}", labels=((NODEPOOL, of),))
    return replace(some, meta=meta, node_name="", provider_id=some.provider_id if is_launched else "", **more)


def made(cluster: Cluster) -> list[str]:
    return [one.claim.name for one in decide_static(cluster) if isinstance(one, CreateNodeClaim)]


def gone(cluster: Cluster) -> list[str]:
    return [one.name for one in decide_static(cluster) if isinstance(one, DeleteObject)]


@pytest.mark.parametrize(
    ("replicas", "nodes", "there", "count"),
    [(3, None, 0, 3), (3, None, 2, 1), (3, None, 3, 0), (3, 2, 0, 2), (3, 2, 2, 0), (3, 1, 2, 0), (0, None, 0, 0)],
)
def test_claims_are_made_up_to_the_number_and_the_limit(
    replicas: int, nodes: int | None, there: int, count: int
) -> None:
    claims = tuple(claim(f"n{number}") for number in range(there))
    cluster = world(node_pools=(static(replicas, nodes),), node_claims=claims)
    assert (len(made(cluster)), gone(cluster)) == (count, [])
    assert bool(wants_change(cluster)) == bool(count)


def test_who_decides_again_on_the_same_look_makes_the_same_claims() -> None:
    some = static(3)
    cluster = world(node_pools=(some,))
    assert made(cluster) == made(cluster) == [slot_name(some, slot) for slot in range(3)]
    after = replace(cluster, node_claims=(claim(slot_name(some, 0)), claim(slot_name(some, 1))))
    assert made(after) == [slot_name(some, 2)]


def test_a_name_is_free_again_when_its_claim_is_gone_and_not_before() -> None:
    some = static(2)
    going = claim(slot_name(some, 0))
    going = replace(going, meta=replace(going.meta, deleted_at=NOW))
    cluster = world(node_pools=(some,), node_claims=(going, claim(slot_name(some, 1))))
    assert made(cluster) == [slot_name(some, 2)]


def test_a_claim_that_cannot_be_read_is_there() -> None:
    some = static(1)
    bad = Problem(kind="NodeClaim", name=slot_name(some, 0), message="odd")
    assert made(world(node_pools=(some,), problems=(bad,))) == []
    unseen = Problem(kind="CustomResourceDefinition", name="nodeclaims.karpenter.sh", message="gone")
    assert made(world(node_pools=(some,), problems=(unseen,))) == []


def test_a_claim_says_what_the_pool_says_and_chooses_no_types() -> None:
    wanted = needs((INSTANCE_TYPE, "In", ["m.02", "m.04"]), (ZONE, "In", ["a"]), minimum={INSTANCE_TYPE: 2})
    [action, wake] = decide_static(world(node_pools=(static(1, requirements=wanted, labels=(("team", "x"),)),)))
    assert isinstance(wake, FollowUp)
    assert isinstance(action, CreateNodeClaim)
    assert action.claim.requirements[INSTANCE_TYPE] == wanted[INSTANCE_TYPE]
    assert action.claim.requirements[ZONE].values == {"a"}
    labels, notes = dict(action.claim.meta.labels), dict(action.claim.meta.annotations)
    assert (labels["team"], labels[NODEPOOL], action.pods) == ("x", "default", ())
    assert NODEPOOL_HASH in notes
    assert not {MIN_VALUES_RELAXED, NOMINATED_PODS} & set(notes)


def test_a_pool_without_requirements_leaves_the_type_open() -> None:
    [action, _] = decide_static(world(node_pools=(static(1, requirements=ANYTHING),)))
    assert isinstance(action, CreateNodeClaim)
    assert INSTANCE_TYPE not in action.claim.requirements


def test_what_is_being_replaced_is_neither_made_anew_nor_counted_as_surplus() -> None:
    replaced = claim("n0", conditions=(Condition(type="DisruptionReason", status="True"),))
    cluster = world(node_pools=(static(2),), node_claims=(replaced, claim("n1")))
    assert (made(cluster), gone(cluster)) == ([], [])
    with_replacement = replace(cluster, node_claims=(*cluster.node_claims, claim("n2")))
    assert (made(with_replacement), gone(with_replacement)) == ([], [])


@pytest.mark.parametrize(
    "more",
    [
        {"node_pools": (static(2, conditions=READY),)},
        {"node_classes": ()},
        {"node_pools": (static(2, meta=replace(pool().meta, deleted_at=NOW)),)},
        {"node_pools": (pool(),)},
    ],
)
def test_a_pool_that_cannot_be_used_makes_nothing(more: dict[str, Any]) -> None:
    assert made(world(**({"node_pools": (static(2),)} | more))) == []


def test_no_more_than_so_many_are_made_at_once() -> None:
    assert len(made(world(node_pools=(static(10 * MOST),)))) == MOST


def _machine(name: str, *pods: Any, **more: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    some, its = claimed(node(name), **more)
    return some, its, tuple(replace(one, node_name=name) for one in pods)


def _protected(name: str) -> Any:
    one = pod(name, on="x")
    return replace(one, meta=replace(one.meta, annotations=((DO_NOT_DISRUPT, "true"),)))


def _crew(*machines: tuple[Any, Any, tuple[Any, ...]], replicas: int, **more: Any) -> Cluster:
    nodes, claims, pods = zip(*machines, strict=True)
    some = [one for group in pods for one in group]
    return world(*some, node_pools=(static(replicas),), nodes=nodes, node_claims=claims, **more)


def test_who_is_missed_least_goes_first() -> None:
    machines = (
        _machine("busy", pod("a", on="x"), pod("b", on="x")),
        _machine("guarded", _protected("c")),
        _machine("quiet", pod("d", on="x", owners=(DAEMON_OWNER,))),
        _machine("late", pod("e", on="x")),
    )
    coming = claim("coming", is_launched=False)
    for replicas, expected in (
        (4, ["coming"]),
        (3, ["coming", "claim-quiet"]),
        (2, ["coming", "claim-quiet", "claim-late"]),
        (1, ["coming", "claim-quiet", "claim-late", "claim-busy"]),
        (0, ["coming", "claim-quiet", "claim-late", "claim-busy", "claim-guarded"]),
    ):
        cluster = _crew(*machines, replicas=replicas)
        assert gone(replace(cluster, node_claims=(*cluster.node_claims, coming))) == expected


def test_of_equal_pods_the_node_that_expires_sooner_goes_first() -> None:
    def aged(name: str, hours: int) -> Any:
        some, its, pods = _machine(name, pod(f"p-{name}", on="x"))
        meta = replace(its.meta, created_at=NOW - timedelta(hours=hours))
        return some, replace(its, meta=meta, expire_after=timedelta(hours=100)), pods

    assert gone(_crew(aged("young", 1), aged("old", 90), replicas=1)) == ["claim-old"]


def test_a_node_with_a_pod_that_cannot_be_read_goes_last() -> None:
    bad = Problem(kind="Pod", name="shop/odd", message="odd", node="first")
    machines = (_machine("first"), _machine("second", pod("a", on="x")))
    assert gone(_crew(*machines, replicas=1, problems=(bad,))) == ["claim-second"]


def test_a_static_pool_makes_nothing_for_pods_but_its_nodes_take_them() -> None:
    assert placed(solve(world(pod("x"), node_pools=(static(5),)))) == {"x": "NoNodePool"}
    some, its, _ = _machine("here")
    assert placed(solve(world(pod("x"), node_pools=(static(5),), nodes=(some,), node_claims=(its,)))) == {"x": "here"}


def test_staffs_are_of_static_pools_only() -> None:
    assert [one.pool.name for one in staffs(world(node_pools=(pool("b"), static(1))))] == ["default"]
