"""The catalog's instance types for one node class, from DescribeInstanceTypes and prices.

No type is excluded for its age, its size or for being bare metal: requirements decide that. A type is missing where it
is not offered or has no price; it is present but unavailable where the node class cannot launch it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.decide.launch.fleets.launch_template import find_image_id
from shared.decide.launch.instance_types.capacity import (
    CapacitySettings,
    compute_capacity_and_overhead,
    resolve_kubelet,
)
from shared.decide.launch.instance_types.compatibility import explain_incompatibility
from shared.decide.launch.instance_types.labels import build_type_requirements
from shared.model.cloud_provider.instance_type import InstanceType, ObservedMemory, Offering
from shared.model.cloud_provider.regional_offerings import RegionalOfferings
from shared.model.core import labels
from shared.model.ec2.account import CapacityReservation, Subnet
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import EC2NodeClass

_RESERVED_PRICE_DIVISOR: Final = 10_000_000
"""A reserved instance is paid for anyway: its price is nearly zero, in the order of the on-demand prices."""


class OfferingIndex(msgspec.Struct, frozen=True, kw_only=True):
    """Regional offerings, indexed for lookup."""

    regional_offerings: RegionalOfferings
    spot_prices: Mapping[tuple[str, str], float]
    reported_memory: Mapping[tuple[str, str], int]
    """Memory that a node reported, in bytes, by (instance type, image id)."""
    now: datetime | None = None


def build_instance_types(
    infos: Iterable[InstanceTypeInfo],
    regional_offerings: RegionalOfferings,
    node_class: EC2NodeClass,
    settings: CapacitySettings,
    seen_memory: Iterable[ObservedMemory] = (),
    now: datetime | None = None,
) -> tuple[InstanceType, ...]:
    """Return the types that *node_class* can launch, sorted by name, without those that none of its zones offers.

    *now* decides which capacity blocks are ending; with None, none is.
    """
    offering_index = OfferingIndex(
        regional_offerings=regional_offerings,
        spot_prices={(price.instance_type, price.zone): price.price_usd_per_hour for price in regional_offerings.spot},
        reported_memory={(report.instance_type, report.image_id): report.memory_bytes for report in seen_memory},
        now=now,
    )
    subnet_by_zone = {subnet.zone: subnet for subnet in reversed(node_class.resolved_subnets)}
    subnets_by_type: dict[str, list[Subnet]] = {}
    for name, zone in regional_offerings.offerings:
        if zone in subnet_by_zone:
            subnets_by_type.setdefault(name, []).append(subnet_by_zone[zone])
    offered_infos = (info for info in sorted(infos, key=lambda info: info.name) if info.name in subnets_by_type)
    instance_types = (
        _build_instance_type(info, subnets_by_type[info.name], offering_index, node_class, settings)
        for info in offered_infos
    )
    return tuple(instance_type for instance_type in instance_types if instance_type.offerings)


def _build_instance_type(
    info: InstanceTypeInfo,
    subnets: list[Subnet],
    offering_index: OfferingIndex,
    node_class: EC2NodeClass,
    settings: CapacitySettings,
) -> InstanceType:
    family = AMI_FAMILIES.get(node_class.ami_family, AMI_FAMILIES["Custom"])
    offerings = tuple(
        sorted(
            (
                *_list_offerings(info, subnets, offering_index, node_class),
                *_list_reserved_offerings(info, subnets, offering_index, node_class),
            )
        )
    )
    requirements = build_type_requirements(
        info, offerings, offering_index.regional_offerings.region, family, node_class.resolved_placement_group
    )
    memory = (
        offering_index.reported_memory.get((info.name, find_image_id(node_class, requirements)))
        if offering_index.reported_memory
        else None
    )
    capacity, overhead = compute_capacity_and_overhead(info, node_class, family, settings, memory)
    kubelet = resolve_kubelet(info, node_class, family, settings)
    return InstanceType(
        name=info.name,
        requirements=requirements,
        capacity=capacity,
        overhead=overhead,
        offerings=offerings,
        kube_reserved=kubelet.kube_reserved if kubelet is not node_class.kubelet else (),
        system_reserved=kubelet.system_reserved if kubelet is not node_class.kubelet else (),
    )


def _list_offerings(
    info: InstanceTypeInfo, subnets: Iterable[Subnet], offering_index: OfferingIndex, node_class: EC2NodeClass
) -> Iterable[Offering]:
    is_compatible = not explain_incompatibility(info, node_class)
    for subnet in subnets:
        prices = {
            labels.ON_DEMAND: offering_index.regional_offerings.on_demand.get(info.name),
            labels.SPOT: offering_index.spot_prices.get((info.name, subnet.zone)),
        }
        for capacity_type, price in prices.items():
            if price is not None and capacity_type in info.usage_classes:
                yield Offering(
                    zone=subnet.zone,
                    zone_id=subnet.zone_id,
                    capacity_type=capacity_type,
                    price_usd_per_hour=price,
                    available=is_compatible,
                    is_estimated=capacity_type in offering_index.regional_offerings.estimated_capacity_types,
                )


def _list_reserved_offerings(
    info: InstanceTypeInfo, subnets: Iterable[Subnet], offering_index: OfferingIndex, node_class: EC2NodeClass
) -> Iterable[Offering]:
    zone_ids = {subnet.zone: subnet.zone_id for subnet in subnets}
    for reservation in node_class.resolved_capacity_reservations:
        if reservation.instance_type == info.name and reservation.zone in zone_ids:
            yield Offering(
                zone=reservation.zone,
                zone_id=zone_ids[reservation.zone],
                capacity_type=labels.RESERVED,
                price_usd_per_hour=offering_index.regional_offerings.on_demand.get(info.name, 0.0)
                / _RESERVED_PRICE_DIVISOR,
                available=reservation.available_count > 0
                and not _is_ending(reservation, offering_index.now)
                and not explain_incompatibility(info, node_class),
                reservation_id=reservation.reservation_id,
                reservation_capacity=reservation.available_count,
                reservation_type=reservation.reservation_type,
                reservation_interruptible=reservation.is_interruptible,
            )


def _is_ending(reservation: CapacityReservation, now: datetime | None) -> bool:
    if now is None or reservation.ends_at is None:
        return False
    return reservation.ends_at <= now or reservation.is_ending_block(now)
