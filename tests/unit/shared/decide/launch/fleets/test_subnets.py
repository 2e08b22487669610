"""Which subnet gives a node its addresses."""

from datetime import timedelta

import msgspec
import pytest

from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.decide.launch.fleets.subnets import (
    count_free_addresses,
    estimate_addresses_per_instance,
    select_subnet_by_zone,
)
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.decisions.action import LaunchInstances
from shared.model.ec2.fleet import FleetInstance, FleetResult
from tests.support.launch_cases import NOW, SUBNETS, get_time_after, make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

PODS_PER_NODE = 29
"""The addresses of one m5.large, the smallest type that `claim` may become."""


def make_addresses(a: int = 5000, b: int = 5000, z: int = 4000) -> SubnetAddresses:
    return SubnetAddresses(at=NOW, free=(("subnet-a", a), ("subnet-b", b), ("subnet-z", z)))


def get_subnet_by_zone(launch: LaunchInstances) -> dict[str, str]:
    return {
        override.zone: override.subnet_id for config in launch.group.request.configs for override in config.overrides
    }


def build_launch_group(count: int, *subnets: str) -> LaunchGroup:
    """Build a launch of *count* nodes; it has a result if *subnets* names the subnets of its nodes."""
    [launch] = plan_launches(make_cluster(*(make_claim(f"c{number}") for number in range(count)))).launches
    fleet_instances = tuple(
        FleetInstance(
            instance_id=f"i-{number}",
            instance_type="m5.large",
            zone="us-east-1a",
            subnet_id=subnet,
            image_id="ami-amd64",
            capacity_type="spot",
        )
        for number, subnet in enumerate(subnets)
    )
    result = FleetResult(fleet_id="f", instances=fleet_instances) if subnets else None
    return msgspec.structs.replace(launch.group, result=result)


def test_subnet_with_the_most_free_addresses_is_used() -> None:
    [launch] = plan_launches(
        make_cluster(make_claim("a")), LaunchPolicy(subnet_addresses=make_addresses(a=10, z=11))
    ).launches
    assert get_subnet_by_zone(launch) == {"us-east-1a": "subnet-z", "us-east-1b": "subnet-b"}


def test_first_subnet_of_the_status_is_used_when_free_addresses_are_equal() -> None:
    [launch] = plan_launches(
        make_cluster(make_claim("a")), LaunchPolicy(subnet_addresses=make_addresses(a=10, z=10))
    ).launches
    assert get_subnet_by_zone(launch)["us-east-1a"] == "subnet-a"


def test_estimated_addresses_per_instance_equal_the_pods_of_its_smallest_instance_type() -> None:
    assert estimate_addresses_per_instance(build_launch_group(1).request, make_cluster()) == PODS_PER_NODE
    assert estimate_addresses_per_instance(build_launch_group(1).request, make_cluster(catalog=None)) == 1


@pytest.mark.parametrize(
    ("launch_group", "counts"),
    [
        (
            build_launch_group(3),
            {"subnet-a": 5000 - 3 * PODS_PER_NODE, "subnet-b": 5000 - 3 * PODS_PER_NODE, "subnet-z": 4000},
        ),
        (
            build_launch_group(2, "subnet-a", "subnet-z"),
            {"subnet-a": 5000 - PODS_PER_NODE, "subnet-b": 5000, "subnet-z": 4000 - PODS_PER_NODE},
        ),
        (build_launch_group(1, "subnet-of-another"), {"subnet-a": 5000, "subnet-b": 5000, "subnet-z": 4000}),
    ],
    ids=[
        "open launch counts in every subnet",
        "launch with a result counts in its subnets",
        "subnet without address data",
    ],
)
def test_addresses_of_launches_after_the_subnet_query_are_subtracted(
    launch_group: LaunchGroup, counts: dict[str, int]
) -> None:
    assert count_free_addresses(make_cluster(launch_groups=(launch_group,)), make_addresses()) == counts
    before = msgspec.structs.replace(launch_group, created_at=NOW - timedelta(seconds=1))
    assert count_free_addresses(make_cluster(launch_groups=(before,)), make_addresses()) == dict(make_addresses().free)


def test_no_addresses_are_subtracted_without_subnet_data() -> None:
    assert count_free_addresses(make_cluster(launch_groups=(build_launch_group(3),)), None) == {}


def test_next_launch_of_the_same_plan_sees_the_addresses_of_the_first() -> None:
    snapshot = make_cluster(make_claim("a"), make_claim("b", cpu="3"))
    launches = plan_launches(snapshot, LaunchPolicy(subnet_addresses=make_addresses(a=50, z=40))).launches
    assert sorted(get_subnet_by_zone(launch)["us-east-1a"] for launch in launches) == ["subnet-a", "subnet-z"]


def test_launch_in_progress_reduces_the_free_addresses_of_its_subnet() -> None:
    snapshot = make_cluster(make_claim("a"), launch_groups=(build_launch_group(1),))
    launch = plan_launches(snapshot, LaunchPolicy(subnet_addresses=make_addresses(a=50, z=40))).launches[-1]
    assert get_subnet_by_zone(launch)["us-east-1a"] == "subnet-z"


def test_full_subnet_is_skipped_until_its_mark_expires() -> None:
    full = (UnavailableOffering(capacity_type="", zone="us-east-1a", subnet_id="subnet-a", until=get_time_after(180)),)
    assert select_subnet_by_zone(SUBNETS, {}, full, NOW)["us-east-1a"].subnet_id == "subnet-z"
    assert select_subnet_by_zone(SUBNETS, {}, full, get_time_after(180))["us-east-1a"].subnet_id == "subnet-a"


def test_zone_with_only_full_subnets_is_not_requested() -> None:
    full = tuple(
        UnavailableOffering(capacity_type="", zone=subnet.zone, subnet_id=subnet.subnet_id, until=get_time_after(180))
        for subnet in SUBNETS
        if subnet.zone == "us-east-1a"
    )
    [launch] = plan_launches(make_cluster(make_claim("a"), unavailable=full)).launches
    assert set(get_subnet_by_zone(launch)) == {"us-east-1b"}
