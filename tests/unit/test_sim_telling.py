"""What people hear of actions."""

from datetime import timedelta

import msgspec

from shared.model.action import (
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
from shared.model.catalogue import UnavailableOffering
from sim.clock import START
from sim.telling import Teller
from tests.unit.actions_world import Outside, claim

NODE = "ip-10-0-0-1.ec2.internal"
CLOSED = MarkUnavailable(offering=UnavailableOffering(capacity_type="spot", until=START), why="ICE")
WAKE = FollowUp(function="provision", after=START - START)
WARNING = PublishEvent(kind="Pod", name="cart", type="Warning", reason="FailedScheduling", message="no", at=START)


def evict(name: str, node: str = NODE) -> EvictPod:
    return EvictPod(namespace="default", name=name, uid="u", node=node)


def test_what_matters_is_a_line_each_in_its_order() -> None:
    actions = (
        CreateNodeClaim(claim=claim("a"), pods=("x", "y"), why="pending"),
        LaunchInstances(group=Outside().group(), why="wanted"),
        TaintNode(name=NODE, resource_version="", taints=(), why="expired"),
        DeleteObject(kind="NodeClaim", name="a", why="empty"),
        TerminateInstances(instance_ids=("i-0123456789", "i-0abcdefabc"), why="gone"),
    )
    assert list(Teller().told(actions)) == [
        ("creates nodeclaim a for 2 pods", "pending"),
        ("CreateFleet for 1 nodeclaim", "wanted"),
        ("taints ip-10-0-0-1", "expired"),
        ("deletes nodeclaim a", "empty"),
        ("TerminateInstances 456789, defabc", "gone"),
    ]


def test_many_small_ones_are_told_together_and_last() -> None:
    gone = DeletePod(namespace="default", name="c", uid="u", node=NODE, grace_seconds=0)
    actions = (CLOSED, evict("a"), evict("b", "ip-10-0-0-0.ec2.internal"), CLOSED, gone, WAKE)
    taint = TaintNode(name=NODE, resource_version="", taints=())
    assert [what for what, _ in Teller().told((*actions, taint))] == [
        "taints ip-10-0-0-1",
        "avoids 2 offerings for 3 minutes",
        "evicts 1 pod from ip-10-0-0-0",
        "evicts 2 pods from ip-10-0-0-1",
    ]


def test_a_warning_is_told_once_in_a_play() -> None:
    teller = Teller()
    normal = PublishEvent(kind="Pod", name="cart", reason="Nominated", message="soon", at=START)
    assert list(teller.told((WARNING, normal, WARNING))) == [("pod cart: FailedScheduling", "no")]
    assert list(teller.told((WARNING,))) == []
    assert list(Teller().told((WARNING,))) != []


def test_what_is_of_no_interest_is_not_told() -> None:
    assert list(Teller().told((WAKE,))) == []


def test_warnings_alike_are_one_line_and_none_is_told_twice() -> None:
    teller = Teller()
    cart, shop, till = (msgspec.structs.replace(WARNING, name=name) for name in ("cart", "shop", "till"))
    other = msgspec.structs.replace(shop, message="never")
    later = msgspec.structs.replace(cart, at=START + timedelta(minutes=3))
    assert list(teller.told((cart, other, shop))) == [
        ("pod cart and 1 more: FailedScheduling", "no"),
        ("pod shop: FailedScheduling", "never"),
    ]
    assert list(teller.told((later, shop, till))) == [("pod till: FailedScheduling", "no")]
