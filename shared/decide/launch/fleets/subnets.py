"""The subnet from which an instance gets its addresses: the one of its zone with the most free addresses.

EC2 reports the free addresses every few minutes; launches since then, and planned launches, are subtracted. An instance
is counted with as many addresses as its smallest possible type has pods, as the VPC CNI will allocate them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from shared.decide.launch.fleets.launch_limits import list_capacities
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.cluster import ClusterSnapshot
from shared.model.core.resources import PODS
from shared.model.ec2.account import Subnet
from shared.model.ec2.fleet import FleetRequest

ADDRESS_REPORT_TTL: Final = timedelta(minutes=15)
"""Three intervals of the catalog function: an older report of free addresses refuses no subnet."""


def count_free_addresses(cluster: ClusterSnapshot, reported: SubnetAddresses | None) -> dict[str, int]:
    """Return the free addresses by subnet id, less launches since *reported*; may be negative, empty if unknown."""
    if reported is None:
        return {}
    counts = dict(reported.free)
    for group in cluster.launch_groups:
        if group.created_at >= reported.at:
            for subnet_id, instance_count in _count_instances_by_subnet(group).items():
                if subnet_id in counts:
                    counts[subnet_id] -= instance_count * estimate_addresses_per_instance(group.request, cluster)
    return counts


def list_exhausted_subnets(
    cluster: ClusterSnapshot, reported: SubnetAddresses | None, planned_groups: Iterable[LaunchGroup] = ()
) -> frozenset[str]:
    """Return the subnets without a free address for one more instance, by a report that is recent enough.

    Launches since the report count with one address for each instance that is certainly in the subnet. Whether the pods
    of these instances get addresses too is an estimate, which decides the order of the subnets but refuses none.
    """
    if reported is None or cluster.taken_at - reported.at > ADDRESS_REPORT_TTL:
        return frozenset()
    counts = dict(reported.free)
    launched_groups = (group for group in cluster.launch_groups if group.created_at >= reported.at)
    for group in (*launched_groups, *planned_groups):
        instances_by_subnet = _count_instances_by_subnet(group)
        if group.result is not None or len(instances_by_subnet) == 1:
            for subnet_id, instance_count in instances_by_subnet.items():
                counts[subnet_id] = counts.get(subnet_id, 0) - instance_count
    return frozenset(subnet_id for subnet_id, _ in reported.free if counts[subnet_id] <= 0)


def estimate_addresses_per_instance(request: FleetRequest, cluster: ClusterSnapshot) -> int:
    """Return the minimum addresses per instance of *request*: the lowest pod count of its types, at least 1."""
    return max(1, min((capacity[PODS] for capacity in list_capacities(request, cluster)), default=1))


def build_exhausted_marks(subnet_ids: Iterable[str], now: datetime) -> tuple[UnavailableOffering, ...]:
    """Return the marks with which the launches of this run skip *subnet_ids*."""
    until = now + ADDRESS_REPORT_TTL
    return tuple(
        UnavailableOffering(capacity_type="", subnet_id=subnet_id, until=until) for subnet_id in sorted(subnet_ids)
    )


def select_subnet_by_zone(
    subnets: Iterable[Subnet], counts: Mapping[str, int], unavailable: Iterable[UnavailableOffering], now: datetime
) -> dict[str, Subnet]:
    """Return by zone the subnet with the most free addresses; full ones are skipped.

    On a tie the first of *subnets* is selected.
    """
    full = list_full_subnets(unavailable, now)
    subnet_by_zone: dict[str, Subnet] = {}
    for subnet in subnets:
        if subnet.subnet_id in full:
            continue
        best = subnet_by_zone.get(subnet.zone)
        if best is None or _get_free_count(subnet, counts) > _get_free_count(best, counts):
            subnet_by_zone[subnet.zone] = subnet
    return subnet_by_zone


def list_full_subnets(unavailable: Iterable[UnavailableOffering], now: datetime) -> frozenset[str]:
    """Return the subnets that EC2 recently reported as full."""
    return frozenset(offering.subnet_id for offering in unavailable if offering.subnet_id and now < offering.until)


def _get_free_count(subnet: Subnet, counts: Mapping[str, int]) -> int:
    return counts.get(subnet.subnet_id, subnet.available_ip_count)


def _count_instances_by_subnet(group: LaunchGroup) -> dict[str, int]:
    """Return the maximum instances of *group* in each subnet: all of them in each one until EC2 has responded."""
    if group.result is None:
        overrides = (override for config in group.request.configs for override in config.overrides)
        return {override.subnet_id: group.request.capacity for override in overrides}
    counts: dict[str, int] = {}
    for instance in group.result.instances:
        counts[instance.subnet_id] = counts.get(instance.subnet_id, 0) + 1
    return counts


def take_addresses(
    free_addresses: dict[str, int], request: FleetRequest, instance_count: int, cluster: ClusterSnapshot
) -> None:
    """Reduce *free_addresses*, by subnet, by those of *instance_count* instances in each subnet of *request*."""
    amount = instance_count * estimate_addresses_per_instance(request, cluster)
    for subnet_id in {override.subnet_id for config in request.configs for override in config.overrides}:
        if subnet_id in free_addresses:
            free_addresses[subnet_id] -= amount
