"""DescribeReservedInstances: the call, and the parser of its response."""

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any, Final

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.model.ec2.commitments import ReservedInstances

LINUX_PRODUCTS: Final = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
"""Other products, such as Red Hat Enterprise Linux, have other prices."""
_ZONAL_SCOPE: Final = "Availability Zone"
_SECONDS_PER_HOUR: Final = 3600


def describe_reserved_instances(clients: Clients) -> tuple[ReservedInstances, ...]:
    """Call DescribeReservedInstances with *clients* for active ones; the response has no pages."""
    with translate_errors("ec2:DescribeReservedInstances"):
        response = clients.get_retrying_client("ec2").describe_reserved_instances(
            Filters=[
                {"Name": "product-description", "Values": LINUX_PRODUCTS},
                {"Name": "state", "Values": ["active"]},
            ]
        )
    return parse_reserved_instances(response["ReservedInstances"])


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
