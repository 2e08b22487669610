"""Launch templates: reused by content, deleted when unused; and how few requests many claims need."""

import json
from typing import Any

import msgspec
import pytest

from shared.decide.launch.fleets.fleet_errors import get_failure_fix, get_failure_reason
from shared.decide.launch.fleets.fleet_request import MAX_OVERRIDES_PER_REQUEST, MAX_TYPES_PER_REQUEST
from shared.decide.launch.fleets.fleet_result import plan_fleet_outcome
from shared.decide.launch.fleets.launch_planning import MAX_CLAIMS_PER_GROUP, LaunchPolicy
from shared.decide.launch.fleets.launch_template import (
    ENCLAVES_RESOURCE,
    UNUSED_TEMPLATE_TTL,
    plan_template_deletions,
)
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core import labels
from shared.model.core.labels import MIN_VALUES_RELAXED
from shared.model.core.requirements import Requirement, build_requirements, parse_requirement
from shared.model.core.resources import EFA, build_resources, parse_resources
from shared.model.decisions.action import MarkUnavailable, PatchMetadata, PatchStatus
from shared.model.ec2.account import SelectorTerm, Subnet
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetResult
from shared.model.ec2.launch_template import LaunchTemplate, NetworkInterface
from shared.model.karpenter.node_claim import NodeClaim
from sim.world.memory_ports import MAX_ITEM_BYTES
from tests.support.launch_cases import (
    NOW,
    build_types_by_name,
    get_time_after,
    make_claim,
    make_cluster,
    make_node_class,
)
from tests.support.snapshot_decisions import plan_launches

OURS = (("eks:eks-cluster-name", "c"),)
AGE = int(UNUSED_TEMPLATE_TTL.total_seconds())


def make_template(name: str = "joiner/c/1", tags: tuple[tuple[str, str], ...] = OURS, age: int = 600) -> LaunchTemplate:
    return LaunchTemplate(name=name, image_id="", user_data="", tags=tags, created_at=get_time_after(-age))


def build_group_using(template: LaunchTemplate, *, age: int, has_result: bool) -> LaunchGroup:
    [launch] = plan_launches(make_cluster(make_claim("a"))).launches
    result = FleetResult(fleet_id="f") if has_result else None
    return msgspec.structs.replace(launch.group, templates=(template,), created_at=get_time_after(-age), result=result)


@pytest.mark.parametrize(
    ("template", "groups", "is_deleted"),
    [
        (make_template(), (), True),
        (make_template(age=AGE), (), False),
        (make_template(age=AGE + 1), (), True),
        (make_template(), (build_group_using(make_template(), age=AGE, has_result=True),), False),
        (make_template(), (build_group_using(make_template(), age=AGE + 1, has_result=True),), True),
        (make_template(), (build_group_using(make_template(), age=3600, has_result=False),), False),
        (make_template("karpenter.k8s.aws/1"), (), False),
        (make_template("joiner/other/1"), (), False),
        (make_template(tags=()), (), False),
        (make_template(tags=(("eks:eks-cluster-name", "other"),)), (), False),
        (msgspec.structs.replace(make_template(), created_at=None), (), False),
    ],
    ids=[
        "old and unused",
        "new",
        "just older than the TTL",
        "used recently",
        "not used recently",
        "used by a launch without a result",
        "of Karpenter",
        "of another cluster by name",
        "without the cluster tag",
        "of another cluster by tag",
        "unknown age",
    ],
)
def test_launch_template_is_deleted_only_when_old_unused_and_owned_by_the_cluster(
    template: LaunchTemplate,
    groups: tuple[LaunchGroup, ...],
    is_deleted: bool,  # noqa: FBT001
) -> None:
    assert [action.name for action in plan_template_deletions([template], groups, "c", NOW)] == (
        [template.name] if is_deleted else []
    )


def test_launch_templates_of_a_deleted_node_class_are_deleted_immediately() -> None:
    leaves, stays = (make_template(f"joiner/c/{name}", (*OURS, (labels.NODECLASS, name)), age=1) for name in ("a", "b"))
    deletions = plan_template_deletions([leaves, stays], (), "c", NOW, deleted_classes={"a"})
    assert [deletion.name for deletion in deletions] == [leaves.name]


def test_launch_template_name_depends_only_on_its_content() -> None:
    names = {
        template.name
        for snapshot in (make_cluster(make_claim("a")), make_cluster(make_claim("b"), taken_at=get_time_after(60)))
        for launch in plan_launches(snapshot).launches
        for template in launch.group.templates
    }
    changed_launch = plan_launches(
        make_cluster(make_claim("a"), node_classes=(make_node_class(detailed_monitoring=True),))
    ).launches[0]
    assert len(names) == len(plan_launches(make_cluster(make_claim("a"))).launches[0].group.templates)
    assert names.isdisjoint(template.name for template in changed_launch.group.templates)


def test_thousand_equal_node_claims_need_two_fleet_requests_below_the_item_size_limit() -> None:
    launches = plan_launches(make_cluster(*(make_claim(f"default-{number:05}") for number in range(1000)))).launches
    assert [launch.group.request.capacity for launch in launches] == [MAX_CLAIMS_PER_GROUP, MAX_CLAIMS_PER_GROUP]
    assert len({launch.group.request.client_token for launch in launches}) == 2
    assert max(len(msgspec.json.encode(launch.group)) for launch in launches) < MAX_ITEM_BYTES / 2


def test_fleet_request_context_is_omitted_when_min_values_were_relaxed() -> None:
    classes = (make_node_class(context="ctx"),)
    relaxed = make_claim("a")
    notes = ((MIN_VALUES_RELAXED, "true"),)
    relaxed = msgspec.structs.replace(relaxed, meta=msgspec.structs.replace(relaxed.meta, annotations=notes))
    requests = [
        plan_launches(make_cluster(node_claim, node_classes=classes)).launches[0].group.request
        for node_claim in (make_claim("a"), relaxed)
    ]
    assert [request.context for request in requests] == ["ctx", ""]


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
def test_launch_failure_reason_is_derived_from_the_ec2_error(words: str, reason: str) -> None:
    assert get_failure_reason(words) == reason


def test_internal_error_has_no_fix() -> None:
    assert get_failure_fix("InternalError") == ""


def make_efa_type(name: str, efa: int) -> InstanceType:
    """Return a type of the market with *efa* EFA interfaces."""
    instance_type = build_types_by_name()[name]
    return msgspec.structs.replace(
        instance_type, capacity=build_resources(dict(instance_type.capacity.amounts) | {EFA: efa})
    )


def build_market(*changed: InstanceType, **labels_of_all: Requirement) -> Catalog:
    types_by_name = build_types_by_name() | {instance_type.name: instance_type for instance_type in changed}
    common_requirements = tuple(labels_of_all.values())
    instance_types = tuple(
        msgspec.structs.replace(
            instance_type, requirements=instance_type.requirements & build_requirements(common_requirements)
        )
        for _, instance_type in sorted(types_by_name.items())
    )
    return Catalog(region="us-east-1", instance_types=(), by_node_class=(("default", instance_types),))


def make_requesting_claim(requests: dict[str, str], *extra_requirements: Requirement) -> NodeClaim:
    node_claim = make_claim("a")
    requirements = build_requirements((*node_claim.requirements, *extra_requirements))
    return msgspec.structs.replace(
        node_claim, requests=node_claim.requests + parse_resources(requests), requirements=requirements
    )


def launch_claim(node_claim: NodeClaim, **fields: Any) -> LaunchGroup:
    [launch] = plan_launches(make_cluster(node_claim, **fields)).launches
    return launch.group


def list_types_by_template(group: LaunchGroup) -> dict[LaunchTemplate, set[str]]:
    types_by_template_name = {
        config.launch_template_name: {override.instance_type for override in config.overrides}
        for config in group.request.configs
    }
    return {template: types_by_template_name[template.name] for template in group.templates}


def test_efa_interfaces_are_requested_only_for_pods_that_need_them_per_instance_type() -> None:
    catalog = build_market(make_efa_type("m5.large", 1), make_efa_type("m5.xlarge", 4), make_efa_type("c5.xlarge", 4))
    plain = list_types_by_template(launch_claim(make_requesting_claim({}), catalog=catalog))
    assert {template.efa_interfaces for template in plain} == {0}
    efa_types = list_types_by_template(launch_claim(make_requesting_claim({EFA: "1"}), catalog=catalog))
    assert {template.efa_interfaces: names for template, names in efa_types.items()} == {
        1: {"m5.large"},
        4: {"m5.xlarge", "c5.xlarge"},
    }


def test_network_interfaces_of_the_node_class_override_efa_requests_of_pods() -> None:
    node_class = make_node_class(
        network_interfaces=(NetworkInterface(), NetworkInterface(device_index=1, interface_type="efa-only"))
    )
    group = launch_claim(
        make_requesting_claim({EFA: "1"}),
        catalog=build_market(make_efa_type("m5.large", 1)),
        node_classes=(node_class,),
    )
    assert [(template.efa_interfaces, len(template.network_interfaces)) for template in group.templates] == [(0, 2)]


def test_nitro_enclaves_are_enabled_for_pods_that_request_them() -> None:
    catalog = build_market(
        *(with_more_capacity(instance_type, {ENCLAVES_RESOURCE: 1}) for instance_type in build_types_by_name().values())
    )
    assert {template.enclaves for template in launch_claim(make_requesting_claim({}), catalog=catalog).templates} == {
        False
    }
    assert {
        template.enclaves
        for template in launch_claim(make_requesting_claim({ENCLAVES_RESOURCE: "1"}), catalog=catalog).templates
    } == {True}


def with_more_capacity(instance_type: InstanceType, amounts: dict[str, int]) -> InstanceType:
    return msgspec.structs.replace(
        instance_type, capacity=build_resources(dict(instance_type.capacity.amounts) | amounts)
    )


@pytest.mark.parametrize(
    ("allowed", "expected_tenancy"),
    [((), "default"), (("default", "dedicated"), "default"), (("dedicated",), "dedicated")],
)
def test_dedicated_tenancy_is_used_only_when_required(allowed: tuple[str, ...], expected_tenancy: str) -> None:
    requirements = [parse_requirement(labels.TENANCY, "In", allowed)] if allowed else []
    assert {template.tenancy for template in launch_claim(make_requesting_claim({}, *requirements)).templates} == {
        expected_tenancy
    }


@pytest.mark.parametrize(("allowed", "expected_partition"), [((), None), (("10", "2"), 2), (("7",), 7)])
def test_placement_group_partition_is_set_when_the_node_claim_requires_it(
    allowed: tuple[str, ...], expected_partition: int | None
) -> None:
    catalog = build_market(
        group=parse_requirement("karpenter.k8s.aws/placement-group-id", "In", ("pg-1",)),
        partition=parse_requirement(labels.PARTITION, "In", tuple(str(number) for number in range(1, 13))),
    )
    node_class = make_node_class(placement_group_selector=SelectorTerm(id="pg-1"))
    requirements = [parse_requirement(labels.PARTITION, "In", allowed)] if allowed else []
    group = launch_claim(make_requesting_claim({}, *requirements), catalog=catalog, node_classes=(node_class,))
    assert {(template.placement_group_id, template.partition_number) for template in group.templates} == {
        ("pg-1", expected_partition)
    }
    metadata, _ = plan_claim_patches(group, make_requesting_claim({}, *requirements), catalog=catalog)
    assert dict(metadata.labels).get(labels.PARTITION) == (
        None if expected_partition is None else str(expected_partition)
    )
    assert dict(metadata.labels)[labels.TENANCY] == "default"


def plan_claim_patches(
    group: LaunchGroup, node_claim: NodeClaim, **fields: Any
) -> tuple[PatchMetadata, dict[str, Any]]:
    """Return the patches of a claim that got the group's first offering."""
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
    launched_group = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=(instance,)))
    metadata, status = plan_fleet_outcome(launched_group, make_cluster(node_claim, **fields)).actions
    assert isinstance(metadata, PatchMetadata)
    assert isinstance(status, PatchStatus)
    return metadata, json.loads(status.status)


def test_node_claim_status_reports_efa_capacity_only_when_requested() -> None:
    catalog = build_market(*(make_efa_type(name, 1) for name in build_types_by_name()))
    for node_claim, have in ((make_requesting_claim({}), None), (make_requesting_claim({EFA: "1"}), "1")):
        _, status = plan_claim_patches(launch_claim(node_claim, catalog=catalog), node_claim, catalog=catalog)
        assert (status["capacity"].get(EFA), status["allocatable"].get(EFA)) == (have, have)


FAMILY = "karpenter.k8s.aws/instance-family"


def build_catalog_of_sizes(count: int, **odd: str) -> Catalog:
    """Build a catalog of *count* types of one family, except the types that *odd* puts into other families."""
    base_type = build_types_by_name()["m5.large"]
    instance_types = []
    for number in range(count):
        name = f"m5.size{number:03}"
        family = odd.get(name.replace(".", "_"), "m5")
        requirements = build_requirements(
            (
                *(item for item in base_type.requirements if item.key not in (labels.INSTANCE_TYPE, FAMILY)),
                parse_requirement(labels.INSTANCE_TYPE, "In", (name,)),
                parse_requirement(FAMILY, "In", (family,)),
            )
        )
        offerings = tuple(
            msgspec.structs.replace(offering, price_usd_per_hour=offering.price_usd_per_hour * (1 + number / 1000))
            for offering in base_type.offerings
        )
        instance_types.append(
            msgspec.structs.replace(base_type, name=name, requirements=requirements, offerings=offerings)
        )
    return Catalog(region="us-east-1", instance_types=(), by_node_class=(("default", tuple(instance_types)),))


def list_type_names(group: LaunchGroup) -> set[str]:
    return {override.instance_type for config in group.request.configs for override in config.overrides}


def test_fleet_request_lists_the_cheapest_60_instance_types() -> None:
    group = launch_claim(make_claim("a"), catalog=build_catalog_of_sizes(80))
    assert list_type_names(group) == {f"m5.size{number:03}" for number in range(MAX_TYPES_PER_REQUEST)}


def test_truncated_instance_type_list_keeps_the_min_values() -> None:
    catalog = build_catalog_of_sizes(80, m5_size070="c5", m5_size075="r5", m5_size079="i3")
    three = make_requesting_claim({}, parse_requirement(FAMILY, "Exists", min_values=3))
    names = list_type_names(launch_claim(three, catalog=catalog))
    assert len(names) == MAX_TYPES_PER_REQUEST
    assert {"m5.size070", "m5.size075"} <= names
    assert not {"m5.size079", "m5.size058"} & names


def test_min_values_above_the_request_limit_are_insufficient_capacity_unless_best_effort() -> None:
    wide = make_requesting_claim(
        {}, parse_requirement(labels.INSTANCE_TYPE, "Exists", min_values=MAX_TYPES_PER_REQUEST + 1)
    )
    [unlaunchable_claim] = plan_launches(make_cluster(wide, catalog=build_catalog_of_sizes(80))).unlaunchable
    assert (unlaunchable_claim.reason, unlaunchable_claim.final) == ("InsufficientCapacity", True)
    assert f"{labels.INSTANCE_TYPE} has 60 of 61 required values" in unlaunchable_claim.message
    assert plan_launches(
        make_cluster(wide, catalog=build_catalog_of_sizes(80)), LaunchPolicy(best_effort=True)
    ).launches
    notes = msgspec.structs.replace(wide.meta, annotations=((MIN_VALUES_RELAXED, "true"),))
    assert list_type_names(launch_claim(msgspec.structs.replace(wide, meta=notes), catalog=build_catalog_of_sizes(80)))


def test_every_instance_type_is_listed_at_least_once_before_zones_are_added() -> None:
    zones = tuple(f"us-east-1{letter}" for letter in "abcdefgh")
    catalog = build_catalog_of_sizes(60)
    [(name, instance_types)] = catalog.by_node_class
    wide = tuple(
        msgspec.structs.replace(
            instance_type,
            requirements=build_requirements(
                (
                    *(item for item in instance_type.requirements if item.key != labels.ZONE),
                    parse_requirement(labels.ZONE, "In", zones),
                )
            ),
            offerings=tuple(
                msgspec.structs.replace(
                    instance_type.offerings[0], zone=zone, zone_id="", price_usd_per_hour=0.05 + number / 100
                )
                for zone in zones
            ),
        )
        for number, instance_type in enumerate(instance_types)
    )
    subnets = tuple(Subnet(subnet_id=f"subnet-{zone}", zone=zone, zone_id="", available_ip_count=9) for zone in zones)
    group = launch_claim(
        make_claim("a"),
        catalog=msgspec.structs.replace(catalog, by_node_class=((name, wide),)),
        node_classes=(make_node_class(resolved_subnets=subnets),),
    )
    assert len(list_type_names(group)) == 60
    assert sum(len(config.overrides) for config in group.request.configs) == MAX_OVERRIDES_PER_REQUEST


def test_node_claim_gets_the_node_class_hash_at_request_time() -> None:
    group = launch_claim(make_claim("a"), node_classes=(make_node_class(spec_hash="then"),))
    metadata, _ = plan_claim_patches(group, make_claim("a"), node_classes=(make_node_class(spec_hash="now"),))
    assert dict(metadata.annotations) == {
        labels.INSTANCE_PROFILE: "profile",
        labels.NODECLASS_HASH: "then",
        labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE,
    }
    unhashed, _ = plan_claim_patches(msgspec.structs.replace(group, node_class_hash=""), make_claim("a"))
    assert labels.NODECLASS_HASH not in dict(unhashed.annotations)


IN_GROUP = parse_requirement(labels.PLACEMENT_GROUP, "In", ("pg-1",))


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
def test_placement_group_error_marks_the_offering_unavailable_only_for_that_group(
    error: FleetError, closed: set[tuple[str, str, str, str]]
) -> None:
    grouped = {"node_classes": (make_node_class(placement_group_selector=SelectorTerm(id="pg-1")),)}
    catalog = build_market(group=IN_GROUP)
    group = launch_claim(make_claim("a"), catalog=catalog, **grouped)
    failed_group = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", errors=(error,)))
    result = plan_fleet_outcome(failed_group, make_cluster(make_claim("a"), catalog=catalog, **grouped))
    assert result.unserved_claims == ("a",)
    marks = [action.offering for action in result.actions if isinstance(action, MarkUnavailable)]
    assert {
        (offering.capacity_type, offering.instance_type, offering.zone, offering.group_id) for offering in marks
    } == closed
    retry = launch_claim(make_claim("a"), catalog=catalog, unavailable=tuple(marks), **grouped)
    tried_offerings = {
        (override.instance_type, override.zone) for config in retry.request.configs for override in config.overrides
    }
    assert (error.instance_type, error.zone) not in tried_offerings
    elsewhere = launch_claim(make_claim("a"), unavailable=tuple(marks))
    tried_offerings = {
        (override.instance_type, override.zone) for config in elsewhere.request.configs for override in config.overrides
    }
    assert (error.instance_type, error.zone) in tried_offerings
