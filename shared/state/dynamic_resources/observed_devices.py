"""What nodes of an instance type and NodePool publish, so that it is known before the next node of the kind exists.

The node with the most devices represents its kind. Attributes with different values on different nodes, such as serial
numbers, are left out: a new node has other values. What is observed is stored in the catalog, and outlives the nodes.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import Attribute, Device, NodeDevices, ObservedDevices
from shared.model.core.labels import INSTANCE_TYPE, NODEPOOL
from shared.model.kubernetes.node import Node
from shared.state.dynamic_resources.node_devices import NOTHING_PUBLISHED, PublishedDevices, index_published_devices

PUBLISH_TIMEOUT: Final = timedelta(minutes=10)
"""How long after the creation of a node its drivers may need to publish devices."""
OBSERVATION_TTL: Final = timedelta(days=60)
EMPTY_OBSERVATION_TTL: Final = timedelta(hours=24)
"""After this time, a node is launched again for devices that the last node of the kind did not publish."""
_UNIQUE_ATTRIBUTES: Final = frozenset(("uuid", "serial", "serialNumber", "pciBusID"))
"""Names, without domain, of attributes that identify one device: never assumed of a new node.

`resource.kubernetes.io/pcieRoot` is not one of them: constraints compare it, to align devices of one node.
"""

NodeKind: TypeAlias = tuple[str, str]
"""Instance type and NodePool."""


def observe_devices(cluster: ClusterSnapshot, expected_kinds: Iterable[NodeKind] = ()) -> tuple[ObservedDevices, ...]:
    """Return what the nodes publish, merged with the earlier observations in the catalog; sorted.

    A node of a kind that was observed or is among *expected_kinds* (declared) counts without devices after a while.
    """
    now = cluster.taken_at
    earlier_observations = cluster.catalog.observed_devices if cluster.catalog is not None else ()
    observed_by_kind = {
        (item.instance_type, item.node_pool): item for item in earlier_observations if not _is_expired(item, now)
    }
    published_by_node = index_published_devices(cluster.resource_slices)
    current_by_kind: dict[NodeKind, list[PublishedDevices]] = {}
    for node in cluster.nodes:
        kind, published = get_node_kind(node), published_by_node.get(node.name, NOTHING_PUBLISHED)
        if all(kind) and (published.node_devices.devices or is_publishing_overdue(node, now)):
            current_by_kind.setdefault(kind, []).append(published)
    relevant_kinds = {*observed_by_kind, *expected_kinds}
    for kind, published_list in sorted(current_by_kind.items()):
        if kind in relevant_kinds or any(published.node_devices.devices for published in published_list):
            observed_by_kind[kind] = _merge(kind, published_list, observed_by_kind.get(kind), now)
    return tuple(sorted(observed_by_kind.values()))


def has_changed_devices(catalog: Catalog | None, observed_devices: Iterable[ObservedDevices]) -> bool:
    """Return whether *observed_devices* must be stored: the catalog lacks a kind, or has other devices for it."""
    if catalog is None:
        return False
    stored_by_kind = {(item.instance_type, item.node_pool): item for item in catalog.observed_devices}
    return any(
        stored is None or replace(item, at=stored.at) != stored
        for item in observed_devices
        for stored in (stored_by_kind.get((item.instance_type, item.node_pool)),)
    )


def get_node_kind(node: Node) -> NodeKind:
    """Return instance type and NodePool of *node*; "" where it has none."""
    return node.meta.get_label(INSTANCE_TYPE), node.meta.get_label(NODEPOOL)


def is_publishing_overdue(node: Node, now: datetime) -> bool:
    """Return whether the drivers of *node* had enough time to publish devices."""
    return node.meta.created_at is not None and now - node.meta.created_at > PUBLISH_TIMEOUT


def index_expected_devices(observations: Iterable[ObservedDevices]) -> Mapping[NodeKind, NodeDevices]:
    """Return what a new node of each kind is expected to publish."""
    return {
        (item.instance_type, item.node_pool): NodeDevices(devices=item.devices, counters=item.counters)
        for item in observations
    }


def _is_expired(item: ObservedDevices, now: datetime) -> bool:
    return now - item.at >= (OBSERVATION_TTL if item.devices else EMPTY_OBSERVATION_TTL)


def _merge(
    kind: NodeKind, published_list: Iterable[PublishedDevices], earlier: ObservedDevices | None, now: datetime
) -> ObservedDevices:
    """Return what nodes of *kind* have in common now; attributes that differed once stay left out."""
    node_devices = [_normalize(published.node_devices) for published in published_list]
    best = max(node_devices, key=lambda devices: (len(devices.devices), devices.devices))
    varying = set(earlier.varying) if earlier is not None else set[tuple[str, str]]()
    compared_lists = [devices.devices for devices in node_devices] + ([earlier.devices] if earlier is not None else [])
    for devices in compared_lists:
        varying |= _find_varying(best.devices, devices)
    return ObservedDevices(
        instance_type=kind[0],
        node_pool=kind[1],
        devices=tuple(replace(device, attributes=tuple(_select_common(device, varying))) for device in best.devices),
        counters=best.counters,
        varying=tuple(sorted(varying)),
        at=now,
    )


def _normalize(node_devices: NodeDevices) -> NodeDevices:
    """Return *node_devices* with numbered pools: the name of a pool is usually that of its node."""
    pools = sorted({(device.driver, device.pool) for device in node_devices.devices})
    number_by_pool = {pool: f"{number:03d}" for number, pool in enumerate(pools)}
    return NodeDevices(
        devices=tuple(
            replace(device, pool=number_by_pool[device.driver, device.pool]) for device in node_devices.devices
        ),
        counters=tuple(
            sorted(
                (driver, number_by_pool[driver, pool], counter_set, counter, amount)
                for driver, pool, counter_set, counter, amount in node_devices.counters
                if (driver, pool) in number_by_pool
            )
        ),
    )


def _find_varying(devices: Iterable[Device], other_devices: Iterable[Device]) -> set[tuple[str, str]]:
    """Return driver and name of the attributes with different values on devices of the same name."""
    other_by_id = {device.id: dict(_index_attributes(device)) for device in other_devices}
    return {
        (device.driver, name)
        for device in devices
        if device.id in other_by_id
        for name, value in _index_attributes(device)
        if name in other_by_id[device.id] and other_by_id[device.id][name] != value
    }


def _index_attributes(device: Device) -> Iterable[tuple[str, tuple[str, str]]]:
    return ((name, (kind, text)) for name, kind, text in device.attributes)


def _select_common(device: Device, varying: Iterable[tuple[str, str]]) -> Iterable[Attribute]:
    varying_names = {name for driver, name in varying if driver == device.driver}
    return (
        attribute
        for attribute in device.attributes
        if attribute[0] not in varying_names and attribute[0].rpartition("/")[2] not in _UNIQUE_ATTRIBUTES
    )
