"""Each action's effect on the outside, and what is told of it."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.apply.executor import apply_actions
from shared.errors import Conflict, Fault, Forbidden, NotFound, Throttled, Unreachable
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.core.labels import (
    OWN_DELETION_COST,
    PLANNED_UNDER,
    POD_DELETION_COST,
    SCHEDULED_SCALE,
    SURGE_DRAIN_RESTART,
)
from shared.model.core.metadata import OwnerReference
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
    DeleteLaunchTemplate,
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RecordOfferingEvents,
    RegisterNode,
    RestartDeployment,
    ScaleWorkload,
    SetDeletionCost,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE, Outcome
from shared.store.lease import LEASE_TTL, hold_lease
from shared.store.offerings.unavailable_offerings import read_unavailable_offerings
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.fault_tap import PortCall, Tap
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside, make_claim

OWNER = OwnerReference(api_version="karpenter.sh/v1", kind="NodeClaim", name="default-1", uid="u1")
UNTIL = DEFAULT_START_TIME + timedelta(minutes=3)
SPOT_LARGE = UnavailableOffering(capacity_type="spot", instance_type="m5.large", zone="us-east-1a", until=UNTIL)
OWNED = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "name": "default-1",
    "uid": "u1",
    "blockOwnerDeletion": True,
}


def apply_one_action(action: Action, outside: Outside, **options: Any) -> Outcome:
    [outcome] = apply_actions((action,), outside.build_world(**options))
    return outcome


def expect_done(action: Action, outside: Outside) -> None:
    outcome = apply_one_action(action, outside)
    assert (outcome.result, outcome.message, outcome.action) == ("done", "", action)


def build_failing_tap(port: str, fault: Fault, method: str = "") -> Tap:
    def raise_fault(call: PortCall) -> None:
        if call.port == port and method in ("", call.method):
            raise fault

    return raise_fault


def launch_instance(outside: Outside) -> str:
    [outcome] = apply_actions((LaunchInstances(group=outside.build_launch_group()),), outside.build_world())
    assert outcome.group is not None
    assert outcome.group.result is not None
    outside.clock.advance(timedelta(seconds=30))
    return outcome.group.result.instances[0].instance_id


def test_creating_a_nodeclaim_twice_creates_one_nodeclaim() -> None:
    outside = Outside()
    expect_done(CreateNodeClaim(claim=make_claim()), outside)
    [first] = outside.api.list("nodeclaims.karpenter.sh")
    expect_done(CreateNodeClaim(claim=make_claim()), outside)
    assert outside.api.list("nodeclaims.karpenter.sh") == [first]
    assert first["spec"]["nodeClassRef"]["name"] == "default"


def test_launch_outcome_contains_the_launch_group_with_its_result() -> None:
    outside = Outside()
    outcome = apply_one_action(LaunchInstances(group=outside.build_launch_group()), outside)
    assert outcome.result == "done"
    assert outcome.group is not None
    assert outcome.group.result is not None
    assert len(outcome.group.result.instances) == len(outside.list_instances()) == 1


def test_termination_ignores_instances_that_no_longer_exist() -> None:
    outside = Outside()
    instance_id = launch_instance(outside)
    expect_done(TerminateInstances(instance_ids=("i-0gone", instance_id), message="test"), outside)
    assert outside.cloud.instances.find(instance_id).state == "shutting-down"


def test_instance_is_tagged() -> None:
    outside = Outside()
    instance_id = launch_instance(outside)
    expect_done(TagInstance(instance_id=instance_id, tags=(("Name", "n1"),)), outside)
    assert outside.cloud.instances.describe(instance_id).get_tag("Name") == "n1"


def test_deleting_a_missing_launch_template_succeeds() -> None:
    outside = Outside()
    launch_instance(outside)
    [template] = outside.list_templates()
    for _ in range(2):
        expect_done(DeleteLaunchTemplate(name=template.name), outside)
    assert outside.list_templates() == ()


def test_consecutive_unavailable_offerings_are_written_as_one_row() -> None:
    outside = Outside()
    zone = UnavailableOffering(capacity_type="", zone="us-east-1a", until=UNTIL + timedelta(seconds=1))
    marks = [MarkUnavailable(offering=offering) for offering in (SPOT_LARGE, zone, SPOT_LARGE)]
    outcomes = apply_actions((*marks, TerminateInstances(instance_ids=(), message=""), *marks), outside.build_world())
    assert [(outcome.result, outcome.action) for outcome in outcomes] == [
        ("done", outcome.action) for outcome in outcomes
    ]
    assert [outcome.action for outcome in outcomes[:3]] == marks
    [row] = outside.table.list_rows("unavailable")
    assert row.expires_at == zone.until
    assert set(read_unavailable_offerings(outside.table, DEFAULT_START_TIME, [])) == {SPOT_LARGE, zone}
    assert outside.list_called_methods("table") == ["write", "write"]


def test_each_unavailable_offering_fails_if_the_row_cannot_be_written() -> None:
    outside = Outside()
    marks = [MarkUnavailable(offering=offering) for offering in (SPOT_LARGE, SPOT_LARGE)]
    outcomes = apply_actions(marks, outside.build_world(tap=build_failing_tap("table", Throttled("later"))))
    assert [(outcome.result, outcome.message) for outcome in outcomes] == [("failed", "Throttled: later")] * 2


def test_metadata_patch_merges_maps_and_replaces_lists() -> None:
    outside = Outside()
    outside.api.create(
        "nodes", {"metadata": {"name": "n", "labels": {"a": "1"}, "annotations": {"b": "1"}, "finalizers": ["x/y"]}}
    )
    expect_done(PatchMetadata(kind="Node", name="n", labels=(("c", "2"),)), outside)
    metadata = outside.api.get("nodes", "n")["metadata"]
    assert (metadata["labels"], metadata["annotations"], metadata["finalizers"]) == (
        {"a": "1", "c": "2"},
        {"b": "1"},
        ["x/y"],
    )
    expect_done(
        PatchMetadata(kind="Node", name="n", annotations=(("d", "3"),), finalizers=("z/z",), owners=(OWNER,)), outside
    )
    metadata = outside.api.get("nodes", "n")["metadata"]
    assert (metadata["annotations"], metadata["finalizers"]) == ({"b": "1", "d": "3"}, ["z/z"])
    assert metadata["ownerReferences"] == [OWNED]
    expect_done(PatchMetadata(kind="Node", name="n", labels=(("e", "4"),), removed_labels=("a", "gone")), outside)
    assert outside.api.get("nodes", "n")["metadata"]["labels"] == {"c": "2", "e": "4"}
    expect_done(PatchMetadata(kind="Node", name="n", finalizers=()), outside)
    assert outside.api.get("nodes", "n")["metadata"].get("finalizers", []) == []


def test_status_patch_keeps_other_status_fields() -> None:
    outside = Outside()
    expect_done(CreateNodeClaim(claim=make_claim()), outside)
    expect_done(
        PatchStatus(kind="NodeClaim", name="default-1", status='{"nodeName": "n", "imageID": "ami-1"}'), outside
    )
    expect_done(PatchStatus(kind="NodeClaim", name="default-1", status='{"imageID": "ami-2"}'), outside)
    stored = outside.api.get("nodeclaims.karpenter.sh", "default-1")
    assert stored["status"] == {"nodeName": "n", "imageID": "ami-2"}


def test_taint_patch_replaces_taints_and_adds_labels() -> None:
    outside = Outside()
    revision = outside.create_node()["metadata"]["resourceVersion"]
    expect_done(TaintNode(name="n", resource_version=revision, taints=(DISRUPTED,), labels=(("a", "1"),)), outside)
    node = outside.api.get("nodes", "n")
    assert node["spec"]["taints"] == [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    assert node["metadata"]["labels"]["a"] == "1"
    expect_done(TaintNode(name="n", resource_version="", taints=()), outside)
    assert outside.api.get("nodes", "n")["spec"].get("taints", []) == []


def test_node_is_registered_in_one_write() -> None:
    outside = Outside()
    outside.create_node()
    revision = outside.api.revision
    registered = RegisterNode(
        name="n",
        resource_version="",
        taints=(DISRUPTED,),
        labels=(("a", "1"),),
        annotations=(("b", "2"),),
        finalizers=("karpenter.sh/termination",),
        owners=(OWNER,),
    )
    expect_done(registered, outside)
    node = outside.api.get("nodes", "n")
    assert outside.api.revision == revision + 1
    assert (node["metadata"]["labels"]["a"], node["metadata"]["annotations"]["b"]) == ("1", "2")
    assert node["metadata"]["finalizers"] == ["karpenter.sh/termination"]
    assert node["metadata"]["ownerReferences"] == [OWNED]
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["karpenter.sh/disrupted"]


def make_eviction(pod: dict[str, Any], uid: str = "") -> EvictPod:
    return EvictPod(namespace="default", name=pod["metadata"]["name"], uid=uid or pod["metadata"]["uid"], node="n")


def test_evicted_pod_gets_a_deletion_timestamp() -> None:
    outside = Outside()
    outside.create_node()
    expect_done(make_eviction(outside.create_pod()), outside)
    assert "deletionTimestamp" in outside.api.get("pods", "cart", "default")["metadata"]


def test_workload_is_annotated_and_scaled_only_at_the_version_that_was_read() -> None:
    outside = Outside()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    created = outside.api.create("deployments.apps", {"metadata": {"name": "web"}, "spec": spec}, "default")
    sleep = ScaleWorkload(
        kind="Deployment",
        namespace="default",
        name="web",
        resource_version=created["metadata"]["resourceVersion"],
        replicas=0,
        memory="from=3",
    )
    expect_done(sleep, outside)
    stored = outside.api.get("deployments.apps", "web", "default")
    assert (stored["spec"]["replicas"], stored["metadata"]["annotations"]) == (0, {SCHEDULED_SCALE: "from=3"})
    assert apply_one_action(msgspec.structs.replace(sleep, replicas=9), outside).result == "skipped"
    version = stored["metadata"]["resourceVersion"]
    expect_done(msgspec.structs.replace(sleep, resource_version=version, replicas=3, memory=None), outside)
    stored = outside.api.get("deployments.apps", "web", "default")
    assert (stored["spec"]["replicas"], stored["metadata"].get("annotations") or {}) == (3, {})


def test_deployment_is_restarted_only_at_the_version_that_was_read_and_once_for_a_value() -> None:
    outside = Outside()
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {"kept": "yes"}}, "spec": {"containers": []}}
    manifest = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    version = outside.api.create("deployments.apps", manifest, "default")["metadata"]["resourceVersion"]
    restart = RestartDeployment(namespace="default", name="web", resource_version=version, restart="drain-1")
    expect_done(restart, outside)
    stored = outside.api.get("deployments.apps", "web", "default")
    annotations = stored["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"kept": "yes", SURGE_DRAIN_RESTART: "drain-1"}
    assert apply_one_action(restart, outside).result == "skipped"
    repeated = msgspec.structs.replace(restart, resource_version=stored["metadata"]["resourceVersion"])
    expect_done(repeated, outside)
    assert outside.api.get("deployments.apps", "web", "default")["metadata"]["generation"] == 2


def test_eviction_blocked_by_a_pod_disruption_budget_is_skipped() -> None:
    outside = Outside()
    outside.create_node()
    pod = outside.create_pod(app="web")
    outside.create_budget(0)
    outcome = apply_one_action(make_eviction(pod), outside)
    assert outcome.result == "skipped"
    assert outcome.message.startswith("EvictionRefused: ")
    assert "deletionTimestamp" not in outside.api.get("pods", "cart", "default")["metadata"]


def test_eviction_of_a_pod_with_a_different_uid_is_skipped() -> None:
    outside = Outside()
    outside.create_node()
    outcome = apply_one_action(make_eviction(outside.create_pod(), uid="of an older one"), outside)
    assert (outcome.result, outcome.message[:8]) == ("skipped", "Conflict")


def test_pod_deletion_ignores_pdb_and_uses_the_remaining_grace_period() -> None:
    outside = Outside()
    outside.create_node()
    pod = outside.create_pod(app="web")
    outside.create_budget(0)
    uid = pod["metadata"]["uid"]
    expect_done(DeletePod(namespace="default", name="cart", uid=uid, node="n", grace_seconds=7), outside)
    assert outside.api.get("pods", "cart", "default")["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize(("uid", "result", "node"), [("own", "done", "n"), ("of an older one", "skipped", "")])
def test_pod_is_nominated_only_if_its_uid_matches(uid: str, result: str, node: str) -> None:
    outside = Outside()
    own_uid = outside.create_pod()["metadata"]["uid"]
    outcome = apply_one_action(
        NominatePod(namespace="default", name="cart", uid=own_uid if uid == "own" else uid, node="n"), outside
    )
    assert outcome.result == result
    assert outside.api.get("pods", "cart", "default")["status"].get("nominatedNodeName", "") == node


def make_deletion_cost(outside: Outside, cost: int | None, **fields: str) -> SetDeletionCost:
    meta = outside.api.get("pods", "cart", "default")["metadata"]
    values = {"uid": meta["uid"], "resource_version": meta["resourceVersion"]} | fields
    return SetDeletionCost(namespace="default", name="cart", node="n", cost=cost, **values)


def read_annotations(outside: Outside) -> dict[str, str]:
    return dict(outside.api.get("pods", "cart", "default")["metadata"].get("annotations") or {})


def test_deletion_cost_is_set_with_its_mark_and_both_are_removed() -> None:
    outside = Outside()
    outside.create_pod()
    assert apply_one_action(make_deletion_cost(outside, -7), outside).result == "done"
    assert read_annotations(outside) == {POD_DELETION_COST: "-7", OWN_DELETION_COST: "-7"}
    assert apply_one_action(make_deletion_cost(outside, None), outside).result == "done"
    assert read_annotations(outside) == {}


@pytest.mark.parametrize("fields", [{"uid": "of an older one"}, {"resource_version": "1"}])
def test_deletion_cost_of_a_changed_pod_is_not_set(fields: dict[str, str]) -> None:
    outside = Outside()
    outside.create_pod()
    action = make_deletion_cost(outside, -7, **fields)
    user_value = {"metadata": {"annotations": {POD_DELETION_COST: "5"}}}
    outside.api.patch("pods", "cart", user_value, "default")
    assert apply_one_action(action, outside).result == "skipped"
    assert read_annotations(outside) == {POD_DELETION_COST: "5"}


@pytest.mark.parametrize(("uid", "result"), [("", "done"), ("own", "done"), ("of an older one", "skipped")])
def test_object_is_deleted_only_if_its_uid_matches(uid: str, result: str) -> None:
    outside = Outside()
    own_uid = outside.create_node()["metadata"]["uid"]
    outcome = apply_one_action(
        DeleteObject(kind="Node", name="n", uid=own_uid if uid == "own" else uid, message="test"), outside
    )
    assert outcome.result == result
    assert len(outside.api.list("nodes")) == (result == "skipped")


def test_empty_uid_sends_no_delete_precondition() -> None:
    outside = Outside()
    bodies: list[dict[str, Any]] = []

    class Heard(InMemoryKube):
        def delete(self, path: str, body: bytes = b"") -> None:
            bodies.append(json.loads(body))
            super().delete(path, body)

    world = msgspec.structs.replace(outside.build_world(), kube=Heard(outside.api))
    outside.create_node()
    for uid in ("u1", ""):
        apply_actions((DeleteObject(kind="Node", name="n", uid=uid, message="test"),), world)
    assert [body.get("preconditions") for body in bodies] == [{"uid": "u1"}, None]
    assert outside.api.list("nodes") == []


def test_event_is_published_and_follow_up_message_is_sent() -> None:
    outside = Outside()
    expect_done(PublishEvent(kind="Node", name="n", reason="Why", message="because", at=DEFAULT_START_TIME), outside)
    assert [event["reason"] for event in outside.api.list("events")] == ["Why"]
    expect_done(FollowUp(function="provision", after=timedelta(seconds=5), message="waiting"), outside)
    [(function, body, after)] = outside.post.sent
    assert (function, json.loads(body)["why"], after) == ("provision", "waiting", timedelta(seconds=5))


@pytest.mark.parametrize(
    "make",
    [
        lambda stale: PatchMetadata(kind="Node", name="n", resource_version=stale, labels=(("a", "1"),)),
        lambda stale: PatchMetadata(kind="Node", name="n", resource_version=stale),
        lambda stale: PatchStatus(kind="Node", name="n", resource_version=stale, status='{"phase": "x"}'),
        lambda stale: TaintNode(name="n", resource_version=stale, taints=()),
        lambda stale: RegisterNode(
            name="n", resource_version=stale, taints=(), labels=(), annotations=(), finalizers=(), owners=()
        ),
    ],
    ids=["metadata", "no metadata", "status", "taints", "registration"],
)
def test_patch_with_a_stale_resource_version_is_skipped(make: Callable[[str], Action]) -> None:
    outside = Outside()
    stale = outside.create_node()["metadata"]["resourceVersion"]
    newest = outside.api.patch("nodes", "n", {"metadata": {"labels": {"b": "2"}}})
    outcome = apply_one_action(make(stale), outside)
    assert (outcome.result, outcome.message[:8]) == ("skipped", "Conflict")
    assert outside.api.get("nodes", "n") == newest


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        (NotFound("n"), "skipped"),
        (Conflict("n"), "skipped"),
        (Throttled("n"), "failed"),
        (Unreachable("n"), "failed"),
        (Forbidden("n"), "failed"),
    ],
)
def test_failed_action_is_reported_and_other_actions_continue(fault: Fault, result: str) -> None:
    outside = Outside()
    outside.create_node()
    bad = DeleteObject(kind="Node", name="n", message="test")
    world = outside.build_world(tap=build_failing_tap("kube", fault, "delete"))
    actions = (CreateNodeClaim(claim=make_claim("a")), bad, CreateNodeClaim(claim=make_claim("b")))
    outcomes = apply_actions(actions, world)
    assert [outcome.result for outcome in outcomes] == ["done", result, "done"]
    assert outcomes[1].message == f"{type(fault).__name__}: n"
    assert [stored["metadata"]["name"] for stored in outside.api.list("nodeclaims.karpenter.sh")] == ["a", "b"]


def test_exceptions_other_than_faults_propagate() -> None:
    def raise_division_error(call: PortCall) -> None:
        raise ZeroDivisionError(call.method)

    with pytest.raises(ZeroDivisionError):
        apply_actions((CreateNodeClaim(claim=make_claim()),), Outside().build_world(tap=raise_division_error))


def test_after_the_time_limit_only_follow_up_messages_are_sent() -> None:
    outside = Outside()
    outside.create_node()
    patch = PatchMetadata(kind="Node", name="n", labels=(("a", "1"),))
    wake = FollowUp(function="lifecycle", after=timedelta(), message="more")
    is_over_answers = iter((False, True))
    outcomes = apply_actions((patch, patch, wake), outside.build_world(), is_over=lambda: next(is_over_answers))
    assert [outcome.result for outcome in outcomes] == ["done", "skipped", "done"]
    assert outcomes[1].message == OUT_OF_TIME_MESSAGE


def test_mode_plan_skips_every_kind_of_action() -> None:
    outside = Outside()
    outside.create_node()
    pod = outside.create_pod()
    revision, calls = outside.api.revision, len(outside.calls)
    group = outside.build_launch_group()
    actions: tuple[Action, ...] = (
        CreateNodeClaim(claim=make_claim()),
        LaunchInstances(group=group),
        TerminateInstances(instance_ids=("i-1",), message=""),
        TagInstance(instance_id="i-1", tags=()),
        DeleteLaunchTemplate(name="t"),
        MarkUnavailable(offering=SPOT_LARGE),
        RecordOfferingEvents(events=()),
        PatchMetadata(kind="Node", name="n", labels=(("a", "1"),)),
        PatchStatus(kind="Node", name="n", status="{}"),
        TaintNode(name="n", resource_version="", taints=(DISRUPTED,)),
        RegisterNode(name="n", resource_version="", taints=(), labels=(), annotations=(), finalizers=(), owners=()),
        make_eviction(pod),
        NominatePod(namespace="default", name="cart", uid="", node="n"),
        SetDeletionCost(namespace="default", name="cart", uid="", resource_version="", node="n", cost=-1),
        RestartDeployment(namespace="default", name="web", resource_version="", restart="a"),
        ScaleWorkload(
            kind="Deployment", namespace="default", name="web", resource_version="", replicas=0, memory="from=1"
        ),
        DeletePod(namespace="default", name="cart", uid="", node="n", grace_seconds=0),
        DeleteObject(kind="Node", name="n", message=""),
        PublishEvent(kind="Node", name="n", reason="Why", message="because", at=DEFAULT_START_TIME),
        FollowUp(function="provision", after=timedelta(seconds=5)),
    )
    assert {type(action) for action in actions} == set(Action.__args__)
    outcomes = apply_actions(actions, outside.build_world(mode="plan"))
    assert {(outcome.result, outcome.message) for outcome in outcomes} == {("skipped", "mode is plan")}
    assert [outcome.action for outcome in outcomes] == list(actions)
    assert (outside.api.revision, len(outside.calls), outside.post.sent) == (revision, calls, [])


def make_guarded_actions(outside: Outside) -> tuple[Action, ...]:
    return (
        PatchMetadata(kind="Node", name="n", labels=(("a", "1"),)),
        CreateNodeClaim(claim=make_claim()),
        LaunchInstances(group=outside.build_launch_group()),
        TerminateInstances(instance_ids=(), message=""),
    )


def test_held_lease_lets_all_actions_pass() -> None:
    outside = Outside()
    outside.create_node()
    world = outside.build_world()
    with hold_lease(world, "planner") as fence:
        outcomes = apply_actions(make_guarded_actions(outside), world, fence)
    assert [outcome.result for outcome in outcomes] == ["done"] * 4


def test_lost_lease_skips_remaining_actions_without_calling_ec2() -> None:
    outside = Outside()
    outside.create_node()
    world = outside.build_world()
    with hold_lease(world, "planner") as fence:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"):
            outcomes = apply_actions(make_guarded_actions(outside), world, fence)
    assert [outcome.result for outcome in outcomes] == ["done", "skipped", "skipped", "skipped"]
    assert {outcome.message for outcome in outcomes[1:]} == {"the controller lost its lease"}
    assert outside.list_called_methods("ec2") == []
    assert outside.api.list("nodeclaims.karpenter.sh") == []


def test_lease_lost_between_nodeclaim_and_launch_skips_the_launch() -> None:
    outside = Outside()
    world = outside.build_world()
    with hold_lease(world, "planner") as fence:
        created = apply_actions((CreateNodeClaim(claim=make_claim()),), world, fence)
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"):
            launched = apply_actions((LaunchInstances(group=outside.build_launch_group()),), world, fence)
    assert [outcome.result for outcome in (*created, *launched)] == ["done", "skipped"]
    assert outside.list_called_methods("ec2") == []


def test_nodeclaim_is_annotated_with_the_lease_version_it_was_planned_under() -> None:
    outside = Outside()
    world = outside.build_world()
    with hold_lease(world, "planner") as fence:
        apply_actions((CreateNodeClaim(claim=make_claim("under")),), world, fence)
    assert fence is not None
    apply_actions((CreateNodeClaim(claim=make_claim("by-hand")),), world)
    stamps = {
        stored_claim["metadata"]["name"]: stored_claim["metadata"].get("annotations", {}).get(PLANNED_UNDER)
        for stored_claim in outside.api.list("nodeclaims.karpenter.sh")
    }
    assert stamps == {"by-hand": None, "under": str(fence.version)}


def test_unreadable_lease_fails_only_the_actions_it_guards() -> None:
    outside = Outside()
    outside.create_node()
    with hold_lease(outside.build_world(), "planner") as fence:
        world = outside.build_world(tap=build_failing_tap("table", Throttled("later"), "read"))
        outcomes = apply_actions(make_guarded_actions(outside), world, fence)
    assert [outcome.result for outcome in outcomes] == ["done", "failed", "failed", "done"]
    assert "create_fleet" not in outside.list_called_methods("ec2")
    assert outside.api.list("nodeclaims.karpenter.sh") == []


def test_lease_is_read_once_for_many_nodeclaims_and_before_every_launch() -> None:
    outside = Outside()
    world = outside.build_world()
    claims = tuple(CreateNodeClaim(claim=make_claim(f"default-{number}")) for number in range(300))
    with hold_lease(world, "planner") as fence:
        outside.calls.clear()
        apply_actions(claims, world, fence)
        assert outside.list_called_methods("table") == ["read"]
        outside.calls.clear()
        apply_actions((claims[0], LaunchInstances(group=outside.build_launch_group())), world, fence)
        assert outside.list_called_methods("table")[:2] == ["read", "read"]


def test_lease_is_checked_again_if_creating_nodeclaims_is_slow() -> None:
    outside = Outside()

    def lose_lease(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("kube", "create", "after"):
            outside.clock.advance(LEASE_TTL)
            outside.table.write("lease", "planner", "{}", version=1)

    world = outside.build_world(tap=lose_lease)
    with hold_lease(world, "planner") as fence:
        outcomes = apply_actions([CreateNodeClaim(claim=make_claim(name)) for name in ("a", "b", "c")], world, fence)
    assert [outcome.result for outcome in outcomes] == ["done", "skipped", "skipped"]
