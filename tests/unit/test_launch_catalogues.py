"""When a catalogue is made anew, and what it takes over from nodes and from the one before."""

from datetime import timedelta

import msgspec
import pytest

from shared.launch.catalogues import REMEMBERED, catalogue, is_due, knobs, seen_memory, unsold
from shared.model.catalogue import SeenMemory
from shared.model.cluster import Cluster
from shared.model.ec2 import CapacityReservation, PlacementGroup
from shared.model.labels import INSTANCE_TYPE
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, Meta
from shared.model.resources import Resources, resources
from tests.unit.launch_cases import INFOS, MARKET, NOW, claim, later, node_class

KNOBS = knobs("0.075", "0")
HELD = CapacityReservation(
    reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a", available_count=2, total_count=2
)


def made(*classes: EC2NodeClass, **fields: object) -> Cluster:
    some = Cluster(taken_at=NOW, node_classes=classes)
    return msgspec.structs.replace(some, catalogue=catalogue(some, INFOS, MARKET, KNOBS), **fields)


def test_a_catalogue_says_when_it_was_made_and_how_old_its_prices_are() -> None:
    market = msgspec.structs.replace(MARKET, priced_at=later(-3600))
    one = catalogue(Cluster(taken_at=NOW, node_classes=(node_class(),)), INFOS, market, KNOBS)
    assert (one.made_at, one.priced_at) == (NOW, later(-3600))


def test_old_prices_do_not_make_a_new_catalogue_due() -> None:
    before = made(node_class())
    assert before.catalogue is not None
    old = msgspec.structs.replace(before.catalogue, priced_at=NOW - timedelta(days=9))
    assert not is_due(msgspec.structs.replace(before, catalogue=old), before)


def test_a_catalogue_that_was_made_without_on_demand_prices_is_made_anew() -> None:
    some = Cluster(taken_at=NOW, node_classes=(node_class(),))
    for prices, due in ((MARKET.on_demand, False), ({}, True)):
        market = msgspec.structs.replace(MARKET, on_demand=prices)
        before = msgspec.structs.replace(some, catalogue=catalogue(some, INFOS, market, KNOBS))
        assert is_due(before, some) is due


@pytest.mark.parametrize(
    ("was", "now", "due"),
    [
        ({}, {}, False),
        ({}, {"resolved_capacity_reservations": (HELD,)}, True),
        ({"resolved_capacity_reservations": (HELD,)}, {}, True),
        ({"resolved_placement_group": PlacementGroup(group_id="pg-1")}, {}, True),
        ({}, {"resolved_placement_group": PlacementGroup(group_id="pg-1")}, True),
    ],
)
def test_what_a_class_is_given_now_and_was_not_before_makes_it_due(
    was: dict[str, object], now: dict[str, object], *, due: bool
) -> None:
    assert is_due(made(node_class(**was)), Cluster(taken_at=NOW, node_classes=(node_class(**now),))) == due


@pytest.mark.parametrize(("left", "due"), [(2, False), (1, True), (0, True)])
def test_what_is_left_of_a_reservation_is_compared_with_what_the_catalogue_says(left: int, *, due: bool) -> None:
    group = PlacementGroup(group_id="pg-1")
    full = node_class(resolved_capacity_reservations=(HELD,), resolved_placement_group=group)
    read = node_class(resolved_capacity_reservations=(msgspec.structs.replace(HELD, available_count=0, total_count=0),))
    before = made(full, node_classes=(read,))
    counted = msgspec.structs.replace(HELD, available_count=left)
    after = node_class(resolved_capacity_reservations=(counted,), resolved_placement_group=group)
    assert is_due(before, Cluster(taken_at=NOW, node_classes=(after,))) == due


def test_a_class_in_whose_zones_nothing_is_sold_is_named() -> None:
    class_there = node_class(meta=Meta(name="there", generation=1), resolved_subnets=())
    subnet = msgspec.structs.replace(node_class().resolved_subnets[0], zone="moon-1a")
    on_moon = node_class(meta=Meta(name="moon", generation=1), resolved_subnets=(subnet,))
    some = made(node_class(), class_there, on_moon).catalogue
    assert some is not None
    [problem] = unsold(some)
    assert (problem.kind, problem.name) == ("EC2NodeClass", "moon")


def node(name: str, memory: int = 7700, kind: str = "m5.large") -> Node:
    labels = ((INSTANCE_TYPE, kind),) if kind else ()
    capacity: Resources = resources({"memory": memory})
    return Node(meta=Meta(name=name, labels=labels), provider_id=f"aws:///us-east-1a/i-{name}", capacity=capacity)


def of(name: str, *, registered: bool = True, image_id: str = "ami-1") -> NodeClaim:
    conditions = (Condition(type="Registered", status="True"),) if registered else ()
    return claim(name, provider_id=f"aws:///us-east-1a/i-{name}", image_id=image_id, conditions=conditions)


def memory(bytes_: int, *, age: timedelta = timedelta()) -> SeenMemory:
    return SeenMemory(instance_type="m5.large", image_id="ami-1", memory_bytes=bytes_, at=NOW - age)


def seen(known: tuple[SeenMemory, ...] = (), **fields: object) -> tuple[SeenMemory, ...]:
    before = made(node_class())
    assert before.catalogue is not None
    told = msgspec.structs.replace(before.catalogue, seen=known)
    return seen_memory(msgspec.structs.replace(before, catalogue=told, **fields))


def test_the_least_that_registered_nodes_report_is_kept() -> None:
    nodes = (node("a", 7700), node("b", 7600), node("c", 7650))
    assert seen(nodes=nodes, node_claims=(of("a"), of("b"), of("c"))) == (memory(7600),)


@pytest.mark.parametrize(
    ("nodes", "claims"),
    [
        ((node("a"),), (of("a", registered=False),)),
        ((node("a"),), (of("a", image_id=""),)),
        ((node("a"),), (of("b"),)),
        ((node("a", memory=0),), (of("a"),)),
        ((node("a", kind=""),), (of("a"),)),
        ((), ()),
    ],
)
def test_nodes_of_which_too_little_is_known_tell_nothing(
    nodes: tuple[Node, ...], claims: tuple[NodeClaim, ...]
) -> None:
    assert seen(nodes=nodes, node_claims=claims) == ()


@pytest.mark.parametrize(
    ("known", "then"),
    [
        (memory(7500, age=timedelta(days=9)), memory(7500, age=timedelta(days=9))),
        (memory(7700, age=timedelta(days=9)), memory(7700)),
        (memory(7500, age=REMEMBERED), memory(7700)),
    ],
)
def test_what_was_seen_before_holds_until_less_is_seen_or_it_is_too_old(known: SeenMemory, then: SeenMemory) -> None:
    assert seen((known,), nodes=(node("a"),), node_claims=(of("a"),)) == (then,)


def test_before_the_first_catalogue_nothing_was_seen() -> None:
    assert seen_memory(Cluster(taken_at=NOW)) == ()


def test_a_catalogue_keeps_what_was_seen_and_uses_it() -> None:
    known = (SeenMemory(instance_type="m5.large", image_id="ami-amd64", memory_bytes=7_000_000_000, at=NOW),)
    one = catalogue(Cluster(taken_at=NOW, node_classes=(node_class(),)), INFOS, MARKET, KNOBS, known)
    assert one.seen == known
    [types] = (types for _, types in one.by_node_class)
    assert {kind.name: kind.capacity["memory"] for kind in types}["m5.large"] == 7_000_000_000
