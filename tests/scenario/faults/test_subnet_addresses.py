"""Subnets run out of IP addresses while nodes are launched, in the embedded cloud."""

from shared.model.decisions.action import LaunchInstances
from tests.scenario.worlds import CLASSES, POOLS, World, make_deployment, make_node_class, make_node_pool

NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"


def set_free_addresses(world: World, zone: str, count: int) -> list[str]:
    """Leave *count* free addresses in each subnet of *zone*; return the ids of these subnets."""
    subnets = [subnet for subnet in world.cloud.network.subnets.values() if subnet.zone == zone]
    for subnet in subnets:
        subnet.set_free(count)
    return [subnet.subnet_id for subnet in subnets]


def list_fleet_errors(world: World) -> list[str]:
    return [
        repr(result)
        for entry in world.entries
        for result in entry.results
        if isinstance(result.action, LaunchInstances) and NO_ADDRESSES in repr(result)
    ]


def list_zones(world: World) -> set[str]:
    return {instance.zone for instance in world.list_active_instances()}


def test_a_zone_without_addresses_is_refused_before_ec2_is_called() -> None:
    world = World(make_node_class(), make_node_pool())
    full_zone, *_ = world.cloud.zones
    [subnet_id] = set_free_addresses(world, full_zone, 0)
    world.advance_seconds(330)  # the catalog function reads the addresses every five minutes
    for kind in (CLASSES, POOLS):
        condition_type = "SubnetsReady" if kind == CLASSES else "NodeClassReady"
        status, _, message = world.get_condition(kind, "default", condition_type)
        assert (status, f"no free IP addresses in {subnet_id} ({full_zone})" in message) == ("True", True)
    assert world.list_events(reason="SubnetAddressesLow")
    world.apply([make_deployment(3)])
    world.wait_until_settled(3, timeout=400)
    assert world.launched
    assert full_zone not in list_zones(world)
    assert not list_fleet_errors(world)


def test_a_nearly_exhausted_zone_is_reported_and_still_used() -> None:
    world = World(make_node_class(), make_node_pool())
    for zone in world.cloud.zones:
        set_free_addresses(world, zone, 5)
    world.advance_seconds(330)
    message = world.get_condition(POOLS, "default", "NodeClassReady")[2]
    assert f"fewer than 16 free IP addresses in {', '.join(world.cloud.zones)}" in message
    world.apply([make_deployment(1)])
    world.wait_until_settled(1, timeout=400)
    assert world.launched


def test_launch_falls_back_to_another_zone_when_subnet_addresses_run_out() -> None:
    world = World(make_node_class(), make_node_pool())
    last_zone = world.cloud.zones[-1]
    for zone in world.cloud.zones[:-1]:
        set_free_addresses(world, zone, 0)
    world.apply([make_deployment(2)])
    world.wait_until_settled(2, timeout=400)
    assert list_zones(world) == {last_zone}
