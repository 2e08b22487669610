"""What EC2's answer means: claims that have an instance now, offerings that are out, claims that need another try."""

import json
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.launch.groups import Unlaunchable
from shared.model import labels
from shared.model.action import Action, DeleteObject, MarkUnavailable, PatchMetadata, PatchStatus, PublishEvent
from shared.model.catalogue import InstanceType, UnavailableOffering
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.conditions import CLAIM_ROOTS, conditions_json, rooted, with_condition
from shared.model.ec2 import FleetError, FleetInstance, Override
from shared.model.nodes import NodeClaim
from shared.model.requirements import Requirements
from shared.model.resources import quantities_from

UNAVAILABLE_FOR: Final = timedelta(minutes=3)
NO_CAPACITY: Final = frozenset(
    (
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    )
)
"""EC2's codes for "not this offering, not now"."""
NO_SPOT_ROLE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
_LONGEST_MESSAGE: Final = 300


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, and which claims still have no instance, sorted."""

    actions: tuple[Action, ...]
    left: tuple[str, ...]


def outcome(group: LaunchGroup, cluster: Cluster) -> Outcome:
    """Answer what follows from `group.result`; claims that are gone or launched already are passed over."""
    result = group.result
    if result is None:
        return Outcome(actions=(), left=group.claims)
    claims = {claim.name: claim for claim in cluster.node_claims}
    given = dict(zip(group.claims, sorted(result.instances), strict=False))
    actions: list[Action] = [mark for error in result.errors for mark in marks(error, group, cluster.taken_at)]
    for name, instance in sorted(given.items()):
        claim = claims.get(name)
        if claim is not None and not claim.is_launched():
            actions.extend(_launched(claim, instance, cluster))
    left = tuple(name for name in group.claims if name not in given and name in claims)
    if left and not _is_out_of_capacity(result.errors):
        actions.extend(_failed(claims[name], result.errors, cluster.taken_at) for name in left)
        left = ()
    return Outcome(actions=tuple(dict.fromkeys(actions)), left=left)


def marks(error: FleetError, group: LaunchGroup, now: datetime) -> tuple[MarkUnavailable, ...]:
    """Answer what one refusal closes: its offering, every type of a subnet's zone, or spot altogether."""
    if error.code == NO_SPOT_ROLE:
        closed = UnavailableOffering(capacity_type=labels.SPOT, until=now + UNAVAILABLE_FOR)
    elif error.code == "InsufficientFreeAddressesInSubnet":
        closed = UnavailableOffering(capacity_type="", zone=error.zone, until=now + UNAVAILABLE_FOR)
    elif error.code in NO_CAPACITY and error.instance_type:
        closed = UnavailableOffering(
            capacity_type=group.request.capacity_type,
            instance_type=error.instance_type,
            zone=error.zone,
            until=now + UNAVAILABLE_FOR,
        )
    elif error.code in NO_CAPACITY:
        return tuple(_closed(override.instance_type, override.zone, error, group, now) for override in _all(group))
    else:
        return ()
    return (MarkUnavailable(offering=closed, why=f"{error.code}: {error.message}"),)


def given_up(one: Unlaunchable, now: datetime) -> tuple[Action, ...]:
    """Answer what a claim that cannot be launched is told; a final one is deleted, its pods are planned anew."""
    claim = one.claim
    reason = "InsufficientCapacityError" if one.reason == "InsufficientCapacity" else one.reason
    event = PublishEvent(
        kind="NodeClaim",
        name=claim.name,
        uid=claim.meta.uid,
        type="Warning",
        reason=reason,
        message=f"NodeClaim {claim.name}: {one.message}",
        at=now,
    )
    if one.final:
        why = {"InsufficientCapacity": "insufficient_capacity"}.get(one.reason, "nodeclass_not_ready")
        return (event, DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=why))
    return (event, _status(claim, one.reason, one.message, now))


def _all(group: LaunchGroup) -> list[Override]:
    return [override for config in group.request.configs for override in config.overrides]


def _closed(type_name: str, zone: str, error: FleetError, group: LaunchGroup, now: datetime) -> MarkUnavailable:
    closed = UnavailableOffering(
        capacity_type=group.request.capacity_type, instance_type=type_name, zone=zone, until=now + UNAVAILABLE_FOR
    )
    return MarkUnavailable(offering=closed, why=f"{error.code}: {error.message}")


def _is_out_of_capacity(errors: tuple[FleetError, ...]) -> bool:
    return bool(errors) and all(error.code in NO_CAPACITY or error.code == NO_SPOT_ROLE for error in errors)


def _launched(claim: NodeClaim, instance: FleetInstance, cluster: Cluster) -> tuple[Action, ...]:
    node_class = next((one for one in cluster.node_classes if one.name == claim.node_class.name), None)
    types = cluster.catalogue.types_for(claim.node_class.name) if cluster.catalogue is not None else ()
    kind = next((one for one in types if one.name == instance.instance_type), None)
    found = _single_values(kind.requirements if kind is not None else Requirements())
    found |= {
        labels.INSTANCE_TYPE: instance.instance_type,
        labels.ZONE: instance.zone,
        labels.CAPACITY_TYPE: instance.capacity_type,
    }
    if kind is not None:
        zone_id = next((one.zone_id for one in kind.offerings if one.zone == instance.zone), "")
        found |= {labels.ZONE_ID: zone_id} if zone_id else {}
    profile = node_class.resolved_profile if node_class is not None else ""
    metadata = PatchMetadata(
        kind="NodeClaim",
        name=claim.name,
        labels=tuple(sorted((found | dict(claim.meta.labels)).items())),
        annotations=((labels.INSTANCE_PROFILE, profile),) if profile else (),
        why="launched",
    )
    return (metadata, _launched_status(claim, instance, kind, cluster.taken_at))


def _launched_status(
    claim: NodeClaim, instance: FleetInstance, kind: InstanceType | None, now: datetime
) -> PatchStatus:
    status: dict[str, object] = {
        "providerID": f"aws:///{instance.zone}/{instance.instance_id}",
        "imageID": instance.image_id,
        "conditions": _conditions(claim, "True", "Launched", "", now),
    }
    if kind is not None:
        status["capacity"] = quantities_from(kind.capacity)
        status["allocatable"] = quantities_from(kind.allocatable)
    why = f"{instance.instance_id} is a {instance.capacity_type} {instance.instance_type} in {instance.zone}"
    return PatchStatus(kind="NodeClaim", name=claim.name, status=json.dumps(status, sort_keys=True), why=why)


def _failed(claim: NodeClaim, errors: tuple[FleetError, ...], now: datetime) -> PatchStatus:
    texts = sorted({f"{error.code}: {error.message}" for error in errors}) or ["too few instances returned"]
    return _status(claim, "LaunchFailed", "; ".join(texts), now)


def _status(claim: NodeClaim, reason: str, message: str, now: datetime) -> PatchStatus:
    cut = message if len(message) <= _LONGEST_MESSAGE else message[:_LONGEST_MESSAGE] + "..."
    conditions = _conditions(claim, "Unknown", reason, cut, now)
    status = json.dumps({"conditions": conditions}, sort_keys=True)
    return PatchStatus(kind="NodeClaim", name=claim.name, status=status, why=f"{reason}: {cut}")


def _conditions(claim: NodeClaim, status: str, reason: str, message: str, now: datetime) -> list[dict[str, Any]]:
    """Answer all conditions of *claim* as the API has them, with `Launched` as given and `Ready` after it."""
    since = now if status == "True" else claim.meta.created_at or now
    generation = claim.meta.generation
    some = with_condition(claim.conditions, "Launched", status, reason, message, now=since, generation=generation)
    return conditions_json(rooted(some, CLAIM_ROOTS, now, generation, claim.meta.created_at))


def _single_values(some: Requirements) -> dict[str, str]:
    return {item.key: min(item.values) for item in some if not item.complement and len(item.values) == 1}
