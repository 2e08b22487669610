"""EC2's capacity: a pool per type, zone and capacity type, and the account's quotas.

A pool is unlimited unless a limit is set.
"""

from shared.model.ec2.types import CapacityType
from sim.cloud import seeded_random


class CapacityPool:
    """The free slots of a limited pool; None: unlimited."""

    __slots__ = ("free",)

    def __init__(self, free: int | None) -> None:
        """Create the pool with *free* slots."""
        self.free = free

    def acquire_slot(self) -> None:
        """Use a slot."""
        if self.free is not None:
            self.free -= 1

    def release_slot(self) -> None:
        """Return a slot."""
        if self.free is not None:
            self.free += 1


class CapacityPools:
    """The capacity pools of one region. Pools of reserved capacity are empty until a limit is set."""

    def __init__(self, seed: int) -> None:
        """Start with unlimited pools, without quotas."""
        self._seed = seed
        self._pools: dict[tuple[str, str, CapacityType], CapacityPool] = {}
        self._drained: set[tuple[str, CapacityType]] = set()
        self._quotas: dict[CapacityType, int] = {}

    def set_limit(self, instance_type: str, zone: str, capacity_type: CapacityType, free: int | None) -> None:
        """Set the free slots to *free*, regardless of running instances.

        Only instances that are launched later release their slots to the new pool.
        """
        self._pools[instance_type, zone, capacity_type] = CapacityPool(free)

    def drain(self, zone: str, capacity_type: CapacityType) -> None:
        """Leave no capacity in the zone until `restore`."""
        self._drained.add((zone, capacity_type))

    def restore(self, zone: str, capacity_type: CapacityType) -> None:
        """Undo `drain`."""
        self._drained.discard((zone, capacity_type))

    def get_pool(self, instance_type: str, zone: str, capacity_type: CapacityType) -> CapacityPool:
        """Return the pool in which slots are acquired and released."""
        if (zone, capacity_type) in self._drained:
            return CapacityPool(0)
        limited_pool = self._pools.get((instance_type, zone, capacity_type))
        return limited_pool or CapacityPool(0 if capacity_type == "reserved" else None)

    def compute_depth(self, instance_type: str, zone: str, capacity_type: CapacityType) -> float:
        """Return the pool's depth for capacity-optimized allocation: in [0, 1), 0 if empty. Synthetic and constant."""
        if self.get_pool(instance_type, zone, capacity_type).free == 0:
            return 0.0
        return seeded_random.draw_fraction(self._seed, "depth", instance_type, zone, capacity_type)

    def set_quota(self, capacity_type: CapacityType, vcpus: int | None) -> None:
        """Allow this many vCPUs at a time; None: any number."""
        if vcpus is None:
            self._quotas.pop(capacity_type, None)
        else:
            self._quotas[capacity_type] = vcpus

    def get_quota(self, capacity_type: CapacityType) -> int | None:
        """Return the allowed vCPUs; reserved instances count as on-demand."""
        return self._quotas.get("spot" if capacity_type == "spot" else "on-demand")
