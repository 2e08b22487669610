"""Launch templates: reused by content, collected when nobody uses them; and how few requests many claims are."""

import json
from typing import Any

import msgspec
import pytest

from shared.launch.drafts import MAX_OVERRIDES, MAX_TYPES
from shared.launch.groups import MAX_CLAIMS, Terms, plan_launches
from shared.launch.outcome import outcome
from shared.launch.refusals import reason_of, remedy_of
from shared.launch.templates import EFA, ENCLAVES, UNUSED_FOR, unused
from shared.model import labels
from shared.model.action import MarkUnavailable, PatchMetadata, PatchStatus
from shared.model.catalogue import Catalogue, InstanceType
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetError, FleetInstance, FleetResult, LaunchTemplate, NetworkInterface, Selector, Subnet
from shared.model.labels import MIN_VALUES_RELAXED
from shared.model.nodes import NodeClaim
from shared.model.requirements import Requirement, requirement, requirements
from shared.model.resources import parse_resources, resources
from sim.memory import LARGEST_ITEM
from tests.unit.launch_cases import NOW, claim, cluster, later, node_class, types

OURS = (("eks:eks-cluster-name", "c"),)
AGE = int(UNUSED_FOR.total_seconds())


def template(name: str = "joiner/c/1", tags: tuple[tuple[str, str], ...] = OURS, age: int = 600) -> LaunchTemplate:
    return LaunchTemplate(name=name, image_id="", user_data="", tags=tags, created_at=later(-age))


def using(one: LaunchTemplate, *, age: int, answered: bool) -> LaunchGroup:
    [launch] = plan_launches(cluster(claim("a"))).launches
    result = FleetResult(fleet_id="f") if answered else None
    return msgspec.structs.replace(launch.group, templates=(one,), created_at=later(-age), result=result)


@pytest.mark.parametrize(
    ("one", "groups", "gone"),
    [
        (template(), (), True),
        (template(age=AGE), (), False),
        (template(age=AGE + 1), (), True),
        (template(), (using(template(), age=AGE, answered=True),), False),
        (template(), (using(template(), age=AGE + 1, answered=True),), True),
        (template(), (using(template(), age=3600, answered=False),), False),
        (template("karpenter.k8s.aws/1"), (), False),
        (template("joiner/other/1"), (), False),
        (template(tags=()), (), False),
        (template(tags=(("eks:eks-cluster-name", "other"),)), (), False),
        (msgspec.structs.replace(template(), created_at=None), (), False),
    ],
    ids=[
        "old and unused",
        "new",
        "a little older",
        "used lately",
        "not used lately",
        "of a launch that has no answer",
        "Karpenter's",
        "another cluster's by name",
        "without our tag",
        "another cluster's by tag",
        "nobody knows how old",
    ],
)
def test_a_template_is_collected(one: LaunchTemplate, groups: tuple[LaunchGroup, ...], gone: bool) -> None:  # noqa: FBT001
    assert [action.name for action in unused([one], groups, "c", NOW)] == ([one.name] if gone else [])


def test_templates_of_a_class_that_leaves_go_at_once_and_others_stay() -> None:
    leaves, stays = (template(f"joiner/c/{name}", (*OURS, (labels.NODECLASS, name)), age=1) for name in ("a", "b"))
    gone = unused([leaves, stays], (), "c", NOW, leaving={"a"})
    assert [one.name for one in gone] == [leaves.name]


def test_the_same_content_is_the_same_template() -> None:
    names = {
        one.name
        for some in (cluster(claim("a")), cluster(claim("b"), taken_at=later(60)))
        for launch in plan_launches(some).launches
        for one in launch.group.templates
    }
    other = plan_launches(cluster(claim("a"), node_classes=(node_class(detailed_monitoring=True),))).launches[0]
    assert len(names) == len(plan_launches(cluster(claim("a"))).launches[0].group.templates)
    assert names.isdisjoint(one.name for one in other.group.templates)


def test_a_thousand_equal_claims_are_two_requests_whose_rows_are_not_too_large() -> None:
    launches = plan_launches(cluster(*(claim(f"default-{number:05}") for number in range(1000)))).launches
    assert [one.group.request.capacity for one in launches] == [MAX_CLAIMS, MAX_CLAIMS]
    assert len({one.group.request.client_token for one in launches}) == 2
    assert max(len(msgspec.json.encode(one.group)) for one in launches) < LARGEST_ITEM / 2


def test_the_context_is_left_out_where_minimum_values_were_relaxed() -> None:
    classes = (node_class(context="ctx"),)
    relaxed = claim("a")
    notes = ((MIN_VALUES_RELAXED, "true"),)
    relaxed = msgspec.structs.replace(relaxed, meta=msgspec.structs.replace(relaxed.meta, annotations=notes))
    asked = [
        plan_launches(cluster(one, node_classes=classes)).launches[0].group.request for one in (claim("a"), relaxed)
    ]
    assert [one.context for one in asked] == ["ctx", ""]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted: no", "SpotSLRCreationFailed"),
        ("UnauthorizedOperation: Not authorized for images: [ami-1]", "AMIAuthorizationFailure"),
        ("AccessDenied: no", "Unauthorized"),
        ("InvalidAMIID.Malformed: x", "InvalidAMIID"),
        ("RequestLimitExceeded: later", "RequestLimitExceeded"),
        ("InternalError: oh", "InternalError"),
        ("InvalidParameterCombination: not eligible for Free Tier", "FreeTierIneligible"),
        ("InvalidLaunchTemplateId.NotFound: lt", "LaunchTemplateNotFound"),
        ("MaxSpotInstanceCountExceeded: x", "SpotQuotaExceeded"),
        ("VcpuLimitExceeded: x", "VCPULimitExceeded"),
        ("too few instances returned", "LaunchFailed"),
    ],
)
def test_a_reason_is_the_first_that_matches(words: str, reason: str) -> None:
    assert reason_of(words) == reason


def test_what_nobody_can_help_has_no_remedy() -> None:
    assert remedy_of("InternalError") == ""


def fast(name: str, efa: int) -> InstanceType:
    """Answer one of the market's types with *efa* fast interfaces."""
    one = types()[name]
    return msgspec.structs.replace(one, capacity=resources(dict(one.capacity.amounts) | {EFA: efa}))


def market(*changed: InstanceType, **labels_of_all: Requirement) -> Catalogue:
    known = types() | {one.name: one for one in changed}
    more = tuple(labels_of_all.values())
    some = tuple(
        msgspec.structs.replace(one, requirements=one.requirements & requirements(more))
        for _, one in sorted(known.items())
    )
    return Catalogue(region="us-east-1", instance_types=(), by_node_class=(("default", some),))


def asking(wanted: dict[str, str], *more: Requirement) -> NodeClaim:
    one = claim("a")
    held = requirements((*one.requirements, *more))
    return msgspec.structs.replace(one, requests=one.requests + parse_resources(wanted), requirements=held)


def launched(one: NodeClaim, **fields: Any) -> LaunchGroup:
    [launch] = plan_launches(cluster(one, **fields)).launches
    return launch.group


def types_by(group: LaunchGroup) -> dict[LaunchTemplate, set[str]]:
    asked = {one.launch_template_name: {each.instance_type for each in one.overrides} for one in group.request.configs}
    return {one: asked[one.name] for one in group.templates}


def test_fast_interfaces_are_asked_for_only_for_pods_that_want_them_and_by_how_many_a_type_has() -> None:
    some = market(fast("m5.large", 1), fast("m5.xlarge", 4), fast("c5.xlarge", 4))
    plain = types_by(launched(asking({}), catalogue=some))
    assert {one.efa_interfaces for one in plain} == {0}
    wanted = types_by(launched(asking({EFA: "1"}), catalogue=some))
    assert {one.efa_interfaces: names for one, names in wanted.items()} == {
        1: {"m5.large"},
        4: {"m5.xlarge", "c5.xlarge"},
    }


def test_the_interfaces_that_a_class_names_come_before_those_that_pods_want() -> None:
    own = node_class(
        network_interfaces=(NetworkInterface(), NetworkInterface(device_index=1, interface_type="efa-only"))
    )
    group = launched(asking({EFA: "1"}), catalogue=market(fast("m5.large", 1)), node_classes=(own,))
    assert [(one.efa_interfaces, len(one.network_interfaces)) for one in group.templates] == [(0, 2)]


def test_enclaves_are_opened_for_pods_that_want_them() -> None:
    some = market(*(grown(one, {ENCLAVES: 1}) for one in types().values()))
    assert {one.enclaves for one in launched(asking({}), catalogue=some).templates} == {False}
    assert {one.enclaves for one in launched(asking({ENCLAVES: "1"}), catalogue=some).templates} == {True}


def grown(one: InstanceType, more: dict[str, int]) -> InstanceType:
    return msgspec.structs.replace(one, capacity=resources(dict(one.capacity.amounts) | more))


@pytest.mark.parametrize(
    ("allowed", "told"),
    [((), "default"), (("default", "dedicated"), "default"), (("dedicated",), "dedicated")],
)
def test_hardware_is_ones_own_only_where_nothing_else_will_do(allowed: tuple[str, ...], told: str) -> None:
    wanted = [requirement(labels.TENANCY, "In", allowed)] if allowed else []
    assert {one.tenancy for one in launched(asking({}, *wanted)).templates} == {told}


@pytest.mark.parametrize(("allowed", "told"), [((), None), (("10", "2"), 2), (("7",), 7)])
def test_a_partition_is_named_where_the_claim_is_bound_to_some(allowed: tuple[str, ...], told: int | None) -> None:
    some = market(
        group=requirement("karpenter.k8s.aws/placement-group-id", "In", ("pg-1",)),
        partition=requirement(labels.PARTITION, "In", tuple(str(number) for number in range(1, 13))),
    )
    own = node_class(placement_group_selector=Selector(id="pg-1"))
    wanted = [requirement(labels.PARTITION, "In", allowed)] if allowed else []
    group = launched(asking({}, *wanted), catalogue=some, node_classes=(own,))
    assert {(one.placement_group_id, one.partition_number) for one in group.templates} == {("pg-1", told)}
    metadata, _ = told_of(group, asking({}, *wanted), catalogue=some)
    assert dict(metadata.labels).get(labels.PARTITION) == (None if told is None else str(told))
    assert dict(metadata.labels)[labels.TENANCY] == "default"


def told_of(group: LaunchGroup, one: NodeClaim, **fields: Any) -> tuple[PatchMetadata, dict[str, Any]]:
    """Answer what a claim is told that got the group's first offering."""
    config = group.request.configs[0]
    [first, *_] = config.overrides
    instance = FleetInstance(
        instance_id="i-1",
        instance_type=first.instance_type,
        zone=first.zone,
        subnet_id=first.subnet_id,
        image_id=first.image_id,
        capacity_type=group.request.capacity_type,
    )
    answered = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=(instance,)))
    metadata, status = outcome(answered, cluster(one, **fields)).actions
    assert isinstance(metadata, PatchMetadata)
    assert isinstance(status, PatchStatus)
    return metadata, json.loads(status.status)


def test_a_node_has_fast_interfaces_only_if_they_were_asked_for() -> None:
    some = market(*(fast(name, 1) for name in types()))
    for one, have in ((asking({}), None), (asking({EFA: "1"}), "1")):
        _, status = told_of(launched(one, catalogue=some), one, catalogue=some)
        assert (status["capacity"].get(EFA), status["allocatable"].get(EFA)) == (have, have)


FAMILY = "karpenter.k8s.aws/instance-family"


def many(count: int, **odd: str) -> Catalogue:
    """Answer a market of *count* types of one family, the dearest of which are of other families."""
    one = types()["m5.large"]
    made = []
    for number in range(count):
        name = f"m5.size{number:03}"
        family = odd.get(name.replace(".", "_"), "m5")
        own = requirements(
            (
                *(item for item in one.requirements if item.key not in (labels.INSTANCE_TYPE, FAMILY)),
                requirement(labels.INSTANCE_TYPE, "In", (name,)),
                requirement(FAMILY, "In", (family,)),
            )
        )
        offerings = tuple(
            msgspec.structs.replace(each, price_usd_per_hour=each.price_usd_per_hour * (1 + number / 1000))
            for each in one.offerings
        )
        made.append(msgspec.structs.replace(one, name=name, requirements=own, offerings=offerings))
    return Catalogue(region="us-east-1", instance_types=(), by_node_class=(("default", tuple(made)),))


def names_of(group: LaunchGroup) -> set[str]:
    return {each.instance_type for one in group.request.configs for each in one.overrides}


def test_one_request_names_sixty_types_the_cheapest() -> None:
    group = launched(claim("a"), catalogue=many(80))
    assert names_of(group) == {f"m5.size{number:03}" for number in range(MAX_TYPES)}


def test_a_list_of_types_that_is_cut_keeps_the_values_that_are_asked_for() -> None:
    some = many(80, m5_size070="c5", m5_size075="r5", m5_size079="i3")
    three = asking({}, requirement(FAMILY, "Exists", min_values=3))
    names = names_of(launched(three, catalogue=some))
    assert len(names) == MAX_TYPES
    assert {"m5.size070", "m5.size075"} <= names
    assert not {"m5.size079", "m5.size058"} & names


def test_what_one_request_cannot_name_is_insufficient_unless_best_effort_will_do() -> None:
    wide = asking({}, requirement(labels.INSTANCE_TYPE, "Exists", min_values=MAX_TYPES + 1))
    [one] = plan_launches(cluster(wide, catalogue=many(80))).unlaunchable
    assert (one.reason, one.final) == ("InsufficientCapacity", True)
    assert f"{labels.INSTANCE_TYPE} has 60 of at least 61 values" in one.message
    assert plan_launches(cluster(wide, catalogue=many(80)), Terms(best_effort=True)).launches
    notes = msgspec.structs.replace(wide.meta, annotations=((MIN_VALUES_RELAXED, "true"),))
    assert names_of(launched(msgspec.structs.replace(wide, meta=notes), catalogue=many(80)))


def test_every_type_is_named_in_some_place_before_one_is_named_in_all() -> None:
    zones = tuple(f"us-east-1{letter}" for letter in "abcdefgh")
    some = many(60)
    [(name, known)] = some.by_node_class
    wide = tuple(
        msgspec.structs.replace(
            one,
            requirements=requirements(
                (*(item for item in one.requirements if item.key != labels.ZONE), requirement(labels.ZONE, "In", zones))
            ),
            offerings=tuple(
                msgspec.structs.replace(one.offerings[0], zone=zone, zone_id="", price_usd_per_hour=0.05 + number / 100)
                for zone in zones
            ),
        )
        for number, one in enumerate(known)
    )
    subnets = tuple(Subnet(subnet_id=f"subnet-{zone}", zone=zone, zone_id="", available_ip_count=9) for zone in zones)
    group = launched(
        claim("a"),
        catalogue=msgspec.structs.replace(some, by_node_class=((name, wide),)),
        node_classes=(node_class(resolved_subnets=subnets),),
    )
    assert len(names_of(group)) == 60
    assert sum(len(one.overrides) for one in group.request.configs) == MAX_OVERRIDES


def test_a_node_has_the_hash_of_the_class_as_it_was_asked_for() -> None:
    group = launched(claim("a"), node_classes=(node_class(hashed="then"),))
    metadata, _ = told_of(group, claim("a"), node_classes=(node_class(hashed="now"),))
    assert dict(metadata.annotations) == {
        labels.INSTANCE_PROFILE: "profile",
        labels.NODECLASS_HASH: "then",
        labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE,
    }
    unhashed, _ = told_of(msgspec.structs.replace(group, node_class_hash=""), claim("a"))
    assert labels.NODECLASS_HASH not in dict(unhashed.annotations)


IN_GROUP = requirement(labels.PLACEMENT_GROUP, "In", ("pg-1",))


@pytest.mark.parametrize(
    ("error", "closed"),
    [
        (
            FleetError(code="InsufficientInstanceCapacity", message="", instance_type="m5.large", zone="us-east-1a"),
            {("spot", "m5.large", "us-east-1a", "pg-1")},
        ),
        (
            FleetError(
                code="InstanceLimitExceeded",
                message="You have reached the limit of instances in this spread placement group",
                instance_type="m5.large",
                zone="us-east-1b",
            ),
            {("", "", "us-east-1b", "pg-1")},
        ),
    ],
)
def test_what_is_refused_to_a_placement_group_is_closed_for_it_alone_and_the_rest_is_tried_at_once(
    error: FleetError, closed: set[tuple[str, str, str, str]]
) -> None:
    grouped = {"node_classes": (node_class(placement_group_selector=Selector(id="pg-1")),)}
    some = market(group=IN_GROUP)
    group = launched(claim("a"), catalogue=some, **grouped)
    answered = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", errors=(error,)))
    result = outcome(answered, cluster(claim("a"), catalogue=some, **grouped))
    assert result.left == ("a",)
    marks = [one.offering for one in result.actions if isinstance(one, MarkUnavailable)]
    assert {(one.capacity_type, one.instance_type, one.zone, one.group_id) for one in marks} == closed
    again = launched(claim("a"), catalogue=some, unavailable=tuple(marks), **grouped)
    tried = {(one.instance_type, one.zone) for config in again.request.configs for one in config.overrides}
    assert (error.instance_type, error.zone) not in tried
    elsewhere = launched(claim("a"), unavailable=tuple(marks))
    tried = {(one.instance_type, one.zone) for config in elsewhere.request.configs for one in config.overrides}
    assert (error.instance_type, error.zone) in tried
