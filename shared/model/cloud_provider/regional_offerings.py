"""Instance types and prices of a region."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from shared.model.core import labels
from shared.model.ec2.instance_type_info import InstanceTypeInfo, SpotPrice


class RegionalOfferings(msgspec.Struct, frozen=True, kw_only=True):
    """The offerings of a region and their prices."""

    region: str
    offerings: tuple[tuple[str, str], ...]
    """(instance type, zone) pairs, sorted."""
    on_demand: Mapping[str, float]
    spot: tuple[SpotPrice, ...]
    priced_at: datetime | None = None
    """When the oldest of these prices was read; None: now."""
    estimated_capacity_types: frozenset[str] = frozenset()
    """Capacity types with prices of an earlier day, because the current ones could not be read."""


def list_unpriced_types(infos: Iterable[InstanceTypeInfo], regional_offerings: RegionalOfferings) -> tuple[str, ...]:
    """Return the types, sorted, that are offered on-demand in a zone but have no known price."""
    unpriced_names = {name for name, _ in regional_offerings.offerings} - regional_offerings.on_demand.keys()
    return tuple(
        sorted(info.name for info in infos if info.name in unpriced_names and labels.ON_DEMAND in info.usage_classes)
    )
