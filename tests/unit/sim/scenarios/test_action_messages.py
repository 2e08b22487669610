"""Tests of the messages about actions."""

from datetime import timedelta

import msgspec

from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.decisions.action import (
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    PublishEvent,
    TaintNode,
    TerminateInstances,
)
from sim.scenarios.action_messages import ActionFormatter
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside, make_claim

NODE = "ip-10-0-0-1.ec2.internal"
CLOSED = MarkUnavailable(offering=UnavailableOffering(capacity_type="spot", until=DEFAULT_START_TIME), message="ICE")
WAKE = FollowUp(function="provision", after=DEFAULT_START_TIME - DEFAULT_START_TIME)
WARNING = PublishEvent(
    kind="Pod", name="cart", type="Warning", reason="FailedScheduling", message="no", at=DEFAULT_START_TIME
)


def make_eviction(name: str, node: str = NODE) -> EvictPod:
    return EvictPod(namespace="default", name=name, uid="u", node=node)


def test_important_actions_get_one_message_each_in_order() -> None:
    actions = (
        CreateNodeClaim(claim=make_claim("a"), pods=("x", "y"), message="pending"),
        LaunchInstances(group=Outside().build_launch_group(), message="wanted"),
        TaintNode(name=NODE, resource_version="", taints=(), message="expired"),
        DeleteObject(kind="NodeClaim", name="a", message="empty"),
        TerminateInstances(instance_ids=("i-0123456789", "i-0abcdefabc"), message="gone"),
    )
    assert list(ActionFormatter().format_actions(actions)) == [
        ("creates nodeclaim a for 2 pods", "pending"),
        ("CreateFleet for 1 nodeclaim", "wanted"),
        ("taints ip-10-0-0-1", "expired"),
        ("deletes nodeclaim a", "empty"),
        ("TerminateInstances 456789, defabc", "gone"),
    ]


def test_frequent_actions_are_summarized_at_the_end() -> None:
    pod_deletion = DeletePod(namespace="default", name="c", uid="u", node=NODE, grace_seconds=0)
    actions = (CLOSED, make_eviction("a"), make_eviction("b", "ip-10-0-0-0.ec2.internal"), CLOSED, pod_deletion, WAKE)
    taint = TaintNode(name=NODE, resource_version="", taints=())
    assert [message for message, _ in ActionFormatter().format_actions((*actions, taint))] == [
        "taints ip-10-0-0-1",
        "avoids 2 offerings for 3 minutes",
        "evicts 1 pod from ip-10-0-0-0",
        "evicts 2 pods from ip-10-0-0-1",
    ]


def test_warning_event_is_reported_once_per_scenario() -> None:
    teller = ActionFormatter()
    normal = PublishEvent(kind="Pod", name="cart", reason="Nominated", message="soon", at=DEFAULT_START_TIME)
    assert list(teller.format_actions((WARNING, normal, WARNING))) == [("pod cart: FailedScheduling", "no")]
    assert list(teller.format_actions((WARNING,))) == []
    assert list(ActionFormatter().format_actions((WARNING,))) != []


def test_follow_up_actions_are_not_reported() -> None:
    assert list(ActionFormatter().format_actions((WAKE,))) == []


def test_equal_warnings_are_combined_and_not_repeated() -> None:
    teller = ActionFormatter()
    cart, shop, till = (msgspec.structs.replace(WARNING, name=name) for name in ("cart", "shop", "till"))
    other_warning = msgspec.structs.replace(shop, message="never")
    later = msgspec.structs.replace(cart, at=DEFAULT_START_TIME + timedelta(minutes=3))
    assert list(teller.format_actions((cart, other_warning, shop))) == [
        ("pod cart and 1 more: FailedScheduling", "no"),
        ("pod shop: FailedScheduling", "never"),
    ]
    assert list(teller.format_actions((later, shop, till))) == [("pod till: FailedScheduling", "no")]
