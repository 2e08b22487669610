"""The EC2 dry run of an EC2NodeClass, and the findings from its refusals."""

from typing import Any

import msgspec
import pytest

from shared.aws.ec2.dry_run import build_run_instances_call
from shared.aws.ec2.launch_template import build_launch_template_call
from shared.decide.node_class.dry_run import build_dry_run_request, build_refusal_findings
from shared.model.core import labels
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import Requirement, build_requirements, parse_requirement
from shared.model.ec2.account import PlacementGroup, SelectorTerm
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.ec2.launch_template import ConnectionTracking, NetworkInterface
from shared.model.karpenter.node_claim import NodeClassRef
from shared.model.karpenter.node_class import ResolvedImage
from shared.model.karpenter.node_pool import NodePool
from shared.store.dry_runs import compute_dry_run_key
from tests.support.launch_cases import FACTS, SUBNETS, build_types_by_name, make_node_class

GPU = "karpenter.k8s.aws/instance-gpu-count"


def make_image(name: str, arch: str, *, is_gpu: bool = False) -> ResolvedImage:
    requirements = [Requirement(key=labels.ARCH, values=frozenset((arch,)))]
    requirements += [Requirement(key=GPU, complement=True)] if is_gpu else []
    return ResolvedImage(image_id=name, requirements=build_requirements(requirements))


def test_dry_run_request_contains_all_fields_of_the_node_class() -> None:
    request = build_dry_run_request(
        make_node_class(
            network_interfaces=(NetworkInterface(),),
            connection_tracking=ConnectionTracking(udp_timeout=40),
            nested_virtualization="enabled",
            ip_prefix_count=2,
            tags=(("team", "shop"),),
            resolved_placement_group=PlacementGroup(group_id="pg-1"),
            context="c",
        ),
        FACTS,
        build_types_by_name().values(),
    )
    assert request is not None
    template = request.template
    assert (template.instance_profile, template.security_group_ids, template.ip_prefix_count) == (
        "profile",
        ("sg-1",),
        2,
    )
    assert (template.nested_virtualization, template.placement_group_id) == ("enabled", "pg-1")
    assert (request.subnet_ids, request.context) == (tuple(subnet.subnet_id for subnet in SUBNETS), "c")
    assert dict(template.tags) == {
        "team": "shop",
        "kubernetes.io/cluster/c": "owned",
        "eks:eks-cluster-name": "c",
        "karpenter.sh/nodepool": "",
        "karpenter.k8s.aws/ec2nodeclass": "default",
    }


@pytest.mark.parametrize(
    ("images", "has_types", "expected_choice"),
    [
        ((make_image("a", "amd64"),), True, ("a", "m5.large")),
        ((make_image("g", "amd64", is_gpu=True), make_image("b", "arm64")), True, ("b", "m6g.large")),
        ((make_image("b", "arm64"),), False, ("b", "m6g.large")),
        ((make_image("g", "amd64", is_gpu=True),), True, ("g", "m5.large")),
    ],
)
def test_dry_run_uses_the_least_specific_image_on_the_default_instance_type(
    *, images: tuple[ResolvedImage, ...], has_types: bool, expected_choice: tuple[str, str]
) -> None:
    request = build_dry_run_request(
        make_node_class(resolved_images=images), FACTS, build_types_by_name().values() if has_types else ()
    )
    assert request is not None
    assert (request.template.image_id, request.instance_type) == expected_choice


def test_dry_run_uses_another_instance_type_when_the_default_is_not_offered() -> None:
    sold_types = [instance_type for instance_type in build_types_by_name().values() if instance_type.name != "m5.large"]
    request = build_dry_run_request(make_node_class(resolved_images=(make_image("a", "amd64"),)), FACTS, sold_types)
    assert request is not None
    assert request.instance_type == "c5.xlarge"


@pytest.mark.parametrize("missing", ["resolved_images", "resolved_subnets"])
def test_node_class_without_resolved_images_or_subnets_gets_no_dry_run(missing: str) -> None:
    assert build_dry_run_request(make_node_class(**{missing: ()}), FACTS) is None


@pytest.mark.parametrize(
    ("changes", "asks_again"),
    [
        ({"resolved_subnets": tuple(reversed(SUBNETS))}, False),
        ({"resolved_subnets": SUBNETS[:1]}, True),
        ({"spec_hash": "other"}, True),
        ({"resolved_profile": "other"}, True),
        ({"kubelet_text": "{}"}, True),
        ({"conditions": ()}, False),
    ],
)
def test_dry_run_is_repeated_when_its_inputs_change(*, changes: dict[str, Any], asks_again: bool) -> None:
    original_class = make_node_class()
    assert (
        compute_dry_run_key(original_class) != compute_dry_run_key(msgspec.structs.replace(original_class, **changes))
    ) == asks_again


@pytest.mark.parametrize(
    ("code", "message", "reason", "words"),
    [
        (
            "UnauthorizedOperation",
            "no",
            "RunInstancesAuthCheckFailed",
            "allow ec2:RunInstances for the functions' roles",
        ),
        (
            "UnauthorizedOperation",
            "User: x is not authorized to perform: iam:PassRole on resource: y",
            "RunInstancesAuthCheckFailed",
            "allow iam:PassRole for",
        ),
        ("AccessDenied", "denied by a permissions boundary", "RunInstancesAuthCheckFailed", "the permissions boundary"),
        ("AuthFailure.X", "a service control policy", "RunInstancesAuthCheckFailed", "of the organization"),
        ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded", "shorten it"),
        ("InvalidUserData.Malformed", "odd", "UserDataInvalid", "spec.userData: "),
        (
            "InvalidParameterValue",
            "Invalid IAM Instance Profile name",
            "InstanceProfileNotFound",
            "spec.role: instance profile profile",
        ),
        (
            "InvalidParameter",
            "Security group x and subnet y belong to different networks.",
            "SecurityGroupSubnetVPCMismatch",
            "spec.securityGroupSelectorTerms",
        ),
        ("InvalidAMIID.NotFound", "gone", "AMINotFound", "spec.amiSelectorTerms"),
        ("InvalidGroup.NotFound", "gone", "SecurityGroupNotFound", "spec.securityGroupSelectorTerms"),
        ("InvalidSubnetID.NotFound", "gone", "SubnetNotFound", "spec.subnetSelectorTerms"),
        ("InvalidBlockDeviceMapping", "smaller than snapshot", "BlockDevicesInvalid", "spec.blockDeviceMappings"),
        ("InvalidSnapshot.NotFound", "gone", "BlockDevicesInvalid", "spec.blockDeviceMappings"),
        ("InvalidPlacementGroup.Unknown", "gone", "PlacementGroupNotFound", "spec.placementGroupSelector"),
        ("TagPolicyViolation", "team", "TagValidationFailed", "spec.tags"),
    ],
)
def test_dry_run_error_names_the_missing_permission_or_the_invalid_field(
    code: str, message: str, reason: str, words: str
) -> None:
    refusal = DryRunRefusal(action="RunInstances", code=code, message=message)
    [finding] = build_refusal_findings(make_node_class(role="nodes"), (refusal,))
    assert finding.reason == reason
    assert words in finding.message
    assert code in finding.message


def test_dry_run_error_names_spec_instance_profile_for_a_user_provided_profile() -> None:
    refusal = DryRunRefusal(
        action="RunInstances", code="InvalidParameterValue", message="Invalid IAM Instance Profile name"
    )
    [finding] = build_refusal_findings(make_node_class(instance_profile="own"), (refusal,))
    assert finding.message.startswith("spec.instanceProfile: ")


@pytest.mark.parametrize("code", ["Unsupported", "InsufficientInstanceCapacity", "VcpuLimitExceeded"])
def test_dry_run_capacity_and_quota_errors_do_not_block_launches(code: str) -> None:
    assert (
        build_refusal_findings(make_node_class(), (DryRunRefusal(action="RunInstances", code=code, message="x"),)) == ()
    )


def test_dry_run_uses_the_placement_group_from_the_catalog() -> None:
    group = parse_requirement("karpenter.k8s.aws/placement-group-id", "In", ("pg-1",))
    instance_types = [
        msgspec.structs.replace(instance_type, requirements=build_requirements((*instance_type.requirements, group)))
        for instance_type in build_types_by_name().values()
    ]
    request = build_dry_run_request(
        make_node_class(placement_group_selector=SelectorTerm(name="rack")), FACTS, instance_types
    )
    assert request is not None
    assert request.template.placement_group_id == "pg-1"
    call = build_run_instances_call(
        request, build_launch_template_call(request.template, "us-east-1")["LaunchTemplateData"], "subnet-a"
    )
    assert call["Placement"] == {"Tenancy": "default", "GroupId": "pg-1"}


@pytest.mark.parametrize(
    ("name", "allowed", "tenancy"),
    [
        ("default", ("dedicated",), "dedicated"),
        ("default", ("default", "dedicated"), "default"),
        ("other", ("dedicated",), "default"),
    ],
)
def test_dry_run_uses_dedicated_tenancy_when_a_node_pool_of_the_class_requires_it(
    name: str, allowed: tuple[str, ...], tenancy: str
) -> None:
    requirements = build_requirements((parse_requirement(labels.TENANCY, "In", allowed),))
    pool = NodePool(meta=ObjectMeta(name="p"), node_class=NodeClassRef(name=name), requirements=requirements)
    request = build_dry_run_request(make_node_class(), FACTS, build_types_by_name().values(), [pool])
    assert request is not None
    assert request.template.tenancy == tenancy
