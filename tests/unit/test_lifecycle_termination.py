"""The end of machines."""

from datetime import datetime, timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.lifecycle.drain import drain, next_forced
from shared.lifecycle.guards import guards_of
from shared.model import labels
from shared.model.action import (
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
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetInstance, FleetRequest, FleetResult
from shared.model.objects import Condition, Meta
from shared.model.pods import PodSpec
from shared.model.taints import DISRUPTED, Taint, Toleration
from shared.model.volumes import VolumeAttachment, VolumeClaim
from tests.unit.lifecycle_cases import (
    NOW,
    STAGES,
    Case,
    ago,
    changed,
    claim,
    cluster,
    either,
    guard,
    instance,
    node,
    of,
    pod,
    provider_id,
    statuses,
    true,
    unknown,
)

TOLERANT = PodSpec(tolerations=(Toleration(operator="Exists"),))
A_MOMENT_AGO = ago(seconds=5)
A_MINUTE_AGO = ago(minutes=1)
GONE = "the finalizer is taken off"


def leaving(drained: datetime | None = A_MOMENT_AGO, **fields: Case) -> Case:
    draining = () if drained is None else (unknown("Drained", "Draining", drained),)
    return claim(**either(fields, deleted=ago(seconds=20), conditions=(*true(*STAGES), *draining)))


def emptied(**fields: Case) -> Case:
    return leaving(None, **({"conditions": true(*STAGES, "Drained", "VolumesDetached", since=NOW)} | fields))


def world(mine: Case, *pods: Case, **fields: Case) -> Cluster:
    going = node(going=True, deleted=ago(seconds=20))
    return cluster(**({"node_claims": (mine,), "nodes": (going,), "pods": pods, "instances": (instance(),)} | fields))


def evicted(of_world: Cluster) -> list[str]:
    return [one.name for one in of(EvictPod, decide(of_world))]


def released(actions: Case) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in of(PatchMetadata, actions) if one.finalizers == ()]


def test_at_first_the_node_is_tainted_and_deleted_and_room_is_made_and_nobody_leaves() -> None:
    other = Taint(key=labels.DISRUPTED_TAINT, effect="NoExecute")
    kept = Taint(key="team", effect="NoSchedule")
    actions = decide(world(leaving(None), pod(), nodes=(node(taints=(other, kept)),)))
    [taint] = of(TaintNode, actions)
    assert (taint.taints, taint.resource_version) == ((kept, DISRUPTED), "8")
    assert taint.labels == ((labels.EXCLUDE_BALANCERS, "karpenter"),)
    assert [(one.kind, one.name) for one in of(DeleteObject, actions)] == [("Node", "node-a")]
    assert [(one.function, one.after.total_seconds()) for one in of(FollowUp, actions)] == [
        ("lifecycle", 5),
        ("provision", 0),
    ]
    told = statuses(actions)["conditions"]["Drained"]
    assert (told["status"], told["reason"]) == ("Unknown", "Draining")
    assert not of(EvictPod, actions)


@pytest.mark.parametrize(
    ("announced", "tainted", "leave"), [(4.9, True, False), (5, True, True), (5, False, False), (None, True, False)]
)
def test_pods_are_asked_five_seconds_after_the_drain_was_announced_on_a_tainted_node(
    announced: float | None,
    tainted: bool,  # noqa: FBT001
    leave: bool,  # noqa: FBT001
) -> None:
    since = None if announced is None else ago(seconds=announced)
    going = node(going=tainted, deleted=ago(seconds=9))
    assert bool(evicted(world(leaving(since), pod(), nodes=(going,)))) is leave


def test_pods_leave_in_tiers() -> None:
    top = "system-cluster-critical"
    late = (pod("c", priority_class=top), pod("d", daemon=True, priority_class=top))
    tiers = [pod("a"), pod("b", daemon=True), *late]
    for number, first in enumerate(tiers):
        assert evicted(world(leaving(), *tiers[number:])) == [first.meta.name]


@pytest.mark.parametrize(
    "first",
    [
        pod("a", deleted=NOW + timedelta(seconds=9)),
        pod("a", annotations={labels.DO_NOT_DISRUPT: "true"}),
    ],
)
def test_a_tier_waits_for_whoever_is_still_there(first: Case) -> None:
    actions = decide(world(leaving(), first, pod("b", daemon=True)))
    assert not of(EvictPod, actions)
    [said] = [one for one in of(PublishEvent, actions) if one.reason == "FailedDraining"]
    assert (said.kind, said.name, said.type) == ("Node", "node-a", "Warning")
    assert "shop/a" in said.message


@pytest.mark.parametrize(
    "stays",
    [
        pod(phase="Succeeded"),
        pod(deleted=ago(seconds=61)),
        pod(spec=TOLERANT),
    ],
)
def test_pods_that_do_not_have_to_leave_hold_nothing_up(stays: Case) -> None:
    actions = decide(world(leaving(), stays))
    assert statuses(actions)["conditions"]["Drained"]["status"] == "True"
    assert of(TerminateInstances, actions)


@pytest.mark.parametrize(
    ("budgets", "fields", "asked"),
    [
        ((guard("cart", max_unavailable="0"),), {}, False),
        ((guard("cart", min_available="100%"),), {}, False),
        ((guard("cart", max_unavailable="0"),), {"phase": "Pending"}, True),
        ((guard("cart", allowed=0),), {}, True),
        ((guard("cart"), guard("cart", "second")), {}, False),
        ((guard("other", max_unavailable="0"),), {}, True),
        (
            (guard("cart", max_unavailable="0", always_allows_unhealthy=True),),
            {"conditions": (Condition(type="Ready", status="False"),)},
            True,
        ),
    ],
)
def test_a_pod_that_its_budget_never_lets_go_is_not_asked(
    budgets: Case,
    fields: Case,
    asked: bool,  # noqa: FBT001
) -> None:
    assert evicted(world(leaving(), pod(**fields), budgets=budgets)) == (["cart"] if asked else [])


def test_the_reason_that_pods_are_told_is_the_decision_behind_it() -> None:
    why = Condition(type="DisruptionReason", status="True", reason="Empty", since=NOW)
    chosen = leaving(conditions=(*true(*STAGES), unknown("Drained", "Draining", ago(seconds=9)), why))
    assert [one.why for one in of(EvictPod, decide(world(chosen, pod())))] == ["Empty"]
    assert [one.why for one in of(EvictPod, decide(world(leaving(), pod())))] == ["Forceful Termination"]


def test_the_end_of_the_grace_period_is_written_down_once() -> None:
    mine = leaving(termination_grace_period=timedelta(minutes=10))
    actions = decide(world(mine, pod()))
    written = [dict(one.annotations) for one in of(PatchMetadata, actions) if one.kind == "NodeClaim"]
    assert written == [{labels.TERMINATION_TIMESTAMP: "2026-11-21T12:09:40Z"}]
    assert {"TerminationGracePeriodExpiring"} <= {one.reason for one in of(PublishEvent, actions)}
    noted = leaving(annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T12:00:10Z"})
    again = decide(world(noted, pod(grace_period=timedelta(seconds=5))))
    assert not of(PatchMetadata, again)
    assert [one.after.total_seconds() for one in of(FollowUp, again)] == [5]


@pytest.mark.parametrize(
    ("left", "fields", "grace"),
    [
        (29, {}, 29),
        (30, {}, None),
        (-5, {}, 1),
        (29, {"annotations": {labels.DO_NOT_DISRUPT: "true"}}, 29),
        (10, {"deleted": NOW + timedelta(seconds=11)}, 10),
        (10, {"deleted": NOW + timedelta(seconds=10)}, None),
    ],
)
def test_a_pod_is_deleted_when_it_would_not_end_in_time(left: int, fields: Case, grace: int | None) -> None:
    deadline = (NOW + timedelta(seconds=left)).strftime("%Y-%m-%dT%H:%M:%SZ")
    mine = leaving(ago(seconds=1), annotations={labels.TERMINATION_TIMESTAMP: deadline})
    actions = decide(world(mine, pod(**fields)))
    assert [one.grace_seconds for one in of(DeletePod, actions)] == ([] if grace is None else [grace])
    assert ("Disrupted" in {one.reason for one in of(PublishEvent, actions)}) is (grace is not None)


def test_the_next_deletion_is_known_beforehand() -> None:
    pods = (pod("a", grace_period=timedelta(minutes=2)), pod("b"), pod("c", deleted=NOW))
    assert next_forced(pods, NOW) == ago(minutes=2)
    assert next_forced((), NOW) == NOW


def test_a_drain_says_what_it_waits_for_in_few_words() -> None:
    held = tuple(pod(name, annotations={labels.DO_NOT_DISRUPT: "true"}) for name in "abcd")
    words = drain(held, None, NOW, guards_of(())).words()
    assert words == "4 pods are waiting to leave: shop/a, shop/b, shop/c, …; pod shop/a must not be disrupted"


def volumes(deadline: str = "", **fields: Case) -> Case:
    held = (
        VolumeAttachment(meta=Meta(name="1"), node_name="node-a", volume_name="pv-cart"),
        VolumeAttachment(meta=Meta(name="2"), node_name="node-a", volume_name="pv-agent"),
        VolumeAttachment(meta=Meta(name="3"), node_name="node-a"),
        VolumeAttachment(meta=Meta(name="4"), node_name="node-b", volume_name="pv-b"),
    )
    agent = pod("agent", spec=changed(TOLERANT, volume_claims=("data",)))
    claims = (VolumeClaim(meta=Meta(name="data", namespace="shop"), volume_name="pv-agent"),)
    notes = {labels.TERMINATION_TIMESTAMP: deadline} if deadline else {}
    mine = leaving(conditions=true(*STAGES, "Drained"), annotations=notes)
    return decide(world(mine, agent, volume_attachments=held, volume_claims=claims, **fields))


def test_the_instance_waits_for_volumes_that_pods_take_along() -> None:
    actions = volumes()
    told = statuses(actions)["conditions"]["VolumesDetached"]
    assert (told["status"], told["reason"]) == ("Unknown", "AwaitingVolumeDetachment")
    [said] = [one.message for one in of(PublishEvent, actions) if one.reason == "AwaitingVolumeDetachment"]
    assert said.endswith(": pv-cart")
    assert not of(TerminateInstances, actions)


@pytest.mark.parametrize(
    ("deadline", "status"), [("2026-11-21T12:00:00Z", "Unknown"), ("2026-11-21T11:59:59Z", "False")]
)
def test_volumes_are_not_waited_for_past_the_deadline(deadline: str, status: str) -> None:
    actions = volumes(deadline)
    assert statuses(actions)["conditions"]["VolumesDetached"]["status"] == status
    assert bool(of(TerminateInstances, actions)) is (status == "False")


@pytest.mark.parametrize(
    ("instances", "asked", "told"),
    [
        ((instance(),), True, True),
        ((instance(state="shutting-down"),), False, True),
        (None, False, False),
    ],
)
def test_an_instance_is_ended_until_it_is_seen_to_end(instances: Case, asked: bool, told: bool) -> None:  # noqa: FBT001
    actions = decide(world(emptied(), instances=instances))
    assert [one.instance_ids for one in of(TerminateInstances, actions)] == ([("i-a",)] if asked else [])
    assert ("InstanceTerminating" in statuses(actions).get("conditions", {})) is told
    assert not released(actions)


def test_a_launch_of_a_minute_is_not_gone_because_it_is_not_listed_yet() -> None:
    young = emptied(
        conditions=true(*STAGES, "Drained", "VolumesDetached", "InstanceTerminating", since=ago(seconds=60))
    )
    actions = decide(world(young, instances=()))
    assert of(TerminateInstances, actions)
    assert not released(actions)


def test_when_the_instance_is_gone_the_node_is_let_go_and_then_the_claim() -> None:
    ended = emptied(conditions=(*true(*STAGES), *true("Drained", "VolumesDetached", "InstanceTerminating")))
    first = decide(world(ended, instances=()))
    assert released(first) == [("Node", "node-a")]
    assert of(FollowUp, first)
    last = decide(world(ended, instances=(), nodes=()))
    assert released(last) == [("NodeClaim", "a")]
    assert statuses(last) == {}


def test_a_node_that_nothing_holds_is_deleted_with_the_claim_whose_instance_is_gone() -> None:
    ended = emptied(conditions=true(*STAGES, "InstanceTerminating"))
    actions = decide(world(ended, instances=(), nodes=(node(finalizers=()),)))
    assert [(one.kind, one.name) for one in of(DeleteObject, actions)] == [("Node", "node-a")]
    assert released(actions) == [("NodeClaim", "a")]


def test_a_node_that_is_dead_with_its_instance_is_let_go_without_a_drain() -> None:
    dead = node(ready=False, deleted=NOW)
    actions = decide(world(leaving(None), pod(), nodes=(dead,), instances=()))
    assert released(actions) == [("Node", "node-a")]
    assert not of(TaintNode, actions)
    undeleted = decide(world(leaving(None), pod(), nodes=(node(ready=False),), instances=()))
    assert [(one.kind, one.name) for one in of(DeleteObject, undeleted)] == [("Node", "node-a")]
    assert not released(undeleted)


def test_a_node_that_is_ready_is_drained_though_its_instance_is_said_to_be_gone() -> None:
    others = (instance("b"),)
    actions = decide(world(leaving(), pod(), instances=others, node_claims=(leaving(), claim("b"))))
    assert of(EvictPod, actions)
    assert not released(actions)


def test_a_claim_that_never_joined_does_not_drain() -> None:
    mine = leaving(None, conditions=true("Launched"), node_name="")
    stranger = node(fit=False, finalizers=())
    actions = decide(world(mine, pod(), nodes=(stranger,)))
    assert of(TerminateInstances, actions)
    assert not of(TaintNode, actions)
    assert not of(DeleteObject, actions)
    assert released(decide(world(mine, nodes=(), instances=()))) == [("NodeClaim", "a")]


def test_a_joined_claim_whose_node_is_gone_does_not_wait_for_it() -> None:
    assert of(TerminateInstances, decide(world(leaving(None), nodes=())))


def test_a_claim_without_our_finalizer_is_somebody_else_s() -> None:
    assert not of(TerminateInstances, decide(world(leaving(finalizers=()))))


def test_nothing_of_a_deleting_claim_is_begun() -> None:
    actions = decide(world(leaving(conditions=true("Launched")), nodes=(node(fit=False, finalizers=()),)))
    assert not of(RegisterNode, actions)


def test_of_one_claim_the_status_is_written_once_and_before_its_metadata() -> None:
    mine = leaving(None, termination_grace_period=timedelta(minutes=10))
    actions = decide(world(mine, pod()))
    [status] = [one for one in of(PatchStatus, actions) if one.kind == "NodeClaim"]
    [note] = [one for one in of(PatchMetadata, actions) if one.kind == "NodeClaim"]
    assert actions.index(status) < actions.index(note)


def group(result: FleetResult | None = None, created: datetime = A_MINUTE_AGO, claims: Case = ("a",)) -> LaunchGroup:
    request = FleetRequest(
        client_token="t",  # noqa: S106 - not a secret
        capacity=1,
        capacity_type="spot",
        allocation_strategy="lowest-price",
        configs=(),
    )
    return LaunchGroup(name="g", claims=claims, request=request, templates=(), created_at=created, result=result)


def answer(*names: str) -> FleetResult:
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


TAGGED = changed(instance("x"), tags=((labels.LAUNCH_GROUP, "g"),))


@pytest.mark.parametrize(
    ("groups", "instances", "what"),
    [
        ((), None, GONE),
        ((group(created=ago(minutes=15)),), None, GONE),
        ((group(claims=("b",)),), None, GONE),
        ((group(),), None, "waits"),
        ((group(),), (), GONE),
        ((group(),), (TAGGED,), "i-x"),
        ((group(),), (changed(TAGGED, state="shutting-down"),), GONE),
        ((group(claims=("a", "b")),), (TAGGED,), "waits"),
        ((group(answer("x")),), (TAGGED,), "i-x"),
        ((group(answer("x")),), (changed(TAGGED, state="shutting-down"),), "waits"),
        ((group(answer("x")),), None, "waits"),
        ((group(answer("x"), created=ago(minutes=2)),), (), GONE),
        ((group(answer()),), None, GONE),
    ],
)
def test_an_unlaunched_claim_goes_once_no_instance_can_be_its_own(groups: Case, instances: Case, what: str) -> None:
    mine = leaving(None, conditions=(), launched=False, node_name="")
    heir = claim("b", conditions=(), launched=False, created=NOW)
    actions = decide(cluster(node_claims=(mine, heir), launch_groups=groups, instances=instances))
    ended = [one.instance_ids[0] for one in of(TerminateInstances, actions)]
    assert (ended, released(actions)) == {
        GONE: ([], [("NodeClaim", "a")]),
        "waits": ([], []),
    }.get(what, ([what], []))


def abandoned(*pods: Case, **fields: Case) -> Case:
    lone = node(**either(fields, deleted=NOW, going=True))
    return decide(cluster(nodes=(lone,), pods=pods, instances=(instance("b"),), node_claims=(claim("b"),)))


def test_a_deleted_node_without_a_claim_is_tainted_drained_and_let_go() -> None:
    first = abandoned(pod(), going=False)
    assert [one.name for one in of(TaintNode, first)] == ["node-a"]
    assert not of(EvictPod, first)
    assert [one.name for one in of(EvictPod, abandoned(pod()))] == ["cart"]
    assert released(abandoned()) == [("Node", "node-a")]
    assert released(abandoned(pod(), ready=False)) == [("Node", "node-a")]


@pytest.mark.parametrize(("ready", "going"), [(False, ["node-a"]), (True, [])])
def test_a_node_whose_instance_is_gone_is_deleted_though_it_has_no_claim(ready: bool, going: list[str]) -> None:  # noqa: FBT001
    assert [one.name for one in of(DeleteObject, abandoned(deleted=None, ready=ready))] == going


@pytest.mark.parametrize("fields", [{"deleted": None}, {"finalizers": ()}, {"provider_id": provider_id("b")}])
def test_other_nodes_are_left_alone(fields: Case) -> None:
    assert not [one for one in of(PatchMetadata, abandoned(**fields)) if one.name == "node-a"]


def test_a_node_of_no_node_class_is_left_alone() -> None:
    foreign = node(deleted=NOW)
    foreign = changed(foreign, meta=changed(foreign.meta, labels=()))
    assert decide(cluster(nodes=(foreign,), node_pools=())) == ()
