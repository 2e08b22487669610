"""Actions that follow from EC2's response to a fleet request.

Claims get their instance, unavailable offerings are recorded, and failed claims are reported or deleted.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.decide.launch.fleets.circuit_breaker import CircuitBreakerTrip
from shared.decide.launch.fleets.fleet_errors import (
    CAPACITY_ERROR_CODES,
    SPREAD_GROUP_FULL_MESSAGE,
    get_failure_fix,
    get_failure_reason,
)
from shared.decide.launch.fleets.fleet_request import Unlaunchable
from shared.decide.launch.fleets.launch_template import has_efa
from shared.decide.launch.fleets.unavailable_offerings import plan_unavailable_offerings, record_capacity_errors
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cloud_provider.launch_group import LaunchGroup, get_node_pool_name
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.conditions import NODE_CLAIM_ROOTS, encode_conditions, with_condition, with_root_conditions
from shared.model.core.metadata import build_pairs, find_condition
from shared.model.core.requirements import Requirements
from shared.model.core.resources import EFA, format_quantities
from shared.model.decisions.action import (
    LAUNCH_REFUSED_PREFIX,
    Action,
    DeleteObject,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
)
from shared.model.ec2.fleet import NO_SPOT_ROLE_CODE, FleetError, FleetInstance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_claim import NodeClaim

BREAKER_OPEN_REASON: Final = "LaunchBreakerOpen"
_MAX_MESSAGE_LENGTH: Final = 300
_DELETION_REASONS: Final = {
    "InsufficientCapacity": "insufficient_capacity",
    "LaunchesPaused": "launches_paused",
    "LimitExceeded": "limit_exceeded",
}


class FleetOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The actions, and the claims that still have no instance, sorted."""

    actions: tuple[Action, ...]
    unserved_claims: tuple[str, ...]


def plan_fleet_outcome(group: LaunchGroup, cluster: ClusterSnapshot) -> FleetOutcome:
    """Return the actions for `group.result`; claims that are deleted or already launched are skipped."""
    result = group.result
    if result is None:
        return FleetOutcome(actions=(), unserved_claims=group.claims)
    names = frozenset(group.claims)
    claims = {claim.name: claim for claim in cluster.node_claims if claim.name in names and group.is_for(claim)}
    instance_by_claim = dict(zip(group.claims, sorted(result.instances), strict=False))
    marks = [mark for error in result.errors for mark in plan_unavailable_offerings(error, group, cluster)]
    actions: list[Action] = [*marks, *record_capacity_errors(marks, cluster)]
    for name, instance in sorted(instance_by_claim.items()):
        claim = claims.get(name)
        if claim is not None and not claim.is_launched():
            actions.extend(_record_launch(claim, instance, group, cluster))
    if any(error.code == NO_SPOT_ROLE_CODE for error in result.errors):
        reason = get_failure_reason(NO_SPOT_ROLE_CODE)
        message = f"spot instances cannot be launched in this account; {get_failure_fix(reason)}"
        actions.extend(_build_node_pool_event(get_node_pool_name(group.request), reason, message, cluster.taken_at))
    unserved_claims = tuple(name for name in group.claims if name not in instance_by_claim and name in claims)
    if unserved_claims and not _is_out_of_capacity(result.errors):
        texts = sorted({f"{error.code}: {error.message}" for error in result.errors})
        message = "; ".join(texts) or "too few instances returned"
        actions.extend(_report_failure([claims[name] for name in unserved_claims], message, cluster.taken_at))
        unserved_claims = ()
    return FleetOutcome(actions=tuple(dict.fromkeys(actions)), unserved_claims=unserved_claims)


def report_failed_request(group: LaunchGroup, message: str, cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Report to the claims of *group* that the request failed, so that its result is unknown."""
    claims = [claim for claim in cluster.node_claims if group.is_for(claim) and not claim.is_launched()]
    return _report_failure(claims, message, cluster.taken_at)


def report_breaker_trip(trip: CircuitBreakerTrip, cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Report to a NodePool that the circuit breaker stopped its launches."""
    return _build_node_pool_event(trip.node_pool, BREAKER_OPEN_REASON, trip.message, cluster.taken_at)


def report_unlaunchable(unlaunchable: Unlaunchable, now: datetime) -> tuple[Action, ...]:
    """Report why a claim cannot be launched; a final failure deletes the claim and its pods are scheduled again.

    A message that the claim already has is not repeated.
    """
    claim = unlaunchable.claim
    if not unlaunchable.final and _has_message(claim, unlaunchable.reason, unlaunchable.message):
        return ()
    reason = "InsufficientCapacityError" if unlaunchable.reason == "InsufficientCapacity" else unlaunchable.reason
    event = PublishEvent(
        kind="NodeClaim",
        name=claim.name,
        uid=claim.meta.uid,
        type="Warning",
        reason=reason,
        message=f"NodeClaim {claim.name}: {unlaunchable.message}",
        at=now,
    )
    if unlaunchable.final:
        deletion_reason = _DELETION_REASONS.get(unlaunchable.reason, "nodeclass_not_ready")
        return (event, DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=deletion_reason))
    status_patch = _build_failed_status(claim, unlaunchable.reason, unlaunchable.message, now)
    return (status_patch,) if unlaunchable.reason == BREAKER_OPEN_REASON else (event, status_patch)


def _is_out_of_capacity(errors: tuple[FleetError, ...]) -> bool:
    return bool(errors) and all(
        error.code in CAPACITY_ERROR_CODES
        or error.code == NO_SPOT_ROLE_CODE
        or SPREAD_GROUP_FULL_MESSAGE in error.message
        for error in errors
    )


def _record_launch(
    claim: NodeClaim, instance: FleetInstance, group: LaunchGroup, cluster: ClusterSnapshot
) -> tuple[Action, ...]:
    node_class = next(
        (node_class for node_class in cluster.node_classes if node_class.name == claim.node_class.name), None
    )
    types = _list_instance_types(claim, cluster)
    instance_type = next(
        (instance_type for instance_type in types if instance_type.name == instance.instance_type), None
    )
    node_labels = _collect_single_values(instance_type.requirements if instance_type is not None else Requirements())
    node_labels |= {
        labels.INSTANCE_TYPE: instance.instance_type,
        labels.ZONE: instance.zone,
        labels.CAPACITY_TYPE: instance.capacity_type,
    }
    if instance_type is not None:
        zone_id = next((offering.zone_id for offering in instance_type.offerings if offering.zone == instance.zone), "")
        node_labels |= {labels.ZONE_ID: zone_id} if zone_id else {}
    template = _find_template(instance, group)
    node_labels |= _build_template_labels(template, instance)
    profile = node_class.resolved_profile if node_class is not None else ""
    annotations = {labels.INSTANCE_PROFILE: profile} if profile else {}
    metadata = PatchMetadata(
        kind="NodeClaim",
        name=claim.name,
        labels=tuple(sorted((node_labels | dict(claim.meta.labels)).items())),
        annotations=build_pairs(
            annotations | _build_hash_annotations(group) | _build_overlay_annotations(instance_type, instance)
        ),
        message="launched",
    )
    return (metadata, _build_launched_status(claim, instance, instance_type, template, cluster.taken_at))


def _build_hash_annotations(group: LaunchGroup) -> dict[str, str]:
    """Return the node class hash that *group* was launched with: the class may have changed since then."""
    if not group.node_class_hash:
        return {}
    return {
        labels.NODECLASS_HASH: group.node_class_hash,
        labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE,
    }


def _find_template(instance: FleetInstance, group: LaunchGroup) -> LaunchTemplate | None:
    """Return the launch template with which *instance* was started."""
    place = (instance.instance_type, instance.zone)
    template_names = {
        config.launch_template_name
        for config in group.request.configs
        if any((override.instance_type, override.zone) == place for override in config.overrides)
    }
    return next((template for template in group.templates if template.name in template_names), None)


def _build_template_labels(template: LaunchTemplate | None, instance: FleetInstance) -> dict[str, str]:
    """Return the labels that *template* determines: tenancy, partition, and the capacity reservation."""
    if template is None:
        return {}
    template_labels: dict[str, str] = {labels.TENANCY: template.tenancy}
    if template.partition_number is not None:
        template_labels[labels.PARTITION] = str(template.partition_number)
    if instance.capacity_type != labels.RESERVED or not template.reservation_id:
        return template_labels
    is_interruptible = template.reservation_type == "interruptible"
    return template_labels | {
        labels.RESERVATION_ID: template.reservation_id,
        labels.RESERVATION_TYPE: "default" if is_interruptible else template.reservation_type,
        labels.RESERVATION_INTERRUPTIBLE: "true" if is_interruptible else "false",
    }


def _list_instance_types(claim: NodeClaim, cluster: ClusterSnapshot) -> tuple[InstanceType, ...]:
    pool = claim.meta.get_label(labels.NODEPOOL)
    return cluster.catalog.get_instance_types(claim.node_class.name, pool) if cluster.catalog is not None else ()


def _build_overlay_annotations(instance_type: InstanceType | None, instance: FleetInstance) -> dict[str, str]:
    """Return the annotations of a claim that was launched with values from NodeOverlays."""
    if instance_type is None:
        return {}
    place = (instance.zone, instance.capacity_type)
    is_priced = any(
        offering.is_overlaid for offering in instance_type.offerings if (offering.zone, offering.capacity_type) == place
    )
    annotations = ((labels.PRICE_OVERLAY, is_priced), (labels.CAPACITY_OVERLAY, instance_type.is_overlaid))
    return {name: "true" for name, holds in annotations if holds}


def _build_launched_status(
    claim: NodeClaim,
    instance: FleetInstance,
    instance_type: InstanceType | None,
    template: LaunchTemplate | None,
    now: datetime,
) -> PatchStatus:
    status: dict[str, object] = {
        "providerID": f"aws:///{instance.zone}/{instance.instance_id}",
        "imageID": instance.image_id,
        "conditions": _build_conditions(claim, "True", "Launched", "", now),
    }
    if instance_type is not None:
        unsupported_resources = () if template is None or has_efa(template) else (EFA,)
        status["capacity"] = format_quantities(instance_type.capacity.without(unsupported_resources))
        status["allocatable"] = format_quantities(instance_type.allocatable.without(unsupported_resources))
    message = f"{instance.instance_id} is a {instance.capacity_type} {instance.instance_type} in {instance.zone}"
    return PatchStatus(kind="NodeClaim", name=claim.name, status=json.dumps(status, sort_keys=True), message=message)


def _report_failure(claims: Iterable[NodeClaim], message: str, now: datetime) -> tuple[Action, ...]:
    """Report the failure to each of *claims*, and the failure and its fix to their NodePools."""
    reason = get_failure_reason(message)
    fix = get_failure_fix(reason)
    message_with_fix = f"{_truncate_message(message)}; {fix}" if fix else message
    claim_list = list(claims)
    actions: list[Action] = [
        _build_failed_status(claim, reason, message_with_fix, now)
        for claim in claim_list
        if not _has_message(claim, reason, message_with_fix)
    ]
    for node_pool in sorted({claim.meta.get_label(labels.NODEPOOL) for claim in claim_list} - {""}):
        actions.extend(
            _build_node_pool_event(
                node_pool, reason, f"{LAUNCH_REFUSED_PREFIX}: {_truncate_message(message_with_fix)}", now
            )
        )
    return tuple(actions)


def _build_node_pool_event(node_pool: str, reason: str, message: str, now: datetime) -> tuple[Action, ...]:
    return (PublishEvent(kind="NodePool", name=node_pool, type="Warning", reason=reason, message=message, at=now),)


def _has_message(claim: NodeClaim, reason: str, message: str) -> bool:
    launched_condition = find_condition(claim.conditions, "Launched")
    return launched_condition is not None and (
        launched_condition.status,
        launched_condition.reason,
        launched_condition.message,
    ) == ("Unknown", reason, _truncate_message(message))


def _truncate_message(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE_LENGTH else message[:_MAX_MESSAGE_LENGTH] + "..."


def _build_failed_status(claim: NodeClaim, reason: str, message: str, now: datetime) -> PatchStatus:
    conditions = _build_conditions(claim, "Unknown", reason, _truncate_message(message), now)
    status = json.dumps({"conditions": conditions}, sort_keys=True)
    return PatchStatus(
        kind="NodeClaim", name=claim.name, status=status, message=f"{reason}: {_truncate_message(message)}"
    )


def _build_conditions(claim: NodeClaim, status: str, reason: str, message: str, now: datetime) -> list[dict[str, Any]]:
    """Return all conditions of *claim* in API form, with `Launched` set and `Ready` derived from it."""
    since = now if status == "True" else claim.meta.created_at or now
    generation = claim.meta.generation
    conditions = with_condition(claim.conditions, "Launched", status, reason, message, now=since, generation=generation)
    return encode_conditions(with_root_conditions(conditions, NODE_CLAIM_ROOTS, now, generation, claim.meta.created_at))


def _collect_single_values(requirements: Requirements) -> dict[str, str]:
    return {item.key: min(item.values) for item in requirements if not item.complement and len(item.values) == 1}
