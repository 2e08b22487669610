"""Dry run of a launch: the request to EC2, and the node class findings that follow from refusals."""

import re
from collections.abc import Iterable
from typing import Final

from shared.decide.launch.fleets.launch_template import (
    LaunchShape,
    PurchaseOption,
    build_launch_tags,
    build_launch_template,
    get_tenancy,
    with_placement_group,
)
from shared.decide.node_class.validation import build_sample_bootstrap
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cloud_provider.node_class_findings import NodeClassFinding
from shared.model.core import labels
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.ec2.dry_run import DryRunRefusal, DryRunRequest
from shared.model.ec2.types import KUBERNETES_ARCH_BY_EC2_ARCH
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.model.karpenter.node_pool import NodePool

_DEFAULT_PURCHASE: Final = PurchaseOption(uses_open_reservations=True)
_DEFAULT_TYPE_BY_ARCH: Final = {"amd64": "m5.large", "arm64": "m6g.large"}
_PERMISSION_DENIED_CODE: Final = re.compile(r"^(Unauthorized|AccessDenied|AuthFailure)")
_DENIED_ACTION: Final = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z]+)")
_FINDING_BY_CODE_PREFIX: Final = (
    (
        "InvalidAMIID",
        "AMINotFound",
        "spec.amiSelectorTerms",
        ("the image does not exist, or is not shared with this account"),
    ),
    (
        "InvalidGroup",
        "SecurityGroupNotFound",
        "spec.securityGroupSelectorTerms",
        ("choose a group in the VPC of the subnets"),
    ),
    ("InvalidSubnetID", "SubnetNotFound", "spec.subnetSelectorTerms", "choose a subnet that exists"),
    (
        "InvalidBlockDeviceMapping",
        "BlockDevicesInvalid",
        "spec.blockDeviceMappings",
        "make volumes at least as large as their snapshots",
    ),
    ("InvalidSnapshot", "BlockDevicesInvalid", "spec.blockDeviceMappings", "choose a snapshot that exists"),
    ("InvalidPlacementGroup", "PlacementGroupNotFound", "spec.placementGroupSelector", "choose a group that exists"),
    ("InvalidUserData", "UserDataInvalid", "spec.userData", "correct the value"),
    ("TagPolicyViolation", "TagValidationFailed", "spec.tags", "add the tags that your organization requires"),
)
"""By the prefix of EC2's code: reason, field, fix."""


def build_dry_run_request(
    node_class: EC2NodeClass,
    facts: ControlPlaneFacts,
    types: Iterable[InstanceType] = (),
    pools: Iterable[NodePool] = (),
) -> DryRunRequest | None:
    """Build the dry run request for a resolved node class; None if images or subnets are missing.

    The instance type is the default one of the best image's architecture, if *types* contains it or is empty, else the
    first type that the image supports. The request uses the placement group, which *types* name where the class does
    not, and dedicated tenancy if one of *pools* requires it.

    Raises:
        ValueError: the user data cannot be built.
    """
    if not node_class.resolved_images or not node_class.resolved_subnets:
        return None
    image, type_list = _choose_plainest_image(node_class.resolved_images), tuple(types)
    tenancies = {get_tenancy(pool.requirements) for pool in pools if pool.node_class.name == node_class.name}
    shape = LaunchShape(tenancy="dedicated" if "dedicated" in tenancies else "default")
    class_with_group = with_placement_group(node_class, type_list)
    tags = build_launch_tags("", node_class, facts.name)
    return DryRunRequest(
        template=build_launch_template(
            class_with_group, image.image_id, build_sample_bootstrap(facts), _DEFAULT_PURCHASE, tags, shape
        ),
        instance_type=_choose_instance_type(image, type_list),
        subnet_ids=tuple(subnet.subnet_id for subnet in node_class.resolved_subnets),
        context=node_class.context,
    )


def build_refusal_findings(node_class: EC2NodeClass, refusals: Iterable[DryRunRefusal]) -> tuple[NodeClassFinding, ...]:
    """Return findings for the *refusals* that make the class unusable: missing permissions and missing objects.

    Other refusals concern only this request, such as an instance type that the zone does not offer.
    """
    findings = (_build_finding(node_class, refusal) for refusal in refusals)
    return tuple(finding for finding in findings if finding is not None)


def _build_finding(node_class: EC2NodeClass, refusal: DryRunRefusal) -> NodeClassFinding | None:
    refusal_text = f"ec2:{refusal.action} with DryRun: {refusal.code}: {refusal.message}"
    if _PERMISSION_DENIED_CODE.match(refusal.code):
        return NodeClassFinding(
            reason=f"{refusal.action}AuthCheckFailed", message=f"{refusal_text}: {_explain_permission(refusal)}"
        )
    if "User data is limited to" in refusal.message:
        return NodeClassFinding(
            reason="UserDataSizeLimitExceeded", message=f"spec.userData: {refusal_text}: shorten it"
        )
    if "Invalid IAM Instance Profile name" in refusal.message:
        field = "spec.instanceProfile" if node_class.instance_profile else "spec.role"
        message = f"{field}: instance profile {node_class.resolved_profile} does not exist: create it, or name another"
        return NodeClassFinding(reason="InstanceProfileNotFound", message=f"{message} ({refusal_text})")
    if "belong to different networks" in refusal.message:
        message = (
            "spec.securityGroupSelectorTerms: the groups are not in the VPC of the subnets: choose groups in that VPC"
        )
        return NodeClassFinding(reason="SecurityGroupSubnetVPCMismatch", message=f"{message} ({refusal_text})")
    for start, reason, field, fix in _FINDING_BY_CODE_PREFIX:
        if refusal.code.startswith(start):
            return NodeClassFinding(reason=reason, message=f"{field}: {refusal_text}: {fix}")
    return None


def _explain_permission(refusal: DryRunRefusal) -> str:
    matched = _DENIED_ACTION.search(refusal.message)
    permission = matched[1] if matched else f"ec2:{refusal.action}"
    if "permissions boundary" in refusal.message:
        return f"allow {permission} in the permissions boundary of the functions' roles"
    if "service control policy" in refusal.message:
        return f"request {permission}: a service control policy of the organization denies it"
    return (
        f"allow {permission} for the functions' roles: deploy the unmodified stack, or check who changed its policies"
    )


def _choose_plainest_image(images: tuple[ResolvedImage, ...]) -> ResolvedImage:
    """Return the first image that requires no accelerator, else the first one."""
    plain = (image for image in images if not any(requirement.complement for requirement in image.requirements))
    return next(plain, images[0])


def _choose_instance_type(image: ResolvedImage, types: tuple[InstanceType, ...]) -> str:
    compatible_names = [
        instance_type.name
        for instance_type in types
        if not instance_type.requirements.find_conflict(image.requirements)
    ]
    arch = next(
        (arch for arch in KUBERNETES_ARCH_BY_EC2_ARCH.values() if image.requirements[labels.ARCH].has(arch)), "amd64"
    )
    default_type = _DEFAULT_TYPE_BY_ARCH[arch]
    return compatible_names[0] if compatible_names and default_type not in compatible_names else default_type
