"""Instances and instance types; actions as JSON."""

from datetime import UTC, datetime, timedelta

import msgspec

from shared.model.action import Action, CreateNodeClaim, EvictPod, FollowUp, MarkUnavailable, PatchMetadata, TaintNode
from shared.model.catalogue import InstanceType, UnavailableOffering
from shared.model.ec2 import Instance
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.requirements import ANYTHING, requirement, requirements
from shared.model.resources import resources
from shared.model.taints import DISRUPTED

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def test_pods_may_have_what_the_system_leaves() -> None:
    capacity, overhead = resources({"cpu": 2000, "pods": 29}), resources({"cpu": 70})
    one = InstanceType(name="m5.large", requirements=ANYTHING, capacity=capacity, overhead=overhead)
    assert one.allocatable == resources({"cpu": 1930, "pods": 29})


def test_an_instance_has_the_id_that_its_node_says() -> None:
    one = Instance(
        instance_id="i-0abc",
        instance_type="m5.large",
        zone="us-east-1a",
        subnet_id="subnet-1",
        image_id="ami-1",
        state="running",
        launched_at=NOW,
        capacity_type="spot",
        tags=(("a", "1"),),
    )
    assert one.provider_id == "aws:///us-east-1a/i-0abc"
    assert (one.tag("a"), one.tag("b")) == ("1", "")


def test_actions_survive_the_journal() -> None:
    claim = NodeClaim(
        meta=Meta(name="c", created_at=NOW),
        node_class=NodeClassRef(name="d"),
        requirements=requirements([requirement("a", "NotIn", ["x", "y"]), requirement("b", "Gt", ["3"])]),
        requests=resources({"cpu": 1}),
        expire_after=timedelta(hours=1),
    )
    actions: tuple[Action, ...] = (
        CreateNodeClaim(claim=claim, pods=("shop/cart",)),
        TaintNode(name="ip-1", resource_version="3", taints=(DISRUPTED,)),
        EvictPod(namespace="shop", name="cart", uid="u", node="ip-1"),
        PatchMetadata(kind="NodeClaim", name="c", finalizers=()),
        MarkUnavailable(offering=UnavailableOffering(capacity_type="spot", until=NOW)),
        FollowUp(function="provision", after=timedelta(seconds=5)),
    )
    assert msgspec.json.decode(msgspec.json.encode(actions), type=tuple[Action, ...]) == actions
