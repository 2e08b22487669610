"""From launch to an initialized node."""

from datetime import timedelta

import pytest

from shared.model.core import labels
from shared.model.core.metadata import Condition, build_pairs
from shared.model.core.taints import DISRUPTED, UNREGISTERED, Taint
from shared.model.decisions.action import (
    DeleteObject,
    FollowUp,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TagInstance,
)
from tests.support.lifecycle_cases import (
    BIRTH,
    NOW,
    Case,
    filter_actions,
    get_status_patch,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_true_conditions,
    merge_fields,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle

FRESH = get_time_before(seconds=40)
LAUNCHED = make_true_conditions("Launched", since=FRESH)
TAINT = Taint(key="team", effect="NoSchedule", value="x")
STARTUP = Taint(key="cni", effect="NoSchedule")


def make_launched_claim(**fields: Case) -> Case:
    return make_claim(**merge_fields(fields, conditions=LAUNCHED, created=FRESH, node_name=""))


def make_unregistered_node(**fields: Case) -> Case:
    return make_node(**merge_fields(fields, fit=False, finalizers=(), taints=(UNREGISTERED,)))


def test_unlaunched_node_claim_requeues_provisioning() -> None:
    actions = decide_lifecycle(make_cluster(node_claims=(make_launched_claim(launched=False, conditions=()),)))
    assert ("provision", timedelta(seconds=5)) in [
        (follow_up.function, follow_up.after) for follow_up in filter_actions(FollowUp, actions)
    ]


def test_node_claim_with_a_provider_id_is_launched() -> None:
    assert (
        get_status_patch(decide_lifecycle(make_cluster(node_claims=(make_launched_claim(conditions=()),))))[
            "conditions"
        ]["Launched"]["status"]
        == "True"
    )


def test_closed_node_is_not_registered_and_is_requeued_after_3_seconds() -> None:
    snapshot = make_cluster(node_claims=(make_launched_claim(),), nodes=(make_unregistered_node(),))
    actions = decide_lifecycle(snapshot, closed_nodes=frozenset({"node-a"}))
    assert not filter_actions(RegisterNode, actions)
    condition = get_status_patch(actions)["conditions"]["Registered"]
    assert (condition["status"], condition["reason"]) == ("Unknown", "NodeClosed")
    [wake] = filter_actions(FollowUp, actions)
    assert (wake.function, wake.after) == ("lifecycle", timedelta(seconds=3))
    assert filter_actions(RegisterNode, decide_lifecycle(snapshot, closed_nodes=frozenset({"another"})))


def test_registered_node_is_not_closed_again() -> None:
    registered_node = make_node(fit=False, extra={labels.REGISTERED: "true"})
    snapshot = make_cluster(node_claims=(make_launched_claim(),), nodes=(registered_node,))
    assert decide_lifecycle(snapshot, closed_nodes=frozenset({registered_node.name})) == decide_lifecycle(snapshot)


def test_node_registrations_are_the_first_actions() -> None:
    names = ("a", "b")
    snapshot = make_cluster(
        node_claims=tuple(make_launched_claim(name=name) for name in names),
        nodes=tuple(make_unregistered_node(name=name) for name in names),
    )
    kinds = [isinstance(action, RegisterNode) for action in decide_lifecycle(snapshot)]
    assert kinds[:2] == [True, True]
    assert not any(kinds[2:])


def test_node_claim_without_a_node_reports_node_not_found_and_requeues() -> None:
    actions = decide_lifecycle(make_cluster(node_claims=(make_launched_claim(),)))
    conditions = get_status_patch(actions)["conditions"]
    assert (conditions["Registered"]["status"], conditions["Registered"]["reason"]) == ("Unknown", "NodeNotFound")
    assert conditions["Registered"]["lastTransitionTime"] == "2026-11-21T11:59:20Z"
    assert conditions["Ready"]["status"] == "Unknown"
    [wake] = filter_actions(FollowUp, actions)
    assert (wake.function, wake.after) == ("lifecycle", timedelta(seconds=30))


def test_registered_node_gets_taints_labels_annotations_and_owner_of_its_node_claim() -> None:
    node_claim = make_launched_claim(
        taints=(TAINT,), startup_taints=(STARTUP,), annotations={"a": "b", labels.POD_DIGEST: "x"}
    )
    actions = decide_lifecycle(
        make_cluster(node_claims=(node_claim,), nodes=(make_unregistered_node(taints=(UNREGISTERED, TAINT)),))
    )
    [registration] = filter_actions(RegisterNode, actions)
    assert registration.taints == (TAINT, STARTUP)
    assert registration.finalizers == (labels.TERMINATION_FINALIZER,)
    assert registration.resource_version == "8"
    assert dict(registration.labels)[labels.REGISTERED] == "true"
    assert registration.annotations == (("a", "b"),)
    assert [(owner.kind, owner.name, owner.uid) for owner in registration.owners] == [("NodeClaim", "a", "uid-a")]
    status = get_status_patch(actions)
    assert status["nodeName"] == "node-a"
    assert status["conditions"]["Registered"]["status"] == "True"
    assert actions.index(registration) < actions.index(filter_actions(PatchStatus, actions)[0])
    assert "UnregisteredTaintMissing" not in [event.reason for event in filter_actions(PublishEvent, actions)]


@pytest.mark.parametrize("place", ["node", "claim"])
def test_taints_are_not_synced_with_the_do_not_sync_taints_label(place: str) -> None:
    extra = {labels.DO_NOT_SYNC_TAINTS: "true"}
    node_claim = make_launched_claim(taints=(TAINT,), extra=extra if place == "claim" else {})
    [registration] = filter_actions(
        RegisterNode,
        decide_lifecycle(
            make_cluster(
                node_claims=(node_claim,), nodes=(make_unregistered_node(extra=extra if place == "node" else {}),)
            )
        ),
    )
    assert registration.taints == ()


def test_node_without_the_unregistered_taint_is_reported_and_registered() -> None:
    actions = decide_lifecycle(
        make_cluster(node_claims=(make_launched_claim(),), nodes=(make_unregistered_node(taints=()),))
    )
    assert "UnregisteredTaintMissing" in [event.reason for event in filter_actions(PublishEvent, actions)]
    assert filter_actions(RegisterNode, actions)


def test_incomplete_registration_is_repeated() -> None:
    registered_claim = make_claim(conditions=make_true_conditions("Launched", "Registered"))
    assert filter_actions(
        RegisterNode, decide_lifecycle(make_cluster(node_claims=(registered_claim,), nodes=(make_unregistered_node(),)))
    )


def test_node_claim_with_two_nodes_of_one_provider_id_is_not_registered() -> None:
    twin = make_node("b", provider_id="aws:///us-east-1a/i-a", fit=False)
    actions = decide_lifecycle(
        make_cluster(node_claims=(make_launched_claim(),), nodes=(make_unregistered_node(), twin))
    )
    condition = get_status_patch(actions)["conditions"]["Registered"]
    assert (condition["status"], condition["reason"]) == ("False", "MultipleNodesFound")
    assert not filter_actions(RegisterNode, actions)


def test_deleting_node_is_not_registered() -> None:
    assert not filter_actions(
        RegisterNode,
        decide_lifecycle(
            make_cluster(node_claims=(make_launched_claim(),), nodes=(make_unregistered_node(deleted=NOW),))
        ),
    )


@pytest.mark.parametrize(
    ("fields", "extra_requests", "reason"),
    [
        ({"ready": False}, {}, "NodeNotReady"),
        ({"taints": (STARTUP,)}, {}, "StartupTaintsExist"),
        (
            {"taints": (Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),)},
            {},
            "KnownEphemeralTaintsExist",
        ),
        ({}, {"nvidia.com/gpu": 1}, "ResourceNotRegistered"),
        ({"extra": {labels.REGISTERED: "no"}}, {}, "NodeNotFound"),
    ],
)
def test_initialized_condition_states_why_the_node_is_not_initialized(
    fields: Case, extra_requests: dict[str, int], reason: str
) -> None:
    node_claim = make_claim(
        conditions=make_true_conditions("Launched", "Registered", since=FRESH), startup_taints=(STARTUP,)
    )
    node_claim = replace_fields(
        node_claim, requests=type(node_claim.requests)(amounts=(*node_claim.requests.amounts, *extra_requests.items()))
    )
    node = make_node(**({"extra": {labels.INITIALIZED: ""}} | fields))
    condition = get_status_patch(decide_lifecycle(make_cluster(node_claims=(node_claim,), nodes=(node,))))[
        "conditions"
    ]["Initialized"]
    assert (condition["status"], condition["reason"]) == ("Unknown", reason)


def test_initialized_node_is_labeled_and_its_node_claim_is_ready() -> None:
    node_claim = make_claim(conditions=make_true_conditions("Launched", "Registered", since=FRESH))
    actions = decide_lifecycle(
        make_cluster(node_claims=(node_claim,), nodes=(make_node(extra={labels.INITIALIZED: ""}),))
    )
    conditions = get_status_patch(actions)["conditions"]
    assert (conditions["Initialized"]["status"], conditions["Ready"]["status"]) == ("True", "True")
    assert ("Node", "node-a", ((labels.INITIALIZED, "true"),)) in [
        (patch.kind, patch.name, patch.labels) for patch in filter_actions(PatchMetadata, actions)
    ]
    assert {"Initialized", "Ready"} <= {event.reason for event in filter_actions(PublishEvent, actions)}
    assert not filter_actions(FollowUp, actions)


def test_missing_initialized_label_is_written_again_while_the_node_is_not_ready() -> None:
    actions = decide_lifecycle(
        make_cluster(node_claims=(make_claim(),), nodes=(make_node(ready=False, extra={labels.INITIALIZED: ""}),))
    )
    assert ((labels.INITIALIZED, "true"),) in [patch.labels for patch in filter_actions(PatchMetadata, actions)]


def test_node_claim_without_the_karpenter_finalizer_gets_it_before_registration() -> None:
    actions = decide_lifecycle(
        make_cluster(node_claims=(make_launched_claim(finalizers=("x",)),), nodes=(make_unregistered_node(),))
    )
    [hold] = filter_actions(PatchMetadata, actions)
    assert (hold.finalizers, hold.resource_version) == (("x", labels.TERMINATION_FINALIZER), "7")
    assert not filter_actions(RegisterNode, actions)


def test_node_claim_of_a_foreign_node_class_is_ignored() -> None:
    foreign_claim = replace_fields(
        make_launched_claim(), node_class=type(make_launched_claim().node_class)(name="x", group="other.io")
    )
    assert decide_lifecycle(make_cluster(node_claims=(foreign_claim,), node_pools=())) == ()


@pytest.mark.parametrize(
    ("conditions", "launched", "minutes", "reason"),
    [
        ((), False, 4.9, ""),
        ((), False, 5, "launch_timeout"),
        (make_true_conditions("Launched"), True, 14.9, ""),
        (make_true_conditions("Launched"), True, 15, "registration_timeout"),
        (make_true_conditions("Launched", "Registered"), True, 99, ""),
    ],
)
def test_node_claim_is_deleted_after_the_launch_or_registration_timeout(
    conditions: tuple[Condition, ...],
    launched: bool,  # noqa: FBT001
    minutes: float,
    reason: str,
) -> None:
    late = make_claim(conditions=conditions, launched=launched, created=get_time_before(minutes=minutes), node_name="")
    deletions = [
        (deletion.kind, deletion.name, deletion.uid, deletion.message)
        for deletion in filter_actions(DeleteObject, decide_lifecycle(make_cluster(node_claims=(late,))))
    ]
    assert deletions == ([("NodeClaim", "a", "uid-a", reason)] if reason else [])


@pytest.mark.parametrize(
    ("conditions", "launched", "minutes"),
    [((), False, 4.9), (make_true_conditions("Launched", since=get_time_before(minutes=14.9)), True, 14.9)],
)
def test_run_is_requeued_at_the_launch_or_registration_timeout(
    conditions: tuple[Condition, ...],
    launched: bool,  # noqa: FBT001 - a case
    minutes: float,
) -> None:
    late = make_claim(conditions=conditions, launched=launched, created=get_time_before(minutes=minutes), node_name="")
    wakes = {
        follow_up.function: follow_up.after
        for follow_up in filter_actions(FollowUp, decide_lifecycle(make_cluster(node_claims=(late,))))
    }
    assert wakes["lifecycle"] == timedelta(seconds=6)


@pytest.mark.parametrize(("expires_in", "is_deleted", "wake"), [(0, True, 5), (600, False, 600), (901, False, None)])
def test_node_claim_is_deleted_at_its_expiration_time(expires_in: int, is_deleted: bool, wake: int | None) -> None:  # noqa: FBT001
    old = make_claim(expire_after=NOW - BIRTH + timedelta(seconds=expires_in))
    actions = decide_lifecycle(make_cluster(node_claims=(old,), nodes=(make_node(),)))
    assert [deletion.message for deletion in filter_actions(DeleteObject, actions)] == (
        ["expired"] if is_deleted else []
    )
    assert [follow_up.after.total_seconds() for follow_up in filter_actions(FollowUp, actions)] == (
        [wake] if wake else []
    )


def test_only_missing_instance_tags_are_written_and_confirmed_with_an_annotation() -> None:
    node_claim, node = make_claim(), make_node()
    world = make_cluster(node_claims=(node_claim,), nodes=(node,), instances=(make_instance(Name="own"),))
    [tagging] = filter_actions(TagInstance, decide_lifecycle(world, cluster_name="prod"))
    assert tagging.tags == (("eks:eks-cluster-name", "prod"), ("karpenter.sh/nodeclaim", "a"))
    tagged = replace_fields(make_instance(), tags=build_pairs((("Name", "own"), *tagging.tags)))
    actions = decide_lifecycle(replace_fields(world, instances=(tagged,)), cluster_name="prod")
    assert not filter_actions(TagInstance, actions)
    noted = [patch.annotations for patch in filter_actions(PatchMetadata, actions) if patch.kind == "NodeClaim"]
    assert dict(noted[-1])["karpenter.k8s.aws/tagged"] == "true"
    tagged_claim = make_claim(annotations=dict(noted[-1]))
    assert not filter_actions(
        TagInstance, decide_lifecycle(replace_fields(world, node_claims=(tagged_claim,)), cluster_name="prod")
    )


def test_deleting_node_deletes_its_node_claim() -> None:
    going = make_node(deleted=NOW, taints=(DISRUPTED,))
    actions = decide_lifecycle(make_cluster(node_claims=(make_claim(),), nodes=(going,)))
    assert [deletion.message for deletion in filter_actions(DeleteObject, actions)] == ["node_deleted"]
