"""Capacity that is paid for already is used first, and advice is for the rest."""

import pytest
from msgspec.structs import replace

from shared.model.catalogue import InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE
from shared.model.pods import Pod
from shared.model.resources import resources
from shared.scheduling.placement import Placement
from shared.scheduling.solve import solve
from tests.unit.catalogues import instance_type, needs, pod, pool, world

KINDS = ("on-demand", "reserved")
OTHERS = tuple(instance_type(f"other-{cpu:02d}", cpu, price=cpu * 0.08) for cpu in (2, 4, 8, 16))


def reserved(name: str, cpu: int, count: int, price: float) -> InstanceType:
    """A type that *count* are reserved of."""
    free = Offering(
        zone="a",
        capacity_type="reserved",
        price_usd_per_hour=0.0,
        reservation_id=f"cr-{name}",
        reservation_capacity=count,
    )
    some = instance_type(name, cpu, price=price, labels={CAPACITY_TYPE: KINDS})
    return replace(some, offerings=(*some.offerings, free))


def odd(count: int) -> list[Pod]:
    """Pods of which no two are alike."""
    return [pod(f"p-{number:03d}", f"{500 + 37 * number % 900}m", "1Gi") for number in range(count)]


def in_reserve(found: Placement) -> list[int]:
    """Answer how many pods each reserved node holds."""
    return [len(made.pods) for made in found.new_nodes if made.cheapest.capacity_type == "reserved"]


@pytest.mark.parametrize("count", [1, 3])
def test_reserved_nodes_are_filled_before_any_is_bought(count: int) -> None:
    pods = odd(120)
    found = solve(world(*pods, types=(*OTHERS, reserved("mine", 16, count, 3.0))))
    cores = sum(one.spec.requests["cpu"] for one in pods) / 1000
    assert not found.unschedulable
    assert len(in_reserve(found)) == count
    assert found.price_usd_per_hour <= 1.04 * 0.08 * (cores - 16 * count)


def test_reserved_nodes_are_filled_though_what_is_bought_is_larger() -> None:
    pods = odd(120)
    types = (*OTHERS, instance_type("huge", 64, price=3.2), reserved("mine", 16, 3, 3.0))
    found = solve(world(*pods, types=types))
    cores = sum(one.spec.requests["cpu"] for one in pods) / 1000
    assert len(in_reserve(found)) == 3
    assert found.price_usd_per_hour <= 0.055 * (cores - 16 * 3) + 0.08 * 4


def test_a_reservation_that_is_used_up_does_not_hide_the_price_of_its_type() -> None:
    found = solve(world(*odd(200), types=(*OTHERS, reserved("mine", 16, 1, 0.8))))
    assert {made.cheapest.instance_type for made in found.new_nodes} == {"mine"}
    assert len(in_reserve(found)) == 1


def test_no_reserved_node_stays_empty_where_nobody_fits() -> None:
    found = solve(world(*(pod(f"p-{n}", "3") for n in range(8)), types=(*OTHERS, reserved("mine", 2, 4, 1.0))))
    assert not in_reserve(found)
    assert not found.unschedulable


def test_reserved_capacity_of_a_lighter_pool_is_not_preferred_to_a_heavier_pool() -> None:
    heavy = pool("heavy", weight=10, requirements=needs((CAPACITY_TYPE, "In", ("on-demand",))))
    found = solve(world(*odd(60), types=(*OTHERS, reserved("mine", 16, 4, 3.0)), node_pools=(heavy, pool("light"))))
    assert {made.node_pool for made in found.new_nodes} == {"heavy"}


def limited(cores: int) -> Cluster:
    """Pods for twenty cores, four types of each size, the large ones dear, and a pool that may have so many *cores*."""
    types = tuple(
        instance_type(f"{family}-{cpu:02d}", cpu, price=cpu * (0.08 if cpu > 4 else 0.05) * (1 + 0.02 * place))
        for place, family in enumerate("abcd")
        for cpu in (2, 4, 8)
    )
    return world(
        *(pod(f"p-{n:02d}", "1", "2Gi") for n in range(20)),
        types=types,
        node_pools=(pool(limits=resources({"cpu": cores * 1000})),),
    )


def test_nodes_of_a_pool_with_limits_list_several_types_that_are_all_within_the_limits() -> None:
    for cores in (20, 24, 200):
        cluster = limited(cores)
        found = solve(cluster)
        assert not found.unschedulable
        assert all(len(made.instance_types) >= 4 for made in found.new_nodes)
        largest = (max(int(name[2:]) for name in made.instance_types) for made in found.new_nodes)
        assert sum(largest) <= cores
