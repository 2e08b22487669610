"""Instances that EC2 ends before their node registers: the reason is reported once, and only if EC2 decided."""

import json
from datetime import timedelta

import pytest

from shared.decide.launch.fleets.circuit_breaker import EARLY_ENDS_WINDOW
from shared.decide.launch.fleets.unavailable_offerings import UNAVAILABLE_TTL
from shared.decide.lifecycle.node_claim.early_end import INSTANCE_ENDED_EARLY
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.core.labels import EARLY_ENDS
from shared.model.core.metadata import Condition
from shared.model.core.units import format_instant
from shared.model.decisions.action import (
    Action,
    DeleteObject,
    MarkUnavailable,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
)
from shared.model.ec2.types import InstanceState
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    Case,
    filter_actions,
    make_claim,
    make_cluster,
    make_instance,
    make_true_conditions,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle

KEY_ERROR = "Client.InternalError: Client error on launch"
OTHER = make_instance("b")
REPORTED_CONDITION = Condition(type="Registered", status="False", reason=INSTANCE_ENDED_EARLY, since=NOW)


def decide(claim: Case, ended: Case, **fields: Case) -> tuple[Action, ...]:
    other_claim = make_claim("b")
    return decide_lifecycle(
        make_cluster(node_claims=(claim, other_claim), instances=(OTHER,), ended_instances=(ended,), **fields)
    )


def list_reports(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    events = filter_actions(PublishEvent, actions)
    return [(event.kind, event.message) for event in events if event.reason == INSTANCE_ENDED_EARLY]


def make_unregistered_claim(*conditions: Condition) -> Case:
    return make_claim(conditions=(*make_true_conditions("Launched"), *conditions))


def make_ended_instance(reason: str = KEY_ERROR, state: InstanceState = "terminated") -> Case:
    return replace_fields(make_instance(state=state), state_reason=reason)


def test_the_reason_is_in_events_and_in_the_condition_of_the_claim() -> None:
    actions = decide(make_unregistered_claim(), make_ended_instance(), node_pools=(POOL,))
    reports = dict(list_reports(actions))
    assert reports.keys() == {"NodeClaim", "NodePool"}
    for text in reports.values():
        assert KEY_ERROR in text
        assert "kms-keys" in text
    [status] = [patch for patch in filter_actions(PatchStatus, actions) if patch.name == "a"]
    [registered] = [item for item in json.loads(status.status)["conditions"] if item["type"] == "Registered"]
    assert (registered["status"], registered["reason"]) == ("False", INSTANCE_ENDED_EARLY)
    assert registered["message"] == reports["NodeClaim"]


def test_a_claim_whose_instance_ended_early_is_deleted_at_once() -> None:
    deletions = filter_actions(DeleteObject, decide(make_unregistered_claim(), make_ended_instance()))
    assert [(deletion.kind, deletion.name, deletion.message) for deletion in deletions] == [
        ("NodeClaim", "a", "instance_terminated")
    ]


def record_with_annotation(text: str) -> list[str]:
    """Return the new value of the NodePool's annotation, if it is written."""
    meta = replace_fields(POOL.meta, annotations=(*POOL.meta.annotations, (EARLY_ENDS, text)))
    pool = replace_fields(POOL, meta=meta)
    actions = decide(make_unregistered_claim(), make_ended_instance(), node_pools=(pool,))
    patches = filter_actions(PatchMetadata, actions)
    return [value for patch in patches for key, value in patch.annotations if key == EARLY_ENDS]


def test_the_node_pool_remembers_recent_early_ends_for_the_circuit_breaker() -> None:
    now = format_instant(NOW)
    old = format_instant(NOW - EARLY_ENDS_WINDOW)
    recent = format_instant(NOW - EARLY_ENDS_WINDOW + timedelta(seconds=1))
    assert record_with_annotation("not JSON") == [f'{{"i-a":"{now}"}}']
    assert record_with_annotation(f'{{"i-x":"{old}","i-y":"{recent}"}}') == [f'{{"i-a":"{now}","i-y":"{recent}"}}']


def test_an_early_end_is_recorded_once() -> None:
    assert record_with_annotation(f'{{"i-a":"{format_instant(NOW)}"}}') == []


def test_an_unknown_reason_is_reported_without_advice() -> None:
    reports = list_reports(decide(make_unregistered_claim(), make_ended_instance("Server.InternalError: x")))
    assert [text.partition(": ")[2] for _, text in reports] == ["Server.InternalError: x"] * 2


@pytest.mark.parametrize("group_id", ["", "pg-1"])
def test_an_instance_that_ends_for_lack_of_capacity_makes_its_offering_unavailable(group_id: str) -> None:
    reason = "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy instance request"
    claim, instance = make_unregistered_claim(), make_ended_instance(reason)
    labels = (*claim.meta.labels, *((("karpenter.k8s.aws/placement-group-id", group_id),) if group_id else ()))
    claim = replace_fields(claim, meta=replace_fields(claim.meta, labels=labels))
    [mark] = filter_actions(MarkUnavailable, decide(claim, instance))
    assert mark.offering == UnavailableOffering(
        capacity_type=instance.capacity_type,
        instance_type=instance.instance_type,
        zone=instance.zone,
        until=NOW + UNAVAILABLE_TTL,
        group_id=group_id,
    )
    assert mark.message == f"i-a: {reason}"
    reported_claim = replace_fields(make_unregistered_claim(REPORTED_CONDITION), meta=make_claim(deleted=NOW).meta)
    assert filter_actions(MarkUnavailable, decide(reported_claim, instance)) == []


def test_an_instance_that_ends_for_another_reason_leaves_its_offering_available() -> None:
    assert filter_actions(MarkUnavailable, decide(make_unregistered_claim(), make_ended_instance())) == []


@pytest.mark.parametrize(
    ("claim", "instance"),
    [
        (make_claim(), make_ended_instance()),
        (make_unregistered_claim(), make_ended_instance("")),
        (make_unregistered_claim(), make_ended_instance("Client.UserInitiatedShutdown: User initiated shutdown")),
        (make_unregistered_claim(), make_ended_instance("Server.SpotInstanceTermination: Spot instance termination")),
        (make_unregistered_claim(), make_ended_instance(state="running")),
        (
            replace_fields(make_unregistered_claim(REPORTED_CONDITION), meta=make_claim(deleted=NOW).meta),
            make_ended_instance(),
        ),
    ],
    ids=["registered", "no reason", "requested", "interrupted", "running", "reported"],
)
def test_late_or_already_reported_instance_ends_are_not_reported(claim: Case, instance: Case) -> None:
    assert list_reports(decide(claim, instance)) == []
