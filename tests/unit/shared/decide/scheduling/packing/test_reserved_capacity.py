"""Reserved capacity is used first, and packing advice covers the remaining pods."""

import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE
from shared.model.core.resources import build_resources
from shared.model.decisions.placement import Placement
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import (
    make_cluster_snapshot,
    make_instance_type,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

KINDS = ("on-demand", "reserved")
UNRESERVED_TYPES = tuple(make_instance_type(f"other-{cpu:02d}", cpu, price=cpu * 0.08) for cpu in (2, 4, 8, 16))


def make_reserved_type(name: str, cpu: int, count: int, price: float) -> InstanceType:
    """Return an instance type with *count* reserved instances."""
    free = Offering(
        zone="a",
        capacity_type="reserved",
        price_usd_per_hour=0.0,
        reservation_id=f"cr-{name}",
        reservation_capacity=count,
    )
    base_type = make_instance_type(name, cpu, price=price, labels={CAPACITY_TYPE: KINDS})
    return replace(base_type, offerings=(*base_type.offerings, free))


def make_varied_pods(count: int) -> list[Pod]:
    """Return *count* pods, no two of them alike."""
    return [make_pod(f"p-{number:03d}", f"{500 + 37 * number % 900}m", "1Gi") for number in range(count)]


def list_reserved_pod_counts(placement: Placement) -> list[int]:
    """Return the number of pods on each reserved node."""
    return [len(new_node.pods) for new_node in placement.new_nodes if new_node.cheapest.capacity_type == "reserved"]


@pytest.mark.parametrize("count", [1, 3])
def test_reserved_nodes_are_filled_before_other_nodes_are_planned(count: int) -> None:
    pods = make_varied_pods(120)
    placement = solve(
        make_cluster_snapshot(*pods, types=(*UNRESERVED_TYPES, make_reserved_type("mine", 16, count, 3.0)))
    )
    cores = sum(pod.spec.requests["cpu"] for pod in pods) / 1000
    assert not placement.unschedulable
    assert len(list_reserved_pod_counts(placement)) == count
    assert placement.price_usd_per_hour <= 1.04 * 0.08 * (cores - 16 * count)


def test_reserved_nodes_are_filled_although_other_planned_nodes_are_larger() -> None:
    pods = make_varied_pods(120)
    types = (*UNRESERVED_TYPES, make_instance_type("huge", 64, price=3.2), make_reserved_type("mine", 16, 3, 3.0))
    placement = solve(make_cluster_snapshot(*pods, types=types))
    cores = sum(pod.spec.requests["cpu"] for pod in pods) / 1000
    assert len(list_reserved_pod_counts(placement)) == 3
    assert placement.price_usd_per_hour <= 0.055 * (cores - 16 * 3) + 0.08 * 4


def test_exhausted_capacity_reservation_leaves_the_on_demand_price_of_its_instance_type() -> None:
    placement = solve(
        make_cluster_snapshot(*make_varied_pods(200), types=(*UNRESERVED_TYPES, make_reserved_type("mine", 16, 1, 0.8)))
    )
    assert {new_node.cheapest.instance_type for new_node in placement.new_nodes} == {"mine"}
    assert len(list_reserved_pod_counts(placement)) == 1


def test_no_reserved_node_is_planned_when_no_pod_fits_it() -> None:
    placement = solve(
        make_cluster_snapshot(
            *(make_pod(f"p-{n}", "3") for n in range(8)),
            types=(*UNRESERVED_TYPES, make_reserved_type("mine", 2, 4, 1.0)),
        )
    )
    assert not list_reserved_pod_counts(placement)
    assert not placement.unschedulable


def test_reserved_capacity_of_a_lighter_node_pool_is_not_preferred_to_a_heavier_node_pool() -> None:
    heavy = make_node_pool("heavy", weight=10, requirements=make_requirements((CAPACITY_TYPE, "In", ("on-demand",))))
    placement = solve(
        make_cluster_snapshot(
            *make_varied_pods(60),
            types=(*UNRESERVED_TYPES, make_reserved_type("mine", 16, 4, 3.0)),
            node_pools=(heavy, make_node_pool("light")),
        )
    )
    assert {new_node.node_pool for new_node in placement.new_nodes} == {"heavy"}


def build_limited_cluster(cores: int) -> ClusterSnapshot:
    """Return pods for 20 cores, four types of each size (large ones expensive), and a pool limited to *cores*."""
    types = tuple(
        make_instance_type(f"{family}-{cpu:02d}", cpu, price=cpu * (0.08 if cpu > 4 else 0.05) * (1 + 0.02 * place))
        for place, family in enumerate("abcd")
        for cpu in (2, 4, 8)
    )
    return make_cluster_snapshot(
        *(make_pod(f"p-{n:02d}", "1", "2Gi") for n in range(20)),
        types=types,
        node_pools=(make_node_pool(limits=build_resources({"cpu": cores * 1000})),),
    )


def test_nodes_of_a_limited_node_pool_list_several_instance_types_within_the_limits() -> None:
    for cores in (20, 24, 200):
        cluster = build_limited_cluster(cores)
        placement = solve(cluster)
        assert not placement.unschedulable
        assert all(len(new_node.instance_types) >= 4 for new_node in placement.new_nodes)
        largest = (max(int(name[2:]) for name in new_node.instance_types) for new_node in placement.new_nodes)
        assert sum(largest) <= cores
