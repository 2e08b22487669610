"""Which actions may be performed at the same time."""

import pytest

from shared.apply.independent_actions import MAX_PARALLEL_EC2_CALLS, group_independent_actions
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.metadata import OwnerReference
from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
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
    RegisterNode,
    RestartDeployment,
    SetDeletionCost,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.ec2.fleet import FleetRequest
from sim.time.virtual_clock import DEFAULT_START_TIME as NOW
from tests.support.actions_world import make_claim

TAINT = TaintNode(name="n", resource_version="1", taints=())
EVICT = EvictPod(namespace="shop", name="cart", uid="", node="n")
NOMINATE = NominatePod(namespace="shop", name="cart", uid="", node="n")
PATCH_CLAIM = PatchMetadata(kind="NodeClaim", name="c")
OTHER_TAINT = TaintNode(name="other", resource_version="1", taints=())
TERMINATE = TerminateInstances(instance_ids=("i-1",), message="")
FOLLOW_UP = FollowUp(function="provision", after=NOW - NOW)
MARK = MarkUnavailable(offering=UnavailableOffering(capacity_type="spot", until=NOW))
RESTART = RestartDeployment(namespace="shop", name="web", resource_version="", restart="1")
REQUEST = FleetRequest(
    client_token="", capacity=1, capacity_type="spot", allocation_strategy="price-capacity-optimized", configs=()
)
TAG = TagInstance(instance_id="i-1", tags=())


def register(node: str, claim: str, *nominations: NominatePod) -> RegisterNode:
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodeClaim", name=claim, uid="")
    return RegisterNode(
        name=node,
        resource_version="",
        taints=(),
        labels=(),
        annotations=(),
        finalizers=(),
        owners=(owner,),
        nominations=nominations,
    )


def publish_event(kind: str, name: str, namespace: str = "") -> PublishEvent:
    return PublishEvent(kind=kind, name=name, namespace=namespace, reason="Test", message="test", at=NOW)


@pytest.mark.parametrize(
    "dependent_action",
    [
        DeleteObject(kind="Node", name="n", message=""),
        PatchMetadata(kind="Node", name="n"),
        PatchStatus(kind="Node", name="n", status="{}"),
        EVICT,
        NOMINATE,
        DeletePod(namespace="shop", name="cart", uid="", node="n", grace_seconds=1),
        SetDeletionCost(namespace="shop", name="cart", uid="", resource_version="", node="n", cost=1),
        register("n", "c"),
        publish_event("Node", "n"),
        PATCH_CLAIM,
        PatchStatus(kind="NodeClaim", name="c", status="{}"),
        DeleteObject(kind="NodeClaim", name="c", message=""),
        publish_event("NodeClaim", "c"),
    ],
)
def test_actions_on_a_node_its_pods_and_its_node_claim_keep_their_order(dependent_action: Action) -> None:
    actions = (TAINT, OTHER_TAINT, dependent_action)
    assert group_independent_actions(actions, {"n": "c"}) == (((0, 2), (1,)),)


@pytest.mark.parametrize(
    "last_action",
    [
        publish_event("Pod", "cart", "shop"),
        register("third", "c", NominatePod(namespace="shop", name="cart", uid="", node="third")),
    ],
)
def test_actions_on_one_pod_keep_their_order(last_action: Action) -> None:
    assert group_independent_actions((TAINT, EVICT, OTHER_TAINT, last_action)) == (((0, 1, 3), (2,)),)


def test_pods_of_the_same_name_in_two_namespaces_are_independent() -> None:
    actions = (publish_event("Pod", "cart", "shop"), publish_event("Pod", "cart", "test"))
    assert group_independent_actions(actions) == (((0,), (1,)),)


def test_registration_joins_a_node_with_the_node_claim_that_owns_it() -> None:
    assert group_independent_actions((PATCH_CLAIM, OTHER_TAINT, register("n", "c"), TAINT)) == (((0, 2, 3), (1,)),)


@pytest.mark.parametrize(
    "action",
    [
        TERMINATE,
        FOLLOW_UP,
        RESTART,
        PatchMetadata(kind="NodePool", name="default"),
        PatchStatus(kind="EC2NodeClass", name="default", status="{}"),
    ],
)
def test_other_actions_wait_for_all_before_them_and_are_waited_for(action: Action) -> None:
    assert group_independent_actions((TAINT, OTHER_TAINT, action, action, TAINT, OTHER_TAINT)) == (
        ((0,), (1,)),
        ((2,),),
        ((3,),),
        ((4,), (5,)),
    )


def test_node_claims_are_created_at_the_same_time_but_before_other_writes() -> None:
    creations = tuple(CreateNodeClaim(claim=make_claim(name)) for name in ("a", "b"))
    assert group_independent_actions((*creations, TAINT, *creations)) == (((0,), (1,)), ((2,),), ((3,), (4,)))


def test_unavailable_offerings_in_a_row_are_one_group() -> None:
    assert group_independent_actions((MARK, MARK, TAINT, MARK)) == (((0, 1),), ((2,),), ((3,),))


def test_an_instance_is_tagged_in_order_while_other_calls_run() -> None:
    assert group_independent_actions((TAINT, TAG, OTHER_TAINT, TAG)) == (((0,), (1, 3), (2,)),)


def test_instances_are_tagged_in_a_few_groups() -> None:
    tags = tuple(TagInstance(instance_id=f"i-{number}", tags=()) for number in range(40))
    (stage,) = group_independent_actions(tags)
    assert len(stage) == MAX_PARALLEL_EC2_CALLS


def test_launches_are_sent_in_a_few_groups_after_all_actions_before_them() -> None:
    launches = tuple(
        LaunchInstances(group=LaunchGroup(name=f"g-{number}", claims=(), request=REQUEST, templates=(), created_at=NOW))
        for number in range(40)
    )
    stages = group_independent_actions((TAINT, *launches, FOLLOW_UP))
    assert [len(stage) for stage in stages] == [1, MAX_PARALLEL_EC2_CALLS, 1]
