"""Nominations: a pod that is created again under another name inherits the node planned for its predecessor."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.provisioning.nominated_node_names import plan_nominations
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import INITIALIZED, NOMINATED_PODS, NOMINATED_UNTIL, REGISTERED
from shared.model.core.metadata import Condition, OwnerReference, build_pairs
from shared.model.core.units import format_instant
from shared.model.decisions.action import CreateNodeClaim, PatchMetadata
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.nominations import (
    build_nominations,
    compute_pod_digest,
    find_nominated_node_names,
    get_owner_digest,
    match_successor_pods,
)
from tests.support.catalogues import NOW, attach_claim, make_cluster_snapshot, make_node, make_pod
from tests.support.snapshot_decisions import build_placement_actions, solve

OWNER = (OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-6d5f", uid="rs"),)


def make_web_pod(letters: str, cpu: str = "3", **fields: object) -> Pod:
    return make_pod(f"web-6d5f-{letters}", cpu, owners=OWNER, **fields)  # type: ignore[arg-type]


def make_db_pod(letters: str, cpu: str = "3500m", **fields: object) -> Pod:
    return make_pod(f"db-77b-{letters}", cpu, owners=OWNER, **fields)  # type: ignore[arg-type]


def make_nominated_node(name: str, *pods: Pod, opened: float | None = None) -> tuple[Node, NodeClaim]:
    """Return a node of 4 CPUs planned for *pods*: still closed, or in use for *opened* minutes."""
    nominated_node, claim = attach_claim(make_node(name), initialized=opened is not None)
    fit = "false" if opened is None else "true"
    labels = build_pairs(dict(nominated_node.meta.labels) | {REGISTERED: fit, INITIALIZED: fit})
    created = NOW - timedelta(seconds=5)
    ready = (Condition(type="Ready", status="True"),)
    nominated_node = replace(
        nominated_node, meta=replace(nominated_node.meta, labels=labels, created_at=created), conditions=ready
    )
    notes = ((NOMINATED_PODS, ",".join(sorted(compute_pod_digest(pod.name) for pod in pods))),)
    since = NOW - timedelta(minutes=opened or 0)
    conditions = (Condition(type="Initialized", status="True", since=since),) if opened is not None else ()
    return nominated_node, replace(
        claim, meta=replace(claim.meta, annotations=notes, created_at=created), conditions=conditions
    )


def build_cluster(*pods: Pod, machines: tuple[tuple[Node, NodeClaim], ...]) -> ClusterSnapshot:
    return make_cluster_snapshot(
        *pods, nodes=tuple(node for node, _ in machines), node_claims=tuple(claim for _, claim in machines)
    )


def list_nominations(cluster: ClusterSnapshot) -> list[tuple[str, str]]:
    plan = plan_nominations(ClusterState(cluster))
    places = [hint for _, hints in sorted(plan.nominations_by_node.items()) for hint in hints]
    return [(hint.name, hint.node) for hint in (*plan.nominations, *places)]


TWO = (make_nominated_node("n1", make_web_pod("bbbbb")), make_nominated_node("n2", make_db_pod("bbbbb")))


def test_pods_of_one_owner_share_half_of_their_digest() -> None:
    first_digest, second_digest = compute_pod_digest("shop/web-6d5f-bbbbb"), compute_pod_digest("shop/web-6d5f-ccccc")
    assert get_owner_digest(first_digest) == get_owner_digest(second_digest)
    assert first_digest != second_digest
    for stranger in ("shop/web-77b-bbbbb", "home/web-6d5f-bbbbb", "shop/web-6d5f-0", "shop/web-6d5f-alien"):
        assert get_owner_digest(compute_pod_digest(stranger)) != get_owner_digest(first_digest)


@pytest.mark.parametrize(("opened", "is_home"), [(None, True), (4, True), (6, False)])
def test_initialized_node_keeps_its_nominations_for_five_minutes(
    opened: float | None,
    is_home: bool,  # noqa: FBT001
) -> None:
    nominated_node, claim = make_nominated_node("n1", make_web_pod("bbbbb"), opened=opened)
    until = ((NOMINATED_UNTIL, format_instant(NOW + timedelta(minutes=1))),)
    claim = replace(claim, meta=replace(claim.meta, annotations=(*claim.meta.annotations, *until)))
    [state] = ClusterState(build_cluster(machines=((nominated_node, claim),))).nodes
    assert state.is_nominated(NOW)
    assert bool(build_nominations([state], NOW)) == is_home


def test_recreated_pod_inherits_the_nomination_of_its_predecessor() -> None:
    cluster = build_cluster(make_web_pod("ccccc"), make_db_pod("ccccc"), machines=TWO)
    assert list_nominations(cluster) == [("web-6d5f-ccccc", "n1"), ("db-77b-ccccc", "n2")]


def test_only_a_deleting_pod_is_matched_with_a_successor() -> None:
    leaving = make_web_pod("bbbbb", on="old")
    deleted_pod = replace(leaving, meta=replace(leaving.meta, deleted_at=NOW))
    marks = {compute_pod_digest(leaving.name)}
    assert match_successor_pods(marks, (deleted_pod, make_web_pod("ccccc"))) == {
        compute_pod_digest(make_web_pod("ccccc").name): compute_pod_digest(leaving.name)
    }
    assert match_successor_pods(marks, (leaving, make_web_pod("ccccc"))) == {}


def test_each_nomination_is_inherited_once() -> None:
    marks = {compute_pod_digest(make_web_pod(letters).name) for letters in ("bbbbb", "ddddd")}
    heirs = match_successor_pods(marks, (make_web_pod("ccccc"), make_web_pod("fffff"), make_web_pod("ggggg")))
    assert len(heirs) == 2
    assert set(heirs.values()) == marks


@pytest.mark.parametrize(
    "stranger",
    [
        replace(make_web_pod("ccccc"), node_name="n9"),
        make_pod("web-6d5f-ccccc"),
        make_pod("web-6d5f-0", owners=OWNER),
    ],
    ids=["bound to a node", "no owner", "stable name"],
)
def test_bound_unowned_or_stably_named_pods_inherit_no_nomination(stranger: Pod) -> None:
    assert match_successor_pods({compute_pod_digest(make_web_pod("bbbbb").name)}, (stranger,)) == {}


@pytest.mark.parametrize(("minutes", "count"), [(4, 1), (6, 0)])
def test_initialized_node_expects_successor_pods_for_five_minutes(minutes: float, count: int) -> None:
    cluster = build_cluster(
        make_web_pod("ccccc"), machines=(make_nominated_node("n1", make_web_pod("bbbbb"), opened=minutes),)
    )
    homes = build_nominations(ClusterState(cluster).nodes, NOW, cluster.pods)
    assert [home.name for mark, home in homes.items() if mark == compute_pod_digest("shop/web-6d5f-ccccc")] == [
        "n1"
    ] * count


def test_successor_pods_are_placed_on_the_nodes_of_their_predecessors() -> None:
    """First fit alone would place the first pod in the queue on the first node."""
    cluster = build_cluster(make_db_pod("ccccc"), make_web_pod("ccccc"), machines=TWO)
    placed = {name: fit.node for fit in solve(cluster).existing for name in fit.pods}
    assert placed == {"shop/web-6d5f-ccccc": "claim-n1", "shop/db-77b-ccccc": "claim-n2"}
    assert not [one for one in build_placement_actions(cluster, solve(cluster)) if isinstance(one, CreateNodeClaim)]


def test_nodeclaim_annotation_is_updated_to_the_successor_pod() -> None:
    cluster = build_cluster(make_web_pod("ccccc"), make_db_pod("ccccc"), machines=TWO)
    annotations = {
        action.name: dict(action.annotations)[NOMINATED_PODS]
        for action in build_placement_actions(cluster, solve(cluster))
        if isinstance(action, PatchMetadata)
    }
    assert annotations == {
        "claim-n1": compute_pod_digest("shop/web-6d5f-ccccc"),
        "claim-n2": compute_pod_digest("shop/db-77b-ccccc"),
    }


def test_nominated_successor_pod_waits_for_its_node() -> None:
    hinted = replace(make_web_pod("ccccc"), nominated_node_name="n1")
    assert find_nominated_node_names(ClusterState(build_cluster(hinted, machines=TWO))).node_by_pod == {
        hinted.name: "n1"
    }
    late = build_cluster(hinted, machines=(make_nominated_node("n1", make_web_pod("bbbbb"), opened=6),))
    assert not find_nominated_node_names(ClusterState(late)).node_by_pod
