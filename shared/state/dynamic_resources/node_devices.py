"""The devices that the drivers of a node publish, in ResourceSlices.

As in kube-scheduler, only the slices of the newest generation of a pool count. A pool whose slices are not all there
yet is incomplete: its devices are not used.
"""

from collections.abc import Iterable, Mapping

import msgspec

from shared.model.core.devices import Device, DeviceId, NodeDevices, ResourceClaim, ResourceSlice

NO_DEVICES = NodeDevices()


class PublishedDevices(msgspec.Struct, frozen=True, kw_only=True):
    """What the drivers of one node have published."""

    node_devices: NodeDevices = NO_DEVICES
    drivers: frozenset[str] = frozenset()
    """The drivers whose pools are all complete."""


NOTHING_PUBLISHED = PublishedDevices()


def index_published_devices(slices: Iterable[ResourceSlice]) -> Mapping[str, PublishedDevices]:
    """Return what is published by *slices*, by the name of the node."""
    slices_by_pool: dict[tuple[str, str, str], list[ResourceSlice]] = {}
    for resource_slice in slices:
        if resource_slice.node_name:
            key = (resource_slice.node_name, resource_slice.driver, resource_slice.pool)
            slices_by_pool.setdefault(key, []).append(resource_slice)
    devices_by_node: dict[str, list[Device]] = {}
    counters_by_node: dict[str, list[tuple[str, str, str, str, int]]] = {}
    is_complete: dict[tuple[str, str], bool] = {}
    for (node, driver, pool), pool_slices in sorted(slices_by_pool.items()):
        newest_slices = _select_newest(pool_slices)
        complete = len(newest_slices) == newest_slices[0].slice_count
        is_complete[node, driver] = is_complete.get((node, driver), True) and complete
        for resource_slice in newest_slices if complete else ():
            devices_by_node.setdefault(node, []).extend(resource_slice.devices)
            counters_by_node.setdefault(node, []).extend(
                (driver, pool, *counter) for counter in resource_slice.counters
            )
    return {
        node: PublishedDevices(
            node_devices=NodeDevices(
                devices=tuple(devices_by_node.get(node, ())), counters=tuple(sorted(counters_by_node.get(node, ())))
            ),
            drivers=frozenset(driver for (name, driver), complete in is_complete.items() if complete and name == node),
        )
        for node in sorted({name for name, _ in is_complete})
    }


def list_used_devices(claims: Iterable[ResourceClaim], released: Iterable[str] = ()) -> frozenset[DeviceId]:
    """Return the devices that *claims* take, except those of the claims *released*."""
    released_names = frozenset(released)
    return frozenset(
        device
        for claim in claims
        if claim.allocation is not None and claim.name not in released_names
        for device in claim.allocation.devices
    )


def _select_newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of the newest generation, by name."""
    sorted_slices = sorted(slices, key=lambda resource_slice: resource_slice.meta.name)
    newest = max(resource_slice.generation for resource_slice in sorted_slices)
    return [resource_slice for resource_slice in sorted_slices if resource_slice.generation == newest]
