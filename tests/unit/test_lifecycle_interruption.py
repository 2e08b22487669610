"""Notices of AWS: what is read in them, and what is done at once."""

import json
from datetime import timedelta

import pytest

from shared.lifecycle.interruption import Notice, Unknown, decide_notices, parse_notice
from shared.model import labels
from shared.model.action import DeleteObject, FollowUp, MarkUnavailable, PublishEvent, TaintNode
from shared.model.objects import pairs
from shared.model.taints import DISRUPTED, Taint
from tests.unit.lifecycle_cases import LABELS, NOW, Case, changed, claim, cluster, node, of

EC2 = "aws.ec2"
STATE = "EC2 Instance State-change Notification"
HEALTH = {"service": "EC2", "eventTypeCategory": "scheduledChange"}


def body(detail_type: str, detail: Case, source: str = EC2, version: str = "0") -> str:
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
def test_a_notice_is_read(detail_type: str, detail: Case, source: str, kind: str) -> None:
    notice = parse_notice(body(detail_type, {"instance-id": "i-a"} | detail, source))
    assert isinstance(notice, Notice)
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
        body(STATE, {"state": "running", "instance-id": "i-a"}),
        body(STATE, {"state": "stopped", "instance-id": ""}),
        body(STATE, {"state": "stopped"}),
        body(STATE, {"state": "stopped", "instance-id": "i-a"}, version="1"),
        body(STATE, {"state": "stopped", "instance-id": "i-a"}, source="mine"),
        body("Something else", {"instance-id": "i-a"}),
        body("AWS Health Event", HEALTH | {"service": "RDS"}, "aws.health"),
        body("AWS Health Event", HEALTH | {"eventTypeCategory": "issue"}, "aws.health"),
        body("AWS Health Event", HEALTH, "aws.health"),
    ],
)
def test_what_is_not_understood_is_a_value(text: str) -> None:
    unknown = parse_notice(text)
    assert isinstance(unknown, Unknown)
    assert unknown.reason


def test_a_notice_without_a_time_is_a_notice() -> None:
    text = body("EC2 Instance Rebalance Recommendation", {"instance-id": "i-a"}).replace("2026", "never")
    assert parse_notice(text) == Notice(kind="rebalance_recommendation", instance_ids=("i-a",))


def notice(kind: Case = "spot_interrupted", *names: str) -> Notice:
    return Notice(kind=kind, instance_ids=tuple(f"i-{name}" for name in names or ("a",)))


WORLD = cluster(node_claims=(claim(), claim("b")), nodes=(node(), node("b")))


def test_a_spot_warning_taints_deletes_and_marks_the_offering_at_once() -> None:
    actions = decide_notices(WORLD, (notice(),))
    [taint] = of(TaintNode, actions)
    assert (taint.name, taint.taints) == ("node-a", (DISRUPTED,))
    assert taint.labels == ((labels.EXCLUDE_BALANCERS, "karpenter"),)
    assert [(one.name, one.uid, one.why) for one in of(DeleteObject, actions)] == [("a", "uid-a", "spot_interrupted")]
    [mark] = of(MarkUnavailable, actions)
    assert (mark.offering.capacity_type, mark.offering.instance_type, mark.offering.zone, mark.offering.until) == (
        "spot",
        "m7i.large",
        "us-east-1a",
        NOW + timedelta(minutes=3),
    )
    assert [(one.kind, one.reason) for one in of(PublishEvent, actions)] == [
        ("NodeClaim", "SpotInterrupted"),
        ("Node", "SpotInterrupted"),
        ("NodeClaim", "TerminatingOnInterruption"),
        ("Node", "TerminatingOnInterruption"),
    ]
    assert [(one.function, one.after.total_seconds()) for one in of(FollowUp, actions)] == [
        ("lifecycle", 5),
        ("provision", 0),
    ]


@pytest.mark.parametrize(
    "kind", ["instance_stopped", "instance_terminated", "scheduled_change", "capacity_reservation_interrupted"]
)
def test_other_warnings_delete_and_mark_nothing(kind: str) -> None:
    actions = decide_notices(WORLD, (notice(kind),))
    assert [one.why for one in of(DeleteObject, actions)] == [kind]
    assert not of(MarkUnavailable, actions)


def test_a_rebalance_recommendation_is_only_told() -> None:
    actions = decide_notices(WORLD, (notice("rebalance_recommendation"),))
    assert {(type(one), one.reason, one.type) for one in actions if isinstance(one, PublishEvent)} == {
        (PublishEvent, "SpotRebalanceRecommendation", "Normal")
    }
    assert len(actions) == len(of(PublishEvent, actions))


@pytest.mark.parametrize("mine", [(), (claim(deleted=NOW),), (claim("c"),), (claim(launched=False, conditions=()),)])
def test_foreign_instances_and_claims_that_go_already_are_left_alone(mine: Case) -> None:
    assert decide_notices(changed(WORLD, node_claims=mine), (notice(),)) == ()


def test_a_label_that_is_missing_does_not_stand_for_every_offering() -> None:
    bare = claim()
    for key in (labels.ZONE, labels.INSTANCE_TYPE):
        rest = pairs({name: value for name, value in LABELS.items() if name != key})
        poor = changed(bare, meta=changed(bare.meta, labels=rest))
        actions = decide_notices(changed(WORLD, node_claims=(poor,)), (notice(),))
        assert of(DeleteObject, actions)
        assert not of(MarkUnavailable, actions)


def test_a_taint_takes_the_place_of_its_like_and_is_not_set_twice() -> None:
    other = Taint(key=labels.DISRUPTED_TAINT, effect="NoExecute")
    kept = Taint(key="team", effect="NoSchedule")
    tainted = decide_notices(changed(WORLD, nodes=(node(taints=(other, kept)),)), (notice(),))
    assert [one.taints for one in of(TaintNode, tainted)] == [(kept, DISRUPTED)]
    assert not of(TaintNode, decide_notices(changed(WORLD, nodes=(node(going=True),)), (notice(),)))


def test_duplicates_and_order_make_no_difference() -> None:
    some = [notice(), notice("rebalance_recommendation"), notice("scheduled_change", "b", "a"), notice()]
    once = decide_notices(WORLD, some)
    assert once == decide_notices(WORLD, [*reversed(some), *some])
    assert [one.name for one in of(DeleteObject, once)] == ["a", "b"]
