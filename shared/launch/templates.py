"""Launch templates: one for each way in which the types of a launch must be told different things."""

from collections.abc import Iterable

import msgspec

from shared.launch.digest import digest
from shared.launch.families import FAMILIES
from shared.launch.userdata import Bootstrap, encoded, user_data
from shared.model import labels
from shared.model.catalogue import InstanceType
from shared.model.ec2 import CapacityType, ClusterFacts, LaunchTemplate, Tags
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import NodeClaim
from shared.model.requirements import Requirements
from shared.model.resources import PODS


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """A launch template and the types it is for."""

    template: LaunchTemplate
    instance_types: tuple[InstanceType, ...]


def templates(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    types: Iterable[InstanceType],
    facts: ClusterFacts,
    capacity_type: CapacityType,
) -> tuple[Fitted, ...]:
    """Group *types* by image and pod count, in their order; a type that no image is for is left out.

    Raises:
        ValueError: the node class' user data cannot be made.
    """
    groups: dict[tuple[str, int], list[InstanceType]] = {}
    for one in types:
        image_id = image_for(node_class, one.requirements)
        if image_id:
            groups.setdefault((image_id, one.capacity[PODS]), []).append(one)
    return tuple(
        Fitted(template=_template(claim, node_class, image_id, pods, facts, capacity_type), instance_types=tuple(some))
        for (image_id, pods), some in groups.items()
    )


def image_for(node_class: EC2NodeClass, type_requirements: Requirements) -> str:
    """Answer the first of status.amis that is for such a type, "" if none is."""
    return next(
        (image.image_id for image in node_class.resolved_images if not type_requirements.conflict(image.requirements)),
        "",
    )


def launch_tags(claim: NodeClaim, node_class: EC2NodeClass, cluster: str) -> Tags:
    """Answer the tags of everything that a launch makes: the user's, and ours, which win."""
    ours = {
        f"kubernetes.io/cluster/{cluster}": "owned",
        "eks:eks-cluster-name": cluster,
        labels.NODEPOOL: claim.meta.label(labels.NODEPOOL),
        labels.NODECLASS: node_class.name,
    }
    return tuple(sorted((dict(node_class.tags) | ours).items()))


def _template(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    image_id: str,
    pods: int,
    facts: ClusterFacts,
    capacity_type: CapacityType,
) -> LaunchTemplate:
    own = dict(claim.meta.labels) | {labels.CAPACITY_TYPE: capacity_type}
    boot = Bootstrap(
        facts=facts,
        labels=tuple(sorted(own.items())),
        taints=(*claim.taints, *claim.startup_taints),
        max_pods=pods,
    )
    family = FAMILIES.get(node_class.ami_family, FAMILIES["Custom"])
    unnamed = LaunchTemplate(
        name="",
        image_id=image_id,
        user_data=encoded(user_data(node_class, boot)),
        instance_profile=node_class.resolved_profile,
        security_group_ids=tuple(group.group_id for group in node_class.resolved_security_groups),
        block_devices=node_class.block_devices or family.default_devices,
        detailed_monitoring=node_class.detailed_monitoring,
        http_endpoint=node_class.http_endpoint,
        http_protocol_ipv6=node_class.http_protocol_ipv6,
        http_put_response_hop_limit=node_class.http_put_response_hop_limit,
        http_tokens=node_class.http_tokens,
        associate_public_ip_address=node_class.associate_public_ip_address,
        capacity_type=capacity_type,
        tags=launch_tags(claim, node_class, facts.name),
    )
    return msgspec.structs.replace(unnamed, name=f"joiner/{facts.name}/{digest(unnamed)}")
