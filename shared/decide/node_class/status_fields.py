"""The status fields of an EC2NodeClass, and whether a patch would change the status."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from shared.model.core.conditions import encode_conditions
from shared.model.core.requirements import list_requirement_entries
from shared.model.core.units import format_instant
from shared.model.decisions.action import PatchStatus
from shared.model.ec2.account import CapacityReservation
from shared.model.karpenter.node_class import EC2NodeClass


def build_status_fields(node_class: EC2NodeClass, now: datetime | None = None) -> Mapping[str, object]:
    """Return the status fields for JSON, without the conditions.

    Reservations have their state at *now*; without *now*, the state that the status contains.
    """
    return {
        "amis": _build_images(node_class),
        "capacityReservations": [
            _build_reservation(reservation, now) for reservation in node_class.resolved_capacity_reservations
        ],
        "instanceProfile": node_class.resolved_profile,
        "securityGroups": [{"id": group.group_id, "name": group.name} for group in node_class.resolved_security_groups],
        "subnets": [
            {"id": subnet.subnet_id, "zone": subnet.zone, "zoneID": subnet.zone_id}
            for subnet in node_class.resolved_subnets
        ],
    }


def is_status_current(node_class: EC2NodeClass, patch: PatchStatus) -> bool:
    """Return whether the status of *node_class* already has the values of *patch*."""
    current_status = {**build_status_fields(node_class), "conditions": encode_conditions(node_class.conditions)}
    patched_status = msgspec.json.decode(patch.status, type=dict[str, object])
    return all(current_status.get(name) == value for name, value in patched_status.items())


def _build_images(node_class: EC2NodeClass) -> list[dict[str, object]]:
    return [
        {
            "id": image.image_id,
            "name": image.name,
            "requirements": list_requirement_entries(image.requirements),
            **({"deprecated": True} if image.deprecated else {}),
        }
        for image in node_class.resolved_images
    ]


def _build_reservation(reservation: CapacityReservation, now: datetime | None) -> dict[str, object]:
    fields: dict[str, object] = {
        "availabilityZone": reservation.zone,
        "id": reservation.reservation_id,
        "instanceMatchCriteria": reservation.instance_match_criteria,
        "instanceType": reservation.instance_type,
        "interruptible": reservation.is_interruptible,
        "ownerID": reservation.owner_id,
        "reservationType": reservation.reservation_type,
        "state": reservation.state if now is None else "expiring" if reservation.is_ending_block(now) else "active",
    }
    return fields if reservation.ends_at is None else fields | {"endTime": format_instant(reservation.ends_at)}
