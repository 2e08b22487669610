"""Machines of which EC2, when asked, says that they are broken or about to be touched."""

from datetime import datetime, timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.model import labels
from shared.model.action import Action, DeleteObject, FollowUp, PatchMetadata, PublishEvent, TaintNode
from shared.model.ec2 import FailedCheck, InstanceStatus, ScheduledEvent
from shared.model.units import instant_text
from tests.unit.lifecycle_cases import NOW, Case, ago, claim, cluster, instance, node, of

SYSTEM = FailedCheck(of="system", since=ago(seconds=120))
OWN = FailedCheck(of="instance", since=ago(minutes=5))
RETIRED = ScheduledEvent(event_id="e-1", code="instance-retirement", begins_at=NOW + timedelta(days=7))


def heard(*failed: FailedCheck, events: tuple[ScheduledEvent, ...] = (), of: str = "i-a", **fields: Case) -> Case:
    status = InstanceStatus(instance_id=of, failed=failed, events=events)
    world = cluster(node_claims=(claim(**fields),), nodes=(node(),), instances=(instance(),), statuses=(status,))
    return decide(world)


def deletions(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    return [(one.name, one.why) for one in of(DeleteObject, actions) if one.kind == "NodeClaim"]


def deadlines(actions: tuple[Action, ...]) -> list[str]:
    notes = (dict(one.annotations) for one in of(PatchMetadata, actions) if one.kind == "NodeClaim")
    return [note[labels.TERMINATION_TIMESTAMP] for note in notes if labels.TERMINATION_TIMESTAMP in note]


def test_a_machine_that_failed_a_status_check_for_two_minutes_goes_with_its_time_up() -> None:
    actions = heard(SYSTEM)
    assert deletions(actions) == [("a", "system_status")]
    assert deadlines(actions) == [instant_text(NOW)]
    assert {one.function for one in of(FollowUp, actions)} >= {"lifecycle", "provision"}
    told = [(one.kind, one.reason, one.type) for one in of(PublishEvent, actions) if one.type == "Warning"]
    both = [("NodeClaim", "Warning"), ("Node", "Warning")]
    assert told == [
        (kind, why, tone) for why in ("InstanceUnhealthy", "TerminatingOnInterruption") for kind, tone in both
    ]


@pytest.mark.parametrize(
    ("since", "goes"), [(ago(seconds=119), False), (ago(seconds=120), True), (NOW + timedelta(seconds=9), False)]
)
def test_a_check_that_failed_shortly_is_waited_for(since: datetime, goes: bool) -> None:  # noqa: FBT001 - a case
    assert bool(deletions(heard(FailedCheck(of="instance", since=since)))) is goes


def test_the_first_check_that_is_overdue_is_the_reason() -> None:
    young = FailedCheck(of="instance", since=ago(seconds=5))
    assert deletions(heard(OWN, SYSTEM)) == [("a", "instance_status")]
    assert deletions(heard(young, SYSTEM)) == [("a", "system_status")]


def test_a_deadline_that_stands_is_not_moved_for_a_status_check() -> None:
    actions = heard(OWN, annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T13:00:00Z"})
    assert deletions(actions) == [("a", "instance_status")]
    assert deadlines(actions) == []


def test_what_lies_ahead_of_a_machine_is_a_scheduled_change() -> None:
    actions = heard(events=(RETIRED,))
    assert deletions(actions) == [("a", "scheduled_change")]
    assert deadlines(actions) == []
    [taint] = of(TaintNode, actions)
    assert dict(taint.annotations) == {labels.ENDS_AT: "2026-11-28T12:00:00Z"}


def test_a_broken_machine_is_not_drained_for_what_lies_ahead_of_it() -> None:
    assert deletions(heard(OWN, events=(RETIRED,))) == [("a", "instance_status")]


@pytest.mark.parametrize("status", [{"failed": (OWN,)}, {"events": (RETIRED,)}])
def test_a_claim_that_goes_already_is_not_deleted_for_its_status(status: Case) -> None:
    actions = heard(*status.get("failed", ()), events=status.get("events", ()), deleted=ago(seconds=1))
    assert deletions(actions) == []
    assert deadlines(actions) == []


def test_the_machines_of_others_are_left_alone_whatever_their_status() -> None:
    assert deletions(heard(OWN, events=(RETIRED,), of="i-foreign")) == []


def test_without_an_answer_about_statuses_nobody_is_broken() -> None:
    world = cluster(node_claims=(claim(),), nodes=(node(),), instances=(instance(),), statuses=None)
    assert deletions(decide(world)) == []
