"""From a new image to a proven or a rejected one."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from shared.decide.node_class.canary_rollout import CanaryStep, advance_canary, needs_fleet
from shared.decide.node_class.canary_status import choose_images, list_rejections, with_canary_condition
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    CANARY,
    CANARY_APPROVED,
    CANARY_REJECTED,
    CANARY_STATE,
    IMAGE_MINIMUM_AGE,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
    REGISTRATION_HEALTH,
)
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, build_pairs
from shared.model.decisions.action import PatchMetadata, PublishEvent
from shared.model.ec2.account import SelectorTerm
from shared.model.karpenter.health.canary import (
    CanaryState,
    CanaryTrial,
    encode_canary_state,
    is_configuration_held,
    parse_canary_state,
)
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import NOW, make_node_class, make_node_pool, make_pod
from tests.support.disruption_fleet import Machine, make_conditions, make_fleet, make_node_with_pods

OLD, NEW = ResolvedImage(image_id="ami-old"), ResolvedImage(image_id="ami-new")
ONE_NODE = "nodes=1 soak=1h"
DAEMON = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="cni", uid="cni")


def make_class(spec_hash: str = "a" * 32, **annotations: str) -> EC2NodeClass:
    keys = {
        "canary": CANARY,
        "minimum_age": IMAGE_MINIMUM_AGE,
        "approved": CANARY_APPROVED,
        "rejected": CANARY_REJECTED,
    }
    return replace(
        make_node_class(),
        meta=ObjectMeta(
            name="default", annotations=build_pairs({keys[key]: text for key, text in annotations.items()})
        ),
        ami_family="AL2023",
        resolved_images=(OLD,),
        image_selectors=(SelectorTerm(alias="al2023@latest"),),
        spec_hash=spec_hash,
    )


def with_annotation(node_class: EC2NodeClass, key: str, text: str) -> EC2NodeClass:
    annotations = build_pairs(dict(node_class.meta.annotations) | {key: text})
    return replace(node_class, meta=replace(node_class.meta, annotations=annotations))


def with_canary_state(node_class: EC2NodeClass, state: CanaryState) -> EC2NodeClass:
    return with_annotation(node_class, CANARY_STATE, encode_canary_state(state))


def make_machine(
    name: str,
    image: str = "ami-new",
    *pods: Pod,
    age: timedelta | None = timedelta(hours=2),
    launch_age: timedelta = timedelta(hours=2),
    annotations: Mapping[str, str] | None = None,
) -> Machine:
    """Return a node with *image*; *age* is the time since its initialization."""
    node, claim, node_pods = make_node_with_pods(name, *pods)
    types = ("Launched",) if age is None else ("Initialized", "Launched", "Registered")
    conditions = tuple(
        replace(condition, since=NOW - (age if condition.type == "Initialized" and age is not None else launch_age))
        for condition in make_conditions(*types)
    )
    meta = replace(claim.meta, annotations=build_pairs(annotations or {}))
    return node, replace(claim, image_id=image, conditions=conditions, meta=meta), node_pods


def at(cluster: ClusterSnapshot, now: datetime) -> ClusterSnapshot:
    return replace(cluster, taken_at=now)


def start_trial(node_class: EC2NodeClass) -> EC2NodeClass:
    """Return *node_class* with a trial of the new image that started three hours ago."""
    return advance_canary(node_class, (NEW,), at(make_fleet(), NOW - timedelta(hours=3))).node_class


def advance(node_class: EC2NodeClass, *machines: Machine, pools: tuple[object, ...] = ()) -> CanaryStep:
    fleet = make_fleet(*machines, pools=pools or (make_node_pool(budgets=()),))  # type: ignore[arg-type]
    return advance_canary(node_class, (NEW,), fleet)


def describe_condition(node_class: EC2NodeClass) -> tuple[str, str, str]:
    [condition] = with_canary_condition((), node_class, NOW)
    return condition.status, condition.reason, condition.message


def test_class_without_annotations_uses_new_images_at_once_and_gets_no_state() -> None:
    step = advance(make_class())
    assert step == CanaryStep(node_class=make_class())
    assert choose_images(step.node_class, (NEW,)) == (NEW,)
    conditions = make_conditions("Ready")
    assert with_canary_condition(conditions, step.node_class, NOW) is conditions


def test_condition_is_removed_with_the_annotations() -> None:
    conditions = with_canary_condition((), start_trial(make_class(canary=ONE_NODE)), NOW)
    assert with_canary_condition(conditions, make_class(), NOW) == ()


def test_new_image_waits_for_its_minimum_age_and_is_then_used() -> None:
    node_class = start_trial(make_class(minimum_age="5h"))
    assert choose_images(node_class, (NEW,)) == (OLD,)
    assert describe_condition(node_class)[:2] == ("Unknown", "MinimumAge")
    assert not needs_fleet([node_class])
    later = advance_canary(node_class, (NEW,), at(make_fleet(), NOW + timedelta(hours=2)))
    assert choose_images(later.node_class, (NEW,)) == (NEW,)
    assert describe_condition(later.node_class)[0] == "True"


def test_minimum_age_counts_from_when_the_image_was_first_seen() -> None:
    node_class = start_trial(make_class(minimum_age="5h"))
    newer = ResolvedImage(image_id="ami-newer")
    step = advance_canary(node_class, (newer,), at(make_fleet(), NOW + timedelta(hours=3)))
    assert choose_images(step.node_class, (newer,)) == (OLD,)


def test_pinned_image_has_no_minimum_age() -> None:
    pinned = replace(make_class(minimum_age="5h"), image_selectors=(SelectorTerm(id="ami-new"),))
    assert choose_images(advance(pinned).node_class, (NEW,)) == (NEW,)


def test_first_image_of_a_class_is_used_without_canary() -> None:
    new_class = replace(make_class(canary=ONE_NODE), resolved_images=())
    assert choose_images(advance(new_class).node_class, (NEW,)) == (NEW,)


def test_image_is_proven_when_its_nodes_stayed_healthy_for_the_soak_time() -> None:
    node_class = start_trial(make_class(canary="nodes=2 soak=1h"))
    fleet = [make_machine("a"), make_machine("b", age=timedelta(minutes=59)), make_machine("c", "ami-old")]
    waiting = advance(node_class, *fleet).node_class
    assert choose_images(waiting, (NEW,)) == (OLD,)
    assert "1 of 2 nodes passed, 1 running, 0 starting" in describe_condition(waiting)[2]
    fleet[1] = make_machine("b", age=timedelta(minutes=61))
    step = advance(waiting, *fleet)
    assert choose_images(step.node_class, (NEW,)) == (NEW,)
    [event] = [action for action in step.actions if isinstance(action, PublishEvent)]
    assert (event.reason, event.type) == ("CanaryPassed", "Normal")
    assert parse_canary_state(step.node_class).previous_images == (OLD,)


def test_node_that_passed_counts_after_its_removal() -> None:
    waiting = advance(
        start_trial(make_class(canary="nodes=2 soak=1h")), make_machine("a"), make_machine("b", "ami-old")
    )
    step = advance(waiting.node_class, make_machine("b"), make_machine("c", "ami-old"))
    assert choose_images(step.node_class, (NEW,)) == (NEW,)


def test_class_with_fewer_nodes_than_the_canary_needs_proves_its_image_with_all_of_them() -> None:
    step = advance(start_trial(make_class(canary="nodes=5 soak=1h")), make_machine("a"))
    assert choose_images(step.node_class, (NEW,)) == (NEW,)


def test_state_is_written_only_if_it_changes() -> None:
    step = advance(start_trial(make_class(canary=ONE_NODE)), make_machine("a", "ami-old"))
    assert advance(step.node_class, make_machine("a", "ami-old")).actions == ()
    assert [type(action) for action in advance(make_class(canary=ONE_NODE)).actions] == [PatchMetadata]


def make_failed_pool(*names: str, at: datetime = NOW) -> object:
    document = {"of": "0/0", "since": "2026-01-01T00:00:00Z", "failed": dict.fromkeys(names, f"{at:%FT%TZ}")}
    history = json.dumps(document)
    return make_node_pool(meta=ObjectMeta(name="default", annotations=((REGISTRATION_HEALTH, history),)), budgets=())


def make_unready(machine: Machine, *, minutes: int = 2) -> Machine:
    node, claim, pods = machine
    since = NOW - timedelta(minutes=minutes)
    unready = Condition(type="Ready", status="False", reason="KubeletNotReady", since=since)
    return replace(node, conditions=(unready,)), claim, pods


def bind_pod(node: str, *, restarts: int = 0, phase: str = "Running", owner: OwnerReference = DAEMON) -> Pod:
    scheduled = Condition(type="PodScheduled", status="True", since=NOW - timedelta(minutes=6))
    return replace(
        make_pod(f"{owner.name}-{node}", owners=(owner,)),
        node_name=node,
        phase=phase,
        restarts=restarts,
        started_at=NOW - timedelta(hours=1),
        conditions=(scheduled,),
    )


def advance_with_pods(*pods: Pod) -> EC2NodeClass:
    fleet = make_fleet(make_machine("a", age=timedelta(minutes=30)), make_machine("b", "ami-old"), pods=pods)
    return advance_canary(start_trial(make_class(canary=ONE_NODE)), (NEW,), fleet).node_class


def find_rejection(node_class: EC2NodeClass) -> str:
    return next((because for _, because in list_rejections(node_class)), "")


def test_image_is_rejected_if_a_node_is_not_ready() -> None:
    machine = make_machine("a", age=timedelta(minutes=30))
    step = advance(start_trial(make_class(canary=ONE_NODE)), make_unready(machine))
    assert choose_images(step.node_class, (NEW,)) == (OLD,)
    assert describe_condition(step.node_class)[:2] == ("False", "CanaryRejected")
    [event] = [action for action in step.actions if isinstance(action, PublishEvent)]
    assert (event.kind, event.type) == ("EC2NodeClass", "Warning")
    assert "node a is not Ready: KubeletNotReady" in event.message
    assert "joiner nodeclass approve" in event.message


def test_short_outage_of_a_node_does_not_reject_the_image() -> None:
    machine = make_unready(make_machine("a", age=timedelta(minutes=30)), minutes=0)
    assert not find_rejection(advance(start_trial(make_class(canary=ONE_NODE)), machine).node_class)


def test_image_is_rejected_if_a_node_did_not_register() -> None:
    first = advance(start_trial(make_class(canary=ONE_NODE)), make_machine("a", age=None, launch_age=timedelta()))
    step = advance(first.node_class, pools=(make_failed_pool("claim-a"),))
    assert "claim-a did not register" in find_rejection(step.node_class)
    assert not find_rejection(advance(first.node_class, pools=(make_failed_pool("claim-b"),)).node_class)


def test_failure_from_before_the_trial_is_of_an_earlier_node_claim_with_the_same_name() -> None:
    first = advance(start_trial(make_class(canary=ONE_NODE)), make_machine("a", age=None, launch_age=timedelta()))
    pool = make_failed_pool("claim-a", at=NOW - timedelta(hours=3, seconds=1))
    assert not find_rejection(advance(first.node_class, pools=(pool,)).node_class)


def test_failure_of_an_earlier_node_claim_does_not_count_against_a_node_that_starts() -> None:
    starting = make_machine("a", age=None, launch_age=timedelta())
    pool = make_failed_pool("claim-a", at=NOW - timedelta(hours=1))
    assert not find_rejection(advance(start_trial(make_class(canary=ONE_NODE)), starting, pools=(pool,)).node_class)


def with_uid(machine: Machine, uid: str) -> Machine:
    node, claim, pods = machine
    return node, replace(claim, meta=replace(claim.meta, uid=uid)), pods


def test_lost_node_claims_with_the_same_name_count_as_two() -> None:
    node_class = start_trial(make_class(canary=ONE_NODE))
    starting = make_machine("a", age=None, launch_age=timedelta())
    node_class = advance(node_class, with_uid(starting, "first")).node_class
    node_class = advance(node_class, with_uid(starting, "second")).node_class
    assert not find_rejection(node_class)
    assert "NodeClaims claim-a, claim-a were deleted" in find_rejection(advance(node_class).node_class)


def test_node_claims_with_the_same_name_pass_as_two_nodes() -> None:
    node_class, healthy = start_trial(make_class(canary="nodes=2 soak=1h")), make_machine("a")
    peer = make_machine("b", "ami-old")
    node_class = advance(node_class, with_uid(healthy, "first"), peer).node_class
    assert choose_images(node_class, (NEW,)) == (OLD,)
    assert choose_images(advance(node_class, with_uid(healthy, "second"), peer).node_class, (NEW,)) == (NEW,)


def test_image_is_rejected_if_a_node_does_not_start_in_time() -> None:
    trial = start_trial(make_class(canary=ONE_NODE))
    late, early = (make_machine("a", age=None, launch_age=timedelta(minutes=minutes)) for minutes in (15, 14))
    assert "is not registered 15 minutes after its launch" in find_rejection(advance(trial, late).node_class)
    assert not find_rejection(advance(trial, early).node_class)


def test_image_is_rejected_when_a_second_node_is_deleted_before_it_started() -> None:
    node_class = start_trial(make_class(canary=ONE_NODE))
    for name in ("a", "b"):
        assert not find_rejection(node_class)
        node_class = advance(node_class, make_machine(name, age=None, launch_age=timedelta())).node_class
        node_class = advance(node_class).node_class
    assert "claim-a, claim-b were deleted before" in find_rejection(node_class)


@pytest.mark.parametrize(
    ("on_canary", "elsewhere", "is_rejected"),
    [
        ({"phase": "Pending"}, {}, True),
        ({"phase": "Pending"}, {"phase": "Pending"}, False),
        ({"restarts": 3}, {}, True),
        ({"restarts": 2}, {}, False),
        ({"restarts": 6}, {"restarts": 3}, False),
        ({"restarts": 7}, {"restarts": 3}, True),
        ({}, {"restarts": 9}, False),
    ],
)
def test_pods_count_if_pods_of_the_same_workload_are_healthy_on_other_nodes(
    on_canary: dict[str, object], elsewhere: dict[str, object], *, is_rejected: bool
) -> None:
    node_class = advance_with_pods(bind_pod("a", **on_canary), bind_pod("b", **elsewhere))  # type: ignore[arg-type]
    assert bool(find_rejection(node_class)) is is_rejected


def test_workload_without_pods_on_other_nodes_does_not_count() -> None:
    replica_set = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="web")
    assert not find_rejection(advance_with_pods(bind_pod("a", restarts=50, owner=replica_set), bind_pod("b")))


def test_operator_overrides_the_result_of_the_canary() -> None:
    rejected = advance(start_trial(make_class(canary=ONE_NODE)), make_unready(make_machine("a"))).node_class
    approved = with_annotation(rejected, CANARY_APPROVED, "ami-new")
    assert choose_images(approved, (NEW,)) == (NEW,)
    assert describe_condition(approved)[0] == "True"


def test_rejection_of_the_good_image_falls_back_to_the_one_before() -> None:
    proven = advance(start_trial(make_class(canary=ONE_NODE)), make_machine("a")).node_class
    current = replace(proven, resolved_images=(NEW,))
    rejected = with_annotation(current, CANARY_REJECTED, "ami-new")
    assert choose_images(advance(rejected).node_class, (NEW,)) == (OLD,)


def test_rejected_image_without_another_one_stays_in_use() -> None:
    assert choose_images(replace(make_class(rejected="ami-new"), resolved_images=()), (NEW,)) == (NEW,)


def test_images_of_another_family_are_used_at_once() -> None:
    node_class = advance(make_class(canary=ONE_NODE)).node_class
    changed = replace(node_class, ami_family="Bottlerocket")
    assert choose_images(changed, (NEW,)) == (NEW,)


def test_invalid_annotation_keeps_the_good_image() -> None:
    node_class = make_class(canary="2")
    assert choose_images(advance(node_class).node_class, (NEW,)) == (OLD,)
    assert describe_condition(node_class)[:2] == ("False", "InvalidAnnotation")


def test_trial_of_an_image_that_no_node_uses_does_not_show_as_running() -> None:
    step = advance(start_trial(make_class(canary=ONE_NODE)))
    status, _, message = describe_condition(step.node_class)
    assert status == "True"
    assert message == "image ami-new: not tested, no node of this EC2NodeClass has this type of image"


def test_images_that_wait_until_the_same_time_are_named_together() -> None:
    def describe(*identities: str) -> str:
        trials = (CanaryTrial(identity=identity, known_since=NOW) for identity in identities)
        node_class = make_class(canary=ONE_NODE, minimum_age="72h")
        return describe_condition(with_canary_state(node_class, CanaryState(trials=tuple(trials))))[2]

    assert describe("ami-1").startswith("image ami-1 waits for its minimum age of 72h until ")
    assert describe("ami-1", "ami-2", "ami-3").startswith(
        "images ami-1, ami-2 and 1 more wait for their minimum age of 72h until "
    )


def test_condition_names_the_running_canary_next_to_a_rejection() -> None:
    machine = make_machine("a", age=timedelta(minutes=30))
    rejected = advance(start_trial(make_class(canary=ONE_NODE)), make_unready(machine)).node_class
    trial = CanaryTrial(identity="b" * 32, known_since=NOW, started_at=NOW, running=("c/u",))
    state = replace(parse_canary_state(rejected), configuration_trial=trial)
    status, reason, message = describe_condition(with_canary_state(rejected, state))
    assert (status, reason) == ("False", "CanaryRejected")
    assert message.startswith("image ami-new is rejected: node a is not Ready: KubeletNotReady; ")
    assert "; to override: joiner nodeclass approve ami-new; canary of launch configuration bbbb" in message


def change_configuration(node_class: EC2NodeClass) -> EC2NodeClass:
    """Return *node_class* with another hash, after its first cycle three hours ago."""
    tested_class = advance_canary(node_class, (OLD,), at(make_fleet(), NOW - timedelta(hours=4))).node_class
    changed = replace(tested_class, spec_hash="b" * 32)
    return advance_canary(changed, (OLD,), at(make_fleet(), NOW - timedelta(hours=3))).node_class


def make_configured(name: str, spec_hash: str) -> Machine:
    annotations = {NODECLASS_HASH: spec_hash, NODECLASS_HASH_VERSION: NODECLASS_HASH_VERSION_VALUE}
    return make_machine(name, "ami-old", annotations=annotations)


def test_new_launch_configuration_is_held_until_its_nodes_stayed_healthy() -> None:
    changed = change_configuration(make_class(canary=ONE_NODE))
    assert is_configuration_held(changed)
    old_node, new_node = make_configured("a", "a" * 32), make_configured("b", "b" * 32)
    assert is_configuration_held(advance_canary(changed, (OLD,), make_fleet(old_node)).node_class)
    assert not is_configuration_held(advance_canary(changed, (OLD,), make_fleet(old_node, new_node)).node_class)


def test_rejected_launch_configuration_stays_held_until_it_is_reverted_or_approved() -> None:
    changed = change_configuration(make_class(canary=ONE_NODE))
    fleet = make_fleet(make_configured("a", "a" * 32), make_unready(make_configured("b", "b" * 32)))
    rejected = advance_canary(changed, (OLD,), fleet).node_class
    assert is_configuration_held(rejected)
    assert "revert or correct the EC2NodeClass" in describe_condition(rejected)[2]
    assert not is_configuration_held(with_annotation(rejected, CANARY_APPROVED, "b" * 32))
    reverted = advance_canary(replace(rejected, spec_hash="a" * 32), (OLD,), fleet).node_class
    assert not is_configuration_held(reverted)
    assert describe_condition(reverted)[0] == "True"


def test_state_survives_its_annotation() -> None:
    state = parse_canary_state(start_trial(make_class(canary=ONE_NODE)))
    assert state == CanaryState(
        good_hash="a" * 32,
        family=make_class().ami_family,
        trials=(
            CanaryTrial(
                identity="ami-new",
                image=NEW,
                known_since=NOW - timedelta(hours=3),
                started_at=NOW - timedelta(hours=3),
            ),
        ),
    )
