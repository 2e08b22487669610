"""Instances for which EC2 reports failed status checks or scheduled events."""

from datetime import datetime, timedelta

import pytest

from shared.model.core import labels
from shared.model.core.units import format_instant
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PatchMetadata, PublishEvent, TaintNode
from shared.model.ec2.instance import FailedCheck, InstanceStatus, ScheduledEvent
from tests.support.lifecycle_cases import (
    NOW,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
)
from tests.support.snapshot_decisions import decide_lifecycle

SYSTEM = FailedCheck(kind="system", since=get_time_before(seconds=120))
OWN = FailedCheck(kind="instance", since=get_time_before(minutes=5))
RETIRED = ScheduledEvent(event_id="e-1", code="instance-retirement", begins_at=NOW + timedelta(days=7))


def decide_for_status(
    *failed: FailedCheck, events: tuple[ScheduledEvent, ...] = (), instance_id: str = "i-a", **fields: Case
) -> Case:
    status = InstanceStatus(instance_id=instance_id, failed=failed, events=events)
    world = make_cluster(
        node_claims=(make_claim(**fields),), nodes=(make_node(),), instances=(make_instance(),), statuses=(status,)
    )
    return decide_lifecycle(world)


def list_claim_deletions(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    return [
        (deletion.name, deletion.message)
        for deletion in filter_actions(DeleteObject, actions)
        if deletion.kind == "NodeClaim"
    ]


def list_deadlines(actions: tuple[Action, ...]) -> list[str]:
    notes = (dict(patch.annotations) for patch in filter_actions(PatchMetadata, actions) if patch.kind == "NodeClaim")
    return [note[labels.TERMINATION_TIMESTAMP] for note in notes if labels.TERMINATION_TIMESTAMP in note]


def test_a_machine_that_failed_a_status_check_for_two_minutes_goes_with_its_time_up() -> None:
    actions = decide_for_status(SYSTEM)
    assert list_claim_deletions(actions) == [("a", "system_status")]
    assert list_deadlines(actions) == [format_instant(NOW)]
    assert {follow_up.function for follow_up in filter_actions(FollowUp, actions)} >= {"lifecycle", "provision"}
    warnings = [
        (event.kind, event.reason, event.type)
        for event in filter_actions(PublishEvent, actions)
        if event.type == "Warning"
    ]
    kinds_and_tones = [("NodeClaim", "Warning"), ("Node", "Warning")]
    assert warnings == [
        (kind, reason, tone)
        for reason in ("InstanceUnhealthy", "TerminatingOnInterruption")
        for kind, tone in kinds_and_tones
    ]


@pytest.mark.parametrize(
    ("since", "goes"),
    [(get_time_before(seconds=119), False), (get_time_before(seconds=120), True), (NOW + timedelta(seconds=9), False)],
)
def test_a_check_that_failed_shortly_is_waited_for(since: datetime, goes: bool) -> None:  # noqa: FBT001 - a case
    assert bool(list_claim_deletions(decide_for_status(FailedCheck(kind="instance", since=since)))) is goes


def test_the_first_check_that_is_overdue_is_the_reason() -> None:
    young = FailedCheck(kind="instance", since=get_time_before(seconds=5))
    assert list_claim_deletions(decide_for_status(OWN, SYSTEM)) == [("a", "instance_status")]
    assert list_claim_deletions(decide_for_status(young, SYSTEM)) == [("a", "system_status")]


def test_a_deadline_that_stands_is_not_moved_for_a_status_check() -> None:
    actions = decide_for_status(OWN, annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T13:00:00Z"})
    assert list_claim_deletions(actions) == [("a", "instance_status")]
    assert list_deadlines(actions) == []


def test_what_lies_ahead_of_a_machine_is_a_scheduled_change() -> None:
    actions = decide_for_status(events=(RETIRED,))
    assert list_claim_deletions(actions) == [("a", "scheduled_change")]
    assert list_deadlines(actions) == []
    [taint] = filter_actions(TaintNode, actions)
    assert dict(taint.annotations) == {labels.ENDS_AT: "2026-11-28T12:00:00Z"}


def test_a_broken_machine_is_not_drained_for_what_lies_ahead_of_it() -> None:
    assert list_claim_deletions(decide_for_status(OWN, events=(RETIRED,))) == [("a", "instance_status")]


@pytest.mark.parametrize("status", [{"failed": (OWN,)}, {"events": (RETIRED,)}])
def test_a_claim_that_goes_already_is_not_deleted_for_its_status(status: Case) -> None:
    actions = decide_for_status(
        *status.get("failed", ()), events=status.get("events", ()), deleted=get_time_before(seconds=1)
    )
    assert list_claim_deletions(actions) == []
    assert list_deadlines(actions) == []


def test_the_machines_of_others_are_left_alone_whatever_their_status() -> None:
    assert list_claim_deletions(decide_for_status(OWN, events=(RETIRED,), instance_id="i-foreign")) == []


def test_without_an_answer_about_statuses_nobody_is_broken() -> None:
    world = make_cluster(node_claims=(make_claim(),), nodes=(make_node(),), instances=(make_instance(),), statuses=None)
    assert list_claim_deletions(decide_lifecycle(world)) == []
