"""Interruption messages of AWS: how they are parsed, and the immediate actions."""

import json
from datetime import datetime, timedelta

import pytest

from shared.decide.lifecycle.interruption.interruption import decide_interruptions
from shared.decide.lifecycle.interruption.messages import parse_interruption_message
from shared.model.core import labels
from shared.model.core.metadata import build_pairs
from shared.model.core.taints import DISRUPTED, Taint
from shared.model.core.units import format_instant
from shared.model.decisions.action import DeleteObject, FollowUp, MarkUnavailable, PublishEvent, TaintNode
from shared.model.decisions.interruption_message import InterruptionMessage, UnknownMessage
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import (
    LABELS,
    NOW,
    POOL,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_true_conditions,
    replace_fields,
)

EC2 = "aws.ec2"
STATE = "EC2 Instance State-change Notification"
HEALTH = {"service": "EC2", "eventTypeCategory": "scheduledChange"}


def build_message_body(detail_type: str, detail: Case, source: str = EC2, version: str = "0") -> str:
    head = {"version": version, "source": source, "detail-type": detail_type, "time": "2026-11-21T12:00:00Z"}
    return json.dumps(head | {"detail": detail})


@pytest.mark.parametrize(
    ("detail_type", "detail", "source", "kind"),
    [
        ("EC2 Spot Instance Interruption Warning", {"instance-action": "terminate"}, EC2, "spot_interrupted"),
        ("EC2 Instance Rebalance Recommendation", {}, EC2, "rebalance_recommendation"),
        (
            "EC2 Capacity Reservation Instance Interruption Warning",
            {},
            EC2,
            "capacity_reservation_interrupted",
        ),
        (STATE, {"state": "stopping"}, EC2, "instance_stopped"),
        (STATE, {"state": "Stopped"}, EC2, "instance_stopped"),
        (STATE, {"state": "shutting-down"}, EC2, "instance_terminated"),
        (STATE, {"state": "terminated"}, EC2, "instance_terminated"),
        (
            "AWS Health Event",
            HEALTH | {"affectedEntities": [{"entityValue": "i-a"}, {"entityValue": ""}]},
            "aws.health",
            "scheduled_change",
        ),
    ],
)
def test_interruption_message_is_parsed(detail_type: str, detail: Case, source: str, kind: str) -> None:
    notice = parse_interruption_message(build_message_body(detail_type, {"instance-id": "i-a"} | detail, source))
    assert isinstance(notice, InterruptionMessage)
    assert (notice.kind, notice.instance_ids, notice.at) == (kind, ("i-a",), NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "\ud800",
        '{"detail": 3}',
        "[" * 100_000,
        build_message_body(STATE, {"state": "running", "instance-id": "i-a"}),
        build_message_body(STATE, {"state": "stopped", "instance-id": ""}),
        build_message_body(STATE, {"state": "stopped"}),
        build_message_body(STATE, {"state": "stopped", "instance-id": "i-a"}, version="1"),
        build_message_body(STATE, {"state": "stopped", "instance-id": "i-a"}, source="mine"),
        build_message_body("Something else", {"instance-id": "i-a"}),
        build_message_body("AWS Health Event", HEALTH | {"service": "RDS"}, "aws.health"),
        build_message_body("AWS Health Event", HEALTH | {"eventTypeCategory": "issue"}, "aws.health"),
        build_message_body("AWS Health Event", HEALTH, "aws.health"),
    ],
)
def test_unsupported_message_is_returned_as_an_unknown_message_with_a_reason(text: str) -> None:
    unknown = parse_interruption_message(text)
    assert isinstance(unknown, UnknownMessage)
    assert unknown.reason


def test_interruption_message_without_a_valid_time_is_parsed() -> None:
    text = build_message_body("EC2 Instance Rebalance Recommendation", {"instance-id": "i-a"}).replace("2026", "never")
    assert parse_interruption_message(text) == InterruptionMessage(
        kind="rebalance_recommendation", instance_ids=("i-a",)
    )


def make_message(kind: Case = "spot_interrupted", *names: str, **fields: Case) -> InterruptionMessage:
    return InterruptionMessage(kind=kind, instance_ids=tuple(f"i-{name}" for name in names or ("a",)), **fields)


def make_end_annotation(at: datetime) -> Case:
    return ((labels.ENDS_AT, format_instant(at)),)


WARNED_END = NOW + timedelta(minutes=2)

CLUSTER = make_cluster(node_claims=(make_claim(), make_claim("b")), nodes=(make_node(), make_node("b")))


def test_spot_interruption_taints_the_node_deletes_the_node_claim_and_marks_the_offering() -> None:
    actions = decide_interruptions(ClusterState(CLUSTER), (make_message(),))
    [taint] = filter_actions(TaintNode, actions)
    assert (taint.name, taint.taints, taint.annotations) == ("node-a", (DISRUPTED,), make_end_annotation(WARNED_END))
    assert taint.labels == ((labels.EXCLUDE_BALANCERS, "karpenter"),)
    assert [(deletion.name, deletion.uid, deletion.message) for deletion in filter_actions(DeleteObject, actions)] == [
        ("a", "uid-a", "spot_interrupted")
    ]
    [mark] = filter_actions(MarkUnavailable, actions)
    assert (mark.offering.capacity_type, mark.offering.instance_type, mark.offering.zone, mark.offering.until) == (
        "spot",
        "m7i.large",
        "us-east-1a",
        NOW + timedelta(minutes=3),
    )
    assert [(event.kind, event.reason) for event in filter_actions(PublishEvent, actions)] == [
        ("NodeClaim", "SpotInterrupted"),
        ("Node", "SpotInterrupted"),
        ("NodeClaim", "TerminatingOnInterruption"),
        ("Node", "TerminatingOnInterruption"),
    ]
    assert [
        (follow_up.function, follow_up.after.total_seconds()) for follow_up in filter_actions(FollowUp, actions)
    ] == [
        ("lifecycle", 5),
        ("provision", 0),
    ]


@pytest.mark.parametrize(
    "kind", ["instance_stopped", "instance_terminated", "scheduled_change", "capacity_reservation_interrupted"]
)
def test_other_interruptions_delete_the_node_claim_and_mark_no_offering(kind: str) -> None:
    actions = decide_interruptions(ClusterState(CLUSTER), (make_message(kind),))
    assert [deletion.message for deletion in filter_actions(DeleteObject, actions)] == [kind]
    assert not filter_actions(MarkUnavailable, actions)


@pytest.mark.parametrize(
    ("messages", "end"),
    [
        ([make_message(at=get_time_before(seconds=50))], NOW + timedelta(seconds=70)),
        ([make_message(at=NOW + timedelta(hours=1))], WARNED_END),
        ([make_message("capacity_reservation_interrupted")], WARNED_END),
        ([make_message("instance_stopped", at=get_time_before(seconds=3))], get_time_before(seconds=3)),
        ([make_message(), make_message("instance_terminated")], NOW),
        ([make_message("scheduled_change", begins_at=NOW + timedelta(days=9))], NOW + timedelta(days=9)),
        ([make_message("scheduled_change", begins_at=NOW + timedelta(days=9)), make_message()], WARNED_END),
        ([make_message("scheduled_change")], None),
    ],
)
def test_reclaim_time_of_the_instance_is_annotated_on_the_node(messages: list[InterruptionMessage], end: Case) -> None:
    (taint,) = filter_actions(TaintNode, decide_interruptions(ClusterState(CLUSTER), messages))
    assert taint.annotations == (make_end_annotation(end) if end else ())


RESERVED = {labels.CAPACITY_TYPE: labels.RESERVED}


@pytest.mark.parametrize(
    ("kind", "stages", "capacity_type", "marks_offering"),
    [
        ("instance_terminated", ("Launched",), "on-demand", True),
        ("instance_stopped", ("Launched",), "spot", True),
        ("instance_terminated", ("Launched", "Registered"), "on-demand", False),
        ("instance_terminated", ("Launched",), "reserved", False),
        ("scheduled_change", ("Launched",), "on-demand", False),
    ],
)
def test_offering_of_an_instance_that_ended_before_its_node_registered_is_marked(
    kind: str, stages: tuple[str, ...], capacity_type: str, *, marks_offering: bool
) -> None:
    claim = make_claim(conditions=make_true_conditions(*stages), extra={labels.CAPACITY_TYPE: capacity_type})
    actions = decide_interruptions(ClusterState(make_cluster(node_claims=(claim,))), (make_message(kind),))
    marks = [(mark.offering.capacity_type, mark.offering.zone) for mark in filter_actions(MarkUnavailable, actions)]
    assert marks == ([(capacity_type, LABELS[labels.ZONE])] if marks_offering else [])


def test_interrupted_capacity_reservation_is_marked_unavailable() -> None:
    reserved_cluster = replace_fields(CLUSTER, node_claims=(make_claim(extra=RESERVED),))
    (mark,) = filter_actions(
        MarkUnavailable,
        decide_interruptions(ClusterState(reserved_cluster), (make_message("capacity_reservation_interrupted"),)),
    )
    assert (mark.offering.capacity_type, mark.offering.instance_type, mark.offering.zone) == (
        "reserved",
        "m7i.large",
        "us-east-1a",
    )
    assert not filter_actions(MarkUnavailable, decide_interruptions(ClusterState(reserved_cluster), (make_message(),)))


def test_scheduled_change_cancelled_in_the_same_batch_is_ignored() -> None:
    change, second_change = (
        make_message("scheduled_change", event="arn:1"),
        make_message("scheduled_change", "b", event="arn:2"),
    )
    over = make_message("scheduled_change_cancelled", event="arn:1")
    for messages in ([change, over, second_change], [over, second_change, change]):
        actions = decide_interruptions(ClusterState(CLUSTER), messages)
        assert [deletion.name for deletion in filter_actions(DeleteObject, actions)] == ["b"]
        assert {
            (event.name, event.type)
            for event in filter_actions(PublishEvent, actions)
            if event.reason == "ScheduledChangeCancelled"
        } == {
            ("a", "Normal"),
            ("node-a", "Normal"),
        }
    assert not filter_actions(DeleteObject, decide_interruptions(ClusterState(CLUSTER), [over]))


@pytest.mark.parametrize(
    ("status", "kind"),
    [("open", "scheduled_change"), ("upcoming", "scheduled_change"), ("closed", "scheduled_change_cancelled")],
)
def test_scheduled_change_message_has_its_start_time_and_cancellation(status: str, kind: str) -> None:
    detail = HEALTH | {
        "affectedEntities": [{"entityValue": "i-a"}],
        "eventArn": "arn:1",
        "statusCode": status,
        "startTime": "Sat, 21 Nov 2026 12:02:00 GMT",
    }
    message = parse_interruption_message(build_message_body("AWS Health Event", detail, "aws.health"))
    assert message == InterruptionMessage(kind=kind, instance_ids=("i-a",), at=NOW, begins_at=WARNED_END, event="arn:1")  # type: ignore[arg-type]  # of the table
    vague = parse_interruption_message(
        build_message_body("AWS Health Event", detail | {"startTime": "soon"}, "aws.health")
    )
    assert isinstance(vague, InterruptionMessage)
    assert vague.begins_at is None


def with_policy(policy: str) -> Case:
    pool = replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=((labels.REBALANCE_POLICY, policy),)))
    return replace_fields(CLUSTER, node_pools=(pool,))


def test_rebalance_policy_cordon_taints_the_node_and_marks_the_offering() -> None:
    world = with_policy("cordon")
    actions = decide_interruptions(ClusterState(world), (make_message("rebalance_recommendation"),))
    (taint,) = filter_actions(TaintNode, actions)
    assert taint.taints == (Taint(key=labels.AT_RISK, effect="NoSchedule"),)
    assert len(filter_actions(MarkUnavailable, actions)) == 1
    assert not filter_actions(DeleteObject, actions)
    tainted_world = replace_fields(world, nodes=(make_node(taints=taint.taints),))
    assert not filter_actions(
        TaintNode, decide_interruptions(ClusterState(tainted_world), (make_message("rebalance_recommendation"),))
    )
    both_actions = decide_interruptions(ClusterState(world), (make_message("rebalance_recommendation"), make_message()))
    assert [deletion.message for deletion in filter_actions(DeleteObject, both_actions)] == ["spot_interrupted"]


def test_rebalance_policy_replace_taints_the_node_and_deletes_nothing() -> None:
    actions = decide_interruptions(ClusterState(with_policy("replace")), (make_message("rebalance_recommendation"),))
    [taint] = filter_actions(TaintNode, actions)
    assert taint.taints == (Taint(key=labels.AT_RISK, effect="NoSchedule"),)
    assert len(filter_actions(MarkUnavailable, actions)) == 1
    assert not filter_actions(DeleteObject, actions)
    assert not filter_actions(FollowUp, actions)
    both_actions = decide_interruptions(
        ClusterState(with_policy("replace")), (make_message("rebalance_recommendation"), make_message())
    )
    assert [deletion.message for deletion in filter_actions(DeleteObject, both_actions)] == ["spot_interrupted"]


def test_rebalance_policy_drain_drains_the_node_without_a_deadline() -> None:
    actions = decide_interruptions(ClusterState(with_policy("drain")), (make_message("rebalance_recommendation"),))
    assert [deletion.message for deletion in filter_actions(DeleteObject, actions)] == ["rebalance_recommendation"]
    assert [(taint.taints, taint.annotations) for taint in filter_actions(TaintNode, actions)] == [((DISRUPTED,), ())]
    assert len(filter_actions(MarkUnavailable, actions)) == 1


@pytest.mark.parametrize("policy", ["ignore", "Drain", ""])
def test_rebalance_recommendation_only_publishes_events_by_default(policy: str) -> None:
    actions = decide_interruptions(ClusterState(with_policy(policy)), (make_message("rebalance_recommendation"),))
    assert {(type(action), action.reason, action.type) for action in actions if isinstance(action, PublishEvent)} == {
        (PublishEvent, "SpotRebalanceRecommendation", "Normal")
    }
    assert len(actions) == len(filter_actions(PublishEvent, actions))


@pytest.mark.parametrize("node_claims", [(), (make_claim("c"),), (make_claim(launched=False, conditions=()),)])
def test_interruption_of_a_foreign_instance_is_ignored(node_claims: Case) -> None:
    assert decide_interruptions(ClusterState(replace_fields(CLUSTER, node_claims=node_claims)), (make_message(),)) == ()


@pytest.mark.parametrize(
    ("kind", "earlier_end", "noted"),
    [
        ("spot_interrupted", None, WARNED_END),
        ("spot_interrupted", NOW + timedelta(seconds=121), WARNED_END),
        ("spot_interrupted", NOW + timedelta(seconds=120), None),
        ("instance_terminated", None, None),
        ("rebalance_recommendation", None, None),
    ],
)
def test_draining_node_records_only_an_earlier_reclaim_time(kind: str, earlier_end: Case, noted: Case) -> None:
    notes = {labels.ENDS_AT: format_instant(earlier_end)} if earlier_end else {}
    draining_node = make_node(going=True, deleted=NOW, annotations=notes)
    actions = decide_interruptions(
        ClusterState(make_cluster(node_claims=(make_claim(deleted=NOW),), nodes=(draining_node,))),
        (make_message(kind),),
    )
    assert [taint.annotations for taint in filter_actions(TaintNode, actions)] == (
        [make_end_annotation(noted)] if noted else []
    )
    assert [follow_up.function for follow_up in filter_actions(FollowUp, actions)] == (["lifecycle"] if noted else [])
    events = [(event.kind, event.reason) for event in filter_actions(PublishEvent, actions)]
    assert events == ([("NodeClaim", "SpotInterrupted"), ("Node", "SpotInterrupted")] if noted else [])
    assert not filter_actions(DeleteObject, actions)


def test_late_cancellation_of_a_scheduled_change_is_reported_and_keeps_the_deletion() -> None:
    draining_cluster = make_cluster(node_claims=(make_claim(deleted=NOW),), nodes=(make_node(going=True, deleted=NOW),))
    actions = decide_interruptions(
        ClusterState(draining_cluster), (make_message("scheduled_change_cancelled", event="arn:1"),)
    )
    events = filter_actions(PublishEvent, actions)
    assert [(event.kind, event.reason) for event in events] == [
        (kind, "ScheduledChangeCancelled") for kind in ("NodeClaim", "Node")
    ]
    assert all("terminated anyway" in event.message for event in events)
    assert len(actions) == len(events)


def test_offering_is_not_marked_when_a_node_claim_label_is_missing() -> None:
    bare = make_claim()
    for key in (labels.ZONE, labels.INSTANCE_TYPE):
        remaining_labels = build_pairs({name: value for name, value in LABELS.items() if name != key})
        poor = replace_fields(bare, meta=replace_fields(bare.meta, labels=remaining_labels))
        actions = decide_interruptions(ClusterState(replace_fields(CLUSTER, node_claims=(poor,))), (make_message(),))
        assert filter_actions(DeleteObject, actions)
        assert not filter_actions(MarkUnavailable, actions)


def test_disruption_taint_replaces_the_taint_of_the_same_key_and_is_not_written_twice() -> None:
    previous_taint = Taint(key=labels.DISRUPTED_TAINT, effect="NoExecute")
    team_taint = Taint(key="team", effect="NoSchedule")
    tainted = decide_interruptions(
        ClusterState(replace_fields(CLUSTER, nodes=(make_node(taints=(previous_taint, team_taint)),))),
        (make_message(),),
    )
    assert [taint.taints for taint in filter_actions(TaintNode, tainted)] == [(team_taint, DISRUPTED)]
    warned = make_node(going=True, annotations={labels.ENDS_AT: format_instant(WARNED_END)})
    assert not filter_actions(
        TaintNode, decide_interruptions(ClusterState(replace_fields(CLUSTER, nodes=(warned,))), (make_message(),))
    )


def test_duplicates_and_order_of_messages_make_no_difference() -> None:
    messages = [
        make_message(),
        make_message("rebalance_recommendation"),
        make_message("scheduled_change", "b", "a"),
        make_message(),
    ]
    once = decide_interruptions(ClusterState(CLUSTER), messages)
    assert once == decide_interruptions(ClusterState(CLUSTER), [*reversed(messages), *messages])
    assert [deletion.name for deletion in filter_actions(DeleteObject, once)] == ["a", "b"]
