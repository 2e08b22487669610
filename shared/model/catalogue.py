"""What the cloud sells: instance types with their labels, room and offerings. The planner's own view of EC2."""

from datetime import datetime

import msgspec

from shared.model.labels import PLACEMENT_GROUP
from shared.model.objects import Pairs
from shared.model.requirements import Requirements
from shared.model.resources import MEMORY, Resources, resources


class Offering(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One way to buy an instance type. A price that is not known makes it unavailable, never free."""

    zone: str
    capacity_type: str
    price_usd_per_hour: float
    available: bool = True
    zone_id: str = ""
    reservation_id: str = ""
    reservation_capacity: int = 0
    is_overlaid: bool = False
    """The price is that of a NodeOverlay."""
    is_estimated: bool = False
    """The price is of an earlier day: it could not be asked for when the catalogue was made."""
    reservation_type: str = ""
    """Of a reserved one: `default` or `capacity-block`."""
    reservation_interruptible: bool = False
    """Whether the reservation's owner may take a reserved instance back."""


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
    is_overlaid: bool = False
    """Some of its capacity is that of a NodeOverlay."""
    kube_reserved: Pairs = ()
    """As the machine is told, where spec.kubelet has expressions for it; else it says these itself."""
    system_reserved: Pairs = ()

    @property
    def group_id(self) -> str:
        """The placement group that it would be started in, "" if in none."""
        return next(iter(self.requirements[PLACEMENT_GROUP].values), "")

    @property
    def allocatable(self) -> Resources:
        """What pods may have; huge pages are taken from memory."""
        left = self.capacity - self.overhead
        huge = sum(amount for name, amount in self.capacity.amounts if name.startswith("hugepages-"))
        if not huge:
            return left
        return resources(dict(left.amounts) | {MEMORY: max(0, left[MEMORY] - huge)})


class SeenMemory(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """The least memory that nodes of a type with an image reported: the truth, where the rest is estimated."""

    instance_type: str
    image_id: str
    memory_bytes: int
    at: datetime
    """When it was last seen."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything on sale, sorted by name."""

    region: str
    instance_types: tuple[InstanceType, ...]
    by_node_class: tuple[tuple[str, tuple[InstanceType, ...]], ...] = ()
    """Types as a node class sees them (zones, pods, storage, reserved), sorted by the class' name."""
    by_node_pool: tuple[tuple[str, tuple[InstanceType, ...]], ...] = ()
    """The same as NodePools see them for which NodeOverlays change something, sorted by the pool's name."""
    priced_at: datetime | None = None
    """When the oldest of the prices were fetched; None: not known."""
    made_at: datetime | None = None
    """When it was made; None: when it was priced."""
    seen: tuple[SeenMemory, ...] = ()
    """Sorted by instance type, then image."""

    def types_for(self, node_class: str, node_pool: str = "") -> tuple[InstanceType, ...]:
        """Answer the types as *node_pool* sees them, else as *node_class* does, or as they are if for neither."""
        for name, types in self.by_node_pool:
            if name == node_pool:
                return types
        return next((types for name, types in self.by_node_class if name == node_class), self.instance_types)

    def estimated(self) -> tuple[str, ...]:
        """Answer the capacity types, sorted, some of whose prices could not be asked for and are of an earlier day."""
        views = (self.instance_types, *(types for _, types in self.by_node_class))
        sold = (one for types in views for kind in types for one in kind.offerings)
        return tuple(sorted({one.capacity_type for one in sold if one.is_estimated}))


class UnavailableOffering(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """An offering that EC2 refused lately; an empty part stands for any."""

    capacity_type: str
    instance_type: str = ""
    zone: str = ""
    until: datetime
    subnet_id: str = ""
    """If given, no offering is meant, but that subnet alone: others of its zone may have addresses."""
    group_id: str = ""
    """If given, only launches into that placement group are meant."""

    def covers(self, instance_type: str, offering: Offering, now: datetime, group_id: str = "") -> bool:
        """Whether *offering* is not to be tried at *now*, by launches into the placement group *group_id*."""
        return (
            now < self.until
            and not self.subnet_id
            and self.group_id in ("", group_id)
            and self.capacity_type in ("", offering.capacity_type)
            and self.instance_type in ("", instance_type)
            and self.zone in ("", offering.zone)
        )
