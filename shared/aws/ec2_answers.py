"""What EC2's Describe calls answer, as values of `shared.model.ec2`."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.model.ec2 import (
    CapacityReservation,
    CapacityType,
    Image,
    Instance,
    LaunchTemplate,
    PlacementGroup,
    SecurityGroup,
    SpotPrice,
    Subnet,
    Tags,
)

RESERVED_ONLY: Final = "capacity-reservations-only"


def instance_from_wire(wire: Mapping[str, Any]) -> Instance:
    """Answer one instance of DescribeInstances."""
    return Instance(
        instance_id=wire["InstanceId"],
        instance_type=wire["InstanceType"],
        zone=wire["Placement"]["AvailabilityZone"],
        subnet_id=wire.get("SubnetId", ""),
        image_id=wire.get("ImageId", ""),
        state=wire["State"]["Name"],
        launched_at=wire["LaunchTime"].astimezone(UTC),
        capacity_type=capacity_type_of(wire),
        private_dns_name=wire.get("PrivateDnsName", ""),
        security_group_ids=tuple(sorted(group["GroupId"] for group in wire.get("SecurityGroups", ()))),
        tags=tags_from_wire(wire.get("Tags", ())),
    )


def capacity_type_of(wire: Mapping[str, Any]) -> CapacityType:
    """Answer how an instance is paid for: the spot request decides, then a reservation it may not leave."""
    if wire.get("SpotInstanceRequestId") or wire.get("InstanceLifecycle") == "spot":
        return "spot"
    preference = wire.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference", "")
    return "reserved" if wire.get("CapacityReservationId") and preference == RESERVED_ONLY else "on-demand"


def subnet_from_wire(wire: Mapping[str, Any]) -> Subnet:
    """Answer one subnet of DescribeSubnets."""
    return Subnet(
        subnet_id=wire["SubnetId"],
        zone=wire["AvailabilityZone"],
        zone_id=wire.get("AvailabilityZoneId", ""),
        available_ip_count=wire.get("AvailableIpAddressCount", 0),
    )


def security_group_from_wire(wire: Mapping[str, Any]) -> SecurityGroup:
    """Answer one group of DescribeSecurityGroups."""
    return SecurityGroup(group_id=wire["GroupId"], name=wire.get("GroupName", ""))


def image_from_wire(wire: Mapping[str, Any]) -> Image:
    """Answer one image of DescribeImages."""
    deprecated = wire.get("DeprecationTime", "")
    return Image(
        image_id=wire["ImageId"],
        name=wire.get("Name", ""),
        architecture=wire["Architecture"],
        created_at=_instant(wire["CreationDate"]),
        deprecated_at=_instant(deprecated) if deprecated else None,
        tags=tags_from_wire(wire.get("Tags", ())),
    )


def reservation_from_wire(wire: Mapping[str, Any]) -> CapacityReservation:
    """Answer one reservation of DescribeCapacityReservations."""
    end = wire.get("EndDate")
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
    )


def placement_group_from_wire(wire: Mapping[str, Any]) -> PlacementGroup:
    """Answer one group of DescribePlacementGroups."""
    return PlacementGroup(
        group_id=wire.get("GroupId", ""),
        name=wire.get("GroupName", ""),
        strategy=wire.get("Strategy", ""),
        partition_count=wire.get("PartitionCount", 0),
    )


def launch_template_from_wire(wire: Mapping[str, Any]) -> LaunchTemplate:
    """Answer one template of DescribeLaunchTemplates, which does not tell its content."""
    return LaunchTemplate(
        name=wire["LaunchTemplateName"],
        image_id="",
        user_data="",
        tags=tags_from_wire(wire.get("Tags", ())),
        created_at=wire["CreateTime"].astimezone(UTC),
    )


def newest_prices(history: Iterable[Mapping[str, Any]]) -> tuple[SpotPrice, ...]:
    """Answer the newest price of each type and zone, sorted; entries without a usable price are left out."""
    newest: dict[tuple[str, str], SpotPrice] = {}
    for price in filter(None, map(_spot_price, history)):
        key = (price.instance_type, price.zone)
        newest[key] = max(newest.get(key, price), price, key=lambda each: (each.at, each.price_usd_per_hour))
    return tuple(newest[key] for key in sorted(newest))


def tags_from_wire(wire: Iterable[Mapping[str, str]]) -> Tags:
    """Answer tags sorted by key."""
    return tuple(sorted((tag["Key"], tag["Value"]) for tag in wire))


def _spot_price(wire: Mapping[str, Any]) -> SpotPrice | None:
    try:
        price = float(wire.get("SpotPrice", ""))
    except ValueError:
        return None
    if "Timestamp" not in wire or not 0 < price < math.inf:
        return None
    return SpotPrice(
        instance_type=wire["InstanceType"],
        zone=wire["AvailabilityZone"],
        price_usd_per_hour=price,
        at=wire["Timestamp"].astimezone(UTC),
    )


def _instant(text: str) -> datetime:
    """Parse EC2's text: ``2026-11-21T08:00:00.000Z``."""
    return datetime.fromisoformat(text).astimezone(UTC)
