"""The cluster snapshot for cycles that plan nodes, with feature-gated kinds applied."""

from typing import Final

from msgspec.structs import replace

from shared.decide.provisioning.overlay_and_spread_defaults import apply_feature_gates
from shared.model.cluster import ClusterSnapshot
from shared.ports.world import World
from shared.state.gangs.gangs import needs_pod_groups
from shared.take.kubernetes.optional_resources import (
    BUFFER_LISTS,
    BUFFER_TARGET_LISTS,
    DEVICE_LISTS,
    OVERLAY_LISTS,
    POD_GROUP_LISTS,
    PROVISIONING_REQUEST_LISTS,
    REQUEST_TEMPLATE_LISTS,
    SPREAD_SELECTOR_LISTS,
    SURGE_DRAIN_LISTS,
)
from shared.take.snapshot import SnapshotRequest, refresh_snapshot, take_snapshot


def take_planning_snapshot(world: World, request: SnapshotRequest) -> ClusterSnapshot:
    """Take the snapshot of *request* for planning, with enabled features applied.

    The lists of enabled features are read as well, NodeOverlays change prices, and pods get default spread constraints.

    Raises:
        Fault: see `take_snapshot`.
    """
    gates = world.settings.gates
    feature_lists = (*(OVERLAY_LISTS if gates.node_overlay else ()), *(BUFFER_LISTS if gates.capacity_buffer else ()))
    if world.settings.scheduler_config:
        feature_lists = (*feature_lists, *SPREAD_SELECTOR_LISTS)
    if world.settings.provisioning_requests == "on":
        feature_lists = (*feature_lists, *PROVISIONING_REQUEST_LISTS)
    has_surge_drain = world.settings.surge_drain == "on"
    if has_surge_drain:
        feature_lists = (*feature_lists, *SURGE_DRAIN_LISTS)
    has_dynamic_resources = world.settings.dynamic_resource_allocation == "on"
    if has_dynamic_resources:
        feature_lists = (*feature_lists, *DEVICE_LISTS)
    cluster = take_snapshot(world, replace(request, lists=(*request.lists, *feature_lists)))
    if cluster.capacity_buffers:
        missing_lists = tuple(name for name in BUFFER_TARGET_LISTS if name not in feature_lists)
        cluster = refresh_snapshot(world, cluster, SnapshotRequest(lists=missing_lists))
    if any(item.is_open() for item in cluster.provisioning_requests) and not cluster.pod_templates:
        cluster = refresh_snapshot(world, cluster, SnapshotRequest(lists=REQUEST_TEMPLATE_LISTS))
    if cluster.has_gangs and needs_pod_groups(cluster):
        cluster = refresh_snapshot(world, cluster, SnapshotRequest(lists=POD_GROUP_LISTS))
    cluster = replace(cluster, has_surge_drain=has_surge_drain, has_dynamic_resources=has_dynamic_resources)
    return apply_feature_gates(cluster, world.settings.feature_gates, world.settings.scheduler_config)


VALIDATION_REQUEST: Final = SnapshotRequest(catalog=True, unavailable=True, offering_history=True, group_usage=True)
