"""Events about zonal shifts, on the NodePools that can launch nodes in the zone."""

from collections.abc import Iterator

from shared.decide.common.events import build_event
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.core.labels import ZONE, ZONE_ID
from shared.model.core.units import format_instant
from shared.model.decisions.action import PublishEvent
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from shared.state.zones.zonal_shifts import map_zone_ids

ZONAL_SHIFT_ACTIVE = "ZonalShiftActive"
ZONAL_SHIFT_CLEARED = "ZonalShiftCleared"


def describe_zonal_shifts(cluster_state: ClusterState) -> tuple[PublishEvent, ...]:
    """Return an event for each NodePool and each shift of a zone that it allows; shifts that just ended get one too."""
    shifts = cluster_state.snapshot.zonal_shifts
    if shifts is None or not (shifts.ended or cluster_state.shifted_zones):
        return ()
    return tuple(_build_events(cluster_state, drains_zones=shifts.drains_zones))


def _build_events(cluster_state: ClusterState, *, drains_zones: bool) -> Iterator[PublishEvent]:
    now, shifts = cluster_state.taken_at, cluster_state.snapshot.zonal_shifts
    zones_by_id = map_zone_ids(cluster_state.snapshot)
    ended_shifts = [ended.shift for ended in shifts.ended] if shifts is not None else []
    effect_text = "its nodes are replaced" if drains_zones else "voluntary disruption of its nodes is held"
    for _, pool in sorted(cluster_state.node_pools.items()):
        for zone, shift in cluster_state.shifted_zones.items():
            if _allows_zone(pool, zone, shift):
                message = (
                    f"{_describe_zone(zone, shift)} has a zonal shift {shift.describe_end()}: no nodes are launched "
                    f"there, {effect_text}"
                )
                yield build_event("NodePool", pool.meta, ZONAL_SHIFT_ACTIVE, message, now, type_="Warning")
        for shift in ended_shifts:
            zone = zones_by_id.get(shift.zone_id, "")
            if zone and zone not in cluster_state.shifted_zones and _allows_zone(pool, zone, shift):
                start_text = f" that started at {format_instant(shift.started_at)}" if shift.started_at else ""
                message = f"the zonal shift of {_describe_zone(zone, shift)}{start_text} has ended"
                yield build_event("NodePool", pool.meta, ZONAL_SHIFT_CLEARED, message, now)


def _describe_zone(zone: str, shift: ZonalShift) -> str:
    return f"zone {zone} ({shift.zone_id})"


def _allows_zone(pool: NodePool, zone: str, shift: ZonalShift) -> bool:
    values_by_key = {ZONE: zone, ZONE_ID: shift.zone_id}
    return all(pool.requirements[key].has(value) for key, value in values_by_key.items() if key in pool.requirements)
