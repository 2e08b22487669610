"""The devices of nodes for a plan: what existing nodes publish, and what new nodes are expected to publish.

What nodes of an instance type and NodePool have published comes first, then what a NodeOverlay declares. A node that
was created lately counts with the expected devices of drivers that have not published yet: otherwise a second node
would be launched for its pods.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from shared.decide.scheduling.devices.occupied_devices import DeviceOption, OccupiedDevices
from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.templates.declared_devices import find_declared_devices
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate
from shared.decide.scheduling.templates.template_builder import find_type_index
from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import DeviceId, NodeDevices
from shared.model.core.labels import INSTANCE_TYPE, NODEPOOL
from shared.state.dynamic_resources.node_devices import (
    NO_DEVICES,
    NOTHING_PUBLISHED,
    PublishedDevices,
    index_published_devices,
    list_used_devices,
)
from shared.state.dynamic_resources.observed_devices import (
    NodeKind,
    index_expected_devices,
    is_publishing_overdue,
    observe_devices,
)
from shared.state.dynamic_resources.pod_claims import PodClaims
from shared.state.state_node import StateNode


class DeviceSupply:
    """The devices of the nodes of one plan."""

    def __init__(
        self, cluster: ClusterSnapshot, claims: PodClaims, type_indexes: Mapping[str, InstanceTypeIndex]
    ) -> None:
        """Devices of claims that are allocated are taken, except those that *claims* releases."""
        self._cluster, self._claims, self._type_indexes = cluster, claims, type_indexes

    def build_template_devices(self, template: NodeClaimTemplate) -> OccupiedDevices:
        """Return the devices that a node of *template* may have, by instance type."""
        return self._build_expected(template.pool.name, template.type_index, template.type_index.usable)

    def build_node_devices(self, state: StateNode, mask: Mask) -> OccupiedDevices:
        """Return the devices of the node *state*; a NodeClaim without an instance may become the types in *mask*."""
        labels = state.build_labels()
        pool, type_name = labels.get(NODEPOOL, ""), labels.get(INSTANCE_TYPE, "")
        if state.node is None and not type_name:
            type_index = self._find_type_index(pool)
            return OccupiedDevices(options=()) if type_index is None else self._build_expected(pool, type_index, mask)
        published = NOTHING_PUBLISHED
        if state.node is not None:
            published = self._published_by_node.get(state.node.name, NOTHING_PUBLISHED)
        node_devices = published.node_devices
        if state.claim is not None and (
            state.node is None or not is_publishing_overdue(state.node, self._cluster.taken_at)
        ):
            node_devices = _add_missing_drivers(published, self._find_expected(pool).get(type_name, NO_DEVICES))
        ids = {device.id for device in node_devices.devices}
        return OccupiedDevices(
            options=(DeviceOption(node_devices=node_devices, used=frozenset(ids & self._used_devices)),)
        )

    def _build_expected(self, pool: str, type_index: InstanceTypeIndex, mask: Mask) -> OccupiedDevices:
        devices_by_type = self._find_expected(pool)
        mask_by_devices: dict[NodeDevices, Mask] = {}
        for number, instance_type in enumerate(type_index.types):
            if mask >> number & 1:
                node_devices = devices_by_type.get(instance_type.name, NO_DEVICES)
                mask_by_devices[node_devices] = mask_by_devices.get(node_devices, 0) | 1 << number
        return OccupiedDevices(
            options=tuple(
                DeviceOption(node_devices=node_devices, mask=types)
                for node_devices, types in sorted(mask_by_devices.items(), key=lambda item: item[1])
            )
        )

    def _find_expected(self, pool: str) -> Mapping[str, NodeDevices]:
        """Return the expected devices of each instance type in *pool*."""
        if pool not in self._expected_by_pool:
            type_index = self._find_type_index(pool)
            declared_devices = (
                find_declared_devices(self._cluster, pool, type_index.types) if type_index is not None else {}
            )
            observed_devices = {
                type_name: devices for (type_name, name), devices in self._observed_by_kind.items() if name == pool
            }
            self._expected_by_pool[pool] = declared_devices | observed_devices
        return self._expected_by_pool[pool]

    def _find_type_index(self, pool: str) -> InstanceTypeIndex | None:
        node_class = next(
            (node_pool.node_class.name for node_pool in self._cluster.node_pools if node_pool.name == pool), ""
        )
        return find_type_index(self._type_indexes, node_class, pool)

    @cached_property
    def _expected_by_pool(self) -> dict[str, Mapping[str, NodeDevices]]:
        return {}

    @cached_property
    def _observed_by_kind(self) -> Mapping[NodeKind, NodeDevices]:
        return index_expected_devices(observe_devices(self._cluster))

    @cached_property
    def _published_by_node(self) -> Mapping[str, PublishedDevices]:
        return index_published_devices(self._cluster.resource_slices)

    @cached_property
    def _used_devices(self) -> frozenset[DeviceId]:
        return list_used_devices(self._cluster.resource_claims, self._claims.list_released_claims())


def assign_template_devices(templates: Iterable[NodeClaimTemplate], supply: DeviceSupply) -> None:
    """Set the expected devices of *templates*."""
    for template in templates:
        template.devices = supply.build_template_devices(template)


def _add_missing_drivers(published: PublishedDevices, expected: NodeDevices) -> NodeDevices:
    """Return the published devices, and the expected ones of drivers whose pools are not complete yet."""
    missing_devices = tuple(device for device in expected.devices if device.driver not in published.drivers)
    if not missing_devices:
        return published.node_devices
    missing_drivers = {device.driver for device in missing_devices}
    present_devices = tuple(device for device in published.node_devices.devices if device.driver not in missing_drivers)
    counters = [counter for counter in published.node_devices.counters if counter[0] not in missing_drivers]
    counters += [counter for counter in expected.counters if counter[0] in missing_drivers]
    return NodeDevices(devices=(*present_devices, *missing_devices), counters=tuple(sorted(counters)))
