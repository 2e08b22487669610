"""From launch to a node that is fit for use."""

from datetime import timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.model import labels
from shared.model.action import (
    DeleteObject,
    FollowUp,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TagInstance,
)
from shared.model.objects import Condition, pairs
from shared.model.taints import DISRUPTED, UNREGISTERED, Taint
from tests.unit.lifecycle_cases import (
    BIRTH,
    NOW,
    Case,
    ago,
    changed,
    claim,
    cluster,
    either,
    instance,
    node,
    of,
    statuses,
    true,
)

FRESH = ago(seconds=40)
LAUNCHED = true("Launched", since=FRESH)
TAINT = Taint(key="team", effect="NoSchedule", value="x")
STARTUP = Taint(key="cni", effect="NoSchedule")


def young(**fields: Case) -> Case:
    return claim(**either(fields, conditions=LAUNCHED, created=FRESH, node_name=""))


def newcomer(**fields: Case) -> Case:
    return node(**either(fields, fit=False, finalizers=(), taints=(UNREGISTERED,)))


def test_a_claim_without_an_instance_waits_for_provisioning() -> None:
    actions = decide(cluster(node_claims=(young(launched=False, conditions=()),)))
    assert ("provision", timedelta(seconds=5)) in [(one.function, one.after) for one in of(FollowUp, actions)]


def test_a_provider_id_is_proof_of_a_launch() -> None:
    assert statuses(decide(cluster(node_claims=(young(conditions=()),))))["conditions"]["Launched"]["status"] == "True"


def test_a_node_is_kept_closed_as_long_as_somebody_says_so_and_looked_at_soon() -> None:
    some = cluster(node_claims=(young(),), nodes=(newcomer(),))
    actions = decide(some, closed=frozenset({"node-a"}))
    assert not of(RegisterNode, actions)
    said = statuses(actions)["conditions"]["Registered"]
    assert (said["status"], said["reason"]) == ("Unknown", "NodeClosed")
    [wake] = of(FollowUp, actions)
    assert (wake.function, wake.after) == ("lifecycle", timedelta(seconds=3))
    assert of(RegisterNode, decide(some, closed=frozenset({"another"})))


def test_a_node_that_is_open_is_not_closed_again() -> None:
    joined = node(fit=False, extra={labels.REGISTERED: "true"})
    some = cluster(node_claims=(young(),), nodes=(joined,))
    assert decide(some, closed=frozenset({joined.name})) == decide(some)


def test_nodes_are_opened_first_and_all_at_once() -> None:
    names = ("a", "b")
    some = cluster(
        node_claims=tuple(young(name=name) for name in names),
        nodes=tuple(newcomer(name=name) for name in names),
    )
    kinds = [isinstance(action, RegisterNode) for action in decide(some)]
    assert kinds[:2] == [True, True]
    assert not any(kinds[2:])


def test_until_its_node_joins_a_claim_says_so_and_is_looked_at_again() -> None:
    actions = decide(cluster(node_claims=(young(),)))
    told = statuses(actions)["conditions"]
    assert (told["Registered"]["status"], told["Registered"]["reason"]) == ("Unknown", "NodeNotFound")
    assert told["Registered"]["lastTransitionTime"] == "2026-11-21T11:59:20Z"
    assert told["Ready"]["status"] == "Unknown"
    [wake] = of(FollowUp, actions)
    assert (wake.function, wake.after) == ("lifecycle", timedelta(seconds=30))


def test_a_node_that_joins_is_given_what_its_claim_says() -> None:
    mine = young(taints=(TAINT,), startup_taints=(STARTUP,), annotations={"a": "b", labels.POD_DIGEST: "x"})
    actions = decide(cluster(node_claims=(mine,), nodes=(newcomer(taints=(UNREGISTERED, TAINT)),)))
    [registration] = of(RegisterNode, actions)
    assert registration.taints == (TAINT, STARTUP)
    assert registration.finalizers == (labels.TERMINATION_FINALIZER,)
    assert registration.resource_version == "8"
    assert dict(registration.labels)[labels.REGISTERED] == "true"
    assert registration.annotations == (("a", "b"),)
    assert [(owner.kind, owner.name, owner.uid) for owner in registration.owners] == [("NodeClaim", "a", "uid-a")]
    status = statuses(actions)
    assert status["nodeName"] == "node-a"
    assert status["conditions"]["Registered"]["status"] == "True"
    assert actions.index(registration) < actions.index(of(PatchStatus, actions)[0])
    assert "UnregisteredTaintMissing" not in [event.reason for event in of(PublishEvent, actions)]


@pytest.mark.parametrize("place", ["node", "claim"])
def test_taints_are_not_synced_where_a_label_says_so(place: str) -> None:
    extra = {labels.DO_NOT_SYNC_TAINTS: "true"}
    mine = young(taints=(TAINT,), extra=extra if place == "claim" else {})
    [registration] = of(
        RegisterNode,
        decide(cluster(node_claims=(mine,), nodes=(newcomer(extra=extra if place == "node" else {}),))),
    )
    assert registration.taints == ()


def test_a_node_that_joins_without_its_taint_is_reported_and_registered() -> None:
    actions = decide(cluster(node_claims=(young(),), nodes=(newcomer(taints=()),)))
    assert "UnregisteredTaintMissing" in [event.reason for event in of(PublishEvent, actions)]
    assert of(RegisterNode, actions)


def test_a_registration_that_did_not_happen_is_decided_again() -> None:
    known = claim(conditions=true("Launched", "Registered"))
    assert of(RegisterNode, decide(cluster(node_claims=(known,), nodes=(newcomer(),))))


def test_two_nodes_with_one_provider_id_are_no_node() -> None:
    twin = node("b", provider_id="aws:///us-east-1a/i-a", fit=False)
    actions = decide(cluster(node_claims=(young(),), nodes=(newcomer(), twin)))
    told = statuses(actions)["conditions"]["Registered"]
    assert (told["status"], told["reason"]) == ("False", "MultipleNodesFound")
    assert not of(RegisterNode, actions)


def test_a_deleted_newcomer_is_left_alone() -> None:
    assert not of(RegisterNode, decide(cluster(node_claims=(young(),), nodes=(newcomer(deleted=NOW),))))


@pytest.mark.parametrize(
    ("fields", "asked", "reason"),
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
def test_what_keeps_a_node_from_being_fit_is_said(fields: Case, asked: dict[str, int], reason: str) -> None:
    mine = claim(conditions=true("Launched", "Registered", since=FRESH), startup_taints=(STARTUP,))
    mine = changed(mine, requests=type(mine.requests)(amounts=(*mine.requests.amounts, *asked.items())))
    there = node(**({"extra": {labels.INITIALIZED: ""}} | fields))
    told = statuses(decide(cluster(node_claims=(mine,), nodes=(there,))))["conditions"]["Initialized"]
    assert (told["status"], told["reason"]) == ("Unknown", reason)


def test_a_fit_node_is_labelled_and_its_claim_is_ready() -> None:
    mine = claim(conditions=true("Launched", "Registered", since=FRESH))
    actions = decide(cluster(node_claims=(mine,), nodes=(node(extra={labels.INITIALIZED: ""}),)))
    told = statuses(actions)["conditions"]
    assert (told["Initialized"]["status"], told["Ready"]["status"]) == ("True", "True")
    assert ("Node", "node-a", ((labels.INITIALIZED, "true"),)) in [
        (one.kind, one.name, one.labels) for one in of(PatchMetadata, actions)
    ]
    assert {"Initialized", "Ready"} <= {event.reason for event in of(PublishEvent, actions)}
    assert not of(FollowUp, actions)


def test_a_label_that_was_not_written_is_written_again_though_the_node_is_not_ready_now() -> None:
    actions = decide(cluster(node_claims=(claim(),), nodes=(node(ready=False, extra={labels.INITIALIZED: ""}),)))
    assert ((labels.INITIALIZED, "true"),) in [one.labels for one in of(PatchMetadata, actions)]


def test_a_claim_without_our_finalizer_gets_it_before_anything_else() -> None:
    actions = decide(cluster(node_claims=(young(finalizers=("x",)),), nodes=(newcomer(),)))
    [hold] = of(PatchMetadata, actions)
    assert (hold.finalizers, hold.resource_version) == (("x", labels.TERMINATION_FINALIZER), "7")
    assert not of(RegisterNode, actions)


def test_claims_of_other_node_classes_are_not_ours() -> None:
    other = changed(young(), node_class=type(young().node_class)(name="x", group="other.io"))
    assert decide(cluster(node_claims=(other,), node_pools=())) == ()


@pytest.mark.parametrize(
    ("conditions", "launched", "minutes", "why"),
    [
        ((), False, 4.9, ""),
        ((), False, 5, "launch_timeout"),
        (true("Launched"), True, 14.9, ""),
        (true("Launched"), True, 15, "registration_timeout"),
        (true("Launched", "Registered"), True, 99, ""),
    ],
)
def test_what_does_not_start_in_time_is_deleted(
    conditions: tuple[Condition, ...],
    launched: bool,  # noqa: FBT001
    minutes: float,
    why: str,
) -> None:
    late = claim(conditions=conditions, launched=launched, created=ago(minutes=minutes), node_name="")
    found = [(one.kind, one.name, one.uid, one.why) for one in of(DeleteObject, decide(cluster(node_claims=(late,))))]
    assert found == ([("NodeClaim", "a", "uid-a", why)] if why else [])


@pytest.mark.parametrize(
    ("conditions", "launched", "minutes"), [((), False, 4.9), (true("Launched", since=ago(minutes=14.9)), True, 14.9)]
)
def test_a_claim_that_is_late_is_looked_at_when_its_time_is_up(
    conditions: tuple[Condition, ...],
    launched: bool,  # noqa: FBT001 - a case
    minutes: float,
) -> None:
    late = claim(conditions=conditions, launched=launched, created=ago(minutes=minutes), node_name="")
    wakes = {one.function: one.after for one in of(FollowUp, decide(cluster(node_claims=(late,))))}
    assert wakes["lifecycle"] == timedelta(seconds=6)


@pytest.mark.parametrize(("expires_in", "gone", "wake"), [(0, True, 5), (600, False, 600), (901, False, None)])
def test_a_claim_expires_at_the_second(expires_in: int, gone: bool, wake: int | None) -> None:  # noqa: FBT001
    old = claim(expire_after=NOW - BIRTH + timedelta(seconds=expires_in))
    actions = decide(cluster(node_claims=(old,), nodes=(node(),)))
    assert [one.why for one in of(DeleteObject, actions)] == (["expired"] if gone else [])
    assert [one.after.total_seconds() for one in of(FollowUp, actions)] == ([wake] if wake else [])


def test_only_missing_tags_are_written_and_noted_once_they_are_seen() -> None:
    mine, there = claim(), node()
    world = cluster(node_claims=(mine,), nodes=(there,), instances=(instance(Name="own"),))
    [tagging] = of(TagInstance, decide(world, cluster_name="prod"))
    assert tagging.tags == (("eks:eks-cluster-name", "prod"), ("karpenter.sh/nodeclaim", "a"))
    tagged = changed(instance(), tags=pairs((("Name", "own"), *tagging.tags)))
    actions = decide(changed(world, instances=(tagged,)), cluster_name="prod")
    assert not of(TagInstance, actions)
    noted = [one.annotations for one in of(PatchMetadata, actions) if one.kind == "NodeClaim"]
    assert dict(noted[-1])["karpenter.k8s.aws/tagged"] == "true"
    done = claim(annotations=dict(noted[-1]))
    assert not of(TagInstance, decide(changed(world, node_claims=(done,)), cluster_name="prod"))


def test_a_node_that_was_deleted_takes_its_claim_along() -> None:
    going = node(deleted=NOW, taints=(DISRUPTED,))
    actions = decide(cluster(node_claims=(claim(),), nodes=(going,)))
    assert [one.why for one in of(DeleteObject, actions)] == ["node_deleted"]
