"""Drift detection: how a NodeClaim differs from its NodePool and node class. The first difference is the reason.

Data that cannot be read (an instance, a status) counts as no difference; the condition then stays as it is.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.labels import (
    CAPACITY_TYPE,
    HASH_VERSION,
    INSTANCE_TYPE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    ON_DEMAND,
    PLACEMENT_GROUP,
    RESERVATION_ID,
    RESERVED,
    ZONE,
)
from shared.model.core.metadata import find_condition
from shared.model.core.requirements import Requirement, build_label_requirements
from shared.model.ec2.instance import Instance
from shared.model.karpenter.expiration import EXPIRED, compute_expiration_time
from shared.model.karpenter.health.canary import get_launch_hash
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.karpenter.node_pool import NodePool

DRIFTED: Final = "Drifted"
DRIFT_REQUESTED: Final = "DriftRequested"
REBALANCE_RECOMMENDED: Final = "RebalanceRecommended"
ZONAL_SHIFT: Final = "ZonalShift"
NODE_POOL_DRIFTED: Final = "NodePoolDrifted"
REQUIREMENTS_DRIFTED: Final = "RequirementsDrifted"
NODE_CLASS_DRIFT: Final = "NodeClassDrift"
AMI_DRIFT: Final = "AMIDrift"
MIN_TYPE_DRIFT_AGE: Final = timedelta(hours=1)
"""Minimum age of a NodeClaim before a type that is missing in the catalog counts as drift."""


class DriftInputs(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeClaim and everything it is compared with."""

    claim: NodeClaim
    pool: NodePool
    node_class: EC2NodeClass | None
    instance: Instance | None
    instance_types: Mapping[str, InstanceType]
    now: datetime
    is_drift_requested: bool = False
    """The NodeClaim or its Node has the annotation that requests replacement."""
    is_at_risk: bool = False
    """EC2 has recommended to rebalance the instance, and the NodePool has the policy to replace such nodes."""
    is_in_shifted_zone: bool = False
    """The zone of the node has a zonal shift, and nodes of such zones are to be replaced."""
    waits_for_canary: bool = False
    """The image canary, another node, must run the new image first."""
    waits_for_configuration: bool = False
    """Another node must run the new launch configuration first."""

    def get_label(self, key: str) -> str:
        """Return the value of a label of the NodeClaim."""
        return self.claim.meta.get_label(key)


def find_drift_reason(inputs: DriftInputs) -> str | None:
    """Return the drift reason, "" if the NodeClaim has not drifted, or None if that is unknown."""
    is_class_usable = inputs.node_class is not None and inputs.node_class.meta.deleted_at is None
    for check in (*_NODE_POOL_CHECKS, *(_NODE_CLASS_CHECKS if is_class_usable else ())):
        reason = check(inputs)
        if reason or reason is None:
            return reason
    return ""


def is_drift_resolved(inputs: DriftInputs) -> bool:
    """Return whether the Drifted condition names a difference that verifiably no longer exists.

    A change of a NodePool that is reverted therefore removes no node, although the condition is not yet updated.
    """
    drifted_condition = find_condition(inputs.claim.conditions, DRIFTED)
    check = (
        _RESOLVED_CHECKS.get(drifted_condition.reason)
        if drifted_condition is not None and drifted_condition.status == "True"
        else None
    )
    return check is not None and check(inputs)


def list_matching_images(inputs: DriftInputs) -> set[str]:
    """Return the ids of the node class images for the NodeClaim's instance type; empty if they are unknown."""
    instance_type, node_class = inputs.instance_types.get(inputs.get_label(INSTANCE_TYPE)), inputs.node_class
    if instance_type is None or node_class is None:
        return set()
    return {
        image.image_id
        for image in node_class.resolved_images
        if not instance_type.requirements.find_conflict(image.requirements)
    }


def find_unmet_requirement(inputs: DriftInputs) -> Requirement | None:
    """Return the first requirement of the NodePool that the NodeClaim's labels do not meet."""
    labels = build_label_requirements(inputs.claim.meta.labels)
    for item in inputs.pool.requirements:
        if not (labels[item.key].has_intersection(item) if item.key in labels else item.is_tolerant()):
            return item
    return None


def _check_drift_request(inputs: DriftInputs) -> str:
    return DRIFT_REQUESTED if inputs.is_drift_requested else ""


def _check_rebalance_recommendation(inputs: DriftInputs) -> str:
    return REBALANCE_RECOMMENDED if inputs.is_at_risk else ""


def _check_zonal_shift(inputs: DriftInputs) -> str:
    return ZONAL_SHIFT if inputs.is_in_shifted_zone else ""


def _check_expiration(inputs: DriftInputs) -> str:
    is_graceful = parse_disruption_annotations(inputs.pool).graceful_expiration > timedelta()
    expires_at = compute_expiration_time(inputs.claim) if is_graceful else None
    return EXPIRED if expires_at is not None and expires_at <= inputs.now else ""


def _check_node_pool_hash(inputs: DriftInputs) -> str:
    recorded_hash = _get_node_pool_hash(inputs)
    return NODE_POOL_DRIFTED if recorded_hash and recorded_hash != compute_node_pool_hash(inputs.pool) else ""


def _get_node_pool_hash(inputs: DriftInputs) -> str:
    """Return the NodePool hash recorded on the NodeClaim, or "" if its version differs."""
    is_comparable = inputs.claim.meta.get_annotation(NODEPOOL_HASH_VERSION) == HASH_VERSION
    return inputs.claim.meta.get_annotation(NODEPOOL_HASH) if is_comparable else ""


def _check_requirements(inputs: DriftInputs) -> str:
    return "" if find_unmet_requirement(inputs) is None else REQUIREMENTS_DRIFTED


def _check_instance_type(inputs: DriftInputs) -> str:
    created = inputs.claim.meta.created_at
    if not inputs.instance_types or created is None or inputs.now - created < MIN_TYPE_DRIFT_AGE:
        return ""
    instance_type = inputs.instance_types.get(inputs.get_label(INSTANCE_TYPE))
    if instance_type is None:
        return "InstanceTypeNotFound"
    capacity_types = (
        (RESERVED, ON_DEMAND) if inputs.get_label(CAPACITY_TYPE) == RESERVED else (inputs.get_label(CAPACITY_TYPE),)
    )
    zone = inputs.get_label(ZONE)
    is_offered = any(own.capacity_type in capacity_types and zone in ("", own.zone) for own in instance_type.offerings)
    return "" if is_offered else "InstanceTypeNotFound"


def _check_node_class_hash(inputs: DriftInputs) -> str:
    recorded_hash = get_launch_hash(inputs.claim)
    return (
        NODE_CLASS_DRIFT
        if not inputs.waits_for_configuration
        and recorded_hash
        and recorded_hash != (inputs.node_class.spec_hash if inputs.node_class is not None else "")
        else ""
    )


def _check_image(inputs: DriftInputs) -> str | None:
    instance_type, node_class = inputs.instance_types.get(inputs.get_label(INSTANCE_TYPE)), inputs.node_class
    if instance_type is None or node_class is None or not node_class.resolved_images or not inputs.claim.image_id:
        return None
    return "" if inputs.waits_for_canary or inputs.claim.image_id in list_matching_images(inputs) else AMI_DRIFT


def _check_security_groups(inputs: DriftInputs) -> str | None:
    if inputs.instance is None or inputs.node_class is None or not inputs.node_class.resolved_security_groups:
        return None
    group_ids = {group.group_id for group in inputs.node_class.resolved_security_groups}
    return "" if set(inputs.instance.security_group_ids) == group_ids else "SecurityGroupDrift"


def _check_subnet(inputs: DriftInputs) -> str | None:
    if inputs.instance is None or inputs.node_class is None or not inputs.node_class.resolved_subnets:
        return None
    subnet_ids = {subnet.subnet_id for subnet in inputs.node_class.resolved_subnets}
    return "" if inputs.instance.subnet_id in subnet_ids else "SubnetDrift"


def _check_capacity_reservation(inputs: DriftInputs) -> str:
    reservation_id = inputs.get_label(RESERVATION_ID)
    if inputs.get_label(CAPACITY_TYPE) != RESERVED or not reservation_id or inputs.node_class is None:
        return ""
    reservation_ids = {reservation.reservation_id for reservation in inputs.node_class.resolved_capacity_reservations}
    return "" if reservation_id in reservation_ids else "CapacityReservationDrift"


def _check_placement_group(inputs: DriftInputs) -> str:
    group = inputs.node_class.resolved_placement_group if inputs.node_class is not None else None
    return "PlacementGroupDrift" if group is not None and inputs.get_label(PLACEMENT_GROUP) != group.group_id else ""


_Check: TypeAlias = Callable[[DriftInputs], str | None]
_NODE_POOL_CHECKS: Final[tuple[_Check, ...]] = (
    _check_drift_request,
    _check_zonal_shift,
    _check_rebalance_recommendation,
    _check_expiration,
    _check_node_pool_hash,
    _check_requirements,
    _check_instance_type,
)
_NODE_CLASS_CHECKS: Final[tuple[_Check, ...]] = (
    _check_node_class_hash,
    _check_image,
    _check_security_groups,
    _check_subnet,
    _check_capacity_reservation,
    _check_placement_group,
)
_RESOLVED_CHECKS: Final[Mapping[str, Callable[[DriftInputs], bool]]] = {
    DRIFT_REQUESTED: lambda inputs: not inputs.is_drift_requested,
    ZONAL_SHIFT: lambda inputs: not inputs.is_in_shifted_zone,
    REBALANCE_RECOMMENDED: lambda inputs: not inputs.is_at_risk,
    EXPIRED: lambda inputs: not _check_expiration(inputs),
    NODE_POOL_DRIFTED: lambda inputs: _get_node_pool_hash(inputs) == compute_node_pool_hash(inputs.pool),
    REQUIREMENTS_DRIFTED: lambda inputs: find_unmet_requirement(inputs) is None,
    NODE_CLASS_DRIFT: lambda inputs: (
        inputs.node_class is not None and get_launch_hash(inputs.claim) == inputs.node_class.spec_hash != ""
    ),
    AMI_DRIFT: lambda inputs: inputs.claim.image_id in list_matching_images(inputs),
}
"""By reason: whether the drift no longer exists. Other reasons need the instance to be read again."""
