"""Pod events, consolidatable nodes, and the status of NodePools."""

import json
from datetime import timedelta

import pytest

from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta, Problem, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.decisions.action import FollowUp, PatchMetadata, PatchStatus, PublishEvent
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass
from shared.state.state_node import compute_pod_digest
from tests.support.lifecycle_cases import (
    BIRTH,
    HEALTH,
    NODE_CLASS,
    NOW,
    POOL,
    STAGES,
    Case,
    filter_actions,
    get_status_patch,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    make_true_conditions,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle


def build_quiet_cluster(pods: Case = (), **fields: Case) -> ClusterSnapshot:
    node_claim = make_claim(annotations={labels.POD_DIGEST: compute_pod_digest(pods)}, **fields)
    return make_cluster(node_claims=(node_claim,), nodes=(make_node(),), pods=tuple(pods))


def list_written_digests(world: ClusterSnapshot) -> list[str]:
    noted = (
        dict(patch.annotations)
        for patch in filter_actions(PatchMetadata, decide_lifecycle(world))
        if patch.kind == "NodeClaim"
    )
    return [annotations[labels.POD_DIGEST] for annotations in noted if labels.POD_DIGEST in annotations]


def test_unchanged_pods_cause_no_pod_event() -> None:
    world = build_quiet_cluster([make_pod()])
    assert list_written_digests(world) == []
    assert "lastPodEventTime" not in get_status_patch(decide_lifecycle(world))


def test_pod_change_writes_last_pod_event_time_before_the_pod_digest() -> None:
    world = replace_fields(build_quiet_cluster([make_pod()]), pods=(make_pod(deleted=NOW),))
    actions = decide_lifecycle(world)
    assert get_status_patch(actions)["lastPodEventTime"] == "2026-11-21T12:00:00Z"
    [status] = [patch for patch in filter_actions(PatchStatus, actions) if patch.kind == "NodeClaim"]
    [write] = [patch for patch in filter_actions(PatchMetadata, actions) if patch.kind == "NodeClaim"]
    assert actions.index(status) < actions.index(write)
    assert dict(write.annotations)[labels.POD_DIGEST] == compute_pod_digest((make_pod(deleted=NOW),))


@pytest.mark.parametrize(
    ("pods", "last_event_at", "is_event"),
    [
        ((make_pod(),), None, True),
        ((make_pod(),), BIRTH, False),
        ((make_pod(daemon=True),), None, False),
        ((), None, False),
    ],
)
def test_first_pod_digest_sets_last_pod_event_time_only_with_pods_and_no_earlier_time(
    pods: Case,
    last_event_at: Case,
    is_event: bool,  # noqa: FBT001
) -> None:
    world = make_cluster(node_claims=(make_claim(last_pod_event_at=last_event_at),), nodes=(make_node(),), pods=pods)
    assert len(list_written_digests(world)) == 1
    assert ("lastPodEventTime" in get_status_patch(decide_lifecycle(world))) is is_event


@pytest.mark.parametrize(
    ("event", "after", "is_quiet", "wake"),
    [
        (get_time_before(seconds=29), timedelta(seconds=30), False, 1),
        (get_time_before(seconds=30), timedelta(seconds=30), True, None),
        (None, timedelta(hours=1), True, None),
        (None, timedelta(hours=1, seconds=9), False, 9),
        (None, None, False, None),
        (get_time_before(), timedelta(hours=2), False, None),
    ],
)
def test_node_is_consolidatable_after_consolidate_after_without_pod_events(
    event: Case,
    after: Case,
    is_quiet: bool,  # noqa: FBT001
    wake: float | None,
) -> None:
    marked = make_true_conditions(*STAGES) if is_quiet else make_true_conditions(*STAGES, "Consolidatable")
    world = replace_fields(
        build_quiet_cluster(last_pod_event_at=event, conditions=marked),
        node_pools=(replace_fields(POOL, consolidate_after=after),),
    )
    actions = decide_lifecycle(world)
    condition = get_status_patch(actions)["conditions"].get("Consolidatable")
    assert (condition is not None and condition["status"] == "True") is is_quiet
    assert [follow_up.after.total_seconds() for follow_up in filter_actions(FollowUp, actions)] == (
        [wake] if wake else []
    )


@pytest.mark.parametrize("pools", [(), (replace_fields(POOL, replicas=3),)])
def test_nodes_of_missing_or_static_node_pools_get_no_consolidatable_condition(pools: Case) -> None:
    world = replace_fields(
        build_quiet_cluster(conditions=make_true_conditions(*STAGES, "Ready", since=NOW)), node_pools=pools
    )
    assert "Consolidatable" not in get_status_patch(decide_lifecycle(world)).get("conditions", {})


def get_pool_status(**fields: Case) -> dict[str, Case]:
    return get_status_patch(decide_lifecycle(make_cluster(**fields)), "NodePool")


def test_node_pool_status_reports_resource_usage_and_conditions() -> None:
    status = get_pool_status(node_claims=(make_claim(),), nodes=(make_node(),))
    assert status["nodes"] == 1
    assert status["resources"] == {
        "cpu": "4",
        "ephemeral-storage": "0",
        "memory": "8Gi",
        "nodes": "1",
        "pods": "30",
    }
    assert {type_: condition["status"] for type_, condition in status["conditions"].items()} == {
        "NodeClassReady": "True",
        "NodeRegistrationHealthy": "Unknown",
        "Ready": "True",
        "ValidationSucceeded": "True",
    }


def test_unchanged_node_pool_status_is_not_written_again() -> None:
    ready = make_true_conditions("NodeClassReady", "NodeRegistrationHealthy", "Ready", "ValidationSucceeded")
    usage = parse_resources({"cpu": 4, "memory": "8Gi", "pods": 30, "nodes": 1})
    reported_pool = replace_fields(POOL, conditions=ready, usage=usage)
    assert get_pool_status(node_pools=(reported_pool,), node_claims=(make_claim(),), nodes=(make_node(),)) == {}
    shrunk = get_pool_status(node_pools=(replace_fields(reported_pool, usage=parse_resources({"gpu": 1})),))
    assert shrunk["resources"]["gpu"] is None
    assert shrunk["conditions"] == {}


@pytest.mark.parametrize(
    ("node_classes", "status", "reason"),
    [
        ((), "False", "NodeClassNotFound"),
        (
            (replace_fields(NODE_CLASS, meta=ObjectMeta(name="default", deleted_at=NOW)),),
            "False",
            "NodeClassTerminating",
        ),
        ((replace_fields(NODE_CLASS, conditions=()),), "Unknown", "NodeClassReadinessUnknown"),
        (
            (replace_fields(NODE_CLASS, meta=ObjectMeta(name="default", generation=2)),),
            "Unknown",
            "NodeClassReadinessUnknown",
        ),
        (
            (
                replace_fields(
                    NODE_CLASS,
                    conditions=(
                        Condition(type="Ready", status="False", reason="SubnetsNotFound", observed_generation=1),
                    ),
                ),
            ),
            "False",
            "SubnetsNotFound",
        ),
    ],
)
def test_node_pool_readiness_follows_its_node_class(node_classes: Case, status: str, reason: str) -> None:
    conditions = get_pool_status(node_classes=node_classes)["conditions"]
    assert (conditions["NodeClassReady"]["status"], conditions["NodeClassReady"]["reason"]) == (status, reason)
    assert conditions["Ready"]["status"] == status


def test_invalid_node_pool_reports_its_validation_error() -> None:
    bad = Problem(kind="NodePool", name="default", message="spec.weight: 101 is over 100")
    other_problem = Problem(kind="NodePool", name="other", message="no")
    condition = get_pool_status(problems=(other_problem, bad))["conditions"]["ValidationSucceeded"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "NodePoolValidationFailed",
        bad.message,
    )


def test_new_node_pool_hash_version_is_written_without_causing_drift() -> None:
    version = {labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION}
    drifted = make_claim("b", conditions=make_true_conditions(*STAGES, "Drifted"))
    current = make_claim("c", annotations=version | {labels.NODEPOOL_HASH: "old"})
    world = make_cluster(node_claims=(make_claim("a"), drifted, current))
    noted = {
        (patch.kind, patch.name): dict(patch.annotations)
        for patch in filter_actions(PatchMetadata, decide_lifecycle(world, hashes={"default": "h"}))
        if labels.NODEPOOL_HASH_VERSION in dict(patch.annotations)
    }
    annotations = version | {labels.NODEPOOL_HASH: "h"}
    assert noted == {("NodePool", "default"): annotations, ("NodeClaim", "a"): annotations, ("NodeClaim", "b"): version}


def test_known_node_pool_hash_is_not_written_again() -> None:
    annotations = {labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION, labels.NODEPOOL_HASH: "h"}
    signed = replace_fields(
        POOL, meta=replace_fields(POOL.meta, annotations=build_pairs((HEALTH, *annotations.items())))
    )
    assert not filter_actions(
        PatchMetadata, decide_lifecycle(make_cluster(node_pools=(signed,)), hashes={"default": "h"})
    )


CLASS_VERSION = {labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE}
HASHED = replace_fields(NODE_CLASS, spec_hash="h")


def get_hash_annotations(
    *claims: NodeClaim, node_class: EC2NodeClass = HASHED
) -> dict[tuple[str, str], dict[str, str]]:
    """Return the annotations about the hash of a node class, by kind and name."""
    world = make_cluster(node_classes=(node_class,), node_claims=claims)
    return {
        (patch.kind, patch.name): dict(patch.annotations)
        for patch in filter_actions(PatchMetadata, decide_lifecycle(world))
        if labels.NODECLASS_HASH_VERSION in dict(patch.annotations)
    }


def test_new_node_class_hash_version_is_written_without_causing_drift() -> None:
    annotations = CLASS_VERSION | {labels.NODECLASS_HASH: "h"}
    older = {labels.NODECLASS_HASH: "x", labels.NODECLASS_HASH_VERSION: "v6"}
    current = CLASS_VERSION | {labels.NODECLASS_HASH: "differs, and drifts"}
    noted = get_hash_annotations(
        make_claim("a", annotations=older),
        make_claim("b", annotations=older, conditions=make_true_conditions(*STAGES, "Drifted")),
        make_claim("c", annotations=current),
        make_claim("d", launched=False),
        replace_fields(make_claim("e"), node_class=NodeClassRef(name="other")),
    )
    assert noted == {
        ("EC2NodeClass", "default"): annotations,
        ("NodeClaim", "a"): annotations,
        ("NodeClaim", "b"): CLASS_VERSION,
    }


def test_node_claim_hashes_are_migrated_before_the_node_class_hash() -> None:
    world = make_cluster(node_classes=(HASHED,), node_claims=(make_claim("a"),))
    kinds = [
        patch.kind
        for patch in filter_actions(PatchMetadata, decide_lifecycle(world))
        if labels.NODECLASS_HASH in dict(patch.annotations)
    ]
    assert kinds == ["NodeClaim", "EC2NodeClass"]


def test_known_node_class_hash_is_not_written_again() -> None:
    annotations = build_pairs(CLASS_VERSION | {labels.NODECLASS_HASH: "h"})
    signed = replace_fields(HASHED, meta=replace_fields(HASHED.meta, annotations=annotations))
    assert get_hash_annotations(node_class=signed) == {}


def list_class_actions(meta: ObjectMeta, *claims: NodeClaim, problems: Case = ()) -> list[str]:
    """Return what is done to the class itself: the finalizers written, or the event's message."""
    world = make_cluster(node_classes=(replace_fields(NODE_CLASS, meta=meta),), node_claims=claims, problems=problems)
    actions = decide_lifecycle(world)
    patched = [
        str(patch.finalizers) for patch in filter_actions(PatchMetadata, actions) if patch.kind == "EC2NodeClass"
    ]
    messages = [event.message for event in filter_actions(PublishEvent, actions) if event.kind == "EC2NodeClass"]
    return patched + messages


CLASS_FINALIZERS = ("other/finalizer", labels.NODECLASS_FINALIZER)
UNREAD = (Problem(kind="NodeClaim", name="unread", message="spec: what is this?"),)


@pytest.mark.parametrize(
    ("meta", "claims", "problems", "expected_action"),
    [
        (ObjectMeta(name="default"), (), (), "('karpenter.k8s.aws/termination',)"),
        (ObjectMeta(name="default", finalizers=CLASS_FINALIZERS), (), (), ""),
        (ObjectMeta(name="default", finalizers=CLASS_FINALIZERS, deleted_at=NOW), (), (), "('other/finalizer',)"),
        (ObjectMeta(name="default", finalizers=CLASS_FINALIZERS[:1], deleted_at=NOW), (), (), ""),
        (
            ObjectMeta(name="default", finalizers=CLASS_FINALIZERS, deleted_at=NOW),
            ("b", "a"),
            (),
            "waiting for NodeClaims to be deleted: a, b",
        ),
        (
            ObjectMeta(name="default", finalizers=CLASS_FINALIZERS, deleted_at=NOW),
            tuple("abcdefg"),
            (),
            "a, b, c, d, e and 2 more",
        ),
        (ObjectMeta(name="default", finalizers=CLASS_FINALIZERS, deleted_at=NOW), (), UNREAD, "to be deleted: unread"),
        (ObjectMeta(name="other", finalizers=CLASS_FINALIZERS, deleted_at=NOW), ("a",), (), "('other/finalizer',)"),
    ],
)
def test_node_class_keeps_its_finalizer_until_its_last_node_claim_is_deleted(
    meta: ObjectMeta, claims: tuple[str, ...], problems: Case, expected_action: str
) -> None:
    actions = list_class_actions(meta, *(make_claim(name) for name in claims), problems=problems)
    assert len(actions) == bool(expected_action)
    assert all(expected_action in action for action in actions)


def test_status_patches_are_valid_json() -> None:
    for patch in filter_actions(PatchStatus, decide_lifecycle(build_quiet_cluster([make_pod()]))):
        assert isinstance(json.loads(patch.status), dict)
