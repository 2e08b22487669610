"""Snapshot parts of feature gates: lists that are read only if a feature is enabled, and the defaults that follow."""

from typing import Final

from shared.model.cluster import ClusterSnapshot
from shared.ports.world import World
from shared.take.kubernetes.optional_resources import BUFFER_LISTS, OVERLAY_LISTS, PROVISIONING_REQUEST_LISTS
from shared.take.snapshot import TRIGGER_LISTS, SnapshotRequest, refresh_snapshot, take_trigger_snapshot

_STATIC_CAPACITY_LISTS: Final = ("node_pools",)


def take_planning_trigger_snapshot(world: World) -> ClusterSnapshot:
    """Take a trigger snapshot with the lists of enabled features that can require a plan without a pending pod.

    Raises:
        Fault: see `take_snapshot`.
    """
    gates = world.settings.gates
    feature_lists = (
        *(BUFFER_LISTS if gates.capacity_buffer else ()),
        *(_STATIC_CAPACITY_LISTS if gates.static_capacity else ()),
        *(PROVISIONING_REQUEST_LISTS if world.settings.provisioning_requests == "on" else ()),
    )
    return take_trigger_snapshot(world, (*TRIGGER_LISTS, *feature_lists))


def with_overlays(world: World, cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with its NodeOverlays, and with the catalog if there are any.

    Raises:
        Fault: see `take_snapshot`.
    """
    if not world.settings.gates.node_overlay:
        return cluster
    cluster = refresh_snapshot(world, cluster, SnapshotRequest(lists=OVERLAY_LISTS))
    return (
        refresh_snapshot(world, cluster, SnapshotRequest(lists=(), catalog=True)) if cluster.node_overlays else cluster
    )
