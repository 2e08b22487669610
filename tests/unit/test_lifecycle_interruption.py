"""Notices of AWS: what is read in them, and what is done at once."""

import json
from datetime import datetime, timedelta

import pytest

from shared.lifecycle.interruption import Notice, Unknown, decide_notices, parse_notice
from shared.model import labels
from shared.model.action import DeleteObject, FollowUp, MarkUnavailable, PublishEvent, TaintNode
from shared.model.objects import pairs
from shared.model.taints import DISRUPTED, Taint
from shared.model.units import instant_text
from tests.unit.lifecycle_cases import LABELS, NOW, POOL, Case, ago, changed, claim, cluster, node, of

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


def notice(kind: Case = "spot_interrupted", *names: str, **fields: Case) -> Notice:
    return Notice(kind=kind, instance_ids=tuple(f"i-{name}" for name in names or ("a",)), **fields)


def ends(at: datetime) -> Case:
    return ((labels.ENDS_AT, instant_text(at)),)


WARNED = NOW + timedelta(minutes=2)

WORLD = cluster(node_claims=(claim(), claim("b")), nodes=(node(), node("b")))


def test_a_spot_warning_taints_deletes_and_marks_the_offering_at_once() -> None:
    actions = decide_notices(WORLD, (notice(),))
    [taint] = of(TaintNode, actions)
    assert (taint.name, taint.taints, taint.annotations) == ("node-a", (DISRUPTED,), ends(WARNED))
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


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ([notice(at=ago(seconds=50))], NOW + timedelta(seconds=70)),
        ([notice(at=NOW + timedelta(hours=1))], WARNED),
        ([notice("capacity_reservation_interrupted")], WARNED),
        ([notice("instance_stopped", at=ago(seconds=3))], ago(seconds=3)),
        ([notice(), notice("instance_terminated")], NOW),
        ([notice("scheduled_change", begins_at=NOW + timedelta(days=9))], NOW + timedelta(days=9)),
        ([notice("scheduled_change", begins_at=NOW + timedelta(days=9)), notice()], WARNED),
        ([notice("scheduled_change")], None),
    ],
)
def test_when_the_machine_ends_is_written_on_its_node(said: list[Notice], end: Case) -> None:
    (taint,) = of(TaintNode, decide_notices(WORLD, said))
    assert taint.annotations == (ends(end) if end else ())


RESERVED = {labels.CAPACITY_TYPE: labels.RESERVED}


def test_a_reservation_that_is_taken_back_is_not_tried_again_at_once() -> None:
    mine = changed(WORLD, node_claims=(claim(extra=RESERVED),))
    (mark,) = of(MarkUnavailable, decide_notices(mine, (notice("capacity_reservation_interrupted"),)))
    assert (mark.offering.capacity_type, mark.offering.instance_type, mark.offering.zone) == (
        "reserved",
        "m7i.large",
        "us-east-1a",
    )
    assert not of(MarkUnavailable, decide_notices(mine, (notice(),)))


def test_a_change_that_is_called_off_in_the_same_batch_was_never_announced() -> None:
    change, other = notice("scheduled_change", event="arn:1"), notice("scheduled_change", "b", event="arn:2")
    over = notice("scheduled_change_cancelled", event="arn:1")
    for some in ([change, over, other], [over, other, change]):
        actions = decide_notices(WORLD, some)
        assert [one.name for one in of(DeleteObject, actions)] == ["b"]
        assert {
            (one.name, one.type) for one in of(PublishEvent, actions) if one.reason == "ScheduledChangeCancelled"
        } == {
            ("a", "Normal"),
            ("node-a", "Normal"),
        }
    assert not of(DeleteObject, decide_notices(WORLD, [over]))


@pytest.mark.parametrize(
    ("status", "kind"),
    [("open", "scheduled_change"), ("upcoming", "scheduled_change"), ("closed", "scheduled_change_cancelled")],
)
def test_a_change_says_when_it_begins_and_whether_it_is_over(status: str, kind: str) -> None:
    detail = HEALTH | {
        "affectedEntities": [{"entityValue": "i-a"}],
        "eventArn": "arn:1",
        "statusCode": status,
        "startTime": "Sat, 21 Nov 2026 12:02:00 GMT",
    }
    found = parse_notice(body("AWS Health Event", detail, "aws.health"))
    assert found == Notice(kind=kind, instance_ids=("i-a",), at=NOW, begins_at=WARNED, event="arn:1")  # type: ignore[arg-type]  # of the table
    vague = parse_notice(body("AWS Health Event", detail | {"startTime": "soon"}, "aws.health"))
    assert isinstance(vague, Notice)
    assert vague.begins_at is None


def with_policy(policy: str) -> Case:
    pool = changed(POOL, meta=changed(POOL.meta, annotations=((labels.REBALANCE_POLICY, policy),)))
    return changed(WORLD, node_pools=(pool,))


def test_a_pool_may_cordon_a_node_at_risk() -> None:
    world = with_policy("cordon")
    actions = decide_notices(world, (notice("rebalance_recommendation"),))
    (taint,) = of(TaintNode, actions)
    assert taint.taints == (Taint(key=labels.AT_RISK, effect="NoSchedule"),)
    assert len(of(MarkUnavailable, actions)) == 1
    assert not of(DeleteObject, actions)
    again = changed(world, nodes=(node(taints=taint.taints),))
    assert not of(TaintNode, decide_notices(again, (notice("rebalance_recommendation"),)))
    both = decide_notices(world, (notice("rebalance_recommendation"), notice()))
    assert [one.why for one in of(DeleteObject, both)] == ["spot_interrupted"]


def test_a_pool_may_drain_a_node_at_risk_and_nobody_hurries() -> None:
    actions = decide_notices(with_policy("drain"), (notice("rebalance_recommendation"),))
    assert [one.why for one in of(DeleteObject, actions)] == ["rebalance_recommendation"]
    assert [(one.taints, one.annotations) for one in of(TaintNode, actions)] == [((DISRUPTED,), ())]
    assert len(of(MarkUnavailable, actions)) == 1


@pytest.mark.parametrize("policy", ["ignore", "Drain", ""])
def test_a_rebalance_recommendation_is_only_told(policy: str) -> None:
    actions = decide_notices(with_policy(policy), (notice("rebalance_recommendation"),))
    assert {(type(one), one.reason, one.type) for one in actions if isinstance(one, PublishEvent)} == {
        (PublishEvent, "SpotRebalanceRecommendation", "Normal")
    }
    assert len(actions) == len(of(PublishEvent, actions))


@pytest.mark.parametrize("mine", [(), (claim("c"),), (claim(launched=False, conditions=()),)])
def test_foreign_instances_are_left_alone(mine: Case) -> None:
    assert decide_notices(changed(WORLD, node_claims=mine), (notice(),)) == ()


@pytest.mark.parametrize(
    ("kind", "known", "noted"),
    [
        ("spot_interrupted", None, WARNED),
        ("spot_interrupted", NOW + timedelta(seconds=121), WARNED),
        ("spot_interrupted", NOW + timedelta(seconds=120), None),
        ("instance_terminated", None, None),
        ("rebalance_recommendation", None, None),
    ],
)
def test_a_drain_that_has_begun_hears_only_of_an_end_that_is_sooner(kind: str, known: Case, noted: Case) -> None:
    notes = {labels.ENDS_AT: instant_text(known)} if known else {}
    mine = node(going=True, deleted=NOW, annotations=notes)
    actions = decide_notices(cluster(node_claims=(claim(deleted=NOW),), nodes=(mine,)), (notice(kind),))
    assert [one.annotations for one in of(TaintNode, actions)] == ([ends(noted)] if noted else [])
    assert [one.function for one in of(FollowUp, actions)] == (["lifecycle"] if noted else [])
    told = [(one.kind, one.reason) for one in of(PublishEvent, actions)]
    assert told == ([("NodeClaim", "SpotInterrupted"), ("Node", "SpotInterrupted")] if noted else [])
    assert not of(DeleteObject, actions)


def test_a_change_that_is_called_off_too_late_is_told_and_takes_no_deletion_back() -> None:
    mine = cluster(node_claims=(claim(deleted=NOW),), nodes=(node(going=True, deleted=NOW),))
    actions = decide_notices(mine, (notice("scheduled_change_cancelled", event="arn:1"),))
    told = of(PublishEvent, actions)
    assert [(one.kind, one.reason) for one in told] == [
        (kind, "ScheduledChangeCancelled") for kind in ("NodeClaim", "Node")
    ]
    assert all("goes all the same" in one.message for one in told)
    assert len(actions) == len(told)


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
    warned = node(going=True, annotations={labels.ENDS_AT: instant_text(WARNED)})
    assert not of(TaintNode, decide_notices(changed(WORLD, nodes=(warned,)), (notice(),)))


def test_duplicates_and_order_make_no_difference() -> None:
    some = [notice(), notice("rebalance_recommendation"), notice("scheduled_change", "b", "a"), notice()]
    once = decide_notices(WORLD, some)
    assert once == decide_notices(WORLD, [*reversed(some), *some])
    assert [one.name for one in of(DeleteObject, once)] == ["a", "b"]
