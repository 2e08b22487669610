"""Offerings to mark unavailable after a CreateFleet error, and for how long."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.decide.launch.fleets.fleet_errors import (
    CAPACITY_ERROR_CODES,
    NO_ADDRESSES_CODE,
    SPREAD_GROUP_FULL_MESSAGE,
)
from shared.decide.launch.fleets.subnets import list_full_subnets
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.offering_history import OfferingEvent
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.decisions.action import MarkUnavailable, RecordOfferingEvents
from shared.model.ec2.fleet import NO_SPOT_ROLE_CODE, FleetError

UNAVAILABLE_TTL: Final = timedelta(minutes=3)
_MAX_EXPONENT: Final = 16
MAX_UNAVAILABLE_TTL: Final = timedelta(hours=1)
"""The upper bound if an offering has repeated capacity errors."""


def plan_unavailable_offerings(
    error: FleetError, group: LaunchGroup, cluster: ClusterSnapshot
) -> tuple[MarkUnavailable, ...]:
    """Return what one fleet error makes unavailable: an offering, a subnet, spot in general, or the whole request.

    An offering that is unavailable to a placement group stays available to others.
    """
    until = cluster.taken_at + UNAVAILABLE_TTL
    message = f"{error.code}: {error.message}"
    if error.code == NO_SPOT_ROLE_CODE:
        return (MarkUnavailable(offering=UnavailableOffering(capacity_type=labels.SPOT, until=until), message=message),)
    if error.code == NO_ADDRESSES_CODE and error.subnet_id:
        return _close_full_subnet(error, group, cluster)
    group_id = next((template.placement_group_id for template in group.templates), "")
    if group_id and SPREAD_GROUP_FULL_MESSAGE in error.message:
        zone = UnavailableOffering(capacity_type="", zone=error.zone, until=until, group_id=group_id)
        return (MarkUnavailable(offering=zone, message=message),)
    if error.code not in CAPACITY_ERROR_CODES:
        return ()
    unavailable_pairs = [(error.instance_type, error.zone)] if error.instance_type else _list_requested_offerings(group)
    capacity_type = group.request.capacity_type
    return tuple(
        build_offering_mark(
            capacity_type,
            name,
            zone,
            now=cluster.taken_at,
            message=message,
            group_id=group_id,
            period=compute_unavailable_period(cluster, name, zone, capacity_type),
        )
        for name, zone in unavailable_pairs
    )


def compute_unavailable_period(
    cluster: ClusterSnapshot, instance_type: str, zone: str, capacity_type: str
) -> timedelta:
    """Return for how long an offering is avoided after a capacity error.

    Each recent capacity error in the history doubles the time, up to `MAX_UNAVAILABLE_TTL`.
    """
    history = cluster.offering_history
    record = None if history is None else history.find(instance_type, zone, capacity_type)
    if record is None:
        return UNAVAILABLE_TTL
    exponent = min(record.with_decay(cluster.taken_at).capacity_errors, _MAX_EXPONENT)
    return min(UNAVAILABLE_TTL * 2**exponent, MAX_UNAVAILABLE_TTL)


def record_capacity_errors(
    marks: Iterable[MarkUnavailable], cluster: ClusterSnapshot
) -> tuple[RecordOfferingEvents, ...]:
    """Return the action that adds the offerings of *marks* to the history; none without a history."""
    if cluster.offering_history is None:
        return ()
    return build_capacity_error_record(marks, cluster.taken_at, "capacity errors of CreateFleet")


def build_capacity_error_record(
    marks: Iterable[MarkUnavailable], at: datetime, message: str
) -> tuple[RecordOfferingEvents, ...]:
    """Return the action that adds a capacity error of each offering of *marks* to the history, if there are any.

    A mark that is about a subnet, a placement group, or all instance types or zones, says nothing about an offering.
    """
    offerings = {
        (offering.instance_type, offering.zone, offering.capacity_type)
        for offering in (mark.offering for mark in marks)
        if offering.instance_type and offering.zone and not offering.subnet_id and not offering.group_id
    }
    events = tuple(
        OfferingEvent(
            instance_type=instance_type,
            zone=zone,
            capacity_type=capacity_type,
            kind="capacity-error",
            at=at,
        )
        for instance_type, zone, capacity_type in sorted(offerings)
    )
    return (RecordOfferingEvents(events=events, message=message),) if events else ()


def build_offering_mark(
    capacity_type: str,
    instance_type: str,
    zone: str,
    *,
    now: datetime,
    message: str,
    group_id: str = "",
    period: timedelta = UNAVAILABLE_TTL,
) -> MarkUnavailable:
    """Return the action that makes one offering unavailable: to the placement group *group_id*, or to all launches."""
    offering = UnavailableOffering(
        capacity_type=capacity_type,
        instance_type=instance_type,
        zone=zone,
        until=now + period,
        group_id=group_id,
    )
    return MarkUnavailable(offering=offering, message=message)


def _close_full_subnet(error: FleetError, group: LaunchGroup, cluster: ClusterSnapshot) -> tuple[MarkUnavailable, ...]:
    """Mark the subnet as full, and its zone if the node class has no other subnet there with free addresses."""
    until = cluster.taken_at + UNAVAILABLE_TTL
    message = f"{error.code}: {error.message}"
    full_subnet = UnavailableOffering(capacity_type="", zone=error.zone, subnet_id=error.subnet_id, until=until)
    name = dict(group.request.tags).get(labels.NODECLASS, "")
    full_subnet_ids = list_full_subnets(cluster.unavailable, cluster.taken_at) | {error.subnet_id}
    subnets = [
        subnet
        for node_class in cluster.node_classes
        if node_class.name == name
        for subnet in node_class.resolved_subnets
    ]
    remaining_subnets = [
        subnet for subnet in subnets if subnet.zone == error.zone and subnet.subnet_id not in full_subnet_ids
    ]
    unavailable = (
        [full_subnet]
        if remaining_subnets
        else [full_subnet, UnavailableOffering(capacity_type="", zone=error.zone, until=until)]
    )
    return tuple(MarkUnavailable(offering=offering, message=message) for offering in unavailable)


def _list_requested_offerings(group: LaunchGroup) -> list[tuple[str, str]]:
    return [
        (override.instance_type, override.zone) for config in group.request.configs for override in config.overrides
    ]
