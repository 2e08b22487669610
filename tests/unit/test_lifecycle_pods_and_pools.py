"""Pod events, quiet nodes, and what NodePools say of themselves."""

import json
from datetime import timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.model import labels
from shared.model.action import FollowUp, PatchMetadata, PatchStatus
from shared.model.cluster import Cluster
from shared.model.objects import Condition, Meta, Problem, pairs
from shared.model.resources import parse_resources
from shared.model.state import pod_digest
from tests.unit.lifecycle_cases import (
    BIRTH,
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
        "Ready": "True",
        "ValidationSucceeded": "True",
    }


def test_a_pool_says_nothing_twice() -> None:
    ready = true("NodeClassReady", "Ready", "ValidationSucceeded")
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
    signed = changed(POOL, meta=changed(POOL.meta, annotations=pairs(both)))
    assert not of(PatchMetadata, decide(cluster(node_pools=(signed,)), hashes={"default": "h"}))


def test_statuses_are_json() -> None:
    for one in of(PatchStatus, decide(quiet([pod()]))):
        assert isinstance(json.loads(one.status), dict)
