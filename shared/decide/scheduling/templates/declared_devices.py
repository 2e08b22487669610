"""Devices that NodeOverlays declare for instance types, with the annotation `joiner.dev/devices`."""

from collections.abc import Iterable

from shared.decide.scheduling.templates.node_overlays import sort_overlays
from shared.decide.scheduling.templates.template_builder import build_template_labels
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import NodeDevices
from shared.model.core.requirements import build_label_requirements
from shared.state.dynamic_resources.observed_devices import NodeKind


def find_declared_devices(
    cluster: ClusterSnapshot, pool_name: str, instance_types: Iterable[InstanceType]
) -> dict[str, NodeDevices]:
    """Return the declared devices of each of *instance_types* in the NodePool; the overlay of highest weight wins."""
    overlays = [
        overlay
        for overlay in sort_overlays(cluster.node_overlays)
        if overlay.devices is not None and not overlay.refusal_message
    ]
    pool = next((node_pool for node_pool in cluster.node_pools if node_pool.name == pool_name), None)
    if not overlays or pool is None:
        return {}
    label_requirements = build_label_requirements(build_template_labels(pool))
    declared_devices: dict[str, NodeDevices] = {}
    for instance_type in instance_types:
        requirements = label_requirements & instance_type.requirements
        overlay = next((item for item in overlays if requirements.is_compatible(item.requirements)), None)
        if overlay is not None and overlay.devices is not None:
            declared_devices[instance_type.name] = NodeDevices(devices=overlay.devices)
    return declared_devices


def list_declared_kinds(cluster: ClusterSnapshot) -> list[NodeKind]:
    """Return the instance types and NodePools with declared devices, sorted."""
    catalog = cluster.catalog
    return sorted(
        (type_name, pool.name)
        for pool in (cluster.node_pools if catalog is not None else ())
        if catalog is not None
        for type_name in find_declared_devices(cluster, pool.name, catalog.get_instance_types(pool.node_class.name))
    )
