"""Termination of NodeClaims, nodes and their instances."""

from datetime import datetime, timedelta

import pytest

from shared.decide.lifecycle.termination.drain_order import find_next_forced_deletion, plan_drain
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.taints import DISRUPTED, Taint, Toleration
from shared.model.decisions.action import (
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TaintNode,
    TerminateInstances,
)
from shared.model.ec2.fleet import FleetInstance, FleetRequest, FleetResult
from shared.model.kubernetes.pod import PodSpec
from shared.model.kubernetes.volumes import VolumeAttachment, VolumeClaim
from shared.state.pdb_limits import build_pdb_limits
from tests.support.lifecycle_cases import (
    NOW,
    STAGES,
    Case,
    filter_actions,
    get_status_patch,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_pod,
    make_pod_disruption_budget,
    make_provider_id,
    make_true_conditions,
    make_unknown_condition,
    merge_fields,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle

TOLERANT = PodSpec(tolerations=(Toleration(operator="Exists"),))
A_MOMENT_AGO = get_time_before(seconds=5)
A_MINUTE_AGO = get_time_before(minutes=1)
FINALIZER_REMOVED = "the finalizer is taken off"


def make_deleted_claim(drained: datetime | None = A_MOMENT_AGO, **fields: Case) -> Case:
    draining = () if drained is None else (make_unknown_condition("Drained", "Draining", drained),)
    return make_claim(
        **merge_fields(
            fields, deleted=get_time_before(seconds=20), conditions=(*make_true_conditions(*STAGES), *draining)
        )
    )


def make_drained_claim(**fields: Case) -> Case:
    return make_deleted_claim(
        None, **({"conditions": make_true_conditions(*STAGES, "Drained", "VolumesDetached", since=NOW)} | fields)
    )


def build_terminating_cluster(node_claim: Case, *pods: Case, **fields: Case) -> ClusterSnapshot:
    draining_node = make_node(going=True, deleted=get_time_before(seconds=20))
    return make_cluster(
        **(
            {"node_claims": (node_claim,), "nodes": (draining_node,), "pods": pods, "instances": (make_instance(),)}
            | fields
        )
    )


def list_evicted_pods(cluster: ClusterSnapshot) -> list[str]:
    return [eviction.name for eviction in filter_actions(EvictPod, decide_lifecycle(cluster))]


def list_released_objects(actions: Case) -> list[tuple[str, str]]:
    return [(patch.kind, patch.name) for patch in filter_actions(PatchMetadata, actions) if patch.finalizers == ()]


def test_new_drain_taints_and_deletes_the_node_and_requeues_provisioning_before_evictions() -> None:
    disrupted_taint = Taint(key=labels.DISRUPTED_TAINT, effect="NoExecute")
    team_taint = Taint(key="team", effect="NoSchedule")
    actions = decide_lifecycle(
        build_terminating_cluster(
            make_deleted_claim(None), make_pod(), nodes=(make_node(taints=(disrupted_taint, team_taint)),)
        )
    )
    [taint] = filter_actions(TaintNode, actions)
    assert (taint.taints, taint.resource_version) == ((team_taint, DISRUPTED), "8")
    assert taint.labels == ((labels.EXCLUDE_BALANCERS, "karpenter"),)
    assert [(deletion.kind, deletion.name) for deletion in filter_actions(DeleteObject, actions)] == [
        ("Node", "node-a")
    ]
    assert [
        (follow_up.function, follow_up.after.total_seconds()) for follow_up in filter_actions(FollowUp, actions)
    ] == [
        ("lifecycle", 5),
        ("provision", 0),
    ]
    condition = get_status_patch(actions)["conditions"]["Drained"]
    assert (condition["status"], condition["reason"]) == ("Unknown", "Draining")
    assert not filter_actions(EvictPod, actions)


@pytest.mark.parametrize(
    ("announced", "tainted", "leave"), [(4.9, True, False), (5, True, True), (5, False, False), (None, True, False)]
)
def test_pods_are_evicted_five_seconds_after_the_drain_condition_on_a_tainted_node(
    announced: float | None,
    tainted: bool,  # noqa: FBT001
    leave: bool,  # noqa: FBT001
) -> None:
    since = None if announced is None else get_time_before(seconds=announced)
    going = make_node(going=tainted, deleted=get_time_before(seconds=9))
    assert (
        bool(list_evicted_pods(build_terminating_cluster(make_deleted_claim(since), make_pod(), nodes=(going,))))
        is leave
    )


def test_pods_are_evicted_in_priority_tiers() -> None:
    top = "system-cluster-critical"
    late = (make_pod("c", priority_class=top), make_pod("d", daemon=True, priority_class=top))
    tiers = [make_pod("a"), make_pod("b", daemon=True), *late]
    for number, first in enumerate(tiers):
        assert list_evicted_pods(build_terminating_cluster(make_deleted_claim(), *tiers[number:])) == [first.meta.name]


@pytest.mark.parametrize(
    "first",
    [
        make_pod("a", deleted=NOW + timedelta(seconds=9)),
        make_pod("a", annotations={labels.DO_NOT_DISRUPT: "true"}),
    ],
)
def test_eviction_tier_waits_for_remaining_pods_of_the_earlier_tier(first: Case) -> None:
    actions = decide_lifecycle(build_terminating_cluster(make_deleted_claim(), first, make_pod("b", daemon=True)))
    assert not filter_actions(EvictPod, actions)
    [warning] = [event for event in filter_actions(PublishEvent, actions) if event.reason == "FailedDraining"]
    assert (warning.kind, warning.name, warning.type) == ("Node", "node-a", "Warning")
    assert "shop/a" in warning.message


@pytest.mark.parametrize(
    "stays",
    [
        make_pod(phase="Succeeded"),
        make_pod(deleted=get_time_before(seconds=61)),
        make_pod(spec=TOLERANT),
    ],
)
def test_completed_stuck_and_tolerating_pods_do_not_block_the_drain(stays: Case) -> None:
    actions = decide_lifecycle(build_terminating_cluster(make_deleted_claim(), stays))
    assert get_status_patch(actions)["conditions"]["Drained"]["status"] == "True"
    assert filter_actions(TerminateInstances, actions)


@pytest.mark.parametrize(
    ("budgets", "fields", "is_evicted"),
    [
        ((make_pod_disruption_budget("cart", max_unavailable="0"),), {}, False),
        ((make_pod_disruption_budget("cart", min_available="100%"),), {}, False),
        ((make_pod_disruption_budget("cart", max_unavailable="0"),), {"phase": "Pending"}, True),
        ((make_pod_disruption_budget("cart", allowed=0),), {}, True),
        ((make_pod_disruption_budget("cart"), make_pod_disruption_budget("cart", "second")), {}, False),
        ((make_pod_disruption_budget("other", max_unavailable="0"),), {}, True),
        (
            (make_pod_disruption_budget("cart", max_unavailable="0", always_allows_unhealthy=True),),
            {"conditions": (Condition(type="Ready", status="False"),)},
            True,
        ),
    ],
)
def test_pod_with_a_pdb_that_never_allows_disruption_is_not_evicted(
    budgets: Case,
    fields: Case,
    is_evicted: bool,  # noqa: FBT001
) -> None:
    assert list_evicted_pods(build_terminating_cluster(make_deleted_claim(), make_pod(**fields), budgets=budgets)) == (
        ["cart"] if is_evicted else []
    )


def test_eviction_message_is_the_disruption_reason_of_the_node_claim() -> None:
    disruption_reason = Condition(type="DisruptionReason", status="True", reason="Empty", since=NOW)
    node_claim = make_deleted_claim(
        conditions=(
            *make_true_conditions(*STAGES),
            make_unknown_condition("Drained", "Draining", get_time_before(seconds=9)),
            disruption_reason,
        )
    )
    assert [
        eviction.message
        for eviction in filter_actions(EvictPod, decide_lifecycle(build_terminating_cluster(node_claim, make_pod())))
    ] == ["Empty"]
    assert [
        eviction.message
        for eviction in filter_actions(
            EvictPod, decide_lifecycle(build_terminating_cluster(make_deleted_claim(), make_pod()))
        )
    ] == ["Forceful Termination"]


def test_termination_timestamp_annotation_is_written_once() -> None:
    node_claim = make_deleted_claim(termination_grace_period=timedelta(minutes=10))
    actions = decide_lifecycle(build_terminating_cluster(node_claim, make_pod()))
    claim_annotations = [
        dict(patch.annotations) for patch in filter_actions(PatchMetadata, actions) if patch.kind == "NodeClaim"
    ]
    assert claim_annotations == [{labels.TERMINATION_TIMESTAMP: "2026-11-21T12:09:40Z"}]
    assert {"TerminationGracePeriodExpiring"} <= {event.reason for event in filter_actions(PublishEvent, actions)}
    noted = make_deleted_claim(annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T12:00:10Z"})
    second_actions = decide_lifecycle(build_terminating_cluster(noted, make_pod(grace_period=timedelta(seconds=5))))
    assert not filter_actions(PatchMetadata, second_actions)
    assert [follow_up.after.total_seconds() for follow_up in filter_actions(FollowUp, second_actions)] == [5]


@pytest.mark.parametrize(
    ("remaining_seconds", "fields", "grace"),
    [
        (29, {}, 29),
        (30, {}, None),
        (-5, {}, 1),
        (29, {"annotations": {labels.DO_NOT_DISRUPT: "true"}}, 29),
        (10, {"deleted": NOW + timedelta(seconds=11)}, 10),
        (10, {"deleted": NOW + timedelta(seconds=10)}, None),
    ],
)
def test_pod_is_deleted_when_its_grace_period_ends_after_the_termination_deadline(
    remaining_seconds: int, fields: Case, grace: int | None
) -> None:
    deadline = (NOW + timedelta(seconds=remaining_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    node_claim = make_deleted_claim(get_time_before(seconds=1), annotations={labels.TERMINATION_TIMESTAMP: deadline})
    actions = decide_lifecycle(build_terminating_cluster(node_claim, make_pod(**fields)))
    assert [deletion.grace_seconds for deletion in filter_actions(DeletePod, actions)] == (
        [] if grace is None else [grace]
    )
    assert ("Disrupted" in {event.reason for event in filter_actions(PublishEvent, actions)}) is (grace is not None)


def test_next_forced_deletion_time_is_the_earliest_of_all_pods() -> None:
    pods = (make_pod("a", grace_period=timedelta(minutes=2)), make_pod("b"), make_pod("c", deleted=NOW))
    assert find_next_forced_deletion(pods, NOW) == get_time_before(minutes=2)
    assert find_next_forced_deletion((), NOW) == NOW


def test_drain_message_lists_at_most_three_pods() -> None:
    protected_pods = tuple(make_pod(name, annotations={labels.DO_NOT_DISRUPT: "true"}) for name in "abcd")
    words = plan_drain(protected_pods, None, NOW, build_pdb_limits(())).describe()
    assert words == "draining: 4 pods left: shop/a, shop/b, shop/c and 1 more; pod shop/a must not be disrupted"


def decide_with_volumes(deadline: str = "", **fields: Case) -> Case:
    attachments = (
        VolumeAttachment(meta=ObjectMeta(name="1"), node_name="node-a", volume_name="pv-cart"),
        VolumeAttachment(meta=ObjectMeta(name="2"), node_name="node-a", volume_name="pv-agent"),
        VolumeAttachment(meta=ObjectMeta(name="3"), node_name="node-a"),
        VolumeAttachment(meta=ObjectMeta(name="4"), node_name="node-b", volume_name="pv-b"),
    )
    agent = make_pod("agent", spec=replace_fields(TOLERANT, volume_claims=("data",)))
    claims = (VolumeClaim(meta=ObjectMeta(name="data", namespace="shop"), volume_name="pv-agent"),)
    annotations = {labels.TERMINATION_TIMESTAMP: deadline} if deadline else {}
    node_claim = make_deleted_claim(conditions=make_true_conditions(*STAGES, "Drained"), annotations=annotations)
    return decide_lifecycle(
        build_terminating_cluster(node_claim, agent, volume_attachments=attachments, volume_claims=claims, **fields)
    )


def test_instance_termination_waits_for_detachable_volumes() -> None:
    actions = decide_with_volumes()
    condition = get_status_patch(actions)["conditions"]["VolumesDetached"]
    assert (condition["status"], condition["reason"]) == ("Unknown", "AwaitingVolumeDetachment")
    [message] = [
        event.message for event in filter_actions(PublishEvent, actions) if event.reason == "AwaitingVolumeDetachment"
    ]
    assert message.endswith(": pv-cart")
    assert not filter_actions(TerminateInstances, actions)


@pytest.mark.parametrize(
    ("deadline", "status"), [("2026-11-21T12:00:00Z", "Unknown"), ("2026-11-21T11:59:59Z", "False")]
)
def test_instance_termination_does_not_wait_for_volumes_after_the_deadline(deadline: str, status: str) -> None:
    actions = decide_with_volumes(deadline)
    assert get_status_patch(actions)["conditions"]["VolumesDetached"]["status"] == status
    assert bool(filter_actions(TerminateInstances, actions)) is (status == "False")


@pytest.mark.parametrize(
    ("instances", "is_terminated", "is_reported"),
    [
        ((make_instance(),), True, True),
        ((make_instance(state="shutting-down"),), False, True),
        (None, False, False),
    ],
)
def test_instance_termination_is_repeated_until_the_instance_is_shutting_down(
    instances: Case,
    is_terminated: bool,  # noqa: FBT001
    is_reported: bool,  # noqa: FBT001
) -> None:
    actions = decide_lifecycle(build_terminating_cluster(make_drained_claim(), instances=instances))
    assert [termination.instance_ids for termination in filter_actions(TerminateInstances, actions)] == (
        [("i-a",)] if is_terminated else []
    )
    assert ("InstanceTerminating" in get_status_patch(actions).get("conditions", {})) is is_reported
    assert not list_released_objects(actions)


def test_recently_launched_instance_missing_from_the_list_is_terminated_with_one_request() -> None:
    stages, listed_instances = (*STAGES, "Drained", "VolumesDetached"), (make_instance("other"),)
    young, requested = (
        make_drained_claim(conditions=make_true_conditions(*names, since=get_time_before(seconds=60)))
        for names in (stages, (*stages, "InstanceTerminating"))
    )
    for node_claim, is_requested in ((young, True), (requested, False)):
        actions = decide_lifecycle(build_terminating_cluster(node_claim, instances=listed_instances))
        requests = [action for action in filter_actions(TerminateInstances, actions) if "i-a" in action.instance_ids]
        assert len(requests) == is_requested
        assert not list_released_objects(actions)
    running = (make_instance(),)
    assert filter_actions(TerminateInstances, decide_lifecycle(build_terminating_cluster(requested, instances=running)))


def test_finalizers_are_removed_from_the_node_then_the_node_claim_after_instance_termination() -> None:
    ended = make_drained_claim(
        conditions=(
            *make_true_conditions(*STAGES),
            *make_true_conditions("Drained", "VolumesDetached", "InstanceTerminating"),
        )
    )
    first = decide_lifecycle(build_terminating_cluster(ended, instances=()))
    assert list_released_objects(first) == [("Node", "node-a")]
    assert filter_actions(FollowUp, first)
    last = decide_lifecycle(build_terminating_cluster(ended, instances=(), nodes=()))
    assert list_released_objects(last) == [("NodeClaim", "a")]
    assert get_status_patch(last) == {}


def test_node_without_finalizer_is_deleted_with_the_node_claim_of_a_terminated_instance() -> None:
    ended = make_drained_claim(conditions=make_true_conditions(*STAGES, "InstanceTerminating"))
    actions = decide_lifecycle(build_terminating_cluster(ended, instances=(), nodes=(make_node(finalizers=()),)))
    assert [(deletion.kind, deletion.name) for deletion in filter_actions(DeleteObject, actions)] == [
        ("Node", "node-a")
    ]
    assert list_released_objects(actions) == [("NodeClaim", "a")]


def test_not_ready_node_of_a_terminated_instance_is_removed_without_a_drain() -> None:
    dead = make_node(ready=False, deleted=NOW)
    actions = decide_lifecycle(
        build_terminating_cluster(make_deleted_claim(None), make_pod(), nodes=(dead,), instances=())
    )
    assert list_released_objects(actions) == [("Node", "node-a")]
    assert not filter_actions(TaintNode, actions)
    undeleted = decide_lifecycle(
        build_terminating_cluster(make_deleted_claim(None), make_pod(), nodes=(make_node(ready=False),), instances=())
    )
    assert [(deletion.kind, deletion.name) for deletion in filter_actions(DeleteObject, undeleted)] == [
        ("Node", "node-a")
    ]
    assert not list_released_objects(undeleted)


def test_ready_node_is_drained_although_its_instance_is_missing_from_the_list() -> None:
    other_instances = (make_instance("b"),)
    actions = decide_lifecycle(
        build_terminating_cluster(
            make_deleted_claim(),
            make_pod(),
            instances=other_instances,
            node_claims=(make_deleted_claim(), make_claim("b")),
        )
    )
    assert filter_actions(EvictPod, actions)
    assert not list_released_objects(actions)


def test_unregistered_node_claim_is_terminated_without_a_drain() -> None:
    node_claim = make_deleted_claim(None, conditions=make_true_conditions("Launched"), node_name="")
    stranger = make_node(fit=False, finalizers=())
    actions = decide_lifecycle(build_terminating_cluster(node_claim, make_pod(), nodes=(stranger,)))
    assert filter_actions(TerminateInstances, actions)
    assert not filter_actions(TaintNode, actions)
    assert not filter_actions(DeleteObject, actions)
    assert list_released_objects(decide_lifecycle(build_terminating_cluster(node_claim, nodes=(), instances=()))) == [
        ("NodeClaim", "a")
    ]


def test_registered_node_claim_without_a_node_is_terminated_without_waiting() -> None:
    assert filter_actions(
        TerminateInstances, decide_lifecycle(build_terminating_cluster(make_deleted_claim(None), nodes=()))
    )


def test_node_claim_without_the_karpenter_finalizer_is_ignored() -> None:
    assert not filter_actions(
        TerminateInstances, decide_lifecycle(build_terminating_cluster(make_deleted_claim(finalizers=())))
    )


def test_deleting_node_claim_is_not_registered() -> None:
    actions = decide_lifecycle(
        build_terminating_cluster(
            make_deleted_claim(conditions=make_true_conditions("Launched")),
            nodes=(make_node(fit=False, finalizers=()),),
        )
    )
    assert not filter_actions(RegisterNode, actions)


def test_node_claim_status_is_patched_once_and_before_its_metadata() -> None:
    node_claim = make_deleted_claim(None, termination_grace_period=timedelta(minutes=10))
    actions = decide_lifecycle(build_terminating_cluster(node_claim, make_pod()))
    [status] = [patch for patch in filter_actions(PatchStatus, actions) if patch.kind == "NodeClaim"]
    [note] = [patch for patch in filter_actions(PatchMetadata, actions) if patch.kind == "NodeClaim"]
    assert actions.index(status) < actions.index(note)


def make_launch_group(
    result: FleetResult | None = None, created: datetime = A_MINUTE_AGO, claims: Case = ("a",)
) -> LaunchGroup:
    request = FleetRequest(
        client_token="t",  # noqa: S106 - not a secret
        capacity=1,
        capacity_type="spot",
        allocation_strategy="lowest-price",
        configs=(),
    )
    return LaunchGroup(name="g", claims=claims, request=request, templates=(), created_at=created, result=result)


def make_fleet_result(*names: str) -> FleetResult:
    return FleetResult(
        fleet_id="f",
        instances=tuple(
            FleetInstance(
                instance_id=f"i-{name}",
                instance_type="m7i.large",
                zone="us-east-1a",
                subnet_id="s",
                image_id="ami",
                capacity_type="spot",
            )
            for name in names
        ),
    )


TAGGED_INSTANCE = replace_fields(make_instance("x"), tags=((labels.LAUNCH_GROUP, "g"),))


@pytest.mark.parametrize(
    ("groups", "instances", "expected"),
    [
        ((), None, FINALIZER_REMOVED),
        ((make_launch_group(created=get_time_before(minutes=15)),), None, FINALIZER_REMOVED),
        ((make_launch_group(claims=("b",)),), None, FINALIZER_REMOVED),
        ((make_launch_group(),), None, "waits"),
        ((make_launch_group(),), (), FINALIZER_REMOVED),
        ((make_launch_group(),), (TAGGED_INSTANCE,), "i-x"),
        ((make_launch_group(),), (replace_fields(TAGGED_INSTANCE, state="shutting-down"),), FINALIZER_REMOVED),
        ((make_launch_group(claims=("a", "b")),), (TAGGED_INSTANCE,), "waits"),
        ((make_launch_group(make_fleet_result("x")),), (TAGGED_INSTANCE,), "i-x"),
        (
            (make_launch_group(make_fleet_result("x")),),
            (replace_fields(TAGGED_INSTANCE, state="shutting-down"),),
            "waits",
        ),
        ((make_launch_group(make_fleet_result("x")),), None, "waits"),
        ((make_launch_group(make_fleet_result("x"), created=get_time_before(minutes=2)),), (), FINALIZER_REMOVED),
        ((make_launch_group(make_fleet_result()),), None, FINALIZER_REMOVED),
    ],
)
def test_unlaunched_node_claim_is_removed_when_no_instance_can_belong_to_it(
    groups: Case, instances: Case, expected: str
) -> None:
    node_claim = make_deleted_claim(None, conditions=(), launched=False, node_name="")
    heir = make_claim("b", conditions=(), launched=False, created=NOW)
    actions = decide_lifecycle(make_cluster(node_claims=(node_claim, heir), launch_groups=groups, instances=instances))
    ended = [termination.instance_ids[0] for termination in filter_actions(TerminateInstances, actions)]
    assert (ended, list_released_objects(actions)) == {
        FINALIZER_REMOVED: ([], [("NodeClaim", "a")]),
        "waits": ([], []),
    }.get(expected, ([expected], []))


def test_instance_of_an_unlaunched_node_claim_that_ec2_does_not_list_is_terminated_once() -> None:
    """CreateFleet has returned the instance, but the provider id was not written, and EC2 does not list it yet."""
    group = make_launch_group(make_fleet_result("x"))

    def decide(instances: Case, *conditions: str) -> tuple[Case, bool]:
        claim = make_deleted_claim(None, conditions=make_true_conditions(*conditions), launched=False, node_name="")
        actions = decide_lifecycle(make_cluster(node_claims=(claim,), launch_groups=(group,), instances=instances))
        is_recorded = "InstanceTerminating" in get_status_patch(actions).get("conditions", {})
        return [action.instance_ids for action in filter_actions(TerminateInstances, actions)], is_recorded

    assert decide(()) == ([("i-x",)], True)
    assert decide((), "InstanceTerminating")[0] == []
    assert decide((TAGGED_INSTANCE,), "InstanceTerminating")[0] == [("i-x",)]


def decide_abandoned_node(*pods: Case, **fields: Case) -> Case:
    abandoned_node = make_node(**merge_fields(fields, deleted=NOW, going=True))
    return decide_lifecycle(
        make_cluster(
            nodes=(abandoned_node,), pods=pods, instances=(make_instance("b"),), node_claims=(make_claim("b"),)
        )
    )


def test_deleted_node_without_a_node_claim_is_tainted_drained_and_removed() -> None:
    first = decide_abandoned_node(make_pod(), going=False)
    assert [taint.name for taint in filter_actions(TaintNode, first)] == ["node-a"]
    assert not filter_actions(EvictPod, first)
    assert [eviction.name for eviction in filter_actions(EvictPod, decide_abandoned_node(make_pod()))] == ["cart"]
    assert list_released_objects(decide_abandoned_node()) == [("Node", "node-a")]
    assert list_released_objects(decide_abandoned_node(make_pod(), ready=False)) == [("Node", "node-a")]


@pytest.mark.parametrize(("ready", "going"), [(False, ["node-a"]), (True, [])])
def test_not_ready_node_without_instance_and_node_claim_is_deleted(ready: bool, going: list[str]) -> None:  # noqa: FBT001
    assert [
        deletion.name for deletion in filter_actions(DeleteObject, decide_abandoned_node(deleted=None, ready=ready))
    ] == going


@pytest.mark.parametrize("fields", [{"deleted": None}, {"finalizers": ()}, {"provider_id": make_provider_id("b")}])
def test_unmanaged_or_undeleted_node_without_node_claim_is_not_patched(fields: Case) -> None:
    assert not [
        patch for patch in filter_actions(PatchMetadata, decide_abandoned_node(**fields)) if patch.name == "node-a"
    ]


def test_deleted_node_without_a_node_class_is_ignored() -> None:
    foreign = make_node(deleted=NOW)
    foreign = replace_fields(foreign, meta=replace_fields(foreign.meta, labels=()))
    assert decide_lifecycle(make_cluster(nodes=(foreign,), node_pools=())) == ()
