"""Launch templates: one for each way in which the types of a launch must be told different things."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.launch.amounts import with_reserved
from shared.launch.bootstrap import is_ipv6
from shared.launch.digest import digest
from shared.launch.families import FAMILIES
from shared.launch.offers import Offer, capacity_type_of, reservation_type_of
from shared.launch.userdata import Bootstrap, encoded, user_data
from shared.model import labels
from shared.model.action import DeleteLaunchTemplate
from shared.model.catalogue import InstanceType
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import CapacityType, ClusterFacts, LaunchTemplate, PlacementGroup, ReservationType, Tags, Tenancy
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import NodeClaim
from shared.model.objects import Pairs
from shared.model.requirements import Requirements
from shared.model.resources import PODS

PREFIX: Final = "joiner"
"""Of our templates' names; the cluster's follows."""
EFA: Final = "vpc.amazonaws.com/efa"
ENCLAVES: Final = "eks.amazonaws.com/nitro-sandbox"
"""Pods that ask for it may run Nitro Enclaves."""
UNUSED_FOR: Final = timedelta(minutes=1)
"""So long after its last launch a template is kept."""


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """A launch template and the offers it is for."""

    template: LaunchTemplate
    offers: tuple[Offer, ...]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What pods want of the machine itself, besides room."""

    efa_interfaces: int = 0
    enclaves: bool = False
    tenancy: Tenancy = "default"
    partition_number: int | None = None


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """How machines are paid for, as far as a template must say it."""

    capacity_type: CapacityType = "on-demand"
    reservation_id: str = ""
    reservation_type: ReservationType = ""
    uses_open_reservations: bool = False


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the types of one template have in common."""

    image_id: str
    pods: int
    kube_reserved: Pairs
    system_reserved: Pairs
    shape: Shape
    purchase: Purchase


_PLAIN: Final = Shape()


def templates(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    some: Iterable[Offer],
    facts: ClusterFacts,
    *,
    uses_open_reservations: bool = False,
) -> tuple[Fitted, ...]:
    """Group *some* by all that a template tells a machine, in their order; a type without an image is left out.

    Raises:
        ValueError: the node class' user data cannot be made.
    """
    groups: dict[Told, list[Offer]] = {}
    some = tuple(some)
    node_class = with_group(node_class, (one.instance_type for one in some))
    for one in some:
        image_id = image_for(node_class, one.instance_type.requirements)
        if image_id:
            told = _told(claim, node_class, one, image_id, uses_open_reservations=uses_open_reservations)
            groups.setdefault(told, []).append(one)
    return tuple(
        Fitted(template=_template(claim, node_class, told, facts), offers=tuple(some)) for told, some in groups.items()
    )


def unused(
    known: Iterable[LaunchTemplate],
    groups: Iterable[LaunchGroup],
    cluster: str,
    now: datetime,
    leaving: Collection[str] = (),
) -> tuple[DeleteLaunchTemplate, ...]:
    """Answer which of the *known* templates go: ours by name and tag, of no open launch, and of none lately.

    Those of node classes that are *leaving*, which nothing is launched by any more, go at once.
    Templates that others made in the cluster's name, as Karpenter's of an adopted cluster, are not ours.
    """
    last: dict[str, datetime] = {}
    for group in groups:
        for template in group.templates:
            used = group.created_at if group.result is not None else now
            last[template.name] = max(used, last.get(template.name, used))
    return tuple(
        DeleteLaunchTemplate(name=one.name, why="no launch has used it lately")
        for one in sorted(known, key=lambda one: one.name)
        if one.name.startswith(f"{PREFIX}/{cluster}/")
        and dict(one.tags).get("eks:eks-cluster-name") == cluster
        and one.created_at is not None
        and (
            dict(one.tags).get(labels.NODECLASS) in leaving
            or now - max(one.created_at, last.get(one.name, one.created_at)) > UNUSED_FOR
        )
    )


def image_for(node_class: EC2NodeClass, type_requirements: Requirements) -> str:
    """Answer the first of status.amis that is for such a type, "" if none is."""
    return next(
        (image.image_id for image in node_class.resolved_images if not type_requirements.conflict(image.requirements)),
        "",
    )


def launch_tags(pool: str, node_class: EC2NodeClass, cluster: str) -> Tags:
    """Answer the tags of everything that a launch for NodePool *pool* makes: the user's, and ours, which win."""
    ours = {
        f"kubernetes.io/cluster/{cluster}": "owned",
        "eks:eks-cluster-name": cluster,
        labels.NODEPOOL: pool,
        labels.NODECLASS: node_class.name,
    }
    return tuple(sorted((dict(node_class.tags) | ours).items()))


def with_group(node_class: EC2NodeClass, types: Iterable[InstanceType]) -> EC2NodeClass:
    """Answer *node_class* with its placement group, which no status has room for: the catalogue's *types* name it."""
    if node_class.placement_group_selector is None or node_class.resolved_placement_group is not None:
        return node_class
    ids = sorted({one.group_id for one in types} - {""})
    group = PlacementGroup(group_id=ids[0]) if ids else None
    return msgspec.structs.replace(node_class, resolved_placement_group=group)


def has_efa(template: LaunchTemplate) -> bool:
    """Whether what it starts has a fast interface."""
    return template.efa_interfaces > 0 or any(one.interface_type == "efa-only" for one in template.network_interfaces)


def tenancy_of(wanted: Requirements) -> Tenancy:
    """Answer whose hardware it is: shared where that will do."""
    tenancy = wanted[labels.TENANCY]
    return "dedicated" if tenancy.has("dedicated") and not tenancy.has("default") else "default"


def _told(
    claim: NodeClaim, node_class: EC2NodeClass, offer: Offer, image_id: str, *, uses_open_reservations: bool
) -> Told:
    kind = offer.instance_type
    is_fast = claim.requests[EFA] and not node_class.network_interfaces
    return Told(
        image_id=image_id,
        pods=kind.capacity[PODS],
        kube_reserved=kind.kube_reserved,
        system_reserved=kind.system_reserved,
        shape=Shape(
            efa_interfaces=kind.capacity[EFA] if is_fast else 0,
            enclaves=bool(claim.requests[ENCLAVES]),
            tenancy=tenancy_of(claim.requirements),
            partition_number=_partition(claim.requirements, kind.requirements),
        ),
        purchase=_purchase(offer, uses_open_reservations=uses_open_reservations),
    )


def _partition(wanted: Requirements, offered: Requirements) -> int | None:
    """Answer the first partition that the claim may be in, None where any will do: EC2 spreads better than we do."""
    if wanted[labels.PARTITION].complement:
        return None
    return min((int(one) for one in (wanted[labels.PARTITION] & offered[labels.PARTITION]).values), default=None)


def _purchase(offer: Offer, *, uses_open_reservations: bool) -> Purchase:
    offering = offer.offering
    kind = capacity_type_of((offer,))
    if kind != "reserved":
        return Purchase(capacity_type=kind, uses_open_reservations=uses_open_reservations)
    return Purchase(
        capacity_type=kind,
        reservation_id=offering.reservation_id,
        reservation_type=reservation_type_of(offering),
    )


def _template(claim: NodeClaim, node_class: EC2NodeClass, told: Told, facts: ClusterFacts) -> LaunchTemplate:
    own = dict(claim.meta.labels) | {labels.CAPACITY_TYPE: told.purchase.capacity_type}
    boot = Bootstrap(
        facts=facts,
        labels=tuple(sorted(own.items())),
        taints=(*claim.taints, *claim.startup_taints),
        max_pods=told.pods,
    )
    tags = launch_tags(claim.meta.label(labels.NODEPOOL), node_class, facts.name)
    settled = with_reserved(node_class, told.kube_reserved, told.system_reserved)
    return template_of(settled, told.image_id, boot, told.purchase, tags, told.shape)


def template_of(
    node_class: EC2NodeClass,
    image_id: str,
    boot: Bootstrap,
    purchase: Purchase,
    tags: Tags,
    shape: Shape = _PLAIN,
) -> LaunchTemplate:
    """Answer the template with all that *node_class* says, named by its content.

    Raises:
        ValueError: the node class' user data cannot be made.
    """
    family = FAMILIES.get(node_class.ami_family, FAMILIES["Custom"])
    group = node_class.resolved_placement_group
    unnamed = LaunchTemplate(
        name="",
        image_id=image_id,
        user_data=encoded(user_data(node_class, boot)),
        instance_profile=node_class.resolved_profile,
        security_group_ids=tuple(one.group_id for one in node_class.resolved_security_groups),
        block_devices=node_class.block_devices or family.default_devices,
        detailed_monitoring=node_class.detailed_monitoring,
        http_endpoint=node_class.http_endpoint,
        http_protocol_ipv6=node_class.http_protocol_ipv6,
        http_put_response_hop_limit=node_class.http_put_response_hop_limit,
        http_tokens=node_class.http_tokens,
        associate_public_ip_address=node_class.associate_public_ip_address,
        ip_prefix_count=node_class.ip_prefix_count,
        is_ipv6=is_ipv6(boot.facts),
        network_interfaces=node_class.network_interfaces,
        connection_tracking=node_class.connection_tracking,
        nested_virtualization=node_class.nested_virtualization,
        efa_interfaces=shape.efa_interfaces,
        enclaves=shape.enclaves,
        placement_group_id=group.group_id if group is not None else "",
        partition_number=shape.partition_number,
        tenancy=shape.tenancy,
        capacity_type=purchase.capacity_type,
        reservation_id=purchase.reservation_id,
        reservation_type=purchase.reservation_type,
        uses_open_reservations=purchase.uses_open_reservations,
        tags=tags,
    )
    return msgspec.structs.replace(unnamed, name=f"{PREFIX}/{boot.facts.name}/{digest(unnamed)}")
