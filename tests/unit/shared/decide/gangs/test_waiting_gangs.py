"""Gangs that wait for nodes, as status pages show them."""

from datetime import timedelta

from msgspec.structs import replace

from shared.decide.gangs.waiting_gangs import WaitingGang, list_waiting_gangs
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import GANG_RETRIES, PLANNED_GANGS
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gang_retries import GangRetry, format_gang_retries
from tests.support.catalogues import NOW, make_cluster_snapshot, make_node, make_node_pool, make_pod
from tests.unit.shared.decide.provisioning.test_gang_planning import make_gang


def list_gangs(cluster: ClusterSnapshot) -> tuple[WaitingGang, ...]:
    return list_waiting_gangs(ClusterState(replace(cluster, has_gangs=True)))


def set_creation(pod: Pod, minutes: int) -> Pod:
    return replace(pod, meta=replace(pod.meta, created_at=NOW - timedelta(minutes=minutes)))


def test_incomplete_gang_is_listed_with_its_pods_its_age_and_the_reason() -> None:
    pods = [set_creation(pod, 7 - number) for number, pod in enumerate(make_gang("train", 4, count=3))]
    [gang] = list_gangs(make_cluster_snapshot(*pods))
    assert (gang.kind, gang.name, gang.existing_count, gang.needed_count) == ("gang", "shop/train", 3, 4)
    assert gang.since == NOW - timedelta(minutes=7)
    assert gang.describe(NOW) == (
        "gang shop/train (3 pods, 4 needed) waits for 7m: 3 of its 4 pods exist: waiting for the others"
    )


def test_gang_that_does_not_fit_names_the_command_that_shows_why() -> None:
    [gang] = list_gangs(make_cluster_snapshot(*make_gang("train", 2)))
    assert gang.reason == "`joiner explain pod shop/train-0` shows why its pods do not fit"


def test_gang_whose_nodes_are_launched_says_so() -> None:
    claims = tuple(
        NodeClaim(
            meta=ObjectMeta(name=name, annotations=build_pairs({PLANNED_GANGS: '{"shop/train": 2}'})),
            node_class=NodeClassRef(name="default"),
        )
        for name in ("default-a", "default-b")
    )
    [gang] = list_gangs(make_cluster_snapshot(*make_gang("train", 2), node_claims=claims))
    assert gang.reason == "2 nodes launched for it"


def test_gang_whose_nodes_were_returned_says_when_it_is_tried_again() -> None:
    text = format_gang_retries({"shop/train": GangRetry(count=2, until=NOW + timedelta(minutes=4))}, NOW)
    pool = make_node_pool(meta=ObjectMeta(name="default", annotations=build_pairs({GANG_RETRIES: text})))
    [gang] = list_gangs(make_cluster_snapshot(*make_gang("train", 2), node_pools=(pool,)))
    assert gang.reason.startswith("its nodes were returned because not all of them could be launched; next attempt at ")


def test_each_tool_has_its_kind() -> None:
    labels_by_kind = {
        "Kueue pod group": {"kueue.x-k8s.io/pod-group-name": "a"},
        "PodGroup": {"scheduling.x-k8s.io/pod-group": "b"},
        "LeaderWorkerSet group": {
            "leaderworkerset.sigs.k8s.io/name": "c",
            "leaderworkerset.sigs.k8s.io/group-index": "0",
        },
        "JobSet": {"jobset.sigs.k8s.io/jobset-name": "d"},
    }
    pods = [make_pod(f"pod-{number}", "3", labels=labels) for number, labels in enumerate(labels_by_kind.values())]
    assert [gang.kind for gang in list_gangs(make_cluster_snapshot(*pods))] == list(labels_by_kind)


def test_gangs_with_nodes_and_gangs_of_a_cluster_without_the_setting_are_not_listed() -> None:
    running = [replace(pod, node_name="standing", conditions=()) for pod in make_gang("train", 2)]
    assert list_gangs(make_cluster_snapshot(*running, nodes=(make_node("standing"),))) == ()
    assert list_waiting_gangs(ClusterState(make_cluster_snapshot(*make_gang("train", 2)))) == ()
