"""Drift: how a machine differs from what its NodePool and its node class ask for today. The first difference counts.

What cannot be seen (an instance, a status) is no difference; a condition stays as it is then.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from shared.model.catalogue import InstanceType
from shared.model.ec2 import Instance
from shared.model.labels import (
    CAPACITY_TYPE,
    HASH_VERSION,
    INSTANCE_TYPE,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
    ZONE,
)
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import condition
from shared.model.requirements import Requirement, requirements_from_labels
from shared.scheduling.hashes import node_pool_hash

DRIFTED: Final = "Drifted"
ASKED: Final = "DriftRequested"
POOL: Final = "NodePoolDrifted"
REQUIREMENTS: Final = "RequirementsDrifted"
CLASS: Final = "NodeClassDrift"
IMAGE: Final = "AMIDrift"
PLACEMENT_GROUP: Final = "karpenter.k8s.aws/placement-group-id"
SETTLED: Final = timedelta(hours=1)
"""How old a claim is before its type may be missed in the catalogue."""


class Drifting(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and all that it is compared with."""

    claim: NodeClaim
    pool: NodePool
    node_class: EC2NodeClass | None
    instance: Instance | None
    types: Mapping[str, InstanceType]
    now: datetime
    is_asked: bool = False
    """Somebody wants it replaced."""
    holds_image: bool = False
    """Another node is to try the new image before."""

    def label(self, key: str) -> str:
        """Answer a label of the claim."""
        return self.claim.meta.label(key)


def drift_of(one: Drifting) -> str | None:
    """Answer the reason, "" if there is none, None if that cannot be told."""
    known = one.node_class is not None and one.node_class.meta.deleted_at is None
    for check in (*_OF_POOL, *(_OF_CLASS if known else ())):
        found = check(one)
        if found or found is None:
            return found
    return ""


def is_recovered(one: Drifting) -> bool:
    """Whether its condition calls it drifted for something that can be seen to be as it ought to be.

    Whoever changes a NodePool and changes it back has lost no node then, though the condition is still to be written.
    """
    known = condition(one.claim.conditions, DRIFTED)
    check = _BACK.get(known.reason) if known is not None and known.status == "True" else None
    return check is not None and check(one)


def fitting_images(one: Drifting) -> set[str]:
    """Answer the ids of the images that its class has for its type today; none, too, where that cannot be told."""
    kind, node_class = one.types.get(one.label(INSTANCE_TYPE)), one.node_class
    if kind is None or node_class is None:
        return set()
    return {
        image.image_id for image in node_class.resolved_images if not kind.requirements.conflict(image.requirements)
    }


def unmet(one: Drifting) -> Requirement | None:
    """Answer the first of the NodePool's requirements that the claim's labels do not meet."""
    labels = requirements_from_labels(one.claim.meta.labels)
    for item in one.pool.requirements:
        if not (labels[item.key].intersects(item) if item.key in labels else item.is_tolerant()):
            return item
    return None


def _asked_drift(one: Drifting) -> str:
    return ASKED if one.is_asked else ""


def _pool_drift(one: Drifting) -> str:
    own = _pool_hash(one)
    return POOL if own and own != node_pool_hash(one.pool) else ""


def _pool_hash(one: Drifting) -> str:
    """Answer what the claim remembers of its NodePool, "" if it cannot be compared."""
    is_ours = one.claim.meta.annotation(NODEPOOL_HASH_VERSION) == HASH_VERSION
    return one.claim.meta.annotation(NODEPOOL_HASH) if is_ours else ""


def _requirements_drift(one: Drifting) -> str:
    return "" if unmet(one) is None else REQUIREMENTS


def _type_drift(one: Drifting) -> str:
    created = one.claim.meta.created_at
    if not one.types or created is None or one.now - created < SETTLED:
        return ""
    kind = one.types.get(one.label(INSTANCE_TYPE))
    if kind is None:
        return "InstanceTypeNotFound"
    wanted = (RESERVED, ON_DEMAND) if one.label(CAPACITY_TYPE) == RESERVED else (one.label(CAPACITY_TYPE),)
    zone = one.label(ZONE)
    is_sold = any(own.capacity_type in wanted and zone in ("", own.zone) for own in kind.offerings)
    return "" if is_sold else "InstanceTypeNotFound"


def _class_drift(one: Drifting) -> str:
    own = _class_hash(one)
    return CLASS if own and own != (one.node_class.hashed if one.node_class is not None else "") else ""


def _class_hash(one: Drifting) -> str:
    """Answer what the claim remembers of its node class, "" if it cannot be compared."""
    is_ours = one.claim.meta.annotation(NODECLASS_HASH_VERSION) == NODECLASS_HASH_VERSION_VALUE
    return one.claim.meta.annotation(NODECLASS_HASH) if is_ours else ""


def _image_drift(one: Drifting) -> str | None:
    kind, node_class = one.types.get(one.label(INSTANCE_TYPE)), one.node_class
    if kind is None or node_class is None or not node_class.resolved_images or not one.claim.image_id:
        return None
    return "" if one.holds_image or one.claim.image_id in fitting_images(one) else IMAGE


def _group_drift(one: Drifting) -> str | None:
    if one.instance is None or one.node_class is None or not one.node_class.resolved_security_groups:
        return None
    wanted = {group.group_id for group in one.node_class.resolved_security_groups}
    return "" if set(one.instance.security_group_ids) == wanted else "SecurityGroupDrift"


def _subnet_drift(one: Drifting) -> str | None:
    if one.instance is None or one.node_class is None or not one.node_class.resolved_subnets:
        return None
    wanted = {subnet.subnet_id for subnet in one.node_class.resolved_subnets}
    return "" if one.instance.subnet_id in wanted else "SubnetDrift"


def _reservation_drift(one: Drifting) -> str:
    own = one.label(RESERVATION_ID)
    if one.label(CAPACITY_TYPE) != RESERVED or not own or one.node_class is None:
        return ""
    known = {reservation.reservation_id for reservation in one.node_class.resolved_capacity_reservations}
    return "" if own in known else "CapacityReservationDrift"


def _placement_drift(one: Drifting) -> str:
    group = one.node_class.resolved_placement_group if one.node_class is not None else None
    return "PlacementGroupDrift" if group is not None and one.label(PLACEMENT_GROUP) != group.group_id else ""


_Check: TypeAlias = Callable[[Drifting], str | None]
_OF_POOL: Final[tuple[_Check, ...]] = (_asked_drift, _pool_drift, _requirements_drift, _type_drift)
_OF_CLASS: Final[tuple[_Check, ...]] = (
    _class_drift,
    _image_drift,
    _group_drift,
    _subnet_drift,
    _reservation_drift,
    _placement_drift,
)
_BACK: Final[Mapping[str, Callable[[Drifting], bool]]] = {
    ASKED: lambda one: not one.is_asked,
    POOL: lambda one: _pool_hash(one) == node_pool_hash(one.pool),
    REQUIREMENTS: lambda one: unmet(one) is None,
    CLASS: lambda one: one.node_class is not None and _class_hash(one) == one.node_class.hashed != "",
    IMAGE: lambda one: one.claim.image_id in fitting_images(one),
}
"""By reason, whether it is seen not to hold; of the others only the next look at the instance tells."""
