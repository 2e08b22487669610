"""Which subnet a machine gets its addresses from: the one of its zone with the most left.

EC2 says every few minutes how many addresses are free; what was launched since, or is being launched, is taken off.
A machine is taken for as many addresses as its smallest possible type has pods, as the VPC CNI will want them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from shared.launch.ledger import capacities_of
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetRequest, Subnet
from shared.model.resources import PODS


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Free addresses by subnet id, as EC2 said at one time."""

    at: datetime
    free: tuple[tuple[str, int], ...]


def left(cluster: Cluster, known: Addresses | None) -> dict[str, int]:
    """Answer by subnet id what is left, launches since *known* counted; it may be negative, and is empty if unknown."""
    if known is None:
        return {}
    counts = dict(known.free)
    for group in cluster.launch_groups:
        if group.created_at >= known.at:
            for subnet_id, machines in _machines(group).items():
                if subnet_id in counts:
                    counts[subnet_id] -= machines * addresses_each(group.request, cluster)
    return counts


def addresses_each(request: FleetRequest, cluster: Cluster) -> int:
    """Answer what one machine of *request* takes at least: the smallest pod count of its types, and never nothing."""
    return max(1, min((one[PODS] for one in capacities_of(request, cluster)), default=1))


def roomiest(
    subnets: Iterable[Subnet], counts: Mapping[str, int], unavailable: Iterable[UnavailableOffering], now: datetime
) -> dict[str, Subnet]:
    """Answer by zone the subnet with the most left, the first of *subnets* among equals; full ones are passed over."""
    full = full_subnets(unavailable, now)
    found: dict[str, Subnet] = {}
    for subnet in subnets:
        if subnet.subnet_id in full:
            continue
        best = found.get(subnet.zone)
        if best is None or _count(subnet, counts) > _count(best, counts):
            found[subnet.zone] = subnet
    return found


def full_subnets(unavailable: Iterable[UnavailableOffering], now: datetime) -> frozenset[str]:
    """Answer the subnets that EC2 lately found without addresses."""
    return frozenset(one.subnet_id for one in unavailable if one.subnet_id and now < one.until)


def _count(subnet: Subnet, counts: Mapping[str, int]) -> int:
    return counts.get(subnet.subnet_id, subnet.available_ip_count)


def _machines(group: LaunchGroup) -> dict[str, int]:
    """Answer how many machines of *group* may be in each subnet: all of them in any, until EC2 has answered."""
    if group.result is None:
        overrides = (override for config in group.request.configs for override in config.overrides)
        return {override.subnet_id: group.request.capacity for override in overrides}
    counts: dict[str, int] = {}
    for instance in group.result.instances:
        counts[instance.subnet_id] = counts.get(instance.subnet_id, 0) + 1
    return counts
