"""The devices of a node in a packing: those that claims take, for each kind of node that it may become."""

import msgspec

from shared.decide.scheduling.devices.allocation import Used, list_used_by_count
from shared.model.core.devices import NodeDevices
from shared.state.dynamic_resources.pod_claims import DeviceDemand


class DeviceOption(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that a node has, or may have, and those that are taken."""

    node_devices: NodeDevices
    used: Used = frozenset()
    mask: int = 0
    """For a new node: the instance types that have these devices."""


class OccupiedDevices(msgspec.Struct, frozen=True, kw_only=True):
    """What a node may have: of an existing node one option, of a NodeClaim without an instance one for each kind."""

    options: tuple[DeviceOption, ...]
    claims: frozenset[str] = frozenset()
    """Shared claims that are allocated to the node in this plan."""

    def count_fitting_pods(self, demand: DeviceDemand, count: int) -> int:
        """Return for how many of *count* pods with *demand* every option has devices."""
        for option in self.options:
            count = min(
                count, len(list_used_by_count(option.node_devices, option.used, self.claims, demand, max(count, 0)))
            )
        return count if self.options else 0

    def add_pods(self, demand: DeviceDemand, count: int) -> "OccupiedDevices":
        """Return the devices after *count* pods with *demand*; options without enough devices are left out."""
        options = []
        for option in self.options:
            used_by_count = list_used_by_count(option.node_devices, option.used, self.claims, demand, count)
            if len(used_by_count) == count:
                options.append(msgspec.structs.replace(option, used=used_by_count[-1]))
        return OccupiedDevices(options=tuple(options), claims=self.claims | {name for name, _ in demand.shared})

    def find_fitting_types(self, demand: DeviceDemand, count: int) -> int:
        """Return the instance types, as a mask, that have devices for *count* pods with *demand*."""
        mask = 0
        for option in self.options:
            if len(list_used_by_count(option.node_devices, option.used, self.claims, demand, count)) == count:
                mask |= option.mask
        return mask

    def compute_max_count(self, demand: DeviceDemand, count: int) -> int:
        """Return for how many of *count* pods with *demand* some option has devices."""
        return max(
            (
                len(list_used_by_count(option.node_devices, option.used, self.claims, demand, count))
                for option in self.options
            ),
            default=0,
        )
