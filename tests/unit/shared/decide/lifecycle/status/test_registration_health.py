"""Registration health of NodePools, consistency of nodes, and nodes of an older Karpenter."""

import json
from datetime import datetime

import pytest

from shared.decide.lifecycle.node_claim.consistency import check_consistency
from shared.decide.lifecycle.reconcile_context import build_lifecycle_context
from shared.model.core import labels
from shared.model.core.metadata import Condition, OwnerReference, build_pairs, find_condition
from shared.model.core.resources import parse_resources
from shared.model.decisions.action import (
    DeleteObject,
    EvictPod,
    PatchMetadata,
    PublishEvent,
    TaintNode,
    TerminateInstances,
)
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import (
    BIRTH,
    LABELS,
    NODE_CLASS,
    POOL,
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
    make_true_conditions,
    make_unknown_condition,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle

HEALTHY = "NodeRegistrationHealthy"


def make_pool_with_health(
    status: str = "", failed: dict[str, datetime] | None = None, *, generations: str = "1/1", **fields: Case
) -> NodePool:
    """Make a pool whose health condition is *status* and whose annotation lists the claims that *failed*."""
    text = json.dumps(
        {
            "of": generations,
            "since": BIRTH.isoformat(),
            "failed": {name: at.isoformat() for name, at in (failed or {}).items()},
        }
    )
    health_conditions = (Condition(type=HEALTHY, status=status, reason="Because", since=BIRTH, observed_generation=1),)
    meta = replace_fields(POOL.meta, annotations=((labels.REGISTRATION_HEALTH, text),))
    return replace_fields(POOL, meta=meta, conditions=health_conditions if status else (), **fields)


def make_joined_claim(name: str, minutes: float) -> Case:
    since = get_time_before(minutes=minutes)
    return make_claim(
        name, conditions=(*make_true_conditions("Launched"), *make_true_conditions("Registered", since=since))
    )


def make_unregistered_claim(name: str, minutes: float, **fields: Case) -> Case:
    """Make a claim that was launched *minutes* ago and has not joined."""
    at = get_time_before(minutes=minutes)
    waits = make_unknown_condition("Registered", "NodeNotFound", at)
    return make_claim(name, created=at, conditions=(*make_true_conditions("Launched", since=at), waits), **fields)


def compute_health(node_pool: NodePool, *claims: Case, **fields: Case) -> tuple[str, str, dict[str, str]]:
    """Return the status, the reason, and the failures that the pool remembers afterwards."""
    actions = decide_lifecycle(make_cluster(**({"node_pools": (node_pool,), "node_claims": claims} | fields)))
    condition = get_status_patch(actions, "NodePool")["conditions"][HEALTHY]
    notes = [dict(patch.annotations) for patch in filter_actions(PatchMetadata, actions) if patch.kind == "NodePool"]
    text = next(
        (annotations[labels.REGISTRATION_HEALTH] for annotations in notes if labels.REGISTRATION_HEALTH in annotations),
        "",
    )
    text = text or node_pool.meta.get_annotation(labels.REGISTRATION_HEALTH)
    return condition["status"], condition["reason"], json.loads(text)["failed"]


FIVE, SIX, SEVEN = get_time_before(minutes=5), get_time_before(minutes=6), get_time_before(minutes=7)


@pytest.mark.parametrize(
    ("node_pool", "claims", "status"),
    [
        (make_pool_with_health(), [], "Unknown"),
        (make_pool_with_health(), [make_joined_claim("a", 5)], "True"),
        (make_pool_with_health(), [make_joined_claim("a", 61)], "Unknown"),
        (make_pool_with_health("True"), [], "True"),
        (make_pool_with_health(), [make_unregistered_claim("a", 14)], "Unknown"),
        (make_pool_with_health("True"), [make_unregistered_claim("a", 16)], "True"),
        (make_pool_with_health(), [make_unregistered_claim("a", 16)], "Unknown"),
        (make_pool_with_health("True"), [make_unregistered_claim("a", 16), make_unregistered_claim("b", 16)], "False"),
        (make_pool_with_health("True", {"x": FIVE}), [make_unregistered_claim("a", 16)], "False"),
        (make_pool_with_health("False", {"x": FIVE, "y": SIX}), [], "False"),
        (
            make_pool_with_health("False", {"x": FIVE, "y": SIX}),
            [make_joined_claim("a", 1), make_joined_claim("b", 2)],
            "False",
        ),
        (
            make_pool_with_health("False", {"x": FIVE, "y": SIX}),
            [make_joined_claim("a", 1), make_joined_claim("b", 2), make_joined_claim("c", 3)],
            "True",
        ),
        (make_pool_with_health("True", {"x": FIVE, "y": SIX}, generations="2/1"), [], "Unknown"),
        (
            make_pool_with_health("True", {"x": FIVE, "y": SIX}, generations="1/2"),
            [make_joined_claim("a", 5)],
            "Unknown",
        ),
    ],
)
def test_node_pool_is_unhealthy_when_two_of_its_last_four_nodes_failed_to_register(
    node_pool: NodePool, claims: Case, status: str
) -> None:
    assert compute_health(node_pool, *claims)[0] == status


def test_registration_failures_are_kept_among_the_last_four_results_and_counted_once() -> None:
    node_pool = make_pool_with_health("True", {"x": SEVEN})
    assert set(compute_health(node_pool, make_unregistered_claim("a", 16))[2]) == {"a", "x"}
    assert set(
        compute_health(
            make_pool_with_health("True", {"a": get_time_before(minutes=1)}), make_unregistered_claim("a", 16)
        )[2]
    ) == {"a"}
    assert compute_health(node_pool, *(make_joined_claim(name, 3) for name in "abcd"))[2] == {}
    dying = make_unregistered_claim("a", 30, deleted=get_time_before(minutes=10))
    assert set(compute_health(make_pool_with_health(), dying)[2]) == {"a"}
    assert (
        compute_health(make_pool_with_health(), make_unregistered_claim("a", 30, deleted=get_time_before(minutes=20)))[
            2
        ]
        == {}
    )


@pytest.mark.parametrize(
    ("launched", "status", "reason"), [(True, "False", "RegistrationFailed"), (False, "False", "VpcCpuLimit")]
)
def test_registration_health_reason_is_the_failure_of_the_last_node_claim(
    launched: bool,  # noqa: FBT001
    status: str,
    reason: str,
) -> None:
    at = get_time_before(minutes=16)
    stuck = make_unknown_condition("Launched", "VpcCpuLimit", at)
    last = (
        make_unregistered_claim("a", 16)
        if launched
        else make_claim("a", created=at, conditions=(stuck,), launched=False)
    )
    assert compute_health(make_pool_with_health("True", {"x": get_time_before(minutes=20)}), last)[:2] == (
        status,
        reason,
    )


def test_registration_health_starts_from_observed_nodes_or_the_condition_set_by_karpenter() -> None:
    bare = replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=(), created_at=get_time_before(hours=9)))
    actions = decide_lifecycle(make_cluster(node_pools=(bare,), node_claims=(make_joined_claim("a", 30),)))
    assert get_status_patch(actions, "NodePool")["conditions"][HEALTHY]["status"] == "True"
    adopted = replace_fields(bare, conditions=make_true_conditions(HEALTHY))
    actions = decide_lifecycle(make_cluster(node_pools=(adopted,)))
    assert get_status_patch(actions, "NodePool")["conditions"][HEALTHY]["status"] == "True"


def test_node_claims_of_a_replaced_node_pool_with_the_same_name_do_not_count() -> None:
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodePool", name="default", uid="another")
    foreign = make_joined_claim("a", 5)
    foreign = replace_fields(foreign, meta=replace_fields(foreign.meta, owners=(owner,)))
    assert compute_health(make_pool_with_health(), foreign)[0] == "Unknown"


CAPACITY = [("4", None), ("3600m", None), ("3599m", "False")]


@pytest.mark.parametrize(("cpu", "status"), CAPACITY)
def test_node_with_less_capacity_than_its_instance_type_is_reported_once(cpu: str, status: str | None) -> None:
    room = parse_resources({"cpu": cpu, "memory": "1Gi", "pods": 30})
    world = make_cluster(node_claims=(make_claim(),), nodes=(make_node(capacity=room),), instances=(make_instance(),))
    (machine,) = ClusterState(world).claim_states
    change = check_consistency(machine, build_lifecycle_context(ClusterState(world)))
    condition = find_condition(change.claim.conditions, "ConsistentStateFound")
    assert condition is not None
    assert condition.status == (status or "True")
    event_reasons = [event.reason for event in filter_actions(PublishEvent, change.after)]
    assert event_reasons == (["FailedConsistencyCheck"] if status else [])
    second_change = check_consistency(
        replace_fields(machine, claim=change.claim), build_lifecycle_context(ClusterState(world))
    )
    assert not second_change.after
    assert second_change.claim == change.claim


@pytest.mark.parametrize(
    "fields",
    [
        {"conditions": make_true_conditions(*STAGES[:2])},
        {"launched": False, "conditions": make_true_conditions(*STAGES)},
    ],
)
def test_uninitialized_node_is_not_checked_for_consistency(fields: Case) -> None:
    world = make_cluster(
        node_claims=(make_claim(**fields),),
        nodes=(make_node(capacity=parse_resources({})),),
        instances=(make_instance(),),
    )
    (machine,) = ClusterState(world).claim_states
    assert check_consistency(machine, build_lifecycle_context(ClusterState(world))).claim == machine.claim


def test_missing_node_class_label_of_older_karpenter_objects_is_added() -> None:
    bare = build_pairs({key: value for key, value in LABELS.items() if key != labels.NODECLASS})
    node_claim, registered_node = make_claim(), make_node()
    node_claim = replace_fields(node_claim, meta=replace_fields(node_claim.meta, labels=bare))
    registered_node = replace_fields(
        registered_node,
        meta=replace_fields(registered_node.meta, labels=build_pairs((*bare, (labels.REGISTERED, "true")))),
    )
    world = make_cluster(node_claims=(node_claim,), nodes=(registered_node,), instances=(make_instance(),))
    label = ((labels.NODECLASS, "default"),)
    poor = [
        (patch.kind, patch.name, patch.labels)
        for patch in filter_actions(PatchMetadata, decide_lifecycle(world))
        if patch.labels == label
    ]
    assert poor == [("NodeClaim", "a", label), ("Node", "node-a", label)]


def test_resources_created_by_karpenter_are_adopted_without_deletions() -> None:
    """No digest, no launch group, no tag or annotation of ours: as Karpenter leaves it when it is scaled to zero."""
    tags = {"karpenter.sh/nodepool": "default", "karpenter.sh/nodeclaim": "a", "Name": "node-a"}
    world = make_cluster(
        node_pools=(replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=())),),
        node_classes=(NODE_CLASS,),
        node_claims=(make_claim(),),
        nodes=(make_node(),),
        pods=(make_pod(),),
        instances=(replace_fields(make_instance(), tags=build_pairs(tags)),),
    )
    actions = decide_lifecycle(world, cluster_name="prod", hashes={"default": "h"})
    for kind in (DeleteObject, EvictPod, TaintNode, TerminateInstances):
        assert not filter_actions(kind, actions)
