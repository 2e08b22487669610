"""EC2's describe calls for the catalog: types, offerings, spot prices, subnets, security groups, images."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from moto.ec2.models.instance_types import INSTANCE_TYPES

from shared.model.ec2.account import CapacityReservation, Image, PlacementGroup, SecurityGroup, SelectorTerm
from shared.model.ec2.types import Tags
from sim.aws_http.filters_and_pages import build_page, encode_tags, filter_items
from sim.aws_http.protocol import ApiDict, ApiError
from sim.cloud.catalog.synthetic_prices import SPOT_PRICE_INTERVAL, truncate_to_hour
from sim.cloud.cloud import Cloud
from sim.cloud.resources.network import SubnetAddresses

VPC_ID: Final = "vpc-0123456789abcdef0"
LINUX_PRODUCT: Final = "Linux/UNIX"
MAX_PRICE_HISTORY_HOURS: Final = 24
"""Limit of the spot price history."""
_TYPE_FILTER_PATHS: Final = {
    "instance-type": "InstanceType",
    "supported-virtualization-type": "SupportedVirtualizationTypes",
    "processor-info.supported-architecture": "ProcessorInfo.SupportedArchitectures",
}
_SUBNET_FILTER_PATHS: Final = {
    "subnet-id": "SubnetId",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "vpc-id": "VpcId",
}
_RESERVATION_FILTER_PATHS: Final = {
    "instance-match-criteria": "InstanceMatchCriteria",
    "owner-id": "OwnerId",
    "state": "State",
}
_OFFERING_FILTER_PATHS: Final = {"instance-type": "InstanceType", "location": "Location"}


class CatalogApi:
    """Handlers of the calls; each takes the parameters of a call and returns its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Use *cloud* as the backend."""
        self._cloud = cloud

    def describe_instance_types(self, parameters: ApiDict) -> ApiDict:
        """DescribeInstanceTypes: the real responses that moto contains, for the types of the cloud."""
        types = filter_items(_list_types(tuple(self._cloud.types)), parameters, _TYPE_FILTER_PATHS)
        return build_page(types, parameters, "InstanceTypes", 100)

    def describe_instance_type_offerings(self, parameters: ApiDict) -> ApiDict:
        """DescribeInstanceTypeOfferings by zone.

        Raises:
            ApiError: another location type is requested.
        """
        location_type = parameters.get("LocationType", "region")
        if location_type != "availability-zone":
            raise ApiError("InvalidParameterValue", "offerings are by availability-zone here")
        offerings = [
            {"InstanceType": name, "LocationType": location_type, "Location": zone}
            for name, zone in self._cloud.offerings
        ]
        return build_page(
            filter_items(offerings, parameters, _OFFERING_FILTER_PATHS), parameters, "InstanceTypeOfferings", 1000
        )

    def describe_spot_price_history(self, parameters: ApiDict) -> ApiDict:
        """DescribeSpotPriceHistory: one entry per pool and hour, from the one in force at `StartTime`, newest first."""
        if not {LINUX_PRODUCT, "Linux/UNIX (Amazon VPC)"} & set(parameters.get("ProductDescriptions", [LINUX_PRODUCT])):
            return {"SpotPriceHistory": []}
        requested_types = set(parameters.get("InstanceTypes", ()))
        entries = [
            {
                "InstanceType": price.instance_type,
                "AvailabilityZone": price.zone,
                "ProductDescription": LINUX_PRODUCT,
                "SpotPrice": f"{price.price_usd_per_hour:.6f}",
                "Timestamp": price.at,
            }
            for hour in self._list_hours(parameters.get("StartTime"))
            for price in self._cloud.prices.list_spot_prices(hour)
            if not requested_types or price.instance_type in requested_types
        ]
        return build_page(entries, parameters, "SpotPriceHistory", 1000)

    def describe_subnets(self, parameters: ApiDict) -> ApiDict:
        """DescribeSubnets."""
        subnets = [_encode_subnet(subnet) for _, subnet in sorted(self._cloud.network.subnets.items())]
        return build_page(filter_items(subnets, parameters, _SUBNET_FILTER_PATHS), parameters, "Subnets", 1000)

    def describe_security_groups(self, parameters: ApiDict) -> ApiDict:
        """DescribeSecurityGroups."""
        id_sets = [set(self._cloud.network.select_security_groups((SelectorTerm(name="*"),)))]
        for name, values in _parse_filters(parameters):
            selectors = tuple(
                _build_selector(name, value, {"group-id": "id", "group-name": "name"}) for value in values
            )
            id_sets.append(set(self._cloud.network.select_security_groups(selectors)))
        groups = sorted(set.intersection(*id_sets))
        return build_page([_encode_group(group) for group in groups], parameters, "SecurityGroups", 1000)

    def describe_images(self, parameters: ApiDict) -> ApiDict:
        """DescribeImages: available images; deprecated ones only if requested."""
        owner_selectors = [SelectorTerm(name="*", owner=owner) for owner in parameters.get("Owners", ())]
        id_sets = [set(self._select_images(owner_selectors))] if owner_selectors else []
        for name, values in _parse_filters(parameters):
            if name != "state":
                selectors = (_build_selector(name, value, {"image-id": "id", "name": "name"}) for value in values)
                id_sets.append(set(self._select_images(selectors)))
        image_ids = sorted(set.intersection(*id_sets) if id_sets else self._select_images([SelectorTerm(name="*")]))
        images = (self._cloud.images.find(image_id) for image_id in image_ids)
        visible_images = [
            image for image in images if parameters.get("IncludeDeprecated") or not self._is_deprecated(image)
        ]
        return build_page([_encode_image(image) for image in visible_images], parameters, "Images", 1000)

    def describe_capacity_reservations(self, parameters: ApiDict) -> ApiDict:
        """DescribeCapacityReservations: those that have not ended.

        Raises:
            ApiError: a reservation of `CapacityReservationIds` does not exist, or a page size accompanies them.
        """
        reservation_store = self._cloud.reservations
        ids = parameters.get("CapacityReservationIds", ())
        if ids and parameters.get("MaxResults"):
            text = "The parameter capacityReservationIds cannot be used with the parameter maxResults"
            raise ApiError("InvalidParameterCombination", text)
        for missing_id in (name for name in ids if reservation_store.find(name) is None):
            text = f"The capacity reservation ID '{missing_id}' does not exist."
            raise ApiError("InvalidCapacityReservationId.NotFound", text)
        reservations = [
            encode_reservation(reservation, reservation_store.get_tags(reservation.reservation_id))
            for reservation in reservation_store.list_current(self._cloud.clock.get_time())
            if not ids or reservation.reservation_id in ids
        ]
        return build_page(
            filter_items(reservations, parameters, _RESERVATION_FILTER_PATHS), parameters, "CapacityReservations", 1000
        )

    def describe_placement_groups(self, parameters: ApiDict) -> ApiDict:
        """DescribePlacementGroups by names or IDs.

        Raises:
            ApiError: one of them does not exist.
        """
        selectors = [SelectorTerm(name=name) for name in parameters.get("GroupNames", ())]
        selectors += [SelectorTerm(id=group_id) for group_id in parameters.get("GroupIds", ())]
        placement_groups = []
        for selector in selectors:
            group = self._cloud.reservations.find_group(selector)
            if group is None:
                name = selector.id or selector.name
                raise ApiError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
            placement_groups.append(_encode_placement_group(group))
        return {"PlacementGroups": placement_groups}

    def _select_images(self, selectors: Iterable[SelectorTerm]) -> list[str]:
        return [image.image_id for image in self._cloud.images.select(tuple(selectors))]

    def _is_deprecated(self, image: Image) -> bool:
        return image.deprecated_at is not None and image.deprecated_at <= self._cloud.clock.get_time()

    def _list_hours(self, start: datetime | None) -> list[datetime]:
        now = self._cloud.clock.get_time()
        since = min(start.replace(tzinfo=UTC), now) if start else now
        hours = (truncate_to_hour(now) - truncate_to_hour(since)) // SPOT_PRICE_INTERVAL
        return [now - SPOT_PRICE_INTERVAL * hours_ago for hours_ago in range(min(hours + 1, MAX_PRICE_HISTORY_HOURS))]


@cache
def _list_types(names: tuple[str, ...]) -> tuple[ApiDict, ...]:
    info_by_type: dict[str, Any] = INSTANCE_TYPES
    return tuple(info_by_type[name] for name in names)


def _parse_filters(parameters: ApiDict) -> list[tuple[str, list[str]]]:
    return [(item["Name"], item["Values"]) for item in parameters.get("Filters", ())]


def _build_selector(name: str, value: str, selector_fields: dict[str, str]) -> SelectorTerm:
    """Return a selector for one value of a filter.

    Raises:
        ApiError: there is no filter with this name.
    """
    if name.startswith("tag:"):
        return SelectorTerm(tags=((name.removeprefix("tag:"), value),))
    if name == "tag-key":
        return SelectorTerm(tags=((value, "*"),))
    if name not in selector_fields:
        raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return SelectorTerm(id=value) if selector_fields[name] == "id" else SelectorTerm(name=value)


def _encode_subnet(subnet: SubnetAddresses) -> ApiDict:
    return {
        "SubnetId": subnet.subnet_id,
        "AvailabilityZone": subnet.zone,
        "AvailabilityZoneId": subnet.zone_id,
        "AvailableIpAddressCount": max(subnet.free, 0),
        "CidrBlock": str(subnet.cidr),
        "State": "available",
        "VpcId": VPC_ID,
        "Tags": encode_tags(sorted(subnet.tags.items())),
    }


def _encode_group(group: SecurityGroup) -> ApiDict:
    return {"GroupId": group.group_id, "GroupName": group.name, "VpcId": VPC_ID}


def _encode_image(image: Image) -> ApiDict:
    deprecated = {"DeprecationTime": _format_instant(image.deprecated_at)} if image.deprecated_at else {}
    return {
        "ImageId": image.image_id,
        "Name": image.name,
        "Architecture": image.architecture,
        "CreationDate": _format_instant(image.created_at),
        "State": "available",
        "Tags": encode_tags(image.tags),
        **deprecated,
    }


def encode_reservation(reservation: CapacityReservation, tags: Tags) -> ApiDict:
    """Return *reservation* as EC2 returns it."""
    return {
        "CapacityReservationId": reservation.reservation_id,
        "InstanceType": reservation.instance_type,
        "AvailabilityZone": reservation.zone,
        "OwnerId": reservation.owner_id,
        "InstanceMatchCriteria": reservation.instance_match_criteria,
        "ReservationType": reservation.reservation_type,
        "Interruptible": reservation.is_interruptible,
        "AvailableInstanceCount": reservation.available_count,
        "TotalInstanceCount": reservation.total_count,
        "State": "active" if reservation.starts_at is None else "scheduled",
        "Tags": encode_tags(tags),
        **({} if reservation.starts_at is None else {"StartDate": reservation.starts_at}),
        **(
            {"EndDate": reservation.ends_at, "EndDateType": "limited"}
            if reservation.ends_at
            else {"EndDateType": "unlimited"}
        ),
    }


def _encode_placement_group(group: PlacementGroup) -> ApiDict:
    return {
        "GroupId": group.group_id,
        "GroupName": group.name,
        "State": "available",
        "Strategy": group.strategy,
        **({"PartitionCount": group.partition_count} if group.partition_count else {}),
    }


def _format_instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
