"""Which nodes of an EC2NodeClass count as failures to register, and what is reported about them."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.decide.lifecycle.reconcile_context import build_lifecycle_context
from shared.decide.lifecycle.status.launch_failures import record_launch_failures
from shared.model.core.labels import CANARY, LAUNCH_FAILURES, PAUSE_AFTER_FAILURES
from shared.model.core.metadata import Problem, build_pairs
from shared.model.decisions.action import PatchMetadata, PublishEvent
from shared.model.karpenter.health.launch_failures import LaunchFailures
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import (
    BIRTH,
    NODE_CLASS,
    NOW,
    Case,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_true_conditions,
    make_unknown_condition,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle


def make_class(failures: LaunchFailures | None, limit: str = "3", **annotations: str) -> EC2NodeClass:
    texts = {PAUSE_AFTER_FAILURES: limit} | {key: value for key, value in annotations.items() if value}
    if failures is not None:
        texts[LAUNCH_FAILURES] = msgspec.json.encode(failures).decode()
    return replace_fields(NODE_CLASS, meta=replace_fields(NODE_CLASS.meta, annotations=build_pairs(texts)))


def make_history(*failed: str, **fields: Any) -> LaunchFailures:
    launched_at = get_time_before(minutes=20)
    defaults: dict[str, Any] = {
        "generation": NODE_CLASS.meta.generation,
        "since": get_time_before(minutes=60),
        "failed": {f"{name}/uid-{name}": launched_at for name in failed},
    }
    return LaunchFailures(**(defaults | fields))


def make_unregistered_claim(name: str, minutes: float, **fields: Case) -> Case:
    """Return a claim that was launched *minutes* ago and has not registered."""
    at = get_time_before(minutes=minutes)
    conditions = (*make_true_conditions("Launched", since=at), make_unknown_condition("Registered", "NodeNotFound", at))
    return make_claim(name, conditions=conditions, created=at, node_name="", **fields)


def make_registered_claim(name: str, minutes: float, launched: float | None = None) -> Case:
    launched_at = get_time_before(minutes=minutes + 1 if launched is None else launched)
    registered = make_true_conditions("Registered", since=get_time_before(minutes=minutes))
    return make_claim(name, conditions=(*make_true_conditions("Launched", since=launched_at), *registered))


def record(node_class: EC2NodeClass, *claims: Case, **fields: Case) -> tuple[LaunchFailures | None, list[str]]:
    """Return what is written, None for nothing, and the events."""
    defaults = {"node_classes": (node_class,), "node_claims": claims, "nodes": (), "pods": ()}
    actions = record_launch_failures(
        node_class, build_lifecycle_context(ClusterState(make_cluster(**(defaults | fields))))
    )
    failures = None
    for action in actions:
        if isinstance(action, PatchMetadata):
            [(key, text)] = action.annotations
            assert key == LAUNCH_FAILURES
            failures = msgspec.json.decode(text or "", type=LaunchFailures)
    events = [f"{action.reason}: {action.message}" for action in actions if isinstance(action, PublishEvent)]
    return failures, events


def list_failed(node_class: EC2NodeClass, *claims: Case, **fields: Case) -> list[str]:
    """Return the names of the claims that are recorded as failed."""
    failures, _ = record(node_class, *claims, **fields)
    return [] if failures is None else [key.partition("/")[0] for key in failures.failed]


def test_history_begins_when_the_annotation_is_set() -> None:
    failures, events = record(make_class(None), make_unregistered_claim("a", 12))
    assert failures == LaunchFailures(generation=NODE_CLASS.meta.generation, since=NOW)
    assert events == []


def test_node_that_did_not_register_in_time_counts_once() -> None:
    node_class = make_class(make_history())
    assert list_failed(node_class, make_unregistered_claim("a", 9)) == ["a"]
    assert record(node_class, make_unregistered_claim("a", 8.9))[0] is None
    recorded = make_history(failed={"a/uid-a": get_time_before(minutes=9)})
    assert record(make_class(recorded), make_unregistered_claim("a", 9)) == (None, [])


def test_node_that_was_launched_before_the_history_began_does_not_count() -> None:
    node_class = make_class(make_history(since=get_time_before(minutes=10)))
    assert record(node_class, make_unregistered_claim("a", 11))[0] is None


def test_change_of_the_class_begins_a_new_history() -> None:
    old_history = make_history("a", "b", "c", generation=NODE_CLASS.meta.generation - 1)
    failures, _ = record(make_class(old_history), make_unregistered_claim("d", 12))
    assert failures == LaunchFailures(generation=NODE_CLASS.meta.generation, since=NOW)


def test_deleted_claims_count_if_they_were_deleted_after_the_registration_was_due() -> None:
    node_class = make_class(make_history())
    claims = (
        make_unregistered_claim("late", 16, deleted=get_time_before(minutes=1)),
        make_unregistered_claim("early", 16, deleted=get_time_before(minutes=12)),
    )
    assert list_failed(node_class, *claims) == ["late"]


def test_node_that_joiner_cannot_see_does_not_count() -> None:
    node_class = make_class(make_history())
    unreadable = Problem(kind="Node", name="node-a", message="cannot be read")
    claim = make_unregistered_claim("a", 12)
    assert record(node_class, claim, problems=(unreadable,))[0] is None
    assert record(node_class, claim, nodes=(make_node("a", fit=False),))[0] is None


def test_node_that_joined_but_never_became_ready_counts() -> None:
    nodes = (make_node("a", fit=False, ready=False),)
    assert list_failed(make_class(make_history()), make_unregistered_claim("a", 12), nodes=nodes) == ["a"]


@pytest.mark.parametrize(
    ("state_reason", "failed"),
    [
        ("Client.InternalError: Client error on launch", ["a"]),
        ("Server.InsufficientInstanceCapacity: no capacity", []),
        ("Server.SpotInstanceTermination: Spot instance termination", []),
    ],
)
def test_instance_that_ec2_ended_early_counts_at_once_unless_capacity_is_the_cause(
    state_reason: str, failed: list[str]
) -> None:
    instance = replace_fields(make_instance("a", state="terminated"), state_reason=state_reason)
    node_class = make_class(make_history())
    claim = make_unregistered_claim("a", 1)
    assert list_failed(node_class, claim, ended_instances=(instance,)) == failed


def test_node_with_the_new_image_of_a_canary_does_not_count() -> None:
    images = (ResolvedImage(image_id="ami-good"),)
    canary_class = replace_fields(make_class(make_history(), **{CANARY: "nodes=2 soak=1h"}), resolved_images=images)
    claims = [make_unregistered_claim(name, 12, image_id=f"ami-{name}") for name in ("good", "new")]
    assert list_failed(canary_class, *claims) == ["good"]
    plain_class = replace_fields(make_class(make_history()), resolved_images=images)
    assert list_failed(plain_class, *claims) == ["good", "new"]


def test_registered_node_removes_the_failures_of_nodes_that_were_launched_before() -> None:
    node_class = make_class(make_history("a", "b", "c"))
    failures, events = record(node_class, make_registered_claim("d", 1, launched=30))
    assert failures is not None
    assert failures.failed == {}
    assert failures.registered_at == get_time_before(minutes=1)
    assert events == ["LaunchesResumed: launches have resumed: a node of EC2NodeClass default has registered"]
    failures, events = record(node_class, make_registered_claim("d", 25))
    assert failures is not None
    assert len(failures.failed) == 3
    assert events == []


def test_few_bad_nodes_among_many_good_ones_do_not_pause_launches() -> None:
    claims = [make_unregistered_claim(f"bad-{number}", 10) for number in range(3)]
    assert list_failed(make_class(make_history()), make_registered_claim("good", 9), *claims) == []


def test_registration_is_remembered_while_nodes_that_were_launched_before_are_starting() -> None:
    node_class = make_class(make_history())
    failures, _ = record(node_class, make_registered_claim("good", 3), make_unregistered_claim("bad", 5))
    assert failures == make_history(registered_at=get_time_before(minutes=3))
    # The good node is removed before the bad one is due.
    later_class = make_class(failures)
    later_claim = make_unregistered_claim("bad", 5)
    assert list_failed(later_class, later_claim, taken_at=NOW + timedelta(minutes=5)) == []
    assert record(node_class, make_registered_claim("good", 3))[0] is None
    assert record(node_class, make_registered_claim("good", 6), make_unregistered_claim("bad", 5))[0] is None


def test_pause_is_reported_when_it_begins_and_for_each_failed_test() -> None:
    failures, events = record(make_class(make_history("a", "b")), make_unregistered_claim("c", 9))
    assert failures is not None
    assert sorted(failures.failed) == ["a/uid-a", "b/uid-b", "c/uid-c"]
    [event] = events
    assert event.startswith("LaunchesPaused: launches are paused: the last 3 nodes of EC2NodeClass default did not")
    _, events = record(make_class(make_history("a", "b", "c")), make_unregistered_claim("d", 9))
    [event] = events
    assert "the last 4 nodes" in event
    assert record(make_class(make_history("a")), make_unregistered_claim("b", 9))[1] == []


def test_history_keeps_the_newest_hundred_failures() -> None:
    failed = {f"c{number}/u": BIRTH + timedelta(seconds=number) for number in range(100)}
    history = make_history(failed=failed, since=datetime(2020, 1, 1, tzinfo=NOW.tzinfo))
    failures, _ = record(make_class(history), make_unregistered_claim("new", 10))
    assert failures is not None
    assert len(failures.failed) == 100
    assert "new/uid-new" in failures.failed
    assert "c0/u" not in failures.failed


@pytest.mark.parametrize("limit", ["", "1"])
def test_class_without_a_valid_limit_gets_no_history(limit: str) -> None:
    claims = [make_unregistered_claim(f"c{number}", 12) for number in range(4)]
    node_class = make_class(None, limit)
    assert record(node_class, *claims) == (None, [])
    plain_actions = decide_lifecycle(make_cluster(node_claims=tuple(claims), nodes=(), pods=()))
    actions = decide_lifecycle(make_cluster(node_classes=(node_class,), node_claims=tuple(claims), nodes=(), pods=()))
    assert actions == plain_actions


def test_class_that_is_being_deleted_is_left_alone() -> None:
    node_class = make_class(make_history())
    deleted_class = replace_fields(node_class, meta=replace_fields(node_class.meta, deleted_at=NOW))
    assert record(deleted_class, make_unregistered_claim("a", 12)) == (None, [])


def test_lifecycle_records_failures_of_the_class_of_each_claim() -> None:
    claims = (make_unregistered_claim("a", 10), make_registered_claim("b", 30))
    node_class = make_class(make_history())
    actions = decide_lifecycle(make_cluster(node_classes=(node_class,), node_claims=claims, nodes=(), pods=()))
    patches = [
        action
        for action in actions
        if isinstance(action, PatchMetadata) and action.annotations and action.annotations[0][0] == LAUNCH_FAILURES
    ]
    assert [patch.name for patch in patches] == ["default"]
