"""Instances, instance types, and actions as JSON."""

from datetime import UTC, datetime, timedelta

import msgspec

from shared.model.cloud_provider.instance_type import InstanceType, UnavailableOffering
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import ANYTHING, build_requirements, parse_requirement
from shared.model.core.resources import build_resources
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
    EvictPod,
    FollowUp,
    MarkUnavailable,
    PatchMetadata,
    TaintNode,
)
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def test_instance_type_allocatable_is_capacity_minus_overhead() -> None:
    capacity, overhead = build_resources({"cpu": 2000, "pods": 29}), build_resources({"cpu": 70})
    instance_type = InstanceType(name="m5.large", requirements=ANYTHING, capacity=capacity, overhead=overhead)
    assert instance_type.allocatable == build_resources({"cpu": 1930, "pods": 29})


def test_instance_provider_id_contains_zone_and_instance_id() -> None:
    instance = Instance(
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
    assert instance.provider_id == "aws:///us-east-1a/i-0abc"
    assert (instance.get_tag("a"), instance.get_tag("b")) == ("1", "")


def test_actions_round_trip_through_json() -> None:
    claim = NodeClaim(
        meta=ObjectMeta(name="c", created_at=NOW),
        node_class=NodeClassRef(name="d"),
        requirements=build_requirements(
            [parse_requirement("a", "NotIn", ["x", "y"]), parse_requirement("b", "Gt", ["3"])]
        ),
        requests=build_resources({"cpu": 1}),
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
