"""What a changed EC2NodeClass selects in a replay: the recorded answer, or a note if there is none."""

from typing import Any

import pytest
from msgspec.structs import replace

from cli.replay.selectors import (
    RecordedSelections,
    build_recorded_answers,
    resolve_selectors,
    with_node_class_offerings,
)
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import ANYTHING
from shared.model.core.resources import Resources
from shared.model.ec2.account import Image, PlacementGroup, SecurityGroup, SelectorTerm, Subnet
from shared.model.karpenter.node_class import EC2NodeClass
from sim.time.virtual_clock import DEFAULT_START_TIME

A = Subnet(subnet_id="subnet-a", zone="a", zone_id="1", available_ip_count=0)
B = Subnet(subnet_id="subnet-b", zone="b", zone_id="2", available_ip_count=0)
NODES = SecurityGroup(group_id="sg-1", name="nodes")
PODS = SecurityGroup(group_id="sg-2", name="pods")
PLAIN = Image(
    image_id="ami-1", name="plain-1", architecture="x86_64", created_at=DEFAULT_START_TIME, tags=(("team", "shop"),)
)
LATER = replace(PLAIN, image_id="ami-2", name="plain-2", tags=())
TAGGED = SelectorTerm(tags=(("team", "shop"),))
KNOWN_TAG = SelectorTerm(tags=(("karpenter.sh/discovery", "demo"),))


def make_node_class(name: str = "default", **fields: Any) -> EC2NodeClass:
    defaults: dict[str, Any] = {
        "subnet_selectors": (KNOWN_TAG,),
        "security_group_selectors": (KNOWN_TAG,),
        "image_selectors": (SelectorTerm(name="plain-*"),),
    }
    base_class = EC2NodeClass(meta=ObjectMeta(name=name), ami_family="Custom", resolved_profile="profile")
    return replace(base_class, **(defaults | fields))


CATALOG_ANSWERS = NodeClassAnswers(
    subnets=(A, B),
    security_groups=(NODES, PODS),
    images=((PLAIN, ()), (LATER, ())),
    placement_groups=(PlacementGroup(group_id="pg-1", name="near"),),
)
BEFORE = make_node_class(resolved_subnets=(A, B), resolved_security_groups=(NODES, PODS))
SELECTIONS = RecordedSelections(classes=(BEFORE,), catalog_answers=((BEFORE, CATALOG_ANSWERS),), now=DEFAULT_START_TIME)


def list_resolved_ids(node_class: EC2NodeClass) -> tuple[list[str], list[str], list[str]]:
    return (
        [subnet.subnet_id for subnet in node_class.resolved_subnets],
        [group.group_id for group in node_class.resolved_security_groups],
        [image.image_id for image in node_class.resolved_images],
    )


@pytest.mark.parametrize(
    ("fields", "place", "expected_ids"),
    [
        ({"subnet_selectors": (SelectorTerm(id="subnet-b"),)}, 0, ["subnet-b"]),
        ({"subnet_selectors": (SelectorTerm(id="subnet-b"), KNOWN_TAG)}, 0, ["subnet-a", "subnet-b"]),
        ({"security_group_selectors": (SelectorTerm(name="pods"),)}, 1, ["sg-2"]),
        ({"image_selectors": (SelectorTerm(id="ami-1"),)}, 2, ["ami-1"]),
        ({"image_selectors": (TAGGED,)}, 2, ["ami-1"]),
        ({"image_selectors": (SelectorTerm(name="plain-2"),)}, 2, ["ami-2"]),
    ],
)
def test_selectors_resolve_to_recorded_resources(fields: dict[str, Any], place: int, expected_ids: list[str]) -> None:
    resolved, notes = resolve_selectors(make_node_class(**fields), BEFORE, SELECTIONS)
    assert list_resolved_ids(resolved)[place] == expected_ids
    assert len(notes) == 1
    assert f"resolve to {', '.join(expected_ids)}, as recorded" in notes[0]


@pytest.mark.parametrize(
    ("fields", "term"),
    [
        ({"subnet_selectors": (TAGGED,)}, "spec.subnetSelectorTerms[0] (tags team=shop)"),
        ({"subnet_selectors": (KNOWN_TAG, SelectorTerm(id="subnet-c"))}, "spec.subnetSelectorTerms[1] (subnet-c)"),
        ({"image_selectors": (SelectorTerm(alias="al2023@latest"),)}, "spec.amiSelectorTerms[0] (al2023@latest)"),
        ({"image_selectors": (SelectorTerm(name="plain-1", owner="self"),)}, "spec.amiSelectorTerms[0] (plain-1 self)"),
        (
            {"capacity_reservation_selectors": (SelectorTerm(id="cr-1"),)},
            "spec.capacityReservationSelectorTerms[0] (cr-1)",
        ),
    ],
)
def test_unresolvable_selector_is_noted_and_keeps_the_recorded_result(fields: dict[str, Any], term: str) -> None:
    resolved, notes = resolve_selectors(
        make_node_class(resolved_subnets=(A,), **fields), replace(BEFORE, resolved_subnets=(A,)), SELECTIONS
    )
    assert resolved.resolved_subnets == (A,)
    assert [note.partition(" cannot")[0] for note in notes] == [f"EC2NodeClass default: {term}"]
    assert "assumed: " in notes[0]


def test_unchanged_selectors_are_not_resolved_again() -> None:
    assert resolve_selectors(BEFORE, BEFORE, RecordedSelections(now=DEFAULT_START_TIME)) == (BEFORE, ())


def test_node_class_status_resolves_ids_without_recorded_answers() -> None:
    selections = RecordedSelections(classes=(BEFORE,), now=DEFAULT_START_TIME)
    resolved, notes = resolve_selectors(
        make_node_class(subnet_selectors=(SelectorTerm(id="subnet-b"),)), BEFORE, selections
    )
    assert resolved.resolved_subnets == (B,)
    assert "resolve to subnet-b" in notes[0]


def test_new_node_class_is_ready_only_if_all_selectors_resolve() -> None:
    resolved, notes = resolve_selectors(make_node_class("new"), None, SELECTIONS)
    assert resolved.is_ready()
    assert list_resolved_ids(resolved) == (["subnet-a", "subnet-b"], ["sg-1", "sg-2"], ["ami-2"])
    assert "assumed: Ready, with the same offerings as the other classes" in notes[-1]
    two, notes = resolve_selectors(make_node_class("new", subnet_selectors=(TAGGED,)), None, SELECTIONS)
    assert not two.is_ready()
    assert "is new; assumed: not Ready" in notes[-1]


@pytest.mark.parametrize(
    ("selector", "group", "is_noted"),
    [
        (SelectorTerm(name="near"), "pg-1", False),
        (SelectorTerm(id="pg-1"), "pg-1", False),
        (SelectorTerm(name="far"), "", True),
    ],
)
def test_placement_group_is_resolved_by_id_or_name(selector: SelectorTerm, group: str, *, is_noted: bool) -> None:
    resolved, notes = resolve_selectors(replace(BEFORE, placement_group_selector=selector), BEFORE, SELECTIONS)
    assert (
        resolved.resolved_placement_group.group_id if resolved.resolved_placement_group is not None else ""
    ) == group
    assert any("the placement group cannot be resolved" in note for note in notes) is is_noted


def test_catalog_answers_are_rebuilt_for_changed_selectors() -> None:
    answers = build_recorded_answers(
        make_node_class(subnet_selectors=(SelectorTerm(id="subnet-b"),)), CATALOG_ANSWERS, SELECTIONS
    )
    assert (answers.subnets, answers.images) == ((B,), ((PLAIN, ()), (LATER, ())))
    fallback_answers = build_recorded_answers(make_node_class(subnet_selectors=(TAGGED,)), CATALOG_ANSWERS, SELECTIONS)
    assert fallback_answers.subnets == (A, B)
    assert build_recorded_answers(make_node_class("new", subnet_selectors=(TAGGED,)), None, SELECTIONS).subnets == ()


def make_instance_types(*zones: str) -> tuple[InstanceType, ...]:
    offerings = tuple(Offering(zone=zone, capacity_type="spot", price_usd_per_hour=1.0) for zone in zones)
    return (
        InstanceType(name="m5", requirements=ANYTHING, capacity=Resources(), overhead=Resources(), offerings=offerings),
    )


def test_offerings_of_a_new_node_class_are_limited_to_its_subnet_zones() -> None:
    catalogue = Catalog(
        region="r",
        instance_types=(),
        by_node_class=(("default", make_instance_types("a", "b")),),
        priced_at=DEFAULT_START_TIME,
    )
    new, _ = resolve_selectors(
        make_node_class("new", subnet_selectors=(SelectorTerm(id="subnet-b"),)), None, SELECTIONS
    )
    assert with_node_class_offerings(catalogue, BEFORE, BEFORE) == (catalogue, ())
    view, notes = with_node_class_offerings(catalogue, new, None)
    assert dict(view.by_node_class) == {"default": make_instance_types("a", "b"), "new": make_instance_types("b")}
    assert notes == ()
    larger_class = replace(new, resolved_subnets=(replace(B, zone="z"), B))
    assert (
        "offerings in z were not stored; assumed: none"
        in with_node_class_offerings(catalogue, larger_class, None)[1][0]
    )
