"""What EC2's answer means: claims that have an instance now, offerings that are out, claims that need another try."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.launch.breaker import Trip, pool_of
from shared.launch.drafts import Unlaunchable
from shared.launch.refusals import NO_ADDRESSES, NO_CAPACITY, NO_SPOT_ROLE, SPREAD_FULL, reason_of, remedy_of
from shared.launch.subnets import full_subnets
from shared.launch.templates import EFA, has_efa
from shared.model import labels
from shared.model.action import Action, DeleteObject, MarkUnavailable, PatchMetadata, PatchStatus, PublishEvent
from shared.model.catalogue import InstanceType, UnavailableOffering
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.conditions import CLAIM_ROOTS, conditions_json, rooted, with_condition
from shared.model.ec2 import FleetError, FleetInstance, LaunchTemplate
from shared.model.nodes import NodeClaim
from shared.model.objects import condition, pairs
from shared.model.requirements import Requirements
from shared.model.resources import quantities_from

UNAVAILABLE_FOR: Final = timedelta(minutes=3)
BREAKER_OPEN: Final = "LaunchBreakerOpen"
REFUSED: Final = "instances could not be launched"
"""What a NodePool is told begins with this where EC2 refuses for another reason than that it has none."""
_LONGEST_MESSAGE: Final = 300
_DELETED_FOR: Final = {"InsufficientCapacity": "insufficient_capacity", "LimitExceeded": "limit_exceeded"}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, and which claims still have no instance, sorted."""

    actions: tuple[Action, ...]
    left: tuple[str, ...]


def outcome(group: LaunchGroup, cluster: Cluster) -> Outcome:
    """Answer what follows from `group.result`; claims that are gone or launched already are passed over."""
    result = group.result
    if result is None:
        return Outcome(actions=(), left=group.claims)
    names = frozenset(group.claims)
    claims = {claim.name: claim for claim in cluster.node_claims if claim.name in names and group.is_for(claim)}
    given = dict(zip(group.claims, sorted(result.instances), strict=False))
    actions: list[Action] = [mark for error in result.errors for mark in marks(error, group, cluster)]
    for name, instance in sorted(given.items()):
        claim = claims.get(name)
        if claim is not None and not claim.is_launched():
            actions.extend(_launched(claim, instance, group, cluster))
    if any(error.code == NO_SPOT_ROLE for error in result.errors):
        reason = reason_of(NO_SPOT_ROLE)
        message = f"spot instances cannot be launched in this account; {remedy_of(reason)}"
        actions.extend(_about_pool(pool_of(group.request), reason, message, cluster.taken_at))
    left = tuple(name for name in group.claims if name not in given and name in claims)
    if left and not _is_out_of_capacity(result.errors):
        texts = sorted({f"{error.code}: {error.message}" for error in result.errors})
        message = "; ".join(texts) or "too few instances returned"
        actions.extend(_failed([claims[name] for name in left], message, cluster.taken_at))
        left = ()
    return Outcome(actions=tuple(dict.fromkeys(actions)), left=left)


def unanswered(group: LaunchGroup, message: str, cluster: Cluster) -> tuple[Action, ...]:
    """Answer what the claims of a group are told whose request failed, so that nobody knows what became of it."""
    claims = [one for one in cluster.node_claims if group.is_for(one) and not one.is_launched()]
    return _failed(claims, message, cluster.taken_at)


def blown(trip: Trip, cluster: Cluster) -> tuple[Action, ...]:
    """Answer what a NodePool is told whose launches the breaker stopped."""
    return _about_pool(trip.pool, BREAKER_OPEN, trip.message, cluster.taken_at)


def marks(error: FleetError, group: LaunchGroup, cluster: Cluster) -> tuple[MarkUnavailable, ...]:
    """Answer what one refusal closes: its offering, a subnet, spot altogether, or all that was asked for.

    What is refused to a placement group is open to others.
    """
    until = cluster.taken_at + UNAVAILABLE_FOR
    why = f"{error.code}: {error.message}"
    if error.code == NO_SPOT_ROLE:
        return (MarkUnavailable(offering=UnavailableOffering(capacity_type=labels.SPOT, until=until), why=why),)
    if error.code == NO_ADDRESSES and error.subnet_id:
        return _without_addresses(error, group, cluster)
    within = next((one.placement_group_id for one in group.templates), "")
    if within and SPREAD_FULL in error.message:
        zone = UnavailableOffering(capacity_type="", zone=error.zone, until=until, group_id=within)
        return (MarkUnavailable(offering=zone, why=why),)
    if error.code not in NO_CAPACITY:
        return ()
    closed = [(error.instance_type, error.zone)] if error.instance_type else _all(group)
    kind = group.request.capacity_type
    return tuple(
        MarkUnavailable(
            offering=UnavailableOffering(
                capacity_type=kind, instance_type=name, zone=zone, until=until, group_id=within
            ),
            why=why,
        )
        for name, zone in closed
    )


def _without_addresses(error: FleetError, group: LaunchGroup, cluster: Cluster) -> tuple[MarkUnavailable, ...]:
    """Close the subnet, and its zone if the node class has no other subnet there that is not full too."""
    until = cluster.taken_at + UNAVAILABLE_FOR
    why = f"{error.code}: {error.message}"
    subnet = UnavailableOffering(capacity_type="", zone=error.zone, subnet_id=error.subnet_id, until=until)
    name = dict(group.request.tags).get(labels.NODECLASS, "")
    full = full_subnets(cluster.unavailable, cluster.taken_at) | {error.subnet_id}
    subnets = [one for each in cluster.node_classes if each.name == name for one in each.resolved_subnets]
    others = [one for one in subnets if one.zone == error.zone and one.subnet_id not in full]
    closed = [subnet] if others else [subnet, UnavailableOffering(capacity_type="", zone=error.zone, until=until)]
    return tuple(MarkUnavailable(offering=one, why=why) for one in closed)


def given_up(one: Unlaunchable, now: datetime) -> tuple[Action, ...]:
    """Answer what a claim that cannot be launched is told; a final one is deleted, its pods are planned anew.

    What it was told before is not told again.
    """
    claim = one.claim
    if not one.final and _knows(claim, one.reason, one.message):
        return ()
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
        why = _DELETED_FOR.get(one.reason, "nodeclass_not_ready")
        return (event, DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=why))
    told = _status(claim, one.reason, one.message, now)
    return (told,) if one.reason == BREAKER_OPEN else (event, told)


def _all(group: LaunchGroup) -> list[tuple[str, str]]:
    return [(one.instance_type, one.zone) for config in group.request.configs for one in config.overrides]


def _is_out_of_capacity(errors: tuple[FleetError, ...]) -> bool:
    return bool(errors) and all(
        error.code in NO_CAPACITY or error.code == NO_SPOT_ROLE or SPREAD_FULL in error.message for error in errors
    )


def _launched(claim: NodeClaim, instance: FleetInstance, group: LaunchGroup, cluster: Cluster) -> tuple[Action, ...]:
    node_class = next((one for one in cluster.node_classes if one.name == claim.node_class.name), None)
    types = _types(claim, cluster)
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
    template = _template_of(instance, group)
    found |= _of_template(template, instance)
    profile = node_class.resolved_profile if node_class is not None else ""
    notes = {labels.INSTANCE_PROFILE: profile} if profile else {}
    metadata = PatchMetadata(
        kind="NodeClaim",
        name=claim.name,
        labels=tuple(sorted((found | dict(claim.meta.labels)).items())),
        annotations=pairs(notes | _hash_of(group) | _overlaid(kind, instance)),
        why="launched",
    )
    return (metadata, _launched_status(claim, instance, kind, template, cluster.taken_at))


def _hash_of(group: LaunchGroup) -> dict[str, str]:
    """Answer what the machines of *group* were made of: the class may have changed since it was written down."""
    if not group.node_class_hash:
        return {}
    return {
        labels.NODECLASS_HASH: group.node_class_hash,
        labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE,
    }


def _template_of(instance: FleetInstance, group: LaunchGroup) -> LaunchTemplate | None:
    """Answer the template that *instance* was started with."""
    place = (instance.instance_type, instance.zone)
    named = {
        config.launch_template_name
        for config in group.request.configs
        if any((one.instance_type, one.zone) == place for one in config.overrides)
    }
    return next((one for one in group.templates if one.name in named), None)


def _of_template(template: LaunchTemplate | None, instance: FleetInstance) -> dict[str, str]:
    """Answer the labels that *template* decides: tenancy, partition, and the reservation."""
    if template is None:
        return {}
    found: dict[str, str] = {labels.TENANCY: template.tenancy}
    if template.partition_number is not None:
        found[labels.PARTITION] = str(template.partition_number)
    if instance.capacity_type != labels.RESERVED or not template.reservation_id:
        return found
    is_interruptible = template.reservation_type == "interruptible"
    return found | {
        labels.RESERVATION_ID: template.reservation_id,
        labels.RESERVATION_TYPE: "default" if is_interruptible else template.reservation_type,
        labels.RESERVATION_INTERRUPTIBLE: "true" if is_interruptible else "false",
    }


def _types(claim: NodeClaim, cluster: Cluster) -> tuple[InstanceType, ...]:
    pool = claim.meta.label(labels.NODEPOOL)
    return cluster.catalogue.types_for(claim.node_class.name, pool) if cluster.catalogue is not None else ()


def _overlaid(kind: InstanceType | None, instance: FleetInstance) -> dict[str, str]:
    """Answer the annotations of a claim that was launched with what NodeOverlays say."""
    if kind is None:
        return {}
    place = (instance.zone, instance.capacity_type)
    is_priced = any(one.is_overlaid for one in kind.offerings if (one.zone, one.capacity_type) == place)
    notes = ((labels.PRICE_OVERLAY, is_priced), (labels.CAPACITY_OVERLAY, kind.is_overlaid))
    return {name: "true" for name, holds in notes if holds}


def _launched_status(
    claim: NodeClaim,
    instance: FleetInstance,
    kind: InstanceType | None,
    template: LaunchTemplate | None,
    now: datetime,
) -> PatchStatus:
    status: dict[str, object] = {
        "providerID": f"aws:///{instance.zone}/{instance.instance_id}",
        "imageID": instance.image_id,
        "conditions": _conditions(claim, "True", "Launched", "", now),
    }
    if kind is not None:
        unlike = () if template is None or has_efa(template) else (EFA,)
        status["capacity"] = quantities_from(kind.capacity.without(unlike))
        status["allocatable"] = quantities_from(kind.allocatable.without(unlike))
    why = f"{instance.instance_id} is a {instance.capacity_type} {instance.instance_type} in {instance.zone}"
    return PatchStatus(kind="NodeClaim", name=claim.name, status=json.dumps(status, sort_keys=True), why=why)


def _failed(claims: Iterable[NodeClaim], message: str, now: datetime) -> tuple[Action, ...]:
    """Tell each of *claims* why it was not launched, and their NodePools what to do about it."""
    reason = reason_of(message)
    remedy = remedy_of(reason)
    text = f"{_cut(message)}; {remedy}" if remedy else message
    some = list(claims)
    told: list[Action] = [_status(one, reason, text, now) for one in some if not _knows(one, reason, text)]
    for pool in sorted({one.meta.label(labels.NODEPOOL) for one in some} - {""}):
        told.extend(_about_pool(pool, reason, f"{REFUSED}: {_cut(text)}", now))
    return tuple(told)


def _about_pool(pool: str, reason: str, message: str, now: datetime) -> tuple[Action, ...]:
    return (PublishEvent(kind="NodePool", name=pool, type="Warning", reason=reason, message=message, at=now),)


def _knows(claim: NodeClaim, reason: str, message: str) -> bool:
    known = condition(claim.conditions, "Launched")
    return known is not None and (known.status, known.reason, known.message) == ("Unknown", reason, _cut(message))


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else message[:_LONGEST_MESSAGE] + "..."


def _status(claim: NodeClaim, reason: str, message: str, now: datetime) -> PatchStatus:
    conditions = _conditions(claim, "Unknown", reason, _cut(message), now)
    status = json.dumps({"conditions": conditions}, sort_keys=True)
    return PatchStatus(kind="NodeClaim", name=claim.name, status=status, why=f"{reason}: {_cut(message)}")


def _conditions(claim: NodeClaim, status: str, reason: str, message: str, now: datetime) -> list[dict[str, Any]]:
    """Answer all conditions of *claim* as the API has them, with `Launched` as given and `Ready` after it."""
    since = now if status == "True" else claim.meta.created_at or now
    generation = claim.meta.generation
    some = with_condition(claim.conditions, "Launched", status, reason, message, now=since, generation=generation)
    return conditions_json(rooted(some, CLAIM_ROOTS, now, generation, claim.meta.created_at))


def _single_values(some: Requirements) -> dict[str, str]:
    return {item.key: min(item.values) for item in some if not item.complement and len(item.values) == 1}
