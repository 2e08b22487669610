"""Zonal shifts applied to a snapshot: no offering of a shifted zone is available.

Every plan reads the result, like offerings that EC2 refused. In a snapshot without shifts nothing is changed.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ZONE, ZONE_ID

NO_SHIFTED_ZONES: Final[Mapping[str, ZonalShift]] = MappingProxyType({})
_NO_EXPIRY: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""An autoshift lasts until ARC no longer returns it."""


def close_shifted_zones(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with all offerings of its shifted zones unavailable; closing them again changes nothing."""
    closed_zones = {
        UnavailableOffering(capacity_type="", zone=zone, until=shift.expires_at or _NO_EXPIRY)
        for zone, shift in find_shifted_zones(cluster).items()
    }
    if closed_zones <= set(cluster.unavailable):
        return cluster
    return replace(cluster, unavailable=tuple(sorted({*cluster.unavailable, *closed_zones})))


def find_shifted_zones(cluster: ClusterSnapshot) -> Mapping[str, ZonalShift]:
    """Return the active shifts by the name of their zone in this account (``us-east-1a``), sorted.

    A zone without a subnet of an EC2NodeClass and without a node is left out: it has nothing to close.
    """
    if cluster.zonal_shifts is None:
        return NO_SHIFTED_ZONES
    active_shifts = [shift for shift in cluster.zonal_shifts.shifts if shift.is_active(cluster.taken_at)]
    if not active_shifts:
        return NO_SHIFTED_ZONES
    zones_by_id = map_zone_ids(cluster)
    return dict(sorted((zones_by_id[shift.zone_id], shift) for shift in active_shifts if shift.zone_id in zones_by_id))


def map_zone_ids(cluster: ClusterSnapshot) -> dict[str, str]:
    """Return the names of zones by their id, from the subnets of EC2NodeClasses and the labels of nodes."""
    zones_by_id = {node.meta.get_label(ZONE_ID): node.meta.get_label(ZONE) for node in cluster.nodes}
    zones_by_id |= {
        subnet.zone_id: subnet.zone for node_class in cluster.node_classes for subnet in node_class.resolved_subnets
    }
    return {zone_id: zone for zone_id, zone in sorted(zones_by_id.items()) if zone_id and zone}
