"""CreateFleet requests built from claims, and how their results are interpreted."""

import json

import msgspec
import pytest

from shared.decide.launch.fleets.fleet_result import plan_fleet_outcome, report_unlaunchable
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core import labels
from shared.model.core.metadata import Condition, Problem
from shared.model.decisions.action import (
    DeleteObject,
    LaunchInstances,
    MarkUnavailable,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
)
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetResult, Override
from tests.support.launch_cases import NOW, get_time_after, make_claim, make_cluster, make_node_class
from tests.support.snapshot_decisions import plan_launches

UNREADABLE = Problem(kind="EC2NodeClass", name="default", message="spec.kubelet: what is this?")


def parse_conditions(status: PatchStatus) -> list[Condition]:
    return [
        Condition(
            type=condition["type"], status=condition["status"], reason=condition["reason"], message=condition["message"]
        )
        for condition in json.loads(status.status)["conditions"]
    ]


def list_overrides(launch: LaunchInstances) -> list[Override]:
    return [override for config in launch.group.request.configs for override in config.overrides]


def with_fleet_result(group: LaunchGroup, instances: int, *errors: FleetError) -> LaunchGroup:
    fleet_instances = tuple(
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
    return msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=fleet_instances, errors=errors))


def test_equal_node_claims_share_one_fleet_request() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"), make_claim("b"), make_claim("c"))).launches
    assert launch.group.claims == ("a", "b", "c")
    assert launch.group.request.capacity == 3


def test_node_claims_with_different_requirements_get_separate_fleet_requests() -> None:
    plan = plan_launches(
        make_cluster(make_claim("a"), make_claim("b", cpu="3"), make_claim("c", capacity_types=("on-demand",)))
    )
    assert sorted(launch.group.claims for launch in plan.launches) == [("a",), ("b",), ("c",)]


def test_client_token_depends_only_on_the_node_claims() -> None:
    first_launches, second_launches = (
        plan_launches(make_cluster(make_claim("a"), make_claim("b"), taken_at=get_time_after(age))).launches
        for age in (0, 60)
    )
    assert first_launches[0].group.request.client_token == second_launches[0].group.request.client_token
    assert (
        plan_launches(make_cluster(make_claim("a"))).launches[0].group.request.client_token
        != first_launches[0].group.request.client_token
    )


def test_spot_is_requested_when_allowed() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    assert launch.group.request.capacity_type == "spot"
    assert launch.group.request.allocation_strategy == "price-capacity-optimized"
    [launch] = plan_launches(make_cluster(make_claim("a", capacity_types=("on-demand",)))).launches
    assert launch.group.request.allocation_strategy == "lowest-price"


def test_on_demand_is_requested_while_spot_is_unavailable() -> None:
    out = (UnavailableOffering(capacity_type="spot", until=get_time_after(60)),)
    [launch] = plan_launches(make_cluster(make_claim("a"), unavailable=out)).launches
    assert launch.group.request.capacity_type == "on-demand"
    [launch] = plan_launches(make_cluster(make_claim("a"), unavailable=out, taken_at=get_time_after(61))).launches
    assert launch.group.request.capacity_type == "spot"


def test_only_instance_types_that_fit_the_node_claim_are_requested() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a", cpu="3"))).launches
    assert {override.instance_type for override in list_overrides(launch)} == {"m5.xlarge", "c5.xlarge"}


def test_metal_instance_types_are_requested_only_when_no_other_type_fits() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    assert "m5.metal" not in {override.instance_type for override in list_overrides(launch)}
    [launch] = plan_launches(make_cluster(make_claim("a", cpu="60"))).launches
    assert {override.instance_type for override in list_overrides(launch)} == {"m5.metal"}


def test_spot_offerings_above_the_cheapest_on_demand_price_are_omitted() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    assert max(override.priority or 0 for override in list_overrides(launch)) <= 0.1


def test_each_zone_uses_its_first_subnet() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    assert {(override.zone, override.subnet_id) for override in list_overrides(launch)} == {
        ("us-east-1a", "subnet-a"),
        ("us-east-1b", "subnet-b"),
    }


def test_launched_resources_carry_the_cluster_tags() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    tags = dict(launch.group.request.tags)
    assert tags["kubernetes.io/cluster/c"] == "owned"
    assert tags["eks:eks-cluster-name"] == "c"
    assert tags[labels.NODEPOOL] == "default"
    assert tags[labels.NODECLASS] == "default"
    assert tags[labels.LAUNCH_GROUP] == launch.group.name
    assert "kubernetes.io/cluster/c" in dict(launch.group.templates[0].tags)


def test_launch_group_without_a_result_is_sent_again_unchanged() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"), make_claim("b"))).launches
    # One of its claims has been deleted; a third claim has the same requirements.
    second_plan = plan_launches(make_cluster(make_claim("b"), make_claim("c"), launch_groups=(launch.group,)))
    assert launch.group in [planned_launch.group for planned_launch in second_plan.launches]
    assert [
        planned_launch.group.claims for planned_launch in second_plan.launches if planned_launch.group != launch.group
    ] == [("c",)]


def test_recorded_fleet_result_is_applied_without_a_second_request() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"), make_claim("b"))).launches
    group = with_fleet_result(launch.group, 1)
    plan = plan_launches(make_cluster(make_claim("a"), make_claim("b"), launch_groups=(group,)))
    assert plan.answered_groups == (group,)
    [second_launch] = plan.launches
    assert second_launch.group.claims == ("b",)
    assert second_launch.group.name != launch.group.name


def test_recreated_node_claim_with_the_same_name_is_launched_again() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"), make_claim("b"))).launches
    anew = make_claim("a", meta=msgspec.structs.replace(make_claim("a").meta, uid="another"))
    for group in (with_fleet_result(launch.group, 2), launch.group):
        plan = plan_launches(make_cluster(anew, launch_groups=(group,)))
        assert plan.answered_groups == ()
        assert [planned_launch.group.claims for planned_launch in plan.launches] == [("a",)]
        assert plan.launches[0].group.name != launch.group.name
        assert plan_fleet_outcome(group, make_cluster(anew)).actions == ()


@pytest.mark.parametrize(
    ("change", "reason", "final"),
    [
        ({"node_classes": ()}, "NodeClassNotFound", True),
        ({"node_classes": (make_node_class(conditions=()),)}, "NodeClassNotReady", False),
        ({"node_classes": (), "problems": (UNREADABLE,)}, "NodeClassNotReady", False),
        ({"catalog": None}, "CatalogMissing", False),
        ({"facts": None}, "CatalogMissing", False),
        ({"node_classes": (make_node_class(ami_family="Bottlerocket", user_data="[["),)}, "UserDataInvalid", False),
        (
            {"unavailable": (UnavailableOffering(capacity_type="", until=get_time_after(9)),)},
            "InsufficientCapacity",
            True,
        ),
    ],
)
def test_unlaunchable_node_claim_reports_its_reason(change: dict[str, object], reason: str, final: bool) -> None:  # noqa: FBT001
    [unlaunchable_claim] = plan_launches(make_cluster(make_claim("a"), **change)).unlaunchable
    assert (unlaunchable_claim.reason, unlaunchable_claim.final) == (reason, final)
    actions = report_unlaunchable(unlaunchable_claim, NOW)
    assert any(isinstance(action, DeleteObject) for action in actions) is final


def test_instances_are_assigned_to_node_claims_deterministically() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"), make_claim("b"))).launches
    outcome = plan_fleet_outcome(with_fleet_result(launch.group, 2), make_cluster(make_claim("a"), make_claim("b")))
    statuses = {action.name: json.loads(action.status) for action in outcome.actions if isinstance(action, PatchStatus)}
    assert statuses["a"]["providerID"] == "aws:///us-east-1a/i-0"
    assert statuses["b"]["providerID"] == "aws:///us-east-1a/i-1"
    assert statuses["a"]["allocatable"]["cpu"] == "1930m"
    assert [condition["status"] for condition in statuses["a"]["conditions"] if condition["type"] == "Launched"] == [
        "True"
    ]
    metadata = next(action for action in outcome.actions if isinstance(action, PatchMetadata))
    assert dict(metadata.labels)[labels.INSTANCE_TYPE] == "m5.large"
    assert dict(metadata.labels)[labels.ZONE] == "us-east-1a"


def test_rejected_offering_is_unavailable_for_three_minutes() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    error = FleetError(code="InsufficientInstanceCapacity", message="none", instance_type="m5.large", zone="us-east-1a")
    [mark] = plan_fleet_outcome(with_fleet_result(launch.group, 0, error), make_cluster(make_claim("a"))).actions
    assert mark == MarkUnavailable(
        offering=UnavailableOffering(
            capacity_type="spot", instance_type="m5.large", zone="us-east-1a", until=get_time_after(180)
        ),
        message="InsufficientInstanceCapacity: none",
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
def test_unavailable_offerings_depend_on_the_fleet_error_code(
    error: FleetError, closed: set[tuple[str, str, str, str]]
) -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    actions = plan_fleet_outcome(with_fleet_result(launch.group, 0, error), make_cluster(make_claim("a"))).actions
    closed_offerings = {
        (action.offering.capacity_type, action.offering.instance_type, action.offering.zone, action.offering.subnet_id)
        for action in actions
        if isinstance(action, MarkUnavailable)
    }
    assert closed_offerings == closed


def test_fleet_error_without_an_instance_type_marks_all_requested_offerings_unavailable() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    error = FleetError(code="UnfulfillableCapacity", message="no spot")
    outcome = plan_fleet_outcome(with_fleet_result(launch.group, 0, error), make_cluster(make_claim("a")))
    assert len(outcome.actions) == len(list_overrides(launch))
    assert outcome.unserved_claims == ("a",)


def test_fleet_error_unrelated_to_capacity_is_reported_and_not_retried_immediately() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    error = FleetError(code="UnauthorizedOperation", message="x" * 400)
    outcome = plan_fleet_outcome(with_fleet_result(launch.group, 0, error), make_cluster(make_claim("a")))
    assert outcome.unserved_claims == ()
    [status, event] = outcome.actions
    assert isinstance(status, PatchStatus)
    [condition] = [entry for entry in json.loads(status.status)["conditions"] if entry["type"] == "Launched"]
    assert (condition["status"], condition["reason"]) == ("Unknown", "Unauthorized")
    assert len(condition["message"]) == 303
    assert isinstance(event, PublishEvent)
    assert (event.kind, event.name, event.reason) == ("NodePool", "default", "Unauthorized")
    reported_claim = make_claim("a", conditions=tuple(parse_conditions(status)))
    assert plan_fleet_outcome(with_fleet_result(launch.group, 0, error), make_cluster(reported_claim)).actions == (
        event,
    )


def test_deleted_or_launched_node_claim_is_skipped() -> None:
    [launch] = plan_launches(make_cluster(make_claim("a"), make_claim("b"))).launches
    outcome = plan_fleet_outcome(
        with_fleet_result(launch.group, 2), make_cluster(make_claim("b", provider_id="aws:///us-east-1a/i-1"))
    )
    assert outcome.actions == ()
