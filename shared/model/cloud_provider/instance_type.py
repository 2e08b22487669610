"""The catalog: instance types with their labels, capacity and offerings, as the planner sees EC2."""

from datetime import datetime

import msgspec

from shared.model.core.devices import ObservedDevices
from shared.model.core.labels import PLACEMENT_GROUP
from shared.model.core.metadata import Pairs
from shared.model.core.requirements import Requirements
from shared.model.core.resources import MEMORY, Resources, build_resources
from shared.model.ec2.account import CapacityReservation
from shared.model.ec2.commitments import Commitments


class Offering(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One way to buy an instance type; an offering with an unknown price is unavailable, never free."""

    zone: str
    capacity_type: str
    price_usd_per_hour: float
    available: bool = True
    zone_id: str = ""
    reservation_id: str = ""
    reservation_capacity: int = 0
    is_overlaid: bool = False
    """Whether the price is set by a NodeOverlay."""
    is_estimated: bool = False
    """Whether the price is from an earlier day, because it could not be fetched when the catalog was built."""
    reservation_type: str = ""
    """For reserved capacity: `default` or `capacity-block`."""
    reservation_interruptible: bool = False
    """Whether the owner of the reservation may reclaim a reserved instance."""
    interruption_usd_per_hour: float = 0.0
    """The part of the price that is the expected cost of interruptions; it is never billed."""

    @property
    def billed_usd_per_hour(self) -> float:
        """The price without the expected cost of interruptions."""
        return self.price_usd_per_hour - self.interruption_usd_per_hour


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """One instance type, as one node class configures it."""

    name: str
    requirements: Requirements
    """Its labels, including name, zones and capacity types: finite sets, `DoesNotExist` for absent labels."""
    capacity: Resources
    overhead: Resources
    """kube-reserved + system-reserved + eviction threshold."""
    offerings: tuple[Offering, ...] = ()
    """Sorted by zone, then capacity type."""
    is_overlaid: bool = False
    """Whether a NodeOverlay changes its capacity."""
    kube_reserved: Pairs = ()
    """The value for the kubelet if spec.kubelet has expressions for it; otherwise the node computes it itself."""
    system_reserved: Pairs = ()

    @property
    def group_id(self) -> str:
        """The id of the placement group it would be launched in, "" if none."""
        return next(iter(self.requirements[PLACEMENT_GROUP].values), "")

    @property
    def allocatable(self) -> Resources:
        """The resources that pods can request; huge pages are subtracted from memory."""
        without_overhead = self.capacity - self.overhead
        huge_page_bytes = sum([amount for name, amount in self.capacity.amounts if name.startswith("hugepages-")])
        if not huge_page_bytes:
            return without_overhead
        return build_resources(
            dict(without_overhead.amounts) | {MEMORY: max(0, without_overhead[MEMORY] - huge_page_bytes)}
        )


class ObservedMemory(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """The least memory that nodes of an instance type with an image reported; other memory values are estimates."""

    instance_type: str
    image_id: str
    memory_bytes: int
    at: datetime
    """When it was last observed."""


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """All instance types and offerings, sorted by name."""

    region: str
    instance_types: tuple[InstanceType, ...]
    by_node_class: tuple[tuple[str, tuple[InstanceType, ...]], ...] = ()
    """Instance types as a node class sees them (zones, pods, storage, reserved), sorted by the node class's name."""
    by_node_pool: tuple[tuple[str, tuple[InstanceType, ...]], ...] = ()
    """The same for NodePools for which NodeOverlays change something, sorted by the NodePool's name."""
    priced_at: datetime | None = None
    """When the oldest of the prices were fetched; None if unknown."""
    built_at: datetime | None = msgspec.field(default=None, name="made_at")
    """When the catalog was built; None: when it was priced."""
    observed_memory: tuple[ObservedMemory, ...] = msgspec.field(default=(), name="seen")
    """Sorted by instance type, then image."""
    observed_devices: tuple[ObservedDevices, ...] = ()
    """Devices that nodes published; sorted by instance type, then NodePool."""
    scheduled_blocks: tuple[tuple[str, tuple[CapacityReservation, ...]], ...] = ()
    """Capacity Blocks that start later, by node class; only with the setting gangs."""
    commitments: Commitments | None = None
    """Savings Plans and Reserved Instances of the account; None: not read."""

    def get_instance_types(self, node_class: str, node_pool: str = "") -> tuple[InstanceType, ...]:
        """Return the instance types for *node_pool*, else for *node_class*, else the unchanged ones."""
        for owner_name, instance_types in self.by_node_pool:
            if owner_name == node_pool:
                return instance_types
        return next((types for name, types in self.by_node_class if name == node_class), self.instance_types)

    def get_scheduled_blocks(self, node_class: str) -> tuple[CapacityReservation, ...]:
        """Return the Capacity Blocks of *node_class* that start later."""
        return next((blocks for name, blocks in self.scheduled_blocks if name == node_class), ())

    def list_estimated_capacity_types(self) -> tuple[str, ...]:
        """Return the capacity types with prices that could not be fetched and are from an earlier day, sorted."""
        views = (self.instance_types, *(types for _, types in self.by_node_class))
        offerings = (offering for types in views for kind in types for offering in kind.offerings)
        return tuple(sorted({offering.capacity_type for offering in offerings if offering.is_estimated}))


class UnavailableOffering(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """An offering that EC2 refused recently; an empty field matches any value."""

    capacity_type: str
    instance_type: str = ""
    zone: str = ""
    until: datetime
    subnet_id: str = ""
    """If set, the mark is about that subnet only, not about an offering: other subnets of its zone may have
    addresses.
    """
    group_id: str = ""
    """If set, the mark is about launches into that placement group only."""

    def is_match(self, instance_type: str, offering: Offering, now: datetime, group_id: str = "") -> bool:
        """Return whether *offering* must not be tried at *now* by launches into the placement group *group_id*."""
        return (
            now < self.until
            and not self.subnet_id
            and self.group_id in ("", group_id)
            and self.capacity_type in ("", offering.capacity_type)
            and self.instance_type in ("", instance_type)
            and self.zone in ("", offering.zone)
        )
