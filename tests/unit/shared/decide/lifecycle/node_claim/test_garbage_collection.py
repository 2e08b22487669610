"""Garbage collection: orphaned objects are deleted, objects that are only missing from a list are not."""

import pytest
from msgspec.structs import replace

from shared.decide.common.requeue_delays import (
    compute_requeue_delay,
    keep_earliest_requeues,
    requeue_at,
    requeue_in_progress,
)
from shared.model.cloud_provider.zonal_shift import ZonalShift, ZonalShifts
from shared.model.core import labels
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PublishEvent, TerminateInstances
from shared.model.ec2.account import Subnet
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.lifecycle_cases import (
    NOW,
    STAGES,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_true_conditions,
)
from tests.support.snapshot_decisions import decide_lifecycle
from tests.unit.shared.decide.lifecycle.termination.test_termination import (
    TAGGED_INSTANCE,
    make_deleted_claim,
    make_launch_group,
)

HEALTHY_CLAIM = make_claim("b")
HEALTHY_INSTANCE = make_instance("b")


def list_terminated_instances(*instances: Case, **fields: Case) -> list[str]:
    claims = fields.pop("node_claims", (HEALTHY_CLAIM,))
    actions = decide_lifecycle(make_cluster(node_claims=claims, instances=(HEALTHY_INSTANCE, *instances), **fields))
    return [
        instance_id for action in filter_actions(TerminateInstances, actions) for instance_id in action.instance_ids
    ]


@pytest.mark.parametrize(
    ("orphan", "is_terminated"),
    [
        (make_instance(at=get_time_before(seconds=61)), True),
        (make_instance(at=get_time_before(seconds=60)), False),
        (make_instance(state="stopped"), True),
        (make_instance(state="shutting-down"), False),
    ],
)
def test_instance_without_a_node_claim_is_terminated_after_one_minute(orphan: Case, is_terminated: bool) -> None:  # noqa: FBT001
    assert list_terminated_instances(orphan) == (["i-a"] if is_terminated else [])


@pytest.mark.parametrize(
    ("unlaunched", "groups", "is_terminated"),
    [
        (make_claim(launched=False, conditions=(), created=NOW), (make_launch_group(),), False),
        (make_claim(launched=False, conditions=(), created=NOW, extra={labels.LAUNCH_GROUP: "g"}), (), False),
        (make_claim(launched=False, conditions=(), created=NOW), (), True),
        (make_claim(), (make_launch_group(),), True),
    ],
)
def test_instance_that_an_unlaunched_node_claim_may_own_is_not_garbage_collected(
    unlaunched: Case,
    groups: Case,
    is_terminated: bool,  # noqa: FBT001
) -> None:
    assert list_terminated_instances(
        TAGGED_INSTANCE, node_claims=(HEALTHY_CLAIM, unlaunched), launch_groups=groups
    ) == (["i-x"] if is_terminated else [])


def test_node_of_an_orphaned_instance_is_deleted_with_it() -> None:
    nodes = (make_node(), make_node("c", deleted=NOW))
    actions = decide_lifecycle(
        make_cluster(
            node_claims=(HEALTHY_CLAIM,), nodes=nodes, instances=(make_instance(), HEALTHY_INSTANCE, make_instance("c"))
        )
    )
    assert [termination.instance_ids for termination in filter_actions(TerminateInstances, actions)] == [("i-a", "i-c")]
    assert [(deletion.kind, deletion.name) for deletion in filter_actions(DeleteObject, actions)] == [
        ("Node", "node-a")
    ]


def list_deletion_reasons(**fields: Case) -> list[str]:
    node_claim = fields.pop("mine", make_claim())
    defaults = {"nodes": (make_node(ready=False),), "instances": (HEALTHY_INSTANCE,)}
    actions = decide_lifecycle(make_cluster(node_claims=(node_claim, HEALTHY_CLAIM), **(defaults | fields)))
    return [deletion.message for deletion in filter_actions(DeleteObject, actions) if deletion.name == "a"]


@pytest.mark.parametrize(
    ("fields", "is_deleted"),
    [
        ({}, True),
        ({"nodes": ()}, True),
        ({"nodes": (make_node(),)}, False),
        ({"instances": (HEALTHY_INSTANCE, make_instance())}, False),
        ({"instances": None}, False),
        ({"instances": ()}, True),
        ({"instances": (), "nodes": (make_node(ready=False), make_node("b"))}, False),
        ({"mine": make_claim(conditions=make_true_conditions(*STAGES, since=get_time_before(seconds=60)))}, False),
        (
            {
                "mine": make_claim(conditions=make_true_conditions("Launched"), created=get_time_before(minutes=2)),
                "nodes": (),
            },
            False,
        ),
    ],
)
def test_registered_node_claim_is_deleted_when_its_instance_is_gone_and_its_node_is_not_ready(
    fields: Case,
    is_deleted: bool,  # noqa: FBT001
) -> None:
    assert list_deletion_reasons(**fields) == (["garbage_collected"] if is_deleted else [])


def test_instance_that_ec2_does_not_list_is_kept_in_a_shifted_zone() -> None:
    claim = make_claim()
    meta = replace(claim.meta, labels=(*claim.meta.labels, (labels.ZONE, "us-east-1a")))
    node_class = EC2NodeClass(
        meta=ObjectMeta(name="default"),
        resolved_subnets=(Subnet(subnet_id="s", zone="us-east-1a", zone_id="use1-az1", available_ip_count=1),),
    )
    shifted: Case = {"mine": replace(claim, meta=meta), "node_classes": (node_class,)}
    assert list_deletion_reasons(**shifted) == ["garbage_collected"]
    for zone_id, reasons in (("use1-az1", []), ("use1-az2", ["garbage_collected"])):
        shifts = ZonalShifts(shifts=(ZonalShift(zone_id=zone_id),))
        assert list_deletion_reasons(**shifted, zonal_shifts=shifts) == reasons


BOOTING = make_claim(conditions=make_true_conditions("Launched"), created=get_time_before(minutes=2))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"instances": (HEALTHY_INSTANCE, make_instance(state="shutting-down"))}, "instance_terminated"),
        ({"instances": (HEALTHY_INSTANCE, make_instance(state="stopping"))}, "instance_stopped"),
        ({"instances": (HEALTHY_INSTANCE, make_instance(state="stopped"))}, "instance_stopped"),
        (
            {"instances": (HEALTHY_INSTANCE, make_instance(state="stopped")), "nodes": (), "mine": BOOTING},
            "instance_stopped",
        ),
        (
            {"instances": (HEALTHY_INSTANCE, make_instance(state="terminated")), "nodes": (), "mine": BOOTING},
            "instance_terminated",
        ),
        ({"instances": (HEALTHY_INSTANCE, make_instance(state="stopped")), "nodes": (make_node(),)}, ""),
        ({"instances": (HEALTHY_INSTANCE, make_instance(state="pending")), "mine": BOOTING}, ""),
    ],
)
def test_node_claim_of_a_stopped_or_terminated_instance_is_deleted_without_a_message(fields: Case, reason: str) -> None:
    assert list_deletion_reasons(**fields) == ([reason] if reason else [])


def test_empty_instance_list_is_ignored_while_nodes_are_ready() -> None:
    actions = decide_lifecycle(
        make_cluster(node_claims=(make_claim(), make_deleted_claim(name="c")), nodes=(make_node(),), instances=())
    )
    assert not filter_actions(DeleteObject, actions)
    assert [(event.reason, event.type) for event in filter_actions(PublishEvent, actions)][-1] == (
        "InstancesNotSeen",
        "Warning",
    )
    ending = make_claim(deleted=NOW, conditions=make_true_conditions(*STAGES, "InstanceTerminating"))
    believed = decide_lifecycle(make_cluster(node_claims=(ending,), nodes=(make_node(),), instances=()))
    assert "InstancesNotSeen" not in [event.reason for event in filter_actions(PublishEvent, believed)]


def test_empty_instance_list_causes_no_event_without_registered_node_claims() -> None:
    launched_claim = make_claim(conditions=make_true_conditions("Launched"), created=NOW)
    actions = decide_lifecycle(make_cluster(node_claims=(launched_claim,), nodes=(make_node(),), instances=()))
    assert "InstancesNotSeen" not in [event.reason for event in filter_actions(PublishEvent, actions)]


def test_node_without_a_provider_id_is_matched_by_name() -> None:
    nodes = (make_node(provider_id=""), make_node("b", provider_id=""))
    assert not list_deletion_reasons(nodes=nodes)
    assert list_deletion_reasons(nodes=nodes[1:]) == ["garbage_collected"]


def test_instances_with_the_same_termination_reason_share_one_call() -> None:
    node_claims = tuple(
        make_deleted_claim(name=name, conditions=make_true_conditions("Launched"), node_name="") for name in "ba"
    )
    actions = decide_lifecycle(
        make_cluster(node_claims=node_claims, instances=(make_instance("a"), HEALTHY_INSTANCE, make_instance("z")))
    )
    assert [termination.instance_ids for termination in filter_actions(TerminateInstances, actions)] == [
        ("i-a", "i-b"),
        ("i-z",),
    ]


@pytest.mark.parametrize(("age", "delay"), [(0, 5), (12, 12), (600, 30)])
def test_requeue_delay_grows_with_age_up_to_30_seconds(age: float, delay: float) -> None:
    assert compute_requeue_delay(NOW - get_time_before(seconds=age)).total_seconds() == delay


def test_work_in_progress_for_over_10_minutes_is_not_requeued() -> None:
    assert requeue_in_progress(get_time_before(minutes=10), NOW, "x")
    assert not requeue_in_progress(get_time_before(minutes=10, seconds=1), NOW, "x")
    assert not requeue_at(NOW, NOW, "x")


def test_only_the_earliest_requeue_of_each_function_is_kept() -> None:
    calls: list[Action] = [
        FollowUp(function="provision", after=NOW - get_time_before(seconds=9)),
        FollowUp(function="lifecycle", after=NOW - get_time_before(seconds=9), message="late"),
        FollowUp(function="lifecycle", after=NOW - get_time_before(seconds=5), message="b"),
        FollowUp(function="lifecycle", after=NOW - get_time_before(seconds=5), message="a"),
        DeleteObject(kind="Node", name="n", message="x"),
    ]
    actions = keep_earliest_requeues(calls)
    assert [follow_up.message for follow_up in filter_actions(FollowUp, actions)] == ["a", ""]
    assert isinstance(actions[0], DeleteObject)
