"""Claims -> CreateFleet requests, and what the answers mean."""

import json

import msgspec
import pytest

from shared.launch.groups import plan_launches
from shared.launch.outcome import given_up, outcome
from shared.model import labels
from shared.model.action import DeleteObject, LaunchInstances, MarkUnavailable, PatchMetadata, PatchStatus, PublishEvent
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetError, FleetInstance, FleetResult, Override
from shared.model.objects import Condition, Problem
from tests.unit.launch_cases import NOW, claim, cluster, later, node_class

UNREADABLE = Problem(kind="EC2NodeClass", name="default", message="spec.kubelet: what is this?")


def conditions_of(status: PatchStatus) -> list[Condition]:
    return [
        Condition(type=one["type"], status=one["status"], reason=one["reason"], message=one["message"])
        for one in json.loads(status.status)["conditions"]
    ]


def overrides(launch: LaunchInstances) -> list[Override]:
    return [override for config in launch.group.request.configs for override in config.overrides]


def answered(group: LaunchGroup, instances: int, *errors: FleetError) -> LaunchGroup:
    some = tuple(
        FleetInstance(
            instance_id=f"i-{number}",
            instance_type="m5.large",
            zone="us-east-1a",
            subnet_id="subnet-a",
            image_id="ami-amd64",
            capacity_type="spot",
        )
        for number in range(instances)
    )
    return msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=some, errors=errors))


def test_equal_claims_share_one_call() -> None:
    [launch] = plan_launches(cluster(claim("a"), claim("b"), claim("c"))).launches
    assert launch.group.claims == ("a", "b", "c")
    assert launch.group.request.capacity == 3


def test_claims_that_want_something_else_have_a_call_of_their_own() -> None:
    plan = plan_launches(cluster(claim("a"), claim("b", cpu="3"), claim("c", capacity_types=("on-demand",))))
    assert sorted(launch.group.claims for launch in plan.launches) == [("a",), ("b",), ("c",)]


def test_the_token_is_that_of_the_claims_and_of_nothing_else() -> None:
    one, other = (plan_launches(cluster(claim("a"), claim("b"), taken_at=later(age))).launches for age in (0, 60))
    assert one[0].group.request.client_token == other[0].group.request.client_token
    assert (
        plan_launches(cluster(claim("a"))).launches[0].group.request.client_token != one[0].group.request.client_token
    )


def test_spot_comes_first_where_it_is_allowed() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    assert launch.group.request.capacity_type == "spot"
    assert launch.group.request.allocation_strategy == "price-capacity-optimized"
    [launch] = plan_launches(cluster(claim("a", capacity_types=("on-demand",)))).launches
    assert launch.group.request.allocation_strategy == "lowest-price"


def test_on_demand_is_asked_for_once_spot_is_out() -> None:
    out = (UnavailableOffering(capacity_type="spot", until=later(60)),)
    [launch] = plan_launches(cluster(claim("a"), unavailable=out)).launches
    assert launch.group.request.capacity_type == "on-demand"
    [launch] = plan_launches(cluster(claim("a"), unavailable=out, taken_at=later(61))).launches
    assert launch.group.request.capacity_type == "spot"


def test_only_types_that_hold_the_claim_are_offered() -> None:
    [launch] = plan_launches(cluster(claim("a", cpu="3"))).launches
    assert {one.instance_type for one in overrides(launch)} == {"m5.xlarge", "c5.xlarge"}


def test_metal_is_left_out_while_something_plain_will_do() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    assert "m5.metal" not in {one.instance_type for one in overrides(launch)}
    [launch] = plan_launches(cluster(claim("a", cpu="60"))).launches
    assert {one.instance_type for one in overrides(launch)} == {"m5.metal"}


def test_spot_dearer_than_the_cheapest_on_demand_is_left_out() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    assert max(one.priority or 0 for one in overrides(launch)) <= 0.1


def test_each_zone_uses_its_first_subnet() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    assert {(one.zone, one.subnet_id) for one in overrides(launch)} == {
        ("us-east-1a", "subnet-a"),
        ("us-east-1b", "subnet-b"),
    }


def test_everything_launched_carries_the_clusters_tags() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    tags = dict(launch.group.request.tags)
    assert tags["kubernetes.io/cluster/c"] == "owned"
    assert tags["eks:eks-cluster-name"] == "c"
    assert tags[labels.NODEPOOL] == "default"
    assert tags[labels.NODECLASS] == "default"
    assert tags[labels.LAUNCH_GROUP] == launch.group.name
    assert "kubernetes.io/cluster/c" in dict(launch.group.templates[0].tags)


def test_a_group_without_an_answer_is_sent_again_as_it_was() -> None:
    [launch] = plan_launches(cluster(claim("a"), claim("b"))).launches
    # One of its claims is gone meanwhile; a third one wants the same.
    again = plan_launches(cluster(claim("b"), claim("c"), launch_groups=(launch.group,)))
    assert launch.group in [one.group for one in again.launches]
    assert [one.group.claims for one in again.launches if one.group != launch.group] == [("c",)]


def test_an_answer_that_was_not_told_is_told_not_asked_again() -> None:
    [launch] = plan_launches(cluster(claim("a"), claim("b"))).launches
    group = answered(launch.group, 1)
    plan = plan_launches(cluster(claim("a"), claim("b"), launch_groups=(group,)))
    assert plan.answered == (group,)
    [again] = plan.launches
    assert again.group.claims == ("b",)
    assert again.group.name != launch.group.name


def test_a_claim_that_comes_again_under_its_name_is_launched_anew() -> None:
    [launch] = plan_launches(cluster(claim("a"), claim("b"))).launches
    anew = claim("a", meta=msgspec.structs.replace(claim("a").meta, uid="another"))
    for group in (answered(launch.group, 2), launch.group):
        plan = plan_launches(cluster(anew, launch_groups=(group,)))
        assert plan.answered == ()
        assert [one.group.claims for one in plan.launches] == [("a",)]
        assert plan.launches[0].group.name != launch.group.name
        assert outcome(group, cluster(anew)).actions == ()


@pytest.mark.parametrize(
    ("change", "reason", "final"),
    [
        ({"node_classes": ()}, "NodeClassNotFound", True),
        ({"node_classes": (node_class(conditions=()),)}, "NodeClassNotReady", False),
        ({"node_classes": (), "problems": (UNREADABLE,)}, "NodeClassNotReady", False),
        ({"catalogue": None}, "CatalogueMissing", False),
        ({"facts": None}, "CatalogueMissing", False),
        ({"node_classes": (node_class(ami_family="Bottlerocket", user_data="[["),)}, "UserDataInvalid", False),
        ({"unavailable": (UnavailableOffering(capacity_type="", until=later(9)),)}, "InsufficientCapacity", True),
    ],
)
def test_a_claim_that_cannot_be_launched_says_why(change: dict[str, object], reason: str, final: bool) -> None:  # noqa: FBT001
    [one] = plan_launches(cluster(claim("a"), **change)).unlaunchable
    assert (one.reason, one.final) == (reason, final)
    told = given_up(one, NOW)
    assert any(isinstance(action, DeleteObject) for action in told) is final


def test_instances_are_given_out_by_name_and_id_in_every_process_alike() -> None:
    [launch] = plan_launches(cluster(claim("a"), claim("b"))).launches
    given = outcome(answered(launch.group, 2), cluster(claim("a"), claim("b")))
    statuses = {one.name: json.loads(one.status) for one in given.actions if isinstance(one, PatchStatus)}
    assert statuses["a"]["providerID"] == "aws:///us-east-1a/i-0"
    assert statuses["b"]["providerID"] == "aws:///us-east-1a/i-1"
    assert statuses["a"]["allocatable"]["cpu"] == "1930m"
    assert [one["status"] for one in statuses["a"]["conditions"] if one["type"] == "Launched"] == ["True"]
    metadata = next(one for one in given.actions if isinstance(one, PatchMetadata))
    assert dict(metadata.labels)[labels.INSTANCE_TYPE] == "m5.large"
    assert dict(metadata.labels)[labels.ZONE] == "us-east-1a"


def test_a_refused_offering_is_remembered_for_three_minutes() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    error = FleetError(code="InsufficientInstanceCapacity", message="none", instance_type="m5.large", zone="us-east-1a")
    [mark] = outcome(answered(launch.group, 0, error), cluster(claim("a"))).actions
    assert mark == MarkUnavailable(
        offering=UnavailableOffering(
            capacity_type="spot", instance_type="m5.large", zone="us-east-1a", until=later(180)
        ),
        why="InsufficientInstanceCapacity: none",
    )


@pytest.mark.parametrize(
    ("error", "closed"),
    [
        (
            FleetError(code="InsufficientFreeAddressesInSubnet", message="", zone="us-east-1b", subnet_id="subnet-b"),
            {("", "", "us-east-1b", "subnet-b"), ("", "", "us-east-1b", "")},
        ),
        (
            FleetError(code="InsufficientFreeAddressesInSubnet", message="", zone="us-east-1a", subnet_id="subnet-a"),
            {("", "", "us-east-1a", "subnet-a")},
        ),
        (
            FleetError(code="AuthFailure.ServiceLinkedRoleCreationNotPermitted", message="", instance_type="m5.large"),
            {("spot", "", "", "")},
        ),
        (FleetError(code="UnauthorizedOperation", message="no"), set()),
    ],
)
def test_what_is_closed_depends_on_the_code(error: FleetError, closed: set[tuple[str, str, str, str]]) -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    actions = outcome(answered(launch.group, 0, error), cluster(claim("a"))).actions
    found = {
        (one.offering.capacity_type, one.offering.instance_type, one.offering.zone, one.offering.subnet_id)
        for one in actions
        if isinstance(one, MarkUnavailable)
    }
    assert found == closed


def test_a_refusal_without_a_type_closes_all_that_was_asked_for() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    error = FleetError(code="UnfulfillableCapacity", message="no spot")
    given = outcome(answered(launch.group, 0, error), cluster(claim("a")))
    assert len(given.actions) == len(overrides(launch))
    assert given.left == ("a",)


def test_an_error_that_is_not_about_capacity_is_told_to_the_claim_and_not_retried_at_once() -> None:
    [launch] = plan_launches(cluster(claim("a"))).launches
    error = FleetError(code="UnauthorizedOperation", message="x" * 400)
    given = outcome(answered(launch.group, 0, error), cluster(claim("a")))
    assert given.left == ()
    [status, event] = given.actions
    assert isinstance(status, PatchStatus)
    [condition] = [one for one in json.loads(status.status)["conditions"] if one["type"] == "Launched"]
    assert (condition["status"], condition["reason"]) == ("Unknown", "Unauthorized")
    assert len(condition["message"]) == 303
    assert isinstance(event, PublishEvent)
    assert (event.kind, event.name, event.reason) == ("NodePool", "default", "Unauthorized")
    told = claim("a", conditions=tuple(conditions_of(status)))
    assert outcome(answered(launch.group, 0, error), cluster(told)).actions == (event,)


def test_a_claim_that_is_gone_or_launched_is_passed_over() -> None:
    [launch] = plan_launches(cluster(claim("a"), claim("b"))).launches
    given = outcome(answered(launch.group, 2), cluster(claim("b", provider_id="aws:///us-east-1a/i-1")))
    assert given.actions == ()
