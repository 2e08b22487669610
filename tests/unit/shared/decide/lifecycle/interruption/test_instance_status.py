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


def test_instance_with_a_status_check_failed_for_two_minutes_is_terminated_immediately() -> None:
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
def test_status_check_that_failed_less_than_two_minutes_ago_is_ignored(since: datetime, goes: bool) -> None:  # noqa: FBT001 - a case
    assert bool(list_claim_deletions(decide_for_status(FailedCheck(kind="instance", since=since)))) is goes


def test_first_overdue_status_check_is_the_termination_reason() -> None:
    young = FailedCheck(kind="instance", since=get_time_before(seconds=5))
    assert list_claim_deletions(decide_for_status(OWN, SYSTEM)) == [("a", "instance_status")]
    assert list_claim_deletions(decide_for_status(young, SYSTEM)) == [("a", "system_status")]


def test_existing_termination_deadline_is_kept_on_a_failed_status_check() -> None:
    actions = decide_for_status(OWN, annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T13:00:00Z"})
    assert list_claim_deletions(actions) == [("a", "instance_status")]
    assert list_deadlines(actions) == []


def test_scheduled_ec2_event_interrupts_the_node_and_records_its_start() -> None:
    actions = decide_for_status(events=(RETIRED,))
    assert list_claim_deletions(actions) == [("a", "scheduled_change")]
    assert list_deadlines(actions) == []
    [taint] = filter_actions(TaintNode, actions)
    assert dict(taint.annotations) == {labels.ENDS_AT: "2026-11-28T12:00:00Z"}


def test_failed_status_check_takes_precedence_over_a_scheduled_event() -> None:
    assert list_claim_deletions(decide_for_status(OWN, events=(RETIRED,))) == [("a", "instance_status")]


@pytest.mark.parametrize("status", [{"failed": (OWN,)}, {"events": (RETIRED,)}])
def test_deleting_node_claim_is_not_deleted_again_for_its_instance_status(status: Case) -> None:
    actions = decide_for_status(
        *status.get("failed", ()), events=status.get("events", ()), deleted=get_time_before(seconds=1)
    )
    assert list_claim_deletions(actions) == []
    assert list_deadlines(actions) == []


def test_instance_status_of_foreign_instances_is_ignored() -> None:
    assert list_claim_deletions(decide_for_status(OWN, events=(RETIRED,), instance_id="i-foreign")) == []


def test_missing_instance_statuses_cause_no_deletion() -> None:
    world = make_cluster(node_claims=(make_claim(),), nodes=(make_node(),), instances=(make_instance(),), statuses=None)
    assert list_claim_deletions(decide_lifecycle(world)) == []
