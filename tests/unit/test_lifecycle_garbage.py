"""What nobody knows any more, and what is only not seen."""

import pytest

from shared.lifecycle.decide import decide
from shared.lifecycle.followups import follow_up_delay, look_again, look_at, soonest
from shared.model import labels
from shared.model.action import Action, DeleteObject, FollowUp, PublishEvent, TerminateInstances
from tests.unit.lifecycle_cases import NOW, STAGES, Case, ago, claim, cluster, instance, node, of, true
from tests.unit.test_lifecycle_termination import TAGGED, group, leaving

KNOWN = claim("b")
SEEN = instance("b")


def ended(*instances: Case, **fields: Case) -> list[str]:
    claims = fields.pop("node_claims", (KNOWN,))
    actions = decide(cluster(node_claims=claims, instances=(SEEN, *instances), **fields))
    return [one for action in of(TerminateInstances, actions) for one in action.instance_ids]


@pytest.mark.parametrize(
    ("orphan", "gone"),
    [
        (instance(at=ago(seconds=61)), True),
        (instance(at=ago(seconds=60)), False),
        (instance(state="stopped"), True),
        (instance(state="shutting-down"), False),
    ],
)
def test_an_instance_without_a_claim_is_garbage_once_it_is_old_enough(orphan: Case, gone: bool) -> None:  # noqa: FBT001
    assert ended(orphan) == (["i-a"] if gone else [])


@pytest.mark.parametrize(
    ("unlaunched", "groups", "gone"),
    [
        (claim(launched=False, conditions=(), created=NOW), (group(),), False),
        (claim(launched=False, conditions=(), created=NOW, extra={labels.LAUNCH_GROUP: "g"}), (), False),
        (claim(launched=False, conditions=(), created=NOW), (), True),
        (claim(), (group(),), True),
    ],
)
def test_an_instance_that_a_claim_may_yet_be_told_of_is_no_garbage(
    unlaunched: Case,
    groups: Case,
    gone: bool,  # noqa: FBT001
) -> None:
    assert ended(TAGGED, node_claims=(KNOWN, unlaunched), launch_groups=groups) == (["i-x"] if gone else [])


def test_the_node_of_an_orphan_goes_with_it() -> None:
    nodes = (node(), node("c", deleted=NOW))
    actions = decide(cluster(node_claims=(KNOWN,), nodes=nodes, instances=(instance(), SEEN, instance("c"))))
    assert [one.instance_ids for one in of(TerminateInstances, actions)] == [("i-a", "i-c")]
    assert [(one.kind, one.name) for one in of(DeleteObject, actions)] == [("Node", "node-a")]


def lost(**fields: Case) -> list[str]:
    mine = fields.pop("mine", claim())
    there = {"nodes": (node(ready=False),), "instances": (SEEN,)}
    actions = decide(cluster(node_claims=(mine, KNOWN), **(there | fields)))
    return [one.why for one in of(DeleteObject, actions) if one.name == "a"]


@pytest.mark.parametrize(
    ("fields", "gone"),
    [
        ({}, True),
        ({"nodes": ()}, True),
        ({"nodes": (node(),)}, False),
        ({"instances": (SEEN, instance())}, False),
        ({"instances": None}, False),
        ({"instances": ()}, True),
        ({"instances": (), "nodes": (node(ready=False), node("b"))}, False),
        ({"mine": claim(conditions=true(*STAGES, since=ago(seconds=60)))}, False),
        ({"mine": claim(conditions=true("Launched"), created=ago(minutes=2)), "nodes": ()}, False),
    ],
)
def test_a_registered_claim_is_garbage_if_its_instance_was_seen_to_be_gone_and_its_node_is_not_ready(
    fields: Case,
    gone: bool,  # noqa: FBT001
) -> None:
    assert lost(**fields) == (["garbage_collected"] if gone else [])


BOOTING = claim(conditions=true("Launched"), created=ago(minutes=2))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"instances": (SEEN, instance(state="shutting-down"))}, "instance_terminated"),
        ({"instances": (SEEN, instance(state="stopping"))}, "instance_stopped"),
        ({"instances": (SEEN, instance(state="stopped"))}, "instance_stopped"),
        ({"instances": (SEEN, instance(state="stopped")), "nodes": (), "mine": BOOTING}, "instance_stopped"),
        ({"instances": (SEEN, instance(state="terminated")), "nodes": (), "mine": BOOTING}, "instance_terminated"),
        ({"instances": (SEEN, instance(state="stopped")), "nodes": (node(),)}, ""),
        ({"instances": (SEEN, instance(state="pending")), "mine": BOOTING}, ""),
    ],
)
def test_a_claim_whose_instance_was_seen_to_end_or_to_stand_still_needs_no_notice(fields: Case, why: str) -> None:
    assert lost(**fields) == ([why] if why else [])


def test_an_empty_answer_of_ec2_is_not_believed_while_nodes_are_ready() -> None:
    actions = decide(cluster(node_claims=(claim(), leaving(name="c")), nodes=(node(),), instances=()))
    assert not of(DeleteObject, actions)
    assert [(one.reason, one.type) for one in of(PublishEvent, actions)][-1] == ("InstancesNotSeen", "Warning")
    ending = claim(deleted=NOW, conditions=true(*STAGES, "InstanceTerminating"))
    believed = decide(cluster(node_claims=(ending,), nodes=(node(),), instances=()))
    assert "InstancesNotSeen" not in [one.reason for one in of(PublishEvent, believed)]


def test_a_doubt_without_a_registered_claim_has_nobody_to_tell() -> None:
    mine = claim(conditions=true("Launched"), created=NOW)
    actions = decide(cluster(node_claims=(mine,), nodes=(node(),), instances=()))
    assert "InstancesNotSeen" not in [one.reason for one in of(PublishEvent, actions)]


def test_a_node_without_a_provider_id_is_known_by_its_name() -> None:
    nodes = (node(provider_id=""), node("b", provider_id=""))
    assert not lost(nodes=nodes)
    assert lost(nodes=nodes[1:]) == ["garbage_collected"]


def test_instances_that_end_for_one_reason_end_together() -> None:
    mine = tuple(leaving(name=name, conditions=true("Launched"), node_name="") for name in "ba")
    actions = decide(cluster(node_claims=mine, instances=(instance("a"), SEEN, instance("z"))))
    assert [one.instance_ids for one in of(TerminateInstances, actions)] == [("i-a", "i-b"), ("i-z",)]


@pytest.mark.parametrize(("age", "delay"), [(0, 5), (12, 12), (600, 30)])
def test_work_is_looked_at_less_often_as_it_ages(age: float, delay: float) -> None:
    assert follow_up_delay(NOW - ago(seconds=age)).total_seconds() == delay


def test_work_that_has_not_moved_for_long_is_left_to_the_tick() -> None:
    assert look_again(ago(minutes=10), NOW, "x")
    assert not look_again(ago(minutes=10, seconds=1), NOW, "x")
    assert not look_at(NOW, NOW, "x")


def test_of_several_follow_ups_the_soonest_is_kept() -> None:
    calls: list[Action] = [
        FollowUp(function="provision", after=NOW - ago(seconds=9)),
        FollowUp(function="lifecycle", after=NOW - ago(seconds=9), why="late"),
        FollowUp(function="lifecycle", after=NOW - ago(seconds=5), why="b"),
        FollowUp(function="lifecycle", after=NOW - ago(seconds=5), why="a"),
        DeleteObject(kind="Node", name="n", why="x"),
    ]
    kept = soonest(calls)
    assert [one.why for one in of(FollowUp, kept)] == ["a", ""]
    assert isinstance(kept[0], DeleteObject)
