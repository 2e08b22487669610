"""What the status of an EC2NodeClass says of what was found, and whether a patch would say anything new."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.action import PatchStatus
from shared.model.conditions import conditions_json
from shared.model.ec2 import CapacityReservation
from shared.model.nodeclasses import EC2NodeClass
from shared.model.requirements import written
from shared.model.units import instant_text

BLOCK_ENDS: Final = timedelta(minutes=40)
"""EC2 begins to take the instances of a capacity block back that long before its end."""


def stated(node_class: EC2NodeClass, now: datetime | None = None) -> Mapping[str, object]:
    """Answer the fields of the status, ready for JSON, all but the conditions.

    Reservations are in the state in which they are at *now*; without it in the one that the status says.
    """
    return {
        "amis": _images(node_class),
        "capacityReservations": [_reservation(one, now) for one in node_class.resolved_capacity_reservations],
        "instanceProfile": node_class.resolved_profile,
        "securityGroups": [{"id": one.group_id, "name": one.name} for one in node_class.resolved_security_groups],
        "subnets": [
            {"id": one.subnet_id, "zone": one.zone, "zoneID": one.zone_id} for one in node_class.resolved_subnets
        ],
    }


def is_said(node_class: EC2NodeClass, patch: PatchStatus) -> bool:
    """Whether the status of *node_class* is already what *patch* would make of it."""
    shown = {**stated(node_class), "conditions": conditions_json(node_class.conditions)}
    wanted = msgspec.json.decode(patch.status, type=dict[str, object])
    return all(shown.get(name) == value for name, value in wanted.items())


def _images(node_class: EC2NodeClass) -> list[dict[str, object]]:
    return [
        {
            "id": image.image_id,
            "name": image.name,
            "requirements": written(image.requirements),
            **({"deprecated": True} if image.deprecated else {}),
        }
        for image in node_class.resolved_images
    ]


def _reservation(one: CapacityReservation, now: datetime | None) -> dict[str, object]:
    said: dict[str, object] = {
        "availabilityZone": one.zone,
        "id": one.reservation_id,
        "instanceMatchCriteria": one.instance_match_criteria,
        "instanceType": one.instance_type,
        "interruptible": one.is_interruptible,
        "ownerID": one.owner_id,
        "reservationType": one.reservation_type,
        "state": one.state if now is None else _state(one, now),
    }
    return said if one.ends_at is None else said | {"endTime": instant_text(one.ends_at)}


def _state(one: CapacityReservation, now: datetime) -> str:
    is_ending = one.reservation_type == "capacity-block" and one.ends_at is not None and now >= one.ends_at - BLOCK_ENDS
    return "expiring" if is_ending else "active"
