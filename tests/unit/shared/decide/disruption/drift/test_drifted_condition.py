"""Requested drift, and a new image that one node tries before the others."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.drift.drifted_condition import describe_drift, find_drifts
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.core.taints import Taint
from shared.model.decisions.action import PatchStatus, PublishEvent
from shared.model.karpenter.node_class import ResolvedImage
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_node_class, make_node_pool
from tests.support.disruption_fleet import (
    STAGES,
    Machine,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_pod_disruption_budget,
    make_web_pod,
)

NODE_CLASS = replace(make_node_class(), resolved_images=(ResolvedImage(image_id="ami-new"),))


def make_soaking_pool(soak: str = "24h", name: str = "default") -> object:
    return make_node_pool(name, meta=ObjectMeta(name=name, annotations=((labels.IMAGE_SOAK, soak),)), budgets=())


def with_image(image: str, base_node: Machine, *, fit_hours: float | None = 1) -> Machine:
    node, claim, pods = base_node
    fit = (
        ()
        if fit_hours is None
        else (replace(make_conditions("Initialized")[0], since=NOW - timedelta(hours=fit_hours)),)
    )
    conditions = tuple(condition for condition in claim.conditions if condition.type != "Initialized")
    return node, replace(claim, image_id=image, conditions=(*conditions, *fit)), pods


def make_old_node(name: str, *pods: object, **fields: object) -> Machine:
    return with_image("ami-old", make_node_with_pods(name, *pods, **fields))  # type: ignore[arg-type]


def list_drifted_claims(cluster: ClusterSnapshot) -> list[str]:
    return [
        one.inputs.claim.name.removeprefix("claim-")
        for one in find_drifts(ClusterState(cluster))
        if one.reason == "AMIDrift"
    ]


def build_soaking_cluster(*machines: Machine, soak: str = "24h") -> ClusterSnapshot:
    return make_fleet(*machines, pools=(make_soaking_pool(soak),), node_classes=(NODE_CLASS,))  # type: ignore[arg-type]


def list_event_messages(cluster: ClusterSnapshot) -> list[str]:
    return [one.message for one in describe_drift(ClusterState(cluster)) if isinstance(one, PublishEvent)]


@pytest.mark.parametrize(
    ("policy", "taint", "reason"),
    [
        ("replace", labels.AT_RISK, "RebalanceRecommended"),
        ("replace", "other", ""),
        ("cordon", labels.AT_RISK, ""),
        ("", labels.AT_RISK, ""),
    ],
)
def test_only_tainted_nodes_of_node_pools_with_the_policy_drift(policy: str, taint: str, reason: str) -> None:
    node, claim, _ = make_node_with_pods("a")
    node = replace(node, taints=(Taint(key=taint, effect="NoSchedule"),))
    pool = make_node_pool(meta=ObjectMeta(name="default", annotations=((labels.REBALANCE_POLICY, policy),)), budgets=())
    [drift] = find_drifts(ClusterState(make_fleet((node, claim, ()), pools=(pool,))))
    assert (drift.reason or "") == reason


@pytest.mark.parametrize("kind", ["claim", "node"])
@pytest.mark.parametrize(("text", "reason"), [("drifted", "DriftRequested"), ("other", "")])
def test_voluntary_disruption_annotation_requests_drift(kind: str, text: str, reason: str) -> None:
    node, claim, _ = make_node_with_pods("a")
    note = ((labels.VOLUNTARY_DISRUPTION, text),)
    if kind == "claim":
        claim = replace(claim, meta=replace(claim.meta, annotations=note))
    else:
        node = replace(node, meta=replace(node.meta, annotations=note))
    [drift] = find_drifts(ClusterState(make_fleet((node, claim, ()))))
    assert (drift.reason or "") == reason
    writes = [
        one for one in describe_drift(ClusterState(make_fleet((node, claim, ())))) if isinstance(one, PatchStatus)
    ]
    assert [f'"reason":"{reason}"' in write.status for write in writes] == ([True] if reason else [])


def test_all_nodes_with_an_old_image_drift_without_image_soak() -> None:
    cluster = make_fleet(make_old_node("a"), make_old_node("b"), node_classes=(NODE_CLASS,))
    assert list_drifted_claims(cluster) == ["a", "b"]
    assert list_event_messages(cluster) == []


def test_image_soak_replaces_one_canary_node_first() -> None:
    cluster = build_soaking_cluster(make_old_node("a"), make_old_node("b"), make_old_node("c"))
    assert list_drifted_claims(cluster) == ["a"]
    [message] = list_event_messages(cluster)
    assert message.startswith(
        "claim-a is replaced first, 2 nodes with the old image wait: one node tests image ami-new "
    )
    assert message.endswith("(annotation joiner.dev/image-soak)")


def test_canary_is_a_node_that_can_be_disrupted() -> None:
    pod_budget = make_pod_disruption_budget("web", {"app": "web"}, 0)
    protected_node = make_old_node("a", annotations={labels.DO_NOT_DISRUPT: "true"})
    cluster = build_soaking_cluster(
        protected_node, make_old_node("b", make_web_pod("1")), make_old_node("c"), make_old_node("d")
    )
    assert list_drifted_claims(replace(cluster, budgets=(pod_budget,))) == ["c"]
    stays = make_web_pod("1")
    stays = replace(stays, meta=replace(stays.meta, annotations=((labels.DO_NOT_DISRUPT, "true"),)))
    assert list_drifted_claims(build_soaking_cluster(protected_node, make_old_node("b", stays))) == ["a"]


def test_canary_with_a_drifted_condition_stays_the_canary() -> None:
    node, claim, pods = make_old_node("b")
    mark = Condition(type="Drifted", status="True", reason="AMIDrift", since=NOW)
    cluster = build_soaking_cluster(
        make_old_node("a"), (node, replace(claim, conditions=(*claim.conditions, mark)), pods)
    )
    assert list_drifted_claims(cluster) == ["b"]


@pytest.mark.parametrize(
    ("fit_hours", "all_drift", "message"),
    [
        (None, False, "2 nodes with the old image until one node is initialized with image ami-new"),
        (23.9, False, "2 nodes with the old image until 2026-11-21T12:06:00Z: one node tests image ami-new"),
        (24, True, ""),
    ],
)
def test_other_nodes_drift_after_the_canary_was_initialized_for_the_image_soak_period(
    fit_hours: float | None, message: str, *, all_drift: bool
) -> None:
    cluster = build_soaking_cluster(
        make_old_node("a"), make_old_node("b"), with_image("ami-new", make_node_with_pods("new"), fit_hours=fit_hours)
    )
    assert list_drifted_claims(cluster) == (["a", "b"] if all_drift else [])
    assert [event_message.partition(" (annotation")[0] for event_message in list_event_messages(cluster)] == (
        [message] if message else []
    )


def test_deleting_node_with_the_new_image_is_no_canary() -> None:
    node, claim, _ = with_image("ami-new", make_node_with_pods("new"), fit_hours=48)
    going = (node, replace(claim, meta=replace(claim.meta, deleted_at=NOW)), ())
    assert list_drifted_claims(build_soaking_cluster(make_old_node("a"), make_old_node("b"), going)) == ["a"]


def test_other_drift_reasons_do_not_wait_for_the_image_soak() -> None:
    note = build_pairs({labels.NODEPOOL_HASH: "other", labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION})
    node, claim, _ = make_old_node("b")
    drifts = find_drifts(
        ClusterState(
            build_soaking_cluster(
                make_old_node("a"), (node, replace(claim, meta=replace(claim.meta, annotations=note)), ())
            )
        )
    )
    assert [drift.reason for drift in drifts] == ["AMIDrift", "NodePoolDrifted"]


def test_each_node_pool_has_its_own_canary() -> None:
    pools = (make_soaking_pool(name="one"), make_soaking_pool(name="two"))
    cluster = make_fleet(
        *(make_old_node(f"{own[0]}{number}", pool=own) for own in ("one", "two") for number in range(2)),
        pools=pools,  # type: ignore[arg-type]
        node_classes=(NODE_CLASS,),
    )
    assert list_drifted_claims(cluster) == ["o0", "t0"]


def test_unlaunched_node_claim_is_neither_drifted_nor_a_canary() -> None:
    new = with_image("", make_node_with_pods("new", conditions=make_conditions(*STAGES[:0])), fit_hours=None)
    drifts = find_drifts(ClusterState(build_soaking_cluster(make_old_node("a"), make_old_node("b"), new)))
    assert [drift.reason for drift in drifts] == ["AMIDrift", None, ""]
