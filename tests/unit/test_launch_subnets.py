"""Where a machine gets its addresses from."""

from datetime import timedelta

import msgspec
import pytest

from shared.launch.groups import Terms, plan_launches
from shared.launch.subnets import Addresses, addresses_each, left, roomiest
from shared.model.action import LaunchInstances
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetInstance, FleetResult
from tests.unit.launch_cases import NOW, SUBNETS, claim, cluster, later

PODS = 29
"""Of m5.large, the smallest type that `claim` may become."""


def addresses(a: int = 5000, b: int = 5000, z: int = 4000) -> Addresses:
    return Addresses(at=NOW, free=(("subnet-a", a), ("subnet-b", b), ("subnet-z", z)))


def chosen(launch: LaunchInstances) -> dict[str, str]:
    return {one.zone: one.subnet_id for config in launch.group.request.configs for one in config.overrides}


def group(count: int, *subnets: str) -> LaunchGroup:
    """Answer a launch of *count* machines; answered, if *subnets* says where they are."""
    [launch] = plan_launches(cluster(*(claim(f"c{number}") for number in range(count)))).launches
    given = tuple(
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
    result = FleetResult(fleet_id="f", instances=given) if subnets else None
    return msgspec.structs.replace(launch.group, result=result)


def test_the_subnet_with_the_most_free_addresses_is_used() -> None:
    [launch] = plan_launches(cluster(claim("a")), Terms(addresses=addresses(a=10, z=11))).launches
    assert chosen(launch) == {"us-east-1a": "subnet-z", "us-east-1b": "subnet-b"}


def test_among_equals_the_first_of_the_status_is_used() -> None:
    [launch] = plan_launches(cluster(claim("a")), Terms(addresses=addresses(a=10, z=10))).launches
    assert chosen(launch)["us-east-1a"] == "subnet-a"


def test_a_machine_takes_as_many_addresses_as_its_smallest_type_has_pods() -> None:
    assert addresses_each(group(1).request, cluster()) == PODS
    assert addresses_each(group(1).request, cluster(catalogue=None)) == 1


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (group(3), {"subnet-a": 5000 - 3 * PODS, "subnet-b": 5000 - 3 * PODS, "subnet-z": 4000}),
        (group(2, "subnet-a", "subnet-z"), {"subnet-a": 5000 - PODS, "subnet-b": 5000, "subnet-z": 4000 - PODS}),
        (group(1, "subnet-of-another"), {"subnet-a": 5000, "subnet-b": 5000, "subnet-z": 4000}),
    ],
    ids=["open: all of them anywhere", "answered: where they are", "a subnet that nobody asked about"],
)
def test_launches_since_ec2_was_asked_are_taken_off(one: LaunchGroup, counts: dict[str, int]) -> None:
    assert left(cluster(launch_groups=(one,)), addresses()) == counts
    before = msgspec.structs.replace(one, created_at=NOW - timedelta(seconds=1))
    assert left(cluster(launch_groups=(before,)), addresses()) == dict(addresses().free)


def test_where_nobody_knows_nothing_is_taken_off() -> None:
    assert left(cluster(launch_groups=(group(3),)), None) == {}


def test_the_next_launch_of_the_same_plan_sees_what_the_first_one_takes() -> None:
    some = cluster(claim("a"), claim("b", cpu="3"))
    launches = plan_launches(some, Terms(addresses=addresses(a=50, z=40))).launches
    assert sorted(chosen(one)["us-east-1a"] for one in launches) == ["subnet-a", "subnet-z"]


def test_a_concurrent_launch_is_seen_too() -> None:
    some = cluster(claim("a"), launch_groups=(group(1),))
    launch = plan_launches(some, Terms(addresses=addresses(a=50, z=40))).launches[-1]
    assert chosen(launch)["us-east-1a"] == "subnet-z"


def test_a_full_subnet_is_passed_over_for_a_while() -> None:
    full = (UnavailableOffering(capacity_type="", zone="us-east-1a", subnet_id="subnet-a", until=later(180)),)
    assert roomiest(SUBNETS, {}, full, NOW)["us-east-1a"].subnet_id == "subnet-z"
    assert roomiest(SUBNETS, {}, full, later(180))["us-east-1a"].subnet_id == "subnet-a"


def test_a_zone_whose_subnets_are_all_full_offers_nothing() -> None:
    full = tuple(
        UnavailableOffering(capacity_type="", zone=one.zone, subnet_id=one.subnet_id, until=later(180))
        for one in SUBNETS
        if one.zone == "us-east-1a"
    )
    [launch] = plan_launches(cluster(claim("a"), unavailable=full)).launches
    assert set(chosen(launch)) == {"us-east-1b"}
