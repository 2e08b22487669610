"""A launch that is only asked about: what to ask EC2, and what its refusals say of the node class."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from shared.launch.digest import digest
from shared.launch.images import ARCHES
from shared.launch.templates import Purchase, Shape, launch_tags, template_of, tenancy_of, with_group
from shared.launch.validation import Finding, rehearsal
from shared.model import labels
from shared.model.catalogue import InstanceType
from shared.model.ec2 import ClusterFacts, Probe, Refusal
from shared.model.nodeclasses import EC2NodeClass, ResolvedImage
from shared.model.nodepools import NodePool

REHEARSAL: Final = "rehearsal"
"""Kind of the rows in which `Rehearsal` stands, by class."""
_ANYHOW: Final = Purchase(uses_open_reservations=True)
_USUAL: Final = {"amd64": "m5.large", "arm64": "m6g.large"}
_DENIED: Final = re.compile(r"^(Unauthorized|AccessDenied|AuthFailure)")
_PERMISSION: Final = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z]+)")
_FIELDS: Final = (
    ("InvalidAMIID", "AMINotFound", "spec.amiSelectorTerms", "the image is gone, or not shared with this account"),
    ("InvalidGroup", "SecurityGroupNotFound", "spec.securityGroupSelectorTerms", "choose a group of the subnets' VPC"),
    ("InvalidSubnetID", "SubnetNotFound", "spec.subnetSelectorTerms", "choose a subnet that exists"),
    (
        "InvalidBlockDeviceMapping",
        "BlockDevicesInvalid",
        "spec.blockDeviceMappings",
        "make volumes as large as snapshots",
    ),
    ("InvalidSnapshot", "BlockDevicesInvalid", "spec.blockDeviceMappings", "choose a snapshot that exists"),
    ("InvalidPlacementGroup", "PlacementGroupNotFound", "spec.placementGroupSelector", "choose a group that exists"),
    ("InvalidUserData", "UserDataInvalid", "spec.userData", "correct it"),
    ("TagPolicyViolation", "TagValidationFailed", "spec.tags", "write the tags that your organization asks for"),
)
"""By the beginning of EC2's code: reason, field, remedy."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down of a question: what it was about, the answer, and when to ask again."""

    key: str
    refusals: tuple[Refusal, ...]
    again_at: datetime


def probe(
    node_class: EC2NodeClass,
    facts: ClusterFacts,
    types: Iterable[InstanceType] = (),
    pools: Iterable[NodePool] = (),
) -> Probe | None:
    """Answer what to ask EC2 for a class that is resolved, None if there is nothing to launch it with.

    The type is the usual one of the best image's architecture, where *types* have it or nothing is known of them,
    else the first that the image is for. It is asked for in the placement group, which *types* know where the class
    does not, and on hardware of one's own where one of *pools* wants that.

    Raises:
        ValueError: the user data cannot be made.
    """
    if not node_class.resolved_images or not node_class.resolved_subnets:
        return None
    image, some = _plainest(node_class.resolved_images), tuple(types)
    shapes = {tenancy_of(pool.requirements) for pool in pools if pool.node_class.name == node_class.name}
    shape = Shape(tenancy="dedicated" if "dedicated" in shapes else "default")
    grouped = with_group(node_class, some)
    tags = launch_tags("", node_class, facts.name)
    return Probe(
        template=template_of(grouped, image.image_id, rehearsal(facts), _ANYHOW, tags, shape),
        instance_type=_type_for(image, some),
        subnet_ids=tuple(subnet.subnet_id for subnet in node_class.resolved_subnets),
        context=node_class.context,
    )


def rehearsal_key(node_class: EC2NodeClass) -> str:
    """Answer what changes when EC2 has to be asked again: the spec, or what it selects, whatever its order."""
    return digest(
        node_class.name,
        node_class.hashed,
        node_class.kubelet_text,
        node_class.ip_prefix_count,
        node_class.resolved_profile,
        sorted(one.subnet_id for one in node_class.resolved_subnets),
        sorted(one.group_id for one in node_class.resolved_security_groups),
        sorted({one.image_id for one in node_class.resolved_images}),
    )


def rehearsal_in(body: str, node_class: EC2NodeClass) -> Rehearsal | None:
    """Read what is written down, None if it cannot be read, or is about the class as it was."""
    try:
        written = msgspec.json.decode(body, type=Rehearsal)
    except msgspec.MsgspecError:
        return None
    return written if written.key == rehearsal_key(node_class) else None


def refusal_findings(node_class: EC2NodeClass, refusals: Iterable[Refusal]) -> tuple[Finding, ...]:
    """Answer those of *refusals* that keep the class from being used: who may not, and what is not there.

    Others are of this one question only, such as a type that the zone does not have.
    """
    found = (_finding(node_class, one) for one in refusals)
    return tuple(one for one in found if one is not None)


def _finding(node_class: EC2NodeClass, one: Refusal) -> Finding | None:
    said = f"ec2:{one.action} with DryRun: {one.code}: {one.message}"
    if _DENIED.match(one.code):
        return Finding(reason=f"{one.action}AuthCheckFailed", message=f"{said}: {_right(one)}")
    if "User data is limited to" in one.message:
        return Finding(reason="UserDataSizeLimitExceeded", message=f"spec.userData: {said}: shorten it")
    if "Invalid IAM Instance Profile name" in one.message:
        field = "spec.instanceProfile" if node_class.instance_profile else "spec.role"
        why = f"{field}: there is no instance profile {node_class.resolved_profile}: make it, or name another"
        return Finding(reason="InstanceProfileNotFound", message=f"{why} ({said})")
    if "belong to different networks" in one.message:
        why = "spec.securityGroupSelectorTerms: the groups are not of the subnets' VPC: choose groups of that"
        return Finding(reason="SecurityGroupSubnetVPCMismatch", message=f"{why} ({said})")
    for start, reason, field, remedy in _FIELDS:
        if one.code.startswith(start):
            return Finding(reason=reason, message=f"{field}: {said}: {remedy}")
    return None


def _right(one: Refusal) -> str:
    named = _PERMISSION.search(one.message)
    right = named[1] if named else f"ec2:{one.action}"
    if "permissions boundary" in one.message:
        return f"let the permissions boundary of the functions' roles allow {right}"
    if "service control policy" in one.message:
        return f"ask for {right}: a service control policy of the organization forbids it"
    return f"give {right} to the functions' roles: deploy the stack as it is, or see who changed its policies"


def _plainest(images: tuple[ResolvedImage, ...]) -> ResolvedImage:
    """Answer the first image that asks for no accelerator, else the first."""
    plain = (one for one in images if not any(each.complement for each in one.requirements))
    return next(plain, images[0])


def _type_for(image: ResolvedImage, types: tuple[InstanceType, ...]) -> str:
    fitting = [one.name for one in types if not one.requirements.conflict(image.requirements)]
    arch = next((arch for arch in ARCHES.values() if image.requirements[labels.ARCH].has(arch)), "amd64")
    usual = _USUAL[arch]
    return fitting[0] if fitting and usual not in fitting else usual
