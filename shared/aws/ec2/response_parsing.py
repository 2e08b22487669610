"""Parsers of the responses of EC2's Describe calls into values of `shared.model.ec2.account`."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.model.ec2.account import CapacityReservation, Image, PlacementGroup, SecurityGroup, Subnet
from shared.model.ec2.instance import Instance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType, Tags

RESERVED_ONLY_PREFERENCE: Final = "capacity-reservations-only"


def parse_instance(wire: Mapping[str, Any]) -> Instance:
    """Parse one instance of DescribeInstances."""
    return Instance(
        instance_id=wire["InstanceId"],
        instance_type=wire["InstanceType"],
        zone=wire["Placement"]["AvailabilityZone"],
        subnet_id=wire.get("SubnetId", ""),
        image_id=wire.get("ImageId", ""),
        state=wire["State"]["Name"],
        launched_at=wire["LaunchTime"].astimezone(UTC),
        capacity_type=parse_capacity_type(wire),
        private_dns_name=wire.get("PrivateDnsName", ""),
        security_group_ids=tuple(sorted(group["GroupId"] for group in wire.get("SecurityGroups", ()))),
        tags=parse_tags(wire.get("Tags", ())),
        state_reason=parse_state_reason(wire.get("StateReason", {})),
    )


def parse_state_reason(wire: Mapping[str, str]) -> str:
    """Return the code and message of a StateReason; EC2 begins most messages with the code.

    >>> parse_state_reason({"Code": "Client.InternalError", "Message": "Client.InternalError: Client error on launch"})
    'Client.InternalError: Client error on launch'
    """
    code, message = wire.get("Code", ""), wire.get("Message", "")
    return message if not code or message.startswith(code) else f"{code}: {message}".removesuffix(": ")


def parse_capacity_type(wire: Mapping[str, Any]) -> CapacityType:
    """Return the capacity type: a spot request decides first, then a reservation that the instance may not leave."""
    if wire.get("SpotInstanceRequestId") or wire.get("InstanceLifecycle") == "spot":
        return "spot"
    preference = wire.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference", "")
    return "reserved" if wire.get("CapacityReservationId") and preference == RESERVED_ONLY_PREFERENCE else "on-demand"


def parse_subnet(wire: Mapping[str, Any]) -> Subnet:
    """Parse one subnet of DescribeSubnets."""
    return Subnet(
        subnet_id=wire["SubnetId"],
        zone=wire["AvailabilityZone"],
        zone_id=wire.get("AvailabilityZoneId", ""),
        available_ip_count=wire.get("AvailableIpAddressCount", 0),
    )


def parse_security_group(wire: Mapping[str, Any]) -> SecurityGroup:
    """Parse one group of DescribeSecurityGroups."""
    return SecurityGroup(group_id=wire["GroupId"], name=wire.get("GroupName", ""))


def parse_image(wire: Mapping[str, Any]) -> Image:
    """Parse one image of DescribeImages."""
    deprecated = wire.get("DeprecationTime", "")
    return Image(
        image_id=wire["ImageId"],
        name=wire.get("Name", ""),
        architecture=wire["Architecture"],
        created_at=_parse_timestamp(wire["CreationDate"]),
        deprecated_at=_parse_timestamp(deprecated) if deprecated else None,
        tags=parse_tags(wire.get("Tags", ())),
    )


def parse_reservation(wire: Mapping[str, Any]) -> CapacityReservation:
    """Parse one reservation of DescribeCapacityReservations."""
    end, start = wire.get("EndDate"), wire.get("StartDate") if wire.get("State") == "scheduled" else None
    return CapacityReservation(
        reservation_id=wire["CapacityReservationId"],
        instance_type=wire["InstanceType"],
        zone=wire.get("AvailabilityZone", ""),
        owner_id=wire.get("OwnerId", ""),
        instance_match_criteria=wire.get("InstanceMatchCriteria", "open"),
        reservation_type=wire.get("ReservationType") or "default",
        is_interruptible=bool(wire.get("Interruptible", False)),
        available_count=wire.get("AvailableInstanceCount", 0),
        total_count=wire.get("TotalInstanceCount", 0),
        ends_at=end.astimezone(UTC) if end is not None else None,
        starts_at=start.astimezone(UTC) if start is not None else None,
    )


def parse_placement_group(wire: Mapping[str, Any]) -> PlacementGroup:
    """Parse one group of DescribePlacementGroups."""
    return PlacementGroup(
        group_id=wire.get("GroupId", ""),
        name=wire.get("GroupName", ""),
        strategy=wire.get("Strategy", ""),
        partition_count=wire.get("PartitionCount", 0),
    )


def parse_launch_template(wire: Mapping[str, Any]) -> LaunchTemplate:
    """Parse one template of DescribeLaunchTemplates, which does not return the template's content."""
    return LaunchTemplate(
        name=wire["LaunchTemplateName"],
        image_id="",
        user_data="",
        tags=parse_tags(wire.get("Tags", ())),
        created_at=wire["CreateTime"].astimezone(UTC),
    )


def parse_tags(wire: Iterable[Mapping[str, str]]) -> Tags:
    """Return the tags sorted by key."""
    return tuple(sorted((tag["Key"], tag["Value"]) for tag in wire))


def _parse_timestamp(text: str) -> datetime:
    """Parse EC2's timestamp format: ``2026-11-21T08:00:00.000Z``."""
    return datetime.fromisoformat(text).astimezone(UTC)
