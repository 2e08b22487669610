"""When a catalog is rebuilt, and what it keeps from nodes and from the previous catalog."""

from datetime import timedelta

import msgspec
import pytest

from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.decide.launch.instance_types.catalog import (
    REPORTED_MEMORY_TTL,
    build_catalog,
    collect_seen_memory,
    find_unsold_node_classes,
    is_catalog_due,
)
from shared.model.cloud_provider.instance_type import ObservedMemory
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import INSTANCE_TYPE
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.resources import Resources, build_resources
from shared.model.ec2.account import CapacityReservation, PlacementGroup
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.kubernetes.node import Node
from shared.store.catalog_format import decode_catalog, encode_catalog
from tests.support.launch_cases import INFOS, MARKET, NOW, get_time_after, make_claim, make_node_class

CAPACITY_SETTINGS = CapacitySettings()
RESERVATION = CapacityReservation(
    reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a", available_count=2, total_count=2
)


def build_cluster_with_catalog(*classes: EC2NodeClass, **fields: object) -> ClusterSnapshot:
    snapshot = ClusterSnapshot(taken_at=NOW, node_classes=classes)
    return msgspec.structs.replace(
        snapshot, catalog=build_catalog(snapshot, INFOS, MARKET, CAPACITY_SETTINGS), **fields
    )


def test_catalog_records_its_build_time_and_the_age_of_its_prices() -> None:
    market = msgspec.structs.replace(MARKET, priced_at=get_time_after(-3600))
    catalog = build_catalog(
        ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),)), INFOS, market, CAPACITY_SETTINGS
    )
    assert (catalog.built_at, catalog.priced_at) == (NOW, get_time_after(-3600))


def test_old_prices_alone_do_not_make_the_catalog_due() -> None:
    before = build_cluster_with_catalog(make_node_class())
    assert before.catalog is not None
    old = msgspec.structs.replace(before.catalog, priced_at=NOW - timedelta(days=9))
    assert not is_catalog_due(msgspec.structs.replace(before, catalog=old), before)


def test_catalog_without_on_demand_prices_is_rebuilt() -> None:
    snapshot = ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),))
    for prices, due in ((MARKET.on_demand, False), ({}, True)):
        market = msgspec.structs.replace(MARKET, on_demand=prices)
        before = msgspec.structs.replace(snapshot, catalog=build_catalog(snapshot, INFOS, market, CAPACITY_SETTINGS))
        assert is_catalog_due(before, snapshot) is due


@pytest.mark.parametrize(
    ("was", "now", "due"),
    [
        ({}, {}, False),
        ({}, {"resolved_capacity_reservations": (RESERVATION,)}, True),
        ({"resolved_capacity_reservations": (RESERVATION,)}, {}, True),
        ({"resolved_placement_group": PlacementGroup(group_id="pg-1")}, {}, True),
        ({}, {"resolved_placement_group": PlacementGroup(group_id="pg-1")}, True),
    ],
)
def test_catalog_is_due_when_reservations_or_the_placement_group_of_a_node_class_change(
    was: dict[str, object], now: dict[str, object], *, due: bool
) -> None:
    assert (
        is_catalog_due(
            build_cluster_with_catalog(make_node_class(**was)),
            ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(**now),)),
        )
        == due
    )


@pytest.mark.parametrize(("available_count", "due"), [(2, False), (1, True), (0, True)])
def test_remaining_capacity_of_a_reservation_is_compared_with_the_catalog(available_count: int, *, due: bool) -> None:
    group = PlacementGroup(group_id="pg-1")
    full = make_node_class(resolved_capacity_reservations=(RESERVATION,), resolved_placement_group=group)
    read = make_node_class(
        resolved_capacity_reservations=(msgspec.structs.replace(RESERVATION, available_count=0, total_count=0),)
    )
    before = build_cluster_with_catalog(full, node_classes=(read,))
    reservation = msgspec.structs.replace(RESERVATION, available_count=available_count)
    after = make_node_class(resolved_capacity_reservations=(reservation,), resolved_placement_group=group)
    assert is_catalog_due(before, ClusterSnapshot(taken_at=NOW, node_classes=(after,))) == due


def test_node_class_without_offerings_in_its_zones_is_reported() -> None:
    class_there = make_node_class(meta=ObjectMeta(name="there", generation=1), resolved_subnets=())
    subnet = msgspec.structs.replace(make_node_class().resolved_subnets[0], zone="moon-1a")
    on_moon = make_node_class(meta=ObjectMeta(name="moon", generation=1), resolved_subnets=(subnet,))
    catalog = build_cluster_with_catalog(make_node_class(), class_there, on_moon).catalog
    assert catalog is not None
    [problem] = find_unsold_node_classes(catalog)
    assert (problem.kind, problem.name) == ("EC2NodeClass", "moon")


def make_reporting_node(name: str, memory: int = 7700, kind: str = "m5.large") -> Node:
    labels = ((INSTANCE_TYPE, kind),) if kind else ()
    capacity: Resources = build_resources({"memory": memory})
    return Node(meta=ObjectMeta(name=name, labels=labels), provider_id=f"aws:///us-east-1a/i-{name}", capacity=capacity)


def make_registered_claim(name: str, *, registered: bool = True, image_id: str = "ami-1") -> NodeClaim:
    conditions = (Condition(type="Registered", status="True"),) if registered else ()
    return make_claim(name, provider_id=f"aws:///us-east-1a/i-{name}", image_id=image_id, conditions=conditions)


def make_observed_memory(bytes_: int, *, age: timedelta = timedelta()) -> ObservedMemory:
    return ObservedMemory(instance_type="m5.large", image_id="ami-1", memory_bytes=bytes_, at=NOW - age)


def collect_memory(observed_memory: tuple[ObservedMemory, ...] = (), **fields: object) -> tuple[ObservedMemory, ...]:
    before = build_cluster_with_catalog(make_node_class())
    assert before.catalog is not None
    catalog = msgspec.structs.replace(before.catalog, observed_memory=observed_memory)
    return collect_seen_memory(msgspec.structs.replace(before, catalog=catalog, **fields))


def test_smallest_memory_reported_by_registered_nodes_is_kept() -> None:
    nodes = (make_reporting_node("a", 7700), make_reporting_node("b", 7600), make_reporting_node("c", 7650))
    assert collect_memory(
        nodes=nodes, node_claims=(make_registered_claim("a"), make_registered_claim("b"), make_registered_claim("c"))
    ) == (make_observed_memory(7600),)


@pytest.mark.parametrize(
    ("nodes", "claims"),
    [
        ((make_reporting_node("a"),), (make_registered_claim("a", registered=False),)),
        ((make_reporting_node("a"),), (make_registered_claim("a", image_id=""),)),
        ((make_reporting_node("a"),), (make_registered_claim("b"),)),
        ((make_reporting_node("a", memory=0),), (make_registered_claim("a"),)),
        ((make_reporting_node("a", kind=""),), (make_registered_claim("a"),)),
        ((), ()),
    ],
)
def test_node_with_incomplete_data_adds_no_observed_memory(
    nodes: tuple[Node, ...], claims: tuple[NodeClaim, ...]
) -> None:
    assert collect_memory(nodes=nodes, node_claims=claims) == ()


@pytest.mark.parametrize(
    ("earlier_memory", "updated_memory"),
    [
        (make_observed_memory(7500, age=timedelta(days=9)), make_observed_memory(7500, age=timedelta(days=9))),
        (make_observed_memory(7700, age=timedelta(days=9)), make_observed_memory(7700)),
        (make_observed_memory(7500, age=REPORTED_MEMORY_TTL), make_observed_memory(7700)),
    ],
)
def test_observed_memory_is_kept_until_a_smaller_value_or_its_expiration(
    earlier_memory: ObservedMemory, updated_memory: ObservedMemory
) -> None:
    assert collect_memory(
        (earlier_memory,), nodes=(make_reporting_node("a"),), node_claims=(make_registered_claim("a"),)
    ) == (updated_memory,)


def test_snapshot_without_a_catalog_has_no_observed_memory() -> None:
    assert collect_seen_memory(ClusterSnapshot(taken_at=NOW)) == ()


def test_catalog_keeps_observed_memory_and_uses_it_as_capacity() -> None:
    observed_memory = (
        ObservedMemory(instance_type="m5.large", image_id="ami-amd64", memory_bytes=7_000_000_000, at=NOW),
    )
    catalog = build_catalog(
        ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),)),
        INFOS,
        MARKET,
        CAPACITY_SETTINGS,
        observed_memory,
    )
    assert catalog.observed_memory == observed_memory
    [types] = (types for _, types in catalog.by_node_class)
    assert {kind.name: kind.capacity["memory"] for kind in types}["m5.large"] == 7_000_000_000


BLOCK = msgspec.structs.replace(
    RESERVATION, reservation_id="cr-2", reservation_type="capacity-block", starts_at=NOW + timedelta(hours=3)
)


def test_scheduled_capacity_blocks_are_in_the_catalog_and_a_new_one_makes_it_due() -> None:
    before = build_cluster_with_catalog(make_node_class(scheduled_blocks=()))
    assert before.catalog is not None
    assert before.catalog.scheduled_blocks == ()
    after = msgspec.structs.replace(before, node_classes=(make_node_class(scheduled_blocks=(BLOCK,)),))
    assert is_catalog_due(before, after)
    assert not is_catalog_due(before, before)
    catalog = build_catalog(after, INFOS, MARKET, CAPACITY_SETTINGS)
    assert catalog.scheduled_blocks == ((make_node_class().name, (BLOCK,)),)
    assert decode_catalog(encode_catalog(catalog)).scheduled_blocks == catalog.scheduled_blocks


def test_scheduled_capacity_blocks_are_kept_while_they_cannot_be_read() -> None:
    before = build_cluster_with_catalog(make_node_class(scheduled_blocks=(BLOCK,)))
    unread = msgspec.structs.replace(before, node_classes=(make_node_class(),))
    assert not is_catalog_due(before, unread)
    assert build_catalog(unread, INFOS, MARKET, CAPACITY_SETTINGS).scheduled_blocks == (
        (make_node_class().name, (BLOCK,)),
    )


def test_catalog_without_scheduled_capacity_blocks_has_no_field_for_them() -> None:
    catalog = build_cluster_with_catalog(make_node_class()).catalog
    assert catalog is not None
    assert b"scheduledBlocks" not in encode_catalog(catalog)
