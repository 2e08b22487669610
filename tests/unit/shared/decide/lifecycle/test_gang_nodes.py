"""Nodes of gangs that did not get all their nodes are returned after a deadline."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from shared.decide.lifecycle.gang_nodes import GANG_LAUNCH_TIMEOUT, decide_gang_nodes
from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import GANG, GANG_RETRIES, GANG_SIZE, PLANNED_GANGS
from shared.model.core.metadata import build_pairs
from shared.model.decisions.action import DeleteObject, PatchMetadata, PublishEvent
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gang_claims import parse_planned_gangs
from shared.state.gangs.gang_retries import find_gang_retries
from tests.support.catalogues import NOW, attach_claim, make_cluster_snapshot, make_node, make_node_pool, make_pod

OLD = GANG_LAUNCH_TIMEOUT + timedelta(seconds=1)


def make_worker(name: str, on: str = "", size: int = 3) -> Pod:
    pod = make_pod(name, "3", on=on)
    annotations = build_pairs({GANG: "train", GANG_SIZE: str(size)})
    return replace(pod, meta=replace(pod.meta, annotations=annotations))


def make_gang_node(name: str, age: timedelta = OLD, planned: str = '{"shop/train":3}') -> tuple[Node, NodeClaim]:
    node, claim = attach_claim(make_node(name))
    annotations = build_pairs({PLANNED_GANGS: planned})
    return node, replace(claim, meta=replace(claim.meta, annotations=annotations, created_at=NOW - age))


def make_gang_cluster(*pods: Pod, nodes: tuple[tuple[Node, NodeClaim], ...], **fields: Any) -> ClusterSnapshot:
    claims = tuple(claim for _, claim in nodes)
    return make_cluster_snapshot(
        *pods, nodes=tuple(node for node, _ in nodes), node_claims=claims, **({"has_gangs": True} | fields)
    )


def list_deleted(cluster: ClusterSnapshot) -> list[str]:
    actions = decide_gang_nodes(ClusterState(cluster))
    return [action.name for action in actions if isinstance(action, DeleteObject)]


PARTIAL = (make_worker("w-0", "a"), make_worker("w-1", "b"), make_worker("w-2"))
NODES = (make_gang_node("a"), make_gang_node("b"))


def test_new_node_claims_have_their_gangs() -> None:
    cluster = make_cluster_snapshot(make_worker("w", size=2), make_worker("x", size=2), make_pod("y"), has_gangs=True)
    placement = plan_pods(ClusterState(cluster)).placement
    [claim] = build_node_claims(placement, cluster)
    assert parse_planned_gangs(claim) == {"shop/train": 2}
    [plain_claim] = build_node_claims(placement, replace(cluster, has_gangs=False))
    assert not plain_claim.meta.get_annotation(PLANNED_GANGS)


def test_nodes_of_an_incomplete_gang_are_deleted_after_the_timeout_and_it_is_planned_again_later() -> None:
    cluster = make_gang_cluster(*PARTIAL, nodes=NODES)
    actions = decide_gang_nodes(ClusterState(cluster))
    assert list_deleted(cluster) == ["claim-a", "claim-b"]
    [retry_patch] = [action for action in actions if isinstance(action, PatchMetadata)]
    assert (retry_patch.kind, retry_patch.name, retry_patch.annotations[0][0]) == ("NodePool", "default", GANG_RETRIES)
    events = [action for action in actions if isinstance(action, PublishEvent)]
    assert {event.name for event in events} == {"w-0", "w-1", "w-2"}
    assert events[0].message.startswith("2 of the 3 pods of gang shop/train had nodes 15m after the launch: its nodes")
    pool = make_node_pool()
    pool = replace(pool, meta=replace(pool.meta, annotations=retry_patch.annotations))
    [retry] = find_gang_retries([pool]).values()
    assert (retry.count, retry.until) == (1, NOW + timedelta(minutes=2))
    pods = tuple(make_worker(f"w-{number}") for number in range(3))
    later = make_cluster_snapshot(*pods, node_pools=(pool,), has_gangs=True)
    [reason] = {item.reason for item in plan_pods(ClusterState(later)).placement.unschedulable}
    assert reason == "GangIncomplete"
    after_the_delay = replace(later, taken_at=retry.until)
    assert not plan_pods(ClusterState(after_the_delay)).placement.unschedulable


def test_each_delay_is_twice_the_one_before_up_to_an_hour() -> None:
    annotation, delays = "", []
    for _ in range(7):
        pool = make_node_pool()
        pool = replace(pool, meta=replace(pool.meta, annotations=build_pairs({GANG_RETRIES: annotation})))
        cluster = make_gang_cluster(*PARTIAL, nodes=NODES, node_pools=(pool,))
        [patch] = [item for item in decide_gang_nodes(ClusterState(cluster)) if isinstance(item, PatchMetadata)]
        annotation = patch.annotations[0][1]
        pool = replace(pool, meta=replace(pool.meta, annotations=patch.annotations))
        delays.append((find_gang_retries([pool])["shop/train"].until - NOW).total_seconds() / 60)
    assert delays == [2, 4, 8, 16, 32, 60, 60]


def test_incomplete_gang_keeps_its_nodes_before_the_timeout() -> None:
    assert not list_deleted(make_gang_cluster(*PARTIAL, nodes=(make_gang_node("a", GANG_LAUNCH_TIMEOUT / 2),)))


def test_node_that_other_pods_use_is_kept_and_never_returned_later() -> None:
    cluster = make_gang_cluster(*PARTIAL, make_pod("web", on="b"), nodes=NODES)
    assert list_deleted(cluster) == ["claim-a"]
    patches = [item for item in decide_gang_nodes(ClusterState(cluster)) if isinstance(item, PatchMetadata)]
    assert [(patch.name, patch.annotations) for patch in patches if patch.kind == "NodeClaim"] == [
        ("claim-b", ((PLANNED_GANGS, "{}"),))
    ]


def test_complete_gang_releases_its_nodes_and_a_later_loss_returns_none() -> None:
    complete = make_gang_cluster(make_worker("w-0", "a"), make_worker("w-1", "b"), make_worker("w-2", "b"), nodes=NODES)
    patches = decide_gang_nodes(ClusterState(complete))
    assert [patch.annotations for patch in patches if isinstance(patch, PatchMetadata)] == [
        ((PLANNED_GANGS, "{}"),)
    ] * 2
    released = (make_gang_node("a", planned="{}"), make_gang_node("b", planned="{}"))
    assert decide_gang_nodes(ClusterState(make_gang_cluster(*PARTIAL, nodes=released))) == ()


def test_pods_that_have_completed_do_not_make_a_gang_incomplete() -> None:
    assert not list_deleted(make_gang_cluster(make_worker("w-0", "a"), nodes=NODES))


def list_claim_patches(cluster: ClusterSnapshot) -> list[tuple[str, str]]:
    actions = decide_gang_nodes(ClusterState(cluster))
    patches = [action for action in actions if isinstance(action, PatchMetadata) and action.kind == "NodeClaim"]
    return [(patch.name, patch.annotations[0][1] or "") for patch in patches]


def test_setting_off_releases_nodes_so_that_they_are_not_returned_when_it_is_on_again() -> None:
    cluster = make_gang_cluster(*PARTIAL, nodes=NODES, has_gangs=False)
    assert list_deleted(cluster) == []
    assert list_claim_patches(cluster) == [("claim-a", "{}"), ("claim-b", "{}")]
    released = (make_gang_node("a", planned="{}"), make_gang_node("b", planned="{}"))
    for has_gangs in (False, True):
        assert decide_gang_nodes(ClusterState(make_gang_cluster(*PARTIAL, nodes=released, has_gangs=has_gangs))) == ()


PLAIN_POD = make_pod("o-0", "3")
OTHER_GANG_POD = replace(
    PLAIN_POD, meta=replace(PLAIN_POD.meta, annotations=build_pairs({GANG: "other", GANG_SIZE: "2"}))
)


def test_shared_node_stays_for_the_younger_gang_and_the_overdue_one_is_returned_once() -> None:
    gang_sizes = '{"shop/other":2,"shop/train":3}'
    nodes = (make_gang_node("a"), make_gang_node("b", GANG_LAUNCH_TIMEOUT / 2, planned=gang_sizes))
    cluster = make_gang_cluster(*PARTIAL, OTHER_GANG_POD, nodes=nodes)
    assert list_deleted(cluster) == ["claim-a"]
    assert list_claim_patches(cluster) == [("claim-b", '{"shop/other":2}')]


def test_deletion_names_only_the_gangs_of_the_node() -> None:
    nodes = (make_gang_node("a"), make_gang_node("b", planned='{"shop/other":2}'))
    actions = decide_gang_nodes(ClusterState(make_gang_cluster(*PARTIAL, OTHER_GANG_POD, nodes=nodes)))
    messages = {action.name: action.message for action in actions if isinstance(action, DeleteObject)}
    assert messages["claim-a"].startswith("gang shop/train did not get all its nodes")


def test_invalid_annotations_return_no_node() -> None:
    pool = make_node_pool()
    pool = replace(pool, meta=replace(pool.meta, annotations=build_pairs({GANG_RETRIES: "[]"})))
    nodes = (make_gang_node("a", planned="[1]"),)
    assert decide_gang_nodes(ClusterState(make_gang_cluster(*PARTIAL, nodes=nodes, node_pools=(pool,)))) == ()
    assert find_gang_retries([pool]) == {}
