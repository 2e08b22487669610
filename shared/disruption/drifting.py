"""Drift: how a machine differs from what its NodePool and its node class ask for today. The first difference counts.

What cannot be seen (an instance, a status) is no difference; a condition stays as it is then.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from shared.disruption.prices import PriceList
from shared.model.action import Action, PatchStatus
from shared.model.catalogue import InstanceType
from shared.model.cluster import Cluster
from shared.model.conditions import conditions_json, with_condition, without_condition
from shared.model.ec2 import Instance
from shared.model.labels import (
    CAPACITY_TYPE,
    HASH_VERSION,
    INSTANCE_TYPE,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
    NODEPOOL,
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
from shared.model.objects import condition, is_true
from shared.model.requirements import requirements_from_labels
from shared.scheduling.hashes import node_pool_hash

CONDITION: Final = "Drifted"
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


def describe_drift(cluster: Cluster) -> tuple[Action, ...]:
    """Write the condition of every claim that has another now; sorted by name."""
    return tuple(_writes(cluster))


def _writes(cluster: Cluster) -> Iterator[Action]:
    pools = {one.name: one for one in cluster.node_pools if one.node_class.is_supported()}
    classes = {one.name: one for one in cluster.node_classes}
    instances = {one.instance_id: one for one in cluster.instances or ()}
    prices = PriceList(cluster.catalogue)
    for claim in sorted(cluster.node_claims, key=lambda one: one.name):
        pool = pools.get(claim.meta.label(NODEPOOL))
        if pool is None or claim.is_deleting():
            continue
        reason: str | None = ""
        if is_true(claim.conditions, "Launched"):
            reason = drift_of(
                Drifting(
                    claim=claim,
                    pool=pool,
                    node_class=classes.get(claim.node_class.name),
                    instance=instances.get(claim.instance_id),
                    types=prices.types(claim.node_class.name, pool.name),
                    now=cluster.taken_at,
                )
            )
        if reason is not None:
            yield from _write(claim, reason, cluster.taken_at)


def _write(claim: NodeClaim, reason: str, now: datetime) -> Iterator[Action]:
    old = condition(claim.conditions, CONDITION)
    if (old.reason if old is not None and old.status == "True" else "") == reason and (reason or old is None):
        return
    some = without_condition(claim.conditions, CONDITION)
    if reason:
        some = with_condition(claim.conditions, CONDITION, "True", reason, reason, now, claim.meta.generation)
    yield PatchStatus(
        kind="NodeClaim",
        name=claim.name,
        resource_version=claim.meta.resource_version,
        status=msgspec.json.encode({"conditions": conditions_json(some)}).decode(),
        why=f"it has drifted: {reason}" if reason else "it has not drifted any more",
    )


def _pool_drift(one: Drifting) -> str:
    is_ours = one.claim.meta.annotation(NODEPOOL_HASH_VERSION) == HASH_VERSION
    own = one.claim.meta.annotation(NODEPOOL_HASH)
    return "NodePoolDrifted" if is_ours and own and own != node_pool_hash(one.pool) else ""


def _requirements_drift(one: Drifting) -> str:
    labels = requirements_from_labels(one.claim.meta.labels)
    for item in one.pool.requirements:
        is_met = labels[item.key].intersects(item) if item.key in labels else item.is_tolerant()
        if not is_met:
            return "RequirementsDrifted"
    return ""


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
    hashed = one.node_class.hashed if one.node_class is not None else ""
    is_ours = one.claim.meta.annotation(NODECLASS_HASH_VERSION) == NODECLASS_HASH_VERSION_VALUE
    own = one.claim.meta.annotation(NODECLASS_HASH)
    return "NodeClassDrift" if is_ours and own and own != hashed else ""


def _image_drift(one: Drifting) -> str | None:
    kind, node_class = one.types.get(one.label(INSTANCE_TYPE)), one.node_class
    if kind is None or node_class is None or not node_class.resolved_images or not one.claim.image_id:
        return None
    fitting = {
        image.image_id for image in node_class.resolved_images if not kind.requirements.conflict(image.requirements)
    }
    return "" if one.claim.image_id in fitting else "AMIDrift"


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
_OF_POOL: Final[tuple[_Check, ...]] = (_pool_drift, _requirements_drift, _type_drift)
_OF_CLASS: Final[tuple[_Check, ...]] = (
    _class_drift,
    _image_drift,
    _group_drift,
    _subnet_drift,
    _reservation_drift,
    _placement_drift,
)
