"""Offerings that an interruption message shows to be unavailable: the replacement is launched in another one."""

from datetime import datetime

from shared.decide.launch.fleets.unavailable_offerings import build_offering_mark
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, PLACEMENT_GROUP, SPOT, ZONE
from shared.model.core.metadata import is_condition_true
from shared.model.decisions.action import MarkUnavailable
from shared.model.karpenter.node_claim import NodeClaim


def mark_interrupted_offering(claim: NodeClaim, now: datetime, capacity_type: str) -> tuple[MarkUnavailable, ...]:
    """Mark the offering unavailable; a missing label would stand for any type or zone, so then nothing is marked."""
    instance_type, zone = claim.meta.get_label(INSTANCE_TYPE), claim.meta.get_label(ZONE)
    if not instance_type or not zone or claim.meta.get_label(CAPACITY_TYPE) != capacity_type:
        return ()
    message = f"{claim.name} was interrupted"
    return (build_offering_mark(capacity_type, instance_type, zone, now=now, message=message),)


def mark_ended_offering(claim: NodeClaim, now: datetime) -> tuple[MarkUnavailable, ...]:
    """Mark the offering of an instance that ended before its node registered unavailable.

    The message has no reason, and EC2 often has no capacity for such an instance. Without the mark, its replacement
    could be launched in the same offering before `lifecycle` reads the reason.
    """
    capacity_type, instance_type, zone = map(claim.meta.get_label, (CAPACITY_TYPE, INSTANCE_TYPE, ZONE))
    is_registered = is_condition_true(claim.conditions, "Registered")
    if is_registered or capacity_type not in (ON_DEMAND, SPOT) or not instance_type or not zone:
        return ()
    message = f"the instance of {claim.name} ended before its node registered"
    group_id = claim.meta.get_label(PLACEMENT_GROUP)
    return (build_offering_mark(capacity_type, instance_type, zone, now=now, message=message, group_id=group_id),)
