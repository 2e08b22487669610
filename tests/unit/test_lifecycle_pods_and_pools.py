"""Pod events, quiet nodes, and what NodePools say of themselves."""

import json
from datetime import timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.model import labels
from shared.model.action import FollowUp, PatchMetadata, PatchStatus, PublishEvent
from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Problem, pairs
from shared.model.resources import parse_resources
from shared.model.state import pod_digest
from tests.unit.lifecycle_cases import (
    BIRTH,
    HEALTH,
    NODE_CLASS,
    NOW,
    POOL,
    STAGES,
    Case,
    ago,
    changed,
    claim,
    cluster,
    node,
    of,
    pod,
    statuses,
    true,
)


def quiet(pods: Case = (), **fields: Case) -> Cluster:
    mine = claim(annotations={labels.POD_DIGEST: pod_digest(pods)}, **fields)
    return cluster(node_claims=(mine,), nodes=(node(),), pods=tuple(pods))


def digests(world: Cluster) -> list[str]:
    noted = (dict(one.annotations) for one in of(PatchMetadata, decide(world)) if one.kind == "NodeClaim")
    return [one[labels.POD_DIGEST] for one in noted if labels.POD_DIGEST in one]


def test_unchanged_pods_are_no_event() -> None:
    world = quiet([pod()])
    assert digests(world) == []
    assert "lastPodEventTime" not in statuses(decide(world))


def test_a_changed_pod_is_an_event_and_the_time_is_written_before_the_digest() -> None:
    world = changed(quiet([pod()]), pods=(pod(deleted=NOW),))
    actions = decide(world)
    assert statuses(actions)["lastPodEventTime"] == "2026-11-21T12:00:00Z"
    [status] = [one for one in of(PatchStatus, actions) if one.kind == "NodeClaim"]
    [write] = [one for one in of(PatchMetadata, actions) if one.kind == "NodeClaim"]
    assert actions.index(status) < actions.index(write)
    assert dict(write.annotations)[labels.POD_DIGEST] == pod_digest((pod(deleted=NOW),))


@pytest.mark.parametrize(
    ("pods", "known", "told"),
    [((pod(),), None, True), ((pod(),), BIRTH, False), ((pod(daemon=True),), None, False), ((), None, False)],
)
def test_the_first_look_is_an_event_only_if_pods_are_there_and_no_time_is_known(
    pods: Case,
    known: Case,
    told: bool,  # noqa: FBT001
) -> None:
    world = cluster(node_claims=(claim(last_pod_event_at=known),), nodes=(node(),), pods=pods)
    assert len(digests(world)) == 1
    assert ("lastPodEventTime" in statuses(decide(world))) is told


@pytest.mark.parametrize(
    ("event", "after", "is_quiet", "wake"),
    [
        (ago(seconds=29), timedelta(seconds=30), False, 1),
        (ago(seconds=30), timedelta(seconds=30), True, None),
        (None, timedelta(hours=1), True, None),
        (None, timedelta(hours=1, seconds=9), False, 9),
        (None, None, False, None),
        (ago(), timedelta(hours=2), False, None),
    ],
)
def test_a_node_is_consolidatable_once_it_was_quiet_for_long_enough(
    event: Case,
    after: Case,
    is_quiet: bool,  # noqa: FBT001
    wake: float | None,
) -> None:
    marked = true(*STAGES) if is_quiet else true(*STAGES, "Consolidatable")
    world = changed(
        quiet(last_pod_event_at=event, conditions=marked), node_pools=(changed(POOL, consolidate_after=after),)
    )
    actions = decide(world)
    told = statuses(actions)["conditions"].get("Consolidatable")
    assert (told is not None and told["status"] == "True") is is_quiet
    assert [one.after.total_seconds() for one in of(FollowUp, actions)] == ([wake] if wake else [])


@pytest.mark.parametrize("pools", [(), (changed(POOL, replicas=3),)])
def test_nodes_of_no_pool_or_a_static_one_are_not_judged(pools: Case) -> None:
    world = changed(quiet(conditions=true(*STAGES, "Ready", since=NOW)), node_pools=pools)
    assert "Consolidatable" not in statuses(decide(world)).get("conditions", {})


def pool_status(**fields: Case) -> dict[str, Case]:
    return statuses(decide(cluster(**fields)), "NodePool")


def test_a_pool_says_what_it_uses_and_zero_of_the_rest() -> None:
    status = pool_status(node_claims=(claim(),), nodes=(node(),))
    assert status["nodes"] == 1
    assert status["resources"] == {
        "cpu": "4",
        "ephemeral-storage": "0",
        "memory": "8Gi",
        "nodes": "1",
        "pods": "30",
    }
    assert {type_: one["status"] for type_, one in status["conditions"].items()} == {
        "NodeClassReady": "True",
        "NodeRegistrationHealthy": "Unknown",
        "Ready": "True",
        "ValidationSucceeded": "True",
    }


def test_a_pool_says_nothing_twice() -> None:
    ready = true("NodeClassReady", "NodeRegistrationHealthy", "Ready", "ValidationSucceeded")
    usage = parse_resources({"cpu": 4, "memory": "8Gi", "pods": 30, "nodes": 1})
    told = changed(POOL, conditions=ready, usage=usage)
    assert pool_status(node_pools=(told,), node_claims=(claim(),), nodes=(node(),)) == {}
    shrunk = pool_status(node_pools=(changed(told, usage=parse_resources({"gpu": 1})),))
    assert shrunk["resources"]["gpu"] is None
    assert shrunk["conditions"] == {}


@pytest.mark.parametrize(
    ("node_classes", "status", "reason"),
    [
        ((), "False", "NodeClassNotFound"),
        ((changed(NODE_CLASS, meta=Meta(name="default", deleted_at=NOW)),), "False", "NodeClassTerminating"),
        ((changed(NODE_CLASS, conditions=()),), "Unknown", "NodeClassReadinessUnknown"),
        ((changed(NODE_CLASS, meta=Meta(name="default", generation=2)),), "Unknown", "NodeClassReadinessUnknown"),
        (
            (
                changed(
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
def test_a_pool_is_as_ready_as_its_node_class(node_classes: Case, status: str, reason: str) -> None:
    told = pool_status(node_classes=node_classes)["conditions"]
    assert (told["NodeClassReady"]["status"], told["NodeClassReady"]["reason"]) == (status, reason)
    assert told["Ready"]["status"] == status


def test_a_pool_that_is_not_valid_says_why() -> None:
    bad = Problem(kind="NodePool", name="default", message="spec.weight: 101 is over 100")
    other = Problem(kind="NodePool", name="other", message="no")
    told = pool_status(problems=(other, bad))["conditions"]["ValidationSucceeded"]
    assert (told["status"], told["reason"], told["message"]) == ("False", "NodePoolValidationFailed", bad.message)


def test_hashes_are_written_where_they_differ_and_a_new_kind_of_hash_makes_nothing_drift() -> None:
    version = {labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION}
    drifted = claim("b", conditions=true(*STAGES, "Drifted"))
    current = claim("c", annotations=version | {labels.NODEPOOL_HASH: "old"})
    world = cluster(node_claims=(claim("a"), drifted, current))
    noted = {
        (one.kind, one.name): dict(one.annotations)
        for one in of(PatchMetadata, decide(world, hashes={"default": "h"}))
        if labels.NODEPOOL_HASH_VERSION in dict(one.annotations)
    }
    both = version | {labels.NODEPOOL_HASH: "h"}
    assert noted == {("NodePool", "default"): both, ("NodeClaim", "a"): both, ("NodeClaim", "b"): version}


def test_a_known_hash_is_not_written_again() -> None:
    both = {labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION, labels.NODEPOOL_HASH: "h"}
    signed = changed(POOL, meta=changed(POOL.meta, annotations=pairs((HEALTH, *both.items()))))
    assert not of(PatchMetadata, decide(cluster(node_pools=(signed,)), hashes={"default": "h"}))


CLASS_VERSION = {labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE}
HASHED = changed(NODE_CLASS, hashed="h")


def class_notes(*claims: NodeClaim, node_class: EC2NodeClass = HASHED) -> dict[tuple[str, str], dict[str, str]]:
    """Answer by kind and name what is noted about the hash of a node class."""
    world = cluster(node_classes=(node_class,), node_claims=claims)
    return {
        (one.kind, one.name): dict(one.annotations)
        for one in of(PatchMetadata, decide(world))
        if labels.NODECLASS_HASH_VERSION in dict(one.annotations)
    }


def test_a_class_says_its_hash_and_a_new_kind_of_hash_makes_no_node_drift() -> None:
    both = CLASS_VERSION | {labels.NODECLASS_HASH: "h"}
    older = {labels.NODECLASS_HASH: "x", labels.NODECLASS_HASH_VERSION: "v6"}
    current = CLASS_VERSION | {labels.NODECLASS_HASH: "differs, and drifts"}
    noted = class_notes(
        claim("a", annotations=older),
        claim("b", annotations=older, conditions=true(*STAGES, "Drifted")),
        claim("c", annotations=current),
        claim("d", launched=False),
        changed(claim("e"), node_class=NodeClassRef(name="other")),
    )
    assert noted == {
        ("EC2NodeClass", "default"): both,
        ("NodeClaim", "a"): both,
        ("NodeClaim", "b"): CLASS_VERSION,
    }


def test_claims_are_carried_over_before_their_class_says_the_new_hash() -> None:
    world = cluster(node_classes=(HASHED,), node_claims=(claim("a"),))
    kinds = [one.kind for one in of(PatchMetadata, decide(world)) if labels.NODECLASS_HASH in dict(one.annotations)]
    assert kinds == ["NodeClaim", "EC2NodeClass"]


def test_a_classes_hash_that_is_known_is_not_written_again() -> None:
    both = pairs(CLASS_VERSION | {labels.NODECLASS_HASH: "h"})
    signed = changed(HASHED, meta=changed(HASHED.meta, annotations=both))
    assert class_notes(node_class=signed) == {}


def class_actions(meta: Meta, *claims: NodeClaim, problems: Case = ()) -> list[str]:
    """Answer what is done about the class itself: the finalizers written, or the event."""
    world = cluster(node_classes=(changed(NODE_CLASS, meta=meta),), node_claims=claims, problems=problems)
    actions = decide(world)
    patched = [str(one.finalizers) for one in of(PatchMetadata, actions) if one.kind == "EC2NodeClass"]
    told = [one.message for one in of(PublishEvent, actions) if one.kind == "EC2NodeClass"]
    return patched + told


HELD = ("other/finalizer", labels.NODECLASS_FINALIZER)
UNREAD = (Problem(kind="NodeClaim", name="unread", message="spec: what is this?"),)


@pytest.mark.parametrize(
    ("meta", "claims", "problems", "done"),
    [
        (Meta(name="default"), (), (), "('karpenter.k8s.aws/termination',)"),
        (Meta(name="default", finalizers=HELD), (), (), ""),
        (Meta(name="default", finalizers=HELD, deleted_at=NOW), (), (), "('other/finalizer',)"),
        (Meta(name="default", finalizers=HELD[:1], deleted_at=NOW), (), (), ""),
        (
            Meta(name="default", finalizers=HELD, deleted_at=NOW),
            ("b", "a"),
            (),
            "waiting for NodeClaims to be gone: a, b",
        ),
        (Meta(name="default", finalizers=HELD, deleted_at=NOW), tuple("abcdefg"), (), "a, b, c, d, e and 2 more"),
        (Meta(name="default", finalizers=HELD, deleted_at=NOW), (), UNREAD, "to be gone: unread"),
        (Meta(name="other", finalizers=HELD, deleted_at=NOW), ("a",), (), "('other/finalizer',)"),
    ],
)
def test_a_class_stays_until_its_last_claim_is_gone(
    meta: Meta, claims: tuple[str, ...], problems: Case, done: str
) -> None:
    found = class_actions(meta, *(claim(name) for name in claims), problems=problems)
    assert len(found) == bool(done)
    assert all(done in one for one in found)


def test_statuses_are_json() -> None:
    for one in of(PatchStatus, decide(quiet([pod()]))):
        assert isinstance(json.loads(one.status), dict)
