"""What EC2 is asked about a class, and what its refusals say of it."""

from typing import Any

import msgspec
import pytest

from shared.aws.ec2_dry_runs import run_call
from shared.aws.ec2_templates import launch_template_call
from shared.launch.probes import probe, refusal_findings, rehearsal_key
from shared.model import labels
from shared.model.ec2 import ConnectionTracking, NetworkInterface, PlacementGroup, Refusal, Selector
from shared.model.nodeclasses import ResolvedImage
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClassRef
from shared.model.objects import Meta
from shared.model.requirements import Requirement, requirement, requirements
from tests.unit.launch_cases import FACTS, SUBNETS, node_class, types

GPU = "karpenter.k8s.aws/instance-gpu-count"


def image(name: str, arch: str, *, is_gpu: bool = False) -> ResolvedImage:
    wanted = [Requirement(key=labels.ARCH, values=frozenset((arch,)))]
    wanted += [Requirement(key=GPU, complement=True)] if is_gpu else []
    return ResolvedImage(image_id=name, requirements=requirements(wanted))


def test_the_question_says_all_that_the_class_says() -> None:
    asked = probe(
        node_class(
            network_interfaces=(NetworkInterface(),),
            connection_tracking=ConnectionTracking(udp_timeout=40),
            nested_virtualization="enabled",
            ip_prefix_count=2,
            tags=(("team", "shop"),),
            resolved_placement_group=PlacementGroup(group_id="pg-1"),
            context="c",
        ),
        FACTS,
        types().values(),
    )
    assert asked is not None
    template = asked.template
    assert (template.instance_profile, template.security_group_ids, template.ip_prefix_count) == (
        "profile",
        ("sg-1",),
        2,
    )
    assert (template.nested_virtualization, template.placement_group_id) == ("enabled", "pg-1")
    assert (asked.subnet_ids, asked.context) == (tuple(one.subnet_id for one in SUBNETS), "c")
    assert dict(template.tags) == {
        "team": "shop",
        "kubernetes.io/cluster/c": "owned",
        "eks:eks-cluster-name": "c",
        "karpenter.sh/nodepool": "",
        "karpenter.k8s.aws/ec2nodeclass": "default",
    }


@pytest.mark.parametrize(
    ("images", "known", "chosen"),
    [
        ((image("a", "amd64"),), True, ("a", "m5.large")),
        ((image("g", "amd64", is_gpu=True), image("b", "arm64")), True, ("b", "m6g.large")),
        ((image("b", "arm64"),), False, ("b", "m6g.large")),
        ((image("g", "amd64", is_gpu=True),), True, ("g", "m5.large")),
    ],
)
def test_the_plainest_image_is_tried_on_the_usual_type(
    *, images: tuple[ResolvedImage, ...], known: bool, chosen: tuple[str, str]
) -> None:
    asked = probe(node_class(resolved_images=images), FACTS, types().values() if known else ())
    assert asked is not None
    assert (asked.template.image_id, asked.instance_type) == chosen


def test_where_the_usual_type_is_not_sold_another_is_tried() -> None:
    sold = [one for one in types().values() if one.name != "m5.large"]
    asked = probe(node_class(resolved_images=(image("a", "amd64"),)), FACTS, sold)
    assert asked is not None
    assert asked.instance_type == "c5.xlarge"


@pytest.mark.parametrize("missing", ["resolved_images", "resolved_subnets"])
def test_there_is_nothing_to_ask_about_a_class_that_found_nothing(missing: str) -> None:
    assert probe(node_class(**{missing: ()}), FACTS) is None


@pytest.mark.parametrize(
    ("changes", "asks_again"),
    [
        ({"resolved_subnets": tuple(reversed(SUBNETS))}, False),
        ({"resolved_subnets": SUBNETS[:1]}, True),
        ({"hashed": "other"}, True),
        ({"resolved_profile": "other"}, True),
        ({"kubelet_text": "{}"}, True),
        ({"conditions": ()}, False),
    ],
)
def test_ec2_is_asked_again_when_what_was_asked_about_has_changed(*, changes: dict[str, Any], asks_again: bool) -> None:
    one = node_class()
    assert (rehearsal_key(one) != rehearsal_key(msgspec.structs.replace(one, **changes))) == asks_again


@pytest.mark.parametrize(
    ("code", "message", "reason", "words"),
    [
        ("UnauthorizedOperation", "no", "RunInstancesAuthCheckFailed", "give ec2:RunInstances to the functions' roles"),
        (
            "UnauthorizedOperation",
            "User: x is not authorized to perform: iam:PassRole on resource: y",
            "RunInstancesAuthCheckFailed",
            "give iam:PassRole to",
        ),
        ("AccessDenied", "denied by a permissions boundary", "RunInstancesAuthCheckFailed", "the permissions boundary"),
        ("AuthFailure.X", "a service control policy", "RunInstancesAuthCheckFailed", "of the organization"),
        ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded", "shorten it"),
        ("InvalidUserData.Malformed", "odd", "UserDataInvalid", "spec.userData: "),
        (
            "InvalidParameterValue",
            "Invalid IAM Instance Profile name",
            "InstanceProfileNotFound",
            "spec.role: there is no instance profile profile",
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
def test_a_refusal_names_the_permission_or_the_field(code: str, message: str, reason: str, words: str) -> None:
    refusal = Refusal(action="RunInstances", code=code, message=message)
    [one] = refusal_findings(node_class(role="nodes"), (refusal,))
    assert one.reason == reason
    assert words in one.message
    assert code in one.message


def test_a_profile_of_the_classes_own_is_named_as_such() -> None:
    refusal = Refusal(action="RunInstances", code="InvalidParameterValue", message="Invalid IAM Instance Profile name")
    [one] = refusal_findings(node_class(instance_profile="own"), (refusal,))
    assert one.message.startswith("spec.instanceProfile: ")


@pytest.mark.parametrize("code", ["Unsupported", "InsufficientInstanceCapacity", "VcpuLimitExceeded"])
def test_what_is_of_this_one_question_only_keeps_nobody_from_launching(code: str) -> None:
    assert refusal_findings(node_class(), (Refusal(action="RunInstances", code=code, message="x"),)) == ()


def test_the_placement_group_that_only_the_catalogue_knows_is_asked_about() -> None:
    group = requirement("karpenter.k8s.aws/placement-group-id", "In", ("pg-1",))
    some = [
        msgspec.structs.replace(one, requirements=requirements((*one.requirements, group))) for one in types().values()
    ]
    asked = probe(node_class(placement_group_selector=Selector(name="rack")), FACTS, some)
    assert asked is not None
    assert asked.template.placement_group_id == "pg-1"
    call = run_call(asked, launch_template_call(asked.template, "us-east-1")["LaunchTemplateData"], "subnet-a")
    assert call["Placement"] == {"Tenancy": "default", "GroupId": "pg-1"}


@pytest.mark.parametrize(
    ("name", "allowed", "tenancy"),
    [
        ("default", ("dedicated",), "dedicated"),
        ("default", ("default", "dedicated"), "default"),
        ("other", ("dedicated",), "default"),
    ],
)
def test_hardware_of_ones_own_is_asked_about_where_a_pool_of_the_class_wants_it(
    name: str, allowed: tuple[str, ...], tenancy: str
) -> None:
    wanted = requirements((requirement(labels.TENANCY, "In", allowed),))
    pool = NodePool(meta=Meta(name="p"), node_class=NodeClassRef(name=name), requirements=wanted)
    asked = probe(node_class(), FACTS, types().values(), [pool])
    assert asked is not None
    assert asked.template.tenancy == tenancy
