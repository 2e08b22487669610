"""How much EC2 has: a pool per type, zone and capacity type, bottomless unless limited; and the account's quotas."""

from shared.model.ec2 import CapacityType
from sim.cloud import chance


class Pool:
    """What is left of a limited pool; None is bottomless."""

    __slots__ = ("free",)

    def __init__(self, free: int | None) -> None:
        """Begin with *free* slots."""
        self.free = free

    def take(self) -> None:
        """Use a slot."""
        if self.free is not None:
            self.free -= 1

    def give_back(self) -> None:
        """Return a slot."""
        if self.free is not None:
            self.free += 1


class Pools:
    """The capacity of one region. What was reserved is none until it is set."""

    def __init__(self, seed: int) -> None:
        """Begin bottomless, without quotas."""
        self._seed = seed
        self._pools: dict[tuple[str, str, CapacityType], Pool] = {}
        self._drained: set[tuple[str, CapacityType]] = set()
        self._quotas: dict[CapacityType, int] = {}

    def limit(self, instance_type: str, zone: str, capacity_type: CapacityType, free: int | None) -> None:
        """Leave *free* slots from now on, whatever runs already; instances started from now on give theirs back."""
        self._pools[instance_type, zone, capacity_type] = Pool(free)

    def drain(self, zone: str, capacity_type: CapacityType) -> None:
        """Have nothing there until `refill`."""
        self._drained.add((zone, capacity_type))

    def refill(self, zone: str, capacity_type: CapacityType) -> None:
        """Take `drain` back."""
        self._drained.discard((zone, capacity_type))

    def pool(self, instance_type: str, zone: str, capacity_type: CapacityType) -> Pool:
        """Answer where slots are taken and given back."""
        if (zone, capacity_type) in self._drained:
            return Pool(0)
        known = self._pools.get((instance_type, zone, capacity_type))
        return known or Pool(0 if capacity_type == "reserved" else None)

    def depth(self, instance_type: str, zone: str, capacity_type: CapacityType) -> float:
        """Answer how deep the pool seems to who allocates by capacity: in [0, 1), 0 if empty. Synthetic and fixed."""
        if self.pool(instance_type, zone, capacity_type).free == 0:
            return 0.0
        return chance.share(self._seed, "depth", instance_type, zone, capacity_type)

    def set_quota(self, capacity_type: CapacityType, vcpus: int | None) -> None:
        """Allow so many vCPUs at a time; None is any number."""
        if vcpus is None:
            self._quotas.pop(capacity_type, None)
        else:
            self._quotas[capacity_type] = vcpus

    def quota(self, capacity_type: CapacityType) -> int | None:
        """Answer the allowed vCPUs; reserved instances count as on-demand."""
        return self._quotas.get("spot" if capacity_type == "spot" else "on-demand")
