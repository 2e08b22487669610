"""Drift: what is told to have drifted is replaced; what differs is told."""

import json
from datetime import timedelta
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from shared.disruption.drifting import Drifting, drift_of
from shared.disruption.drifts import describe_drift
from shared.model import labels
from shared.model.action import PatchStatus
from shared.model.ec2 import CapacityReservation, Instance, PlacementGroup, SecurityGroup, Subnet
from shared.model.nodeclasses import ResolvedImage
from shared.model.objects import Condition, pairs
from shared.model.resources import parse_resources
from shared.scheduling.hashes import node_pool_hash
from tests.unit.catalogues import NOW, needs, node_class, pool
from tests.unit.disruption_fleet import (
    FREE,
    STAGES,
    TYPES,
    Machine,
    fleet,
    gone,
    guard,
    machine,
    percent,
    swept,
    true,
    verdict,
    web,
)


def drifted(name: str, *pods: object, hours: int = 1, reason: str = "AMIDrift", **fields: object) -> Machine:
    why = Condition(type="Drifted", status="True", reason=reason, since=NOW - timedelta(hours=hours))
    stages = true(*STAGES[:3])
    return machine(name, *pods, conditions=(*stages, why), **fields)  # type: ignore[arg-type]


def test_a_drifted_node_is_replaced_whatever_that_costs() -> None:
    found = swept(fleet(drifted("a", web("1", "1500m"), cpu=2)))
    [command] = found.commands
    assert (command.method, command.reason, len(command.replacements)) == ("Drift", "Drifted", 1)
    assert "AMIDrift" in command.why


def test_a_drifted_node_goes_without_replacement_where_there_is_room() -> None:
    found = swept(fleet(drifted("a", web("1")), machine("b", web("2", "2"), cpu=8, conditions=true(*STAGES[:3]))))
    assert gone(found) == [("Drift", ["a"], [])]


def test_several_nodes_may_come_in_the_place_of_one() -> None:
    small = tuple(one for one in TYPES if one.name == "m.02")
    found = swept(fleet(drifted("a", web("1", "1500m"), web("2", "1500m"), cpu=4), types=small))
    assert len(found.commands[0].replacements) == 2


def test_empty_nodes_are_replaced_first_then_who_drifted_first() -> None:
    some = [drifted("a", web("1", "3")), drifted("b", web("2", "3"), hours=5), drifted("c", hours=1)]
    found = swept(fleet(*some, pools=(pool(budgets=(), consolidate_after=None),)))
    assert [sorted(one.nodes()) for one in found.commands] == [["c"], ["b"], ["a"]]


def test_drift_is_held_to_budgets() -> None:
    some = [drifted(f"n{number}", web(str(number), "3")) for number in range(5)]
    found = swept(fleet(*some, pools=(percent("40%"),)))
    assert len(found.commands) == 2
    assert [one.reason for one in found.verdicts].count("Budget") == 3


def test_of_fifty_drifted_nodes_a_tenth_goes_at_a_time() -> None:
    some = [drifted(f"n{number:02d}", web(str(number), "3"), hours=50 - number) for number in range(50)]
    cluster = fleet(*some, pools=(percent("10%"),))
    found = swept(cluster)
    going = frozenset(name for one in found.commands for name in one.nodes())
    assert sorted(going) == ["n00", "n01", "n02", "n03", "n04"]
    assert swept(cluster, busy=going).commands == ()
    assert len(swept(cluster, busy=going - {"n04"}).commands) == 1


def test_pods_of_drifted_nodes_go_where_they_can_stay() -> None:
    some = [
        drifted("a", web("1")),
        drifted("b", web("2"), cpu=16),
        machine("z", web("3"), conditions=true(*STAGES[:3])),
    ]
    found = swept(fleet(*some, pools=(percent("1"),)))
    assert found.commands[0].homes[0][1] == "z"


def test_a_pod_without_another_place_holds_its_node() -> None:
    odd = web("1", "1500m", node_selector=(("disk", "ssd"),))
    found = swept(fleet(drifted("a", odd)))
    assert gone(found) == []
    assert verdict(found, "a")[:2] == ("blocked", "PodsHaveNoPlace")


@pytest.mark.parametrize(("grace", "goes"), [(None, False), (timedelta(), True), (timedelta(hours=1), True)])
def test_pods_in_the_way_count_no_more_where_the_claim_has_a_grace_period(grace: object, *, goes: bool) -> None:
    one = drifted("a", web("1"), termination_grace_period=grace)
    found = swept(fleet(one, budgets=(guard("g", {"app": "web"}, 0),)))
    assert bool(found.commands) is goes


def test_a_pod_that_a_budget_holds_for_good_gets_no_place() -> None:
    one = drifted("a", web("1"), termination_grace_period=timedelta(hours=1))
    found = swept(fleet(one, budgets=(guard("g", {"app": "web"}, 0, max_unavailable="0"),)))
    assert found.commands[0].replacements == ()


def test_a_protected_node_is_not_replaced() -> None:
    found = swept(fleet(drifted("a", web("1"), annotations={labels.DO_NOT_DISRUPT: "true"})))
    assert gone(found) == []


STATIC = pool(budgets=(), replicas=2)


def test_a_node_of_a_static_pool_is_replaced_from_the_template() -> None:
    found = swept(fleet(drifted("a", web("1")), machine("b", web("2")), pools=(STATIC,)))
    [command] = found.commands
    assert (command.method, len(command.replacements)) == ("StaticDrift", 1)
    assert command.replacements[0].claim.name.startswith("default-")
    assert labels.INSTANCE_TYPE not in command.replacements[0].claim.requirements


@pytest.mark.parametrize(("limit", "count"), [("2", 0), ("3", 1), ("4", 2), (None, 2)])
def test_a_static_pool_has_no_more_nodes_than_its_limit_meanwhile(limit: str | None, count: int) -> None:
    limits = None if limit is None else parse_resources({"nodes": limit})
    some = [drifted("a", web("1")), drifted("b", web("2"))]
    found = swept(fleet(*some, pools=(replace(STATIC, limits=limits),)))
    assert len(found.commands) == count


def test_a_static_pool_that_is_too_large_shrinks_first() -> None:
    some = [drifted("a", web("1")), machine("b", web("2")), machine("c", web("3"))]
    assert gone(swept(fleet(*some, pools=(STATIC,)))) == []


# What is told to have drifted.

KIND = TYPES[1]
CLASS = replace(
    node_class(),
    resolved_images=(ResolvedImage(image_id="ami-1"),),
    resolved_security_groups=(SecurityGroup(group_id="sg-1", name="one"),),
    resolved_subnets=(Subnet(subnet_id="subnet-1", zone="a", zone_id="1", available_ip_count=9),),
)
INSTANCE = Instance(
    instance_id="a",
    instance_type=KIND.name,
    zone="a",
    subnet_id="subnet-1",
    image_id="ami-1",
    state="running",
    launched_at=NOW,
    capacity_type="on-demand",
    security_group_ids=("sg-1",),
)
HASHES = {
    labels.NODEPOOL_HASH: node_pool_hash(FREE),
    labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION,
    labels.NODECLASS_HASH: CLASS.hashed,
    labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE,
}


def compared(notes: dict[str, str] | None = None, own: dict[str, str] | None = None, **fields: object) -> Drifting:
    _, claim, _ = machine("a")
    meta = replace(
        claim.meta,
        annotations=pairs(HASHES | (notes or {})),
        labels=pairs(dict(claim.meta.labels) | (own or {})),
        created_at=NOW - timedelta(hours=2),
    )
    one = Drifting(
        claim=replace(claim, meta=meta, image_id="ami-1"),
        pool=FREE,
        node_class=CLASS,
        instance=INSTANCE,
        types=MappingProxyType({kind.name: kind for kind in TYPES}),
        now=NOW,
    )
    return replace(one, **fields)


def younger(one: Drifting) -> Drifting:
    return replace(one, claim=replace(one.claim, meta=replace(one.claim.meta, created_at=NOW)))


RESERVED = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1"}
RESERVATION = CapacityReservation(reservation_id="cr-1", instance_type=KIND.name, zone="a")


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (compared(), ""),
        (compared(pool=replace(FREE, labels=(("team", "x"),))), "NodePoolDrifted"),
        (compared({labels.NODEPOOL_HASH_VERSION: "v3"}, pool=replace(FREE, labels=(("team", "x"),))), ""),
        (compared({labels.NODEPOOL_HASH: "other"}), "NodePoolDrifted"),
        (compared({labels.NODEPOOL_HASH: "other"}, is_asked=True), "DriftRequested"),
        (compared(pool=replace(FREE, requirements=needs((labels.ZONE, "In", ("b",))))), "RequirementsDrifted"),
        (compared(pool=replace(FREE, requirements=needs((labels.ZONE, "In", ("a", "b"))))), ""),
        (compared(pool=replace(FREE, requirements=needs(("team", "Exists", ())))), "RequirementsDrifted"),
        (compared(pool=replace(FREE, requirements=needs(("team", "NotIn", ("x",))))), ""),
        (compared(pool=replace(FREE, requirements=needs(("team", "DoesNotExist", ())))), ""),
        (compared(types=MappingProxyType({"m.02": TYPES[0]})), "InstanceTypeNotFound"),
        (younger(compared(types=MappingProxyType({"m.02": TYPES[0]}), node_class=None)), ""),
        (compared(own={labels.ZONE: "z"}), "InstanceTypeNotFound"),
        (compared(own=RESERVED), "CapacityReservationDrift"),
        (compared(own=RESERVED, node_class=replace(CLASS, resolved_capacity_reservations=(RESERVATION,))), ""),
        (compared({labels.NODECLASS_HASH: "other"}), "NodeClassDrift"),
        (compared({labels.NODECLASS_HASH: "other", labels.NODECLASS_HASH_VERSION: "v6"}), ""),
        (compared(node_class=replace(CLASS, resolved_images=(ResolvedImage(image_id="ami-2"),))), "AMIDrift"),
        (
            compared(
                node_class=replace(
                    CLASS,
                    resolved_images=(
                        ResolvedImage(image_id="ami-1", requirements=needs((labels.ARCH, "In", ("arm64",)))),
                    ),
                )
            ),
            "AMIDrift",
        ),
        (compared(node_class=replace(CLASS, resolved_images=())), None),
        (compared(instance=replace(INSTANCE, security_group_ids=("sg-1", "sg-2"))), "SecurityGroupDrift"),
        (compared(instance=replace(INSTANCE, subnet_id="subnet-9")), "SubnetDrift"),
        (compared(instance=None), None),
        (
            compared(node_class=replace(CLASS, resolved_placement_group=PlacementGroup(group_id="pg-1", name="g"))),
            "PlacementGroupDrift",
        ),
        (compared({labels.NODECLASS_HASH: "other"}, node_class=None), ""),
    ],
)
def test_what_counts_as_drift(one: Drifting, reason: str | None) -> None:
    assert drift_of(one) == reason


def test_a_condition_says_so_and_keeps_its_time() -> None:
    there, claim, _ = machine("a")
    claim = replace(claim, meta=replace(claim.meta, annotations=pairs(HASHES | {labels.NODEPOOL_HASH: "other"})))
    cluster = fleet((there, claim, ()))
    [write] = describe_drift(cluster)
    assert isinstance(write, PatchStatus)
    assert '"reason":"NodePoolDrifted"' in write.status
    since = NOW - timedelta(hours=3)
    other = Condition(type="Drifted", status="True", reason="AMIDrift", since=since)
    [again] = describe_drift(fleet((there, replace(claim, conditions=(*claim.conditions, other)), ())))
    assert isinstance(again, PatchStatus)
    [condition] = [one for one in json.loads(again.status)["conditions"] if one["type"] == "Drifted"]
    assert (condition["reason"], condition["lastTransitionTime"]) == ("NodePoolDrifted", "2026-11-21T09:00:00Z")
    known = Condition(type="Drifted", status="True", reason="NodePoolDrifted", since=NOW)
    assert describe_drift(fleet((there, replace(claim, conditions=(*claim.conditions, known)), ()))) == ()


def test_a_condition_goes_when_nothing_differs_any_more() -> None:
    there, claim, _ = drifted("a")
    claim = replace(
        claim, meta=replace(claim.meta, annotations=pairs(HASHES)), image_id="ami-1", provider_id="aws:///a/a"
    )
    cluster = fleet((there, claim, ()), node_classes=(CLASS,), instances=(INSTANCE,))
    [write] = describe_drift(cluster)
    assert isinstance(write, PatchStatus)
    assert "Drifted" not in write.status
    assert describe_drift(replace(cluster, instances=None)) == ()


def test_a_claim_that_is_not_launched_has_not_drifted() -> None:
    there, claim, _ = machine("a", conditions=())
    claim = replace(claim, meta=replace(claim.meta, annotations=pairs({labels.NODEPOOL_HASH: "other"})))
    assert describe_drift(fleet((there, claim, ()))) == ()
