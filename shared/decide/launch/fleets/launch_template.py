"""Launch templates: one for each combination of settings that the types of a launch need."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.decide.launch.ami_families.bootstrap import Bootstrap, is_ipv6
from shared.decide.launch.ami_families.user_data import build_user_data, encode_user_data
from shared.decide.launch.fleets.offerings import LaunchOffering, get_capacity_type, get_reservation_type
from shared.decide.launch.kubelet.resource_expressions import with_reserved
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core import labels
from shared.model.core.digest import compute_digest
from shared.model.core.metadata import Pairs
from shared.model.core.requirements import Requirements
from shared.model.core.resources import EFA, PODS
from shared.model.decisions.action import DeleteLaunchTemplate
from shared.model.ec2.account import ControlPlaneFacts, PlacementGroup
from shared.model.ec2.instance import CLUSTER_TAG
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType, ReservationType, Tags, Tenancy
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass

TEMPLATE_NAME_PREFIX: Final = "joiner"
"""Prefix of the names of Joiner's launch templates; the cluster name follows."""
ENCLAVES_RESOURCE: Final = "eks.amazonaws.com/nitro-sandbox"
"""Pods that request this resource may run Nitro Enclaves."""
UNUSED_TEMPLATE_TTL: Final = timedelta(minutes=1)
"""How long a launch template is kept after its last launch."""


class FittedTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A launch template and the offerings that it is for."""

    template: LaunchTemplate
    launch_offerings: tuple[LaunchOffering, ...]


class LaunchShape(msgspec.Struct, frozen=True, kw_only=True):
    """Instance settings that pods require, in addition to capacity."""

    efa_interfaces: int = 0
    enclaves: bool = False
    tenancy: Tenancy = "default"
    partition_number: int | None = None


class PurchaseOption(msgspec.Struct, frozen=True, kw_only=True):
    """How instances are paid for, as far as a launch template determines it."""

    capacity_type: CapacityType = "on-demand"
    reservation_id: str = ""
    reservation_type: ReservationType = ""
    uses_open_reservations: bool = False


class UserDataInput(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that the types of one launch template have in common."""

    image_id: str
    max_pods: int
    kube_reserved: Pairs
    system_reserved: Pairs
    shape: LaunchShape
    purchase: PurchaseOption


_DEFAULT_SHAPE: Final = LaunchShape()


def build_fitted_templates(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    launch_offerings: Iterable[LaunchOffering],
    facts: ControlPlaneFacts,
    *,
    uses_open_reservations: bool = False,
) -> tuple[FittedTemplate, ...]:
    """Group *launch_offerings* by all template settings, in their order; types without an image are skipped.

    Raises:
        ValueError: the user data of the node class cannot be built.
    """
    offers_by_input: dict[UserDataInput, list[LaunchOffering]] = {}
    launch_offerings = tuple(launch_offerings)
    node_class = with_placement_group(node_class, (offer.instance_type for offer in launch_offerings))
    for offer in launch_offerings:
        image_id = find_image_id(node_class, offer.instance_type.requirements)
        if image_id:
            template_input = _build_template_input(
                claim, node_class, offer, image_id, uses_open_reservations=uses_open_reservations
            )
            offers_by_input.setdefault(template_input, []).append(offer)
    return tuple(
        FittedTemplate(
            template=_build_claim_template(claim, node_class, template_input, facts),
            launch_offerings=tuple(input_offers),
        )
        for template_input, input_offers in offers_by_input.items()
    )


def plan_template_deletions(
    existing_templates: Iterable[LaunchTemplate],
    groups: Iterable[LaunchGroup],
    cluster: str,
    now: datetime,
    deleted_classes: Collection[str] = (),
) -> tuple[DeleteLaunchTemplate, ...]:
    """Return the deletions of Joiner's launch templates that no open launch and no recent launch uses.

    Joiner's templates are identified by name and tag. Templates of node classes in *deleted_classes*, which no launch
    uses any more, are deleted at once. Templates that other tools created with the cluster's tag, such as Karpenter's
    in an adopted cluster, are kept.
    """
    last_use_by_name: dict[str, datetime] = {}
    for group in groups:
        for template in group.templates:
            used_at = group.created_at if group.result is not None else now
            last_use_by_name[template.name] = max(used_at, last_use_by_name.get(template.name, used_at))
    return tuple(
        DeleteLaunchTemplate(name=template.name, message="not used by recent launches")
        for template in sorted(existing_templates, key=lambda template: template.name)
        if template.name.startswith(f"{TEMPLATE_NAME_PREFIX}/{cluster}/")
        and dict(template.tags).get(CLUSTER_TAG) == cluster
        and template.created_at is not None
        and (
            dict(template.tags).get(labels.NODECLASS) in deleted_classes
            or now - max(template.created_at, last_use_by_name.get(template.name, template.created_at))
            > UNUSED_TEMPLATE_TTL
        )
    )


def find_image_id(node_class: EC2NodeClass, type_requirements: Requirements) -> str:
    """Return the first image of status.amis that supports *type_requirements*, "" if there is none."""
    return next(
        (
            image.image_id
            for image in node_class.resolved_images
            if not type_requirements.find_conflict(image.requirements)
        ),
        "",
    )


def build_launch_tags(pool: str, node_class: EC2NodeClass, cluster: str) -> Tags:
    """Return the tags of all objects that a launch creates: the user's, and those of Joiner, which take precedence.

    *pool* is the name of the NodePool.
    """
    joiner_tags = {
        f"kubernetes.io/cluster/{cluster}": "owned",
        CLUSTER_TAG: cluster,
        labels.NODEPOOL: pool,
        labels.NODECLASS: node_class.name,
    }
    return tuple(sorted((dict(node_class.tags) | joiner_tags).items()))


def with_placement_group(node_class: EC2NodeClass, types: Iterable[InstanceType]) -> EC2NodeClass:
    """Return *node_class* with its placement group, which no status can store: the catalog's *types* name it."""
    if node_class.placement_group_selector is None or node_class.resolved_placement_group is not None:
        return node_class
    ids = sorted({instance_type.group_id for instance_type in types} - {""})
    group = PlacementGroup(group_id=ids[0]) if ids else None
    return msgspec.structs.replace(node_class, resolved_placement_group=group)


def has_efa(template: LaunchTemplate) -> bool:
    """Return whether instances of *template* have an EFA interface."""
    return template.efa_interfaces > 0 or any(
        interface.interface_type == "efa-only" for interface in template.network_interfaces
    )


def get_tenancy(requirements: Requirements) -> Tenancy:
    """Return the tenancy: default (shared hardware) if *requirements* allow it, else dedicated."""
    tenancy = requirements[labels.TENANCY]
    return "dedicated" if tenancy.has("dedicated") and not tenancy.has("default") else "default"


def _build_template_input(
    claim: NodeClaim, node_class: EC2NodeClass, offer: LaunchOffering, image_id: str, *, uses_open_reservations: bool
) -> UserDataInput:
    instance_type = offer.instance_type
    needs_efa = claim.requests[EFA] and not node_class.network_interfaces
    return UserDataInput(
        image_id=image_id,
        max_pods=instance_type.capacity[PODS],
        kube_reserved=instance_type.kube_reserved,
        system_reserved=instance_type.system_reserved,
        shape=LaunchShape(
            efa_interfaces=instance_type.capacity[EFA] if needs_efa else 0,
            enclaves=bool(claim.requests[ENCLAVES_RESOURCE]),
            tenancy=get_tenancy(claim.requirements),
            partition_number=_choose_partition(claim.requirements, instance_type.requirements),
        ),
        purchase=_build_purchase(offer, uses_open_reservations=uses_open_reservations),
    )


def _choose_partition(claim_requirements: Requirements, type_requirements: Requirements) -> int | None:
    """Return the first partition that the claim allows; None if it allows all, because EC2 spreads instances better."""
    if claim_requirements[labels.PARTITION].complement:
        return None
    return min(
        (
            int(partition)
            for partition in (claim_requirements[labels.PARTITION] & type_requirements[labels.PARTITION]).values
        ),
        default=None,
    )


def _build_purchase(offer: LaunchOffering, *, uses_open_reservations: bool) -> PurchaseOption:
    offering = offer.offering
    capacity_type = get_capacity_type((offer,))
    if capacity_type != "reserved":
        return PurchaseOption(capacity_type=capacity_type, uses_open_reservations=uses_open_reservations)
    return PurchaseOption(
        capacity_type=capacity_type,
        reservation_id=offering.reservation_id,
        reservation_type=get_reservation_type(offering),
    )


def _build_claim_template(
    claim: NodeClaim, node_class: EC2NodeClass, template_input: UserDataInput, facts: ControlPlaneFacts
) -> LaunchTemplate:
    node_labels = dict(claim.meta.labels) | {labels.CAPACITY_TYPE: template_input.purchase.capacity_type}
    bootstrap = Bootstrap(
        facts=facts,
        labels=tuple(sorted(node_labels.items())),
        taints=(*claim.taints, *claim.startup_taints),
        max_pods=template_input.max_pods,
    )
    tags = build_launch_tags(claim.meta.get_label(labels.NODEPOOL), node_class, facts.name)
    resolved_class = with_reserved(node_class, template_input.kube_reserved, template_input.system_reserved)
    return build_launch_template(
        resolved_class, template_input.image_id, bootstrap, template_input.purchase, tags, template_input.shape
    )


def build_launch_template(
    node_class: EC2NodeClass,
    image_id: str,
    bootstrap: Bootstrap,
    purchase: PurchaseOption,
    tags: Tags,
    shape: LaunchShape = _DEFAULT_SHAPE,
) -> LaunchTemplate:
    """Build the launch template with all settings of *node_class*; its name is derived from its content.

    Raises:
        ValueError: the user data of the node class cannot be built.
    """
    family = AMI_FAMILIES.get(node_class.ami_family, AMI_FAMILIES["Custom"])
    placement_group = node_class.resolved_placement_group
    unnamed = LaunchTemplate(
        name="",
        image_id=image_id,
        user_data=encode_user_data(build_user_data(node_class, bootstrap)),
        instance_profile=node_class.resolved_profile,
        security_group_ids=tuple(group.group_id for group in node_class.resolved_security_groups),
        block_devices=node_class.block_devices or family.default_devices,
        detailed_monitoring=node_class.detailed_monitoring,
        http_endpoint=node_class.http_endpoint,
        http_protocol_ipv6=node_class.http_protocol_ipv6,
        http_put_response_hop_limit=node_class.http_put_response_hop_limit,
        http_tokens=node_class.http_tokens,
        associate_public_ip_address=node_class.associate_public_ip_address,
        ip_prefix_count=node_class.ip_prefix_count,
        is_ipv6=is_ipv6(bootstrap.facts),
        network_interfaces=node_class.network_interfaces,
        connection_tracking=node_class.connection_tracking,
        nested_virtualization=node_class.nested_virtualization,
        efa_interfaces=shape.efa_interfaces,
        enclaves=shape.enclaves,
        placement_group_id=placement_group.group_id if placement_group is not None else "",
        partition_number=shape.partition_number,
        tenancy=shape.tenancy,
        capacity_type=purchase.capacity_type,
        reservation_id=purchase.reservation_id,
        reservation_type=purchase.reservation_type,
        uses_open_reservations=purchase.uses_open_reservations,
        tags=tags,
    )
    return msgspec.structs.replace(
        unnamed, name=f"{TEMPLATE_NAME_PREFIX}/{bootstrap.facts.name}/{compute_digest(unnamed)}"
    )
