"""What the cloud sells: instance types with their labels, room and offerings. The planner's own view of EC2."""

from datetime import datetime

import msgspec

from shared.model.requirements import Requirements
from shared.model.resources import Resources


class Offering(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One way to buy an instance type. A price that is not known makes it unavailable, never free."""

    zone: str
    capacity_type: str
    price_usd_per_hour: float
    available: bool = True
    zone_id: str = ""
    reservation_id: str = ""
    reservation_capacity: int = 0


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """One instance type, for one node class."""

    name: str
    requirements: Requirements
    """Its labels: finite sets, `DoesNotExist` where it has none; name, zones and capacity types included."""
    capacity: Resources
    overhead: Resources
    """kube-reserved + system-reserved + eviction threshold."""
    offerings: tuple[Offering, ...] = ()
    """Sorted by zone, then capacity type."""

    @property
    def allocatable(self) -> Resources:
        """What pods may have."""
        return self.capacity - self.overhead


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything on sale, sorted by name."""

    region: str
    instance_types: tuple[InstanceType, ...]
    by_node_class: tuple[tuple[str, tuple[InstanceType, ...]], ...] = ()
    """Types as a node class sees them (zones, pods, storage, reserved), sorted by the class' name."""
    priced_at: datetime | None = None
    """When the prices were fetched; None: not known."""

    def types_for(self, node_class: str) -> tuple[InstanceType, ...]:
        """Answer the types as *node_class* sees them, or as they are if it was not computed for it."""
        return next((types for name, types in self.by_node_class if name == node_class), self.instance_types)


class UnavailableOffering(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """An offering that EC2 refused lately; an empty part stands for any."""

    capacity_type: str
    instance_type: str = ""
    zone: str = ""
    until: datetime

    def covers(self, instance_type: str, offering: Offering, now: datetime) -> bool:
        """Whether *offering* is not to be tried at *now*."""
        return (
            now < self.until
            and self.capacity_type in ("", offering.capacity_type)
            and self.instance_type in ("", instance_type)
            and self.zone in ("", offering.zone)
        )
