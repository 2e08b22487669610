"""DescribeReservedInstances: parser of the response."""

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any, Final

from shared.model.ec2.commitments import ReservedInstances

LINUX_PRODUCTS: Final = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
"""Other products, such as Red Hat Enterprise Linux, have other prices."""
_ZONAL_SCOPE: Final = "Availability Zone"
_SECONDS_PER_HOUR: Final = 3600


def parse_reserved_instances(items: Iterable[Mapping[str, Any]]) -> tuple[ReservedInstances, ...]:
    """Return the Reserved Instances with default tenancy, sorted by id."""
    reserved = (_parse_item(item) for item in items if item.get("InstanceTenancy", "default") == "default")
    return tuple(sorted(reserved, key=lambda item: item.reservation_id))


def _parse_item(item: Mapping[str, Any]) -> ReservedInstances:
    hours = item["Duration"] / _SECONDS_PER_HOUR
    recurring_usd = sum(charge["Amount"] for charge in item.get("RecurringCharges", ()))
    return ReservedInstances(
        reservation_id=item["ReservedInstancesId"],
        instance_type=item["InstanceType"],
        count=item["InstanceCount"],
        zone=item.get("AvailabilityZone", "") if item.get("Scope") == _ZONAL_SCOPE else "",
        usd_per_hour=item.get("FixedPrice", 0.0) / hours + item.get("UsagePrice", 0.0) + recurring_usd,
        starts_at=item["Start"].astimezone(UTC),
        ends_at=item["End"].astimezone(UTC),
    )
