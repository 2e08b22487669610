"""What EC2 has to offer, on the wire: types, offerings, spot prices, subnets, security groups, images."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from moto.ec2.models.instance_types import INSTANCE_TYPES

from shared.model.ec2 import CapacityReservation, Image, PlacementGroup, SecurityGroup, Selector, Tags
from sim.cloud.cloud import Cloud
from sim.cloud.network import SubnetAddresses
from sim.cloud.prices import HOUR, hour_of
from sim.http.protocol import ApiError
from sim.http.queries import Wire, filtered, page, tags_to_wire

VPC: Final = "vpc-0123456789abcdef0"
LINUX: Final = "Linux/UNIX"
LONGEST_HISTORY: Final = 24
"""Hours of spot prices that are answered at most."""
_TYPE_PATHS: Final = {
    "instance-type": "InstanceType",
    "supported-virtualization-type": "SupportedVirtualizationTypes",
    "processor-info.supported-architecture": "ProcessorInfo.SupportedArchitectures",
}
_SUBNET_PATHS: Final = {
    "subnet-id": "SubnetId",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "vpc-id": "VpcId",
}
_RESERVATION_PATHS: Final = {
    "capacity-reservation-id": "CapacityReservationId",
    "instance-match-criteria": "InstanceMatchCriteria",
    "owner-id": "OwnerId",
    "state": "State",
}
_OFFERING_PATHS: Final = {"instance-type": "InstanceType", "location": "Location"}


class CatalogueCalls:
    """The handlers; each takes the call's parameters and answers its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Answer from *cloud*."""
        self._cloud = cloud

    def describe_instance_types(self, said: Wire) -> Wire:
        """DescribeInstanceTypes: the true answers that moto packages, of the types that the cloud has."""
        types = filtered(_types(tuple(self._cloud.types)), said, _TYPE_PATHS)
        return page(types, said, "InstanceTypes", 100)

    def describe_instance_type_offerings(self, said: Wire) -> Wire:
        """DescribeInstanceTypeOfferings by zone.

        Raises:
            ApiError: another kind of location is asked for.
        """
        kind = said.get("LocationType", "region")
        if kind != "availability-zone":
            raise ApiError("InvalidParameterValue", "offerings are by availability-zone here")
        offerings = [
            {"InstanceType": name, "LocationType": kind, "Location": zone} for name, zone in self._cloud.offerings
        ]
        return page(filtered(offerings, said, _OFFERING_PATHS), said, "InstanceTypeOfferings", 1000)

    def describe_spot_price_history(self, said: Wire) -> Wire:
        """DescribeSpotPriceHistory: an entry per pool and hour, from the one in force at `StartTime`, newest first."""
        if not {LINUX, "Linux/UNIX (Amazon VPC)"} & set(said.get("ProductDescriptions", [LINUX])):
            return {"SpotPriceHistory": []}
        wanted = set(said.get("InstanceTypes", ()))
        entries = [
            {
                "InstanceType": price.instance_type,
                "AvailabilityZone": price.zone,
                "ProductDescription": LINUX,
                "SpotPrice": f"{price.price_usd_per_hour:.6f}",
                "Timestamp": price.at,
            }
            for hour in self._hours(said.get("StartTime"))
            for price in self._cloud.prices.spot_list(hour)
            if not wanted or price.instance_type in wanted
        ]
        return page(entries, said, "SpotPriceHistory", 2000)

    def describe_subnets(self, said: Wire) -> Wire:
        """DescribeSubnets."""
        subnets = [_subnet(subnet) for _, subnet in sorted(self._cloud.network.subnets.items())]
        return page(filtered(subnets, said, _SUBNET_PATHS), said, "Subnets", 1000)

    def describe_security_groups(self, said: Wire) -> Wire:
        """DescribeSecurityGroups."""
        chosen = [set(self._cloud.network.select_security_groups((Selector(name="*"),)))]
        for name, values in _filters(said):
            terms = tuple(_term(name, value, {"group-id": "id", "group-name": "name"}) for value in values)
            chosen.append(set(self._cloud.network.select_security_groups(terms)))
        groups = sorted(set.intersection(*chosen))
        return page([_group(group) for group in groups], said, "SecurityGroups", 1000)

    def describe_images(self, said: Wire) -> Wire:
        """DescribeImages: available ones, deprecated ones only if they are asked for."""
        owned = [Selector(name="*", owner=owner) for owner in said.get("Owners", ())]
        chosen = [set(self._select(owned))] if owned else []
        for name, values in _filters(said):
            if name != "state":
                terms = (_term(name, value, {"image-id": "id", "name": "name"}) for value in values)
                chosen.append(set(self._select(terms)))
        ids = sorted(set.intersection(*chosen) if chosen else self._select([Selector(name="*")]))
        found = (self._cloud.images.find(image_id) for image_id in ids)
        known = [image for image in found if said.get("IncludeDeprecated") or not self._is_deprecated(image)]
        return page([_image(image) for image in known], said, "Images", 1000)

    def describe_capacity_reservations(self, said: Wire) -> Wire:
        """DescribeCapacityReservations, the active ones."""
        held = self._cloud.reservations
        found = [_reservation(one, held.tags_of(one.reservation_id)) for one in held.active(self._cloud.clock.now())]
        return page(filtered(found, said, _RESERVATION_PATHS), said, "CapacityReservations", 1000)

    def describe_placement_groups(self, said: Wire) -> Wire:
        """DescribePlacementGroups by names or ids.

        Raises:
            ApiError: one of them does not exist.
        """
        wanted = [Selector(name=name) for name in said.get("GroupNames", ())]
        wanted += [Selector(id=group_id) for group_id in said.get("GroupIds", ())]
        found = []
        for selector in wanted:
            group = self._cloud.reservations.group(selector)
            if group is None:
                name = selector.id or selector.name
                raise ApiError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
            found.append(_placement_group(group))
        return {"PlacementGroups": found}

    def _select(self, terms: Iterable[Selector]) -> list[str]:
        return [image.image_id for image in self._cloud.images.select(tuple(terms))]

    def _is_deprecated(self, image: Image) -> bool:
        return image.deprecated_at is not None and image.deprecated_at <= self._cloud.clock.now()

    def _hours(self, start: datetime | None) -> list[datetime]:
        now = self._cloud.clock.now()
        since = min(start.replace(tzinfo=UTC), now) if start else now
        hours = (hour_of(now) - hour_of(since)) // HOUR
        return [now - HOUR * back for back in range(min(hours + 1, LONGEST_HISTORY))]


@cache
def _types(names: tuple[str, ...]) -> tuple[Wire, ...]:
    known: dict[str, Any] = INSTANCE_TYPES
    return tuple(known[name] for name in names)


def _filters(said: Wire) -> list[tuple[str, list[str]]]:
    return [(each["Name"], each["Values"]) for each in said.get("Filters", ())]


def _term(name: str, value: str, fields: dict[str, str]) -> Selector:
    """Answer a selector for one value of a filter.

    Raises:
        ApiError: there is no filter of that name.
    """
    if name.startswith("tag:"):
        return Selector(tags=((name.removeprefix("tag:"), value),))
    if name == "tag-key":
        return Selector(tags=((value, "*"),))
    if name not in fields:
        raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return Selector(id=value) if fields[name] == "id" else Selector(name=value)


def _subnet(subnet: SubnetAddresses) -> Wire:
    return {
        "SubnetId": subnet.subnet_id,
        "AvailabilityZone": subnet.zone,
        "AvailabilityZoneId": subnet.zone_id,
        "AvailableIpAddressCount": max(subnet.free, 0),
        "CidrBlock": str(subnet.cidr),
        "State": "available",
        "VpcId": VPC,
        "Tags": tags_to_wire(sorted(subnet.tags.items())),
    }


def _group(group: SecurityGroup) -> Wire:
    return {"GroupId": group.group_id, "GroupName": group.name, "VpcId": VPC}


def _image(image: Image) -> Wire:
    deprecated = {"DeprecationTime": _instant(image.deprecated_at)} if image.deprecated_at else {}
    return {
        "ImageId": image.image_id,
        "Name": image.name,
        "Architecture": image.architecture,
        "CreationDate": _instant(image.created_at),
        "State": "available",
        "Tags": tags_to_wire(image.tags),
        **deprecated,
    }


def _reservation(one: CapacityReservation, tags: Tags) -> Wire:
    return {
        "CapacityReservationId": one.reservation_id,
        "InstanceType": one.instance_type,
        "AvailabilityZone": one.zone,
        "OwnerId": one.owner_id,
        "InstanceMatchCriteria": one.instance_match_criteria,
        "ReservationType": one.reservation_type,
        "Interruptible": one.is_interruptible,
        "AvailableInstanceCount": one.available_count,
        "TotalInstanceCount": one.total_count,
        "State": "active",
        "Tags": tags_to_wire(tags),
        **({"EndDate": one.ends_at, "EndDateType": "limited"} if one.ends_at else {"EndDateType": "unlimited"}),
    }


def _placement_group(group: PlacementGroup) -> Wire:
    return {
        "GroupId": group.group_id,
        "GroupName": group.name,
        "State": "available",
        "Strategy": group.strategy,
        **({"PartitionCount": group.partition_count} if group.partition_count else {}),
    }


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
