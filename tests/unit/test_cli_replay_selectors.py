"""What a changed EC2NodeClass selects in a replay: what was found then, and where nobody knows, that."""

from typing import Any

import pytest
from msgspec.structs import replace

from cli.replay_selectors import Known, refound, reselected, sold_to
from shared.launch.nodeclass import Found
from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.ec2 import Image, PlacementGroup, SecurityGroup, Selector, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Meta
from shared.model.requirements import ANYTHING
from shared.model.resources import Resources
from sim.clock import START

A = Subnet(subnet_id="subnet-a", zone="a", zone_id="1", available_ip_count=0)
B = Subnet(subnet_id="subnet-b", zone="b", zone_id="2", available_ip_count=0)
NODES = SecurityGroup(group_id="sg-1", name="nodes")
PODS = SecurityGroup(group_id="sg-2", name="pods")
PLAIN = Image(image_id="ami-1", name="plain-1", architecture="x86_64", created_at=START, tags=(("team", "shop"),))
LATER = replace(PLAIN, image_id="ami-2", name="plain-2", tags=())
TAGGED = Selector(tags=(("team", "shop"),))
KNOWN_TAG = Selector(tags=(("karpenter.sh/discovery", "demo"),))


def node_class(name: str = "default", **fields: Any) -> EC2NodeClass:
    said: dict[str, Any] = {
        "subnet_selectors": (KNOWN_TAG,),
        "security_group_selectors": (KNOWN_TAG,),
        "image_selectors": (Selector(name="plain-*"),),
    }
    one = EC2NodeClass(meta=Meta(name=name), ami_family="Custom", resolved_profile="profile")
    return replace(one, **(said | fields))


FOUND = Found(
    subnets=(A, B),
    security_groups=(NODES, PODS),
    images=((PLAIN, ()), (LATER, ())),
    placement_groups=(PlacementGroup(group_id="pg-1", name="near"),),
)
BEFORE = node_class(resolved_subnets=(A, B), resolved_security_groups=(NODES, PODS))
KNOWN = Known(classes=(BEFORE,), asked=((BEFORE, FOUND),), now=START)


def names(one: EC2NodeClass) -> tuple[list[str], list[str], list[str]]:
    return (
        [each.subnet_id for each in one.resolved_subnets],
        [each.group_id for each in one.resolved_security_groups],
        [each.image_id for each in one.resolved_images],
    )


@pytest.mark.parametrize(
    ("fields", "place", "chosen"),
    [
        ({"subnet_selectors": (Selector(id="subnet-b"),)}, 0, ["subnet-b"]),
        ({"subnet_selectors": (Selector(id="subnet-b"), KNOWN_TAG)}, 0, ["subnet-a", "subnet-b"]),
        ({"security_group_selectors": (Selector(name="pods"),)}, 1, ["sg-2"]),
        ({"image_selectors": (Selector(id="ami-1"),)}, 2, ["ami-1"]),
        ({"image_selectors": (TAGGED,)}, 2, ["ami-1"]),
        ({"image_selectors": (Selector(name="plain-2"),)}, 2, ["ami-2"]),
    ],
)
def test_what_was_found_then_is_found_again(fields: dict[str, Any], place: int, chosen: list[str]) -> None:
    one, notes = reselected(node_class(**fields), BEFORE, KNOWN)
    assert names(one)[place] == chosen
    assert len(notes) == 1
    assert f"select {', '.join(chosen)}, as they were found then" in notes[0]


@pytest.mark.parametrize(
    ("fields", "term"),
    [
        ({"subnet_selectors": (TAGGED,)}, "spec.subnetSelectorTerms[0] (tags team=shop)"),
        ({"subnet_selectors": (KNOWN_TAG, Selector(id="subnet-c"))}, "spec.subnetSelectorTerms[1] (subnet-c)"),
        ({"image_selectors": (Selector(alias="al2023@latest"),)}, "spec.amiSelectorTerms[0] (al2023@latest)"),
        ({"image_selectors": (Selector(name="plain-1", owner="self"),)}, "spec.amiSelectorTerms[0] (plain-1 self)"),
        (
            {"capacity_reservation_selectors": (Selector(id="cr-1"),)},
            "spec.capacityReservationSelectorTerms[0] (cr-1)",
        ),
    ],
)
def test_of_what_nobody_knows_it_is_said_and_all_stays(fields: dict[str, Any], term: str) -> None:
    one, notes = reselected(node_class(resolved_subnets=(A,), **fields), replace(BEFORE, resolved_subnets=(A,)), KNOWN)
    assert one.resolved_subnets == (A,)
    assert [note.partition(" cannot")[0] for note in notes] == [f"EC2NodeClass default: {term}"]
    assert "assumed: " in notes[0]


def test_what_is_not_said_otherwise_is_not_looked_up() -> None:
    assert reselected(BEFORE, BEFORE, Known(now=START)) == (BEFORE, ())


def test_a_status_alone_knows_ids_and_the_same_terms() -> None:
    known = Known(classes=(BEFORE,), now=START)
    one, notes = reselected(node_class(subnet_selectors=(Selector(id="subnet-b"),)), BEFORE, known)
    assert one.resolved_subnets == (B,)
    assert "select subnet-b" in notes[0]


def test_a_new_class_is_ready_if_all_is_known_that_it_selects() -> None:
    one, notes = reselected(node_class("new"), None, KNOWN)
    assert one.is_ready()
    assert names(one) == (["subnet-a", "subnet-b"], ["sg-1", "sg-2"], ["ami-2"])
    assert "assumed: it is Ready, and sells what the others do" in notes[-1]
    two, notes = reselected(node_class("new", subnet_selectors=(TAGGED,)), None, KNOWN)
    assert not two.is_ready()
    assert "is new, and not Ready" in notes[-1]


@pytest.mark.parametrize(
    ("selector", "group", "said"),
    [
        (Selector(name="near"), "pg-1", False),
        (Selector(id="pg-1"), "pg-1", False),
        (Selector(name="far"), "", True),
    ],
)
def test_a_placement_group_is_known_by_id_and_name(selector: Selector, group: str, *, said: bool) -> None:
    one, notes = reselected(replace(BEFORE, placement_group_selector=selector), BEFORE, KNOWN)
    assert (one.resolved_placement_group.group_id if one.resolved_placement_group is not None else "") == group
    assert any("its placement group is not known" in note for note in notes) is said


def test_catalog_finds_the_same() -> None:
    found = refound(node_class(subnet_selectors=(Selector(id="subnet-b"),)), FOUND, KNOWN)
    assert (found.subnets, found.images) == ((B,), ((PLAIN, ()), (LATER, ())))
    lost = refound(node_class(subnet_selectors=(TAGGED,)), FOUND, KNOWN)
    assert lost.subnets == (A, B)
    assert refound(node_class("new", subnet_selectors=(TAGGED,)), None, KNOWN).subnets == ()


def sold(*zones: str) -> tuple[InstanceType, ...]:
    some = tuple(Offering(zone=zone, capacity_type="spot", price_usd_per_hour=1.0) for zone in zones)
    return (InstanceType(name="m5", requirements=ANYTHING, capacity=Resources(), overhead=Resources(), offerings=some),)


def test_types_are_sold_in_the_zones_of_the_subnets_that_are_selected() -> None:
    catalogue = Catalogue(region="r", instance_types=(), by_node_class=(("default", sold("a", "b")),), priced_at=START)
    new, _ = reselected(node_class("new", subnet_selectors=(Selector(id="subnet-b"),)), None, KNOWN)
    assert sold_to(catalogue, BEFORE, BEFORE) == (catalogue, ())
    view, notes = sold_to(catalogue, new, None)
    assert dict(view.by_node_class) == {"default": sold("a", "b"), "new": sold("b")}
    assert notes == ()
    beyond = replace(new, resolved_subnets=(replace(B, zone="z"), B))
    assert "what is sold in z was not kept; assumed: nothing" in sold_to(catalogue, beyond, None)[1][0]
