"""DescribeInstanceTypes and prices -> the catalogue's instance types, as one node class sees them.

No type is left out for its age, its size or for being bare metal: that is for requirements to say. A type is missing
where it is not sold, or has no price; it is there and not available where the node class cannot be started on it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.launch.families import FAMILIES
from shared.launch.templates import image_for
from shared.launch.type_fits import obstacle
from shared.launch.type_labels import labels_of
from shared.launch.type_room import Knobs, kubelet_of, room_of
from shared.model import labels
from shared.model.catalogue import InstanceType, Offering, SeenMemory
from shared.model.ec2 import CapacityReservation, InstanceTypeInfo, SpotPrice, Subnet
from shared.model.nodeclasses import EC2NodeClass

_RESERVED_SHARE: Final = 10_000_000
"""A reserved instance is paid for anyway: it costs next to nothing, in the order of the list prices."""
_BLOCK_ENDS: Final = timedelta(minutes=40)
"""A capacity block takes its instances back that long before it ends."""


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """What is on sale where, and for how much."""

    region: str
    offerings: tuple[tuple[str, str], ...]
    """(instance type, zone), sorted."""
    on_demand: Mapping[str, float]
    spot: tuple[SpotPrice, ...]
    priced_at: datetime | None = None
    """When the oldest of these prices was fetched; None: now."""
    estimated: frozenset[str] = frozenset()
    """Capacity types whose prices could not be asked for, and are those of an earlier day."""


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """A market, arranged for looking things up."""

    market: Market
    spot: Mapping[tuple[str, str], float]
    seen: Mapping[tuple[str, str], int]
    """Memory that a node reported, in bytes, by (instance type, image id)."""
    now: datetime | None = None


def instance_types(
    infos: Iterable[InstanceTypeInfo],
    market: Market,
    node_class: EC2NodeClass,
    knobs: Knobs,
    seen: Iterable[SeenMemory] = (),
    now: datetime | None = None,
) -> tuple[InstanceType, ...]:
    """Answer the types that *node_class* can start, sorted by name; those in none of its zones are left out.

    *now* says which capacity blocks end; None: none does.
    """
    shelf = Shelf(
        market=market,
        spot={(price.instance_type, price.zone): price.price_usd_per_hour for price in market.spot},
        seen={(one.instance_type, one.image_id): one.memory_bytes for one in seen},
        now=now,
    )
    zones = {subnet.zone: subnet for subnet in reversed(node_class.resolved_subnets)}
    sold: dict[str, list[Subnet]] = {}
    for name, zone in market.offerings:
        if zone in zones:
            sold.setdefault(name, []).append(zones[zone])
    known = (info for info in sorted(infos, key=lambda info: info.name) if info.name in sold)
    made = (_instance_type(info, sold[info.name], shelf, node_class, knobs) for info in known)
    return tuple(one for one in made if one.offerings)


def unpriced(infos: Iterable[InstanceTypeInfo], market: Market) -> tuple[str, ...]:
    """Answer the types, sorted, that are for sale on demand somewhere, at a price that nobody told."""
    sold = {name for name, _ in market.offerings} - market.on_demand.keys()
    return tuple(sorted(one.name for one in infos if one.name in sold and labels.ON_DEMAND in one.usage_classes))


def _instance_type(
    info: InstanceTypeInfo, subnets: list[Subnet], shelf: Shelf, node_class: EC2NodeClass, knobs: Knobs
) -> InstanceType:
    family = FAMILIES.get(node_class.ami_family, FAMILIES["Custom"])
    offerings = tuple(
        sorted((*_offerings(info, subnets, shelf, node_class), *_reserved(info, subnets, shelf, node_class)))
    )
    own = labels_of(info, offerings, shelf.market.region, family, node_class.resolved_placement_group)
    memory = shelf.seen.get((info.name, image_for(node_class, own))) if shelf.seen else None
    capacity, overhead = room_of(info, node_class, family, knobs, memory)
    kubelet = kubelet_of(info, node_class, family, knobs)
    return InstanceType(
        name=info.name,
        requirements=own,
        capacity=capacity,
        overhead=overhead,
        offerings=offerings,
        kube_reserved=kubelet.kube_reserved if kubelet is not node_class.kubelet else (),
        system_reserved=kubelet.system_reserved if kubelet is not node_class.kubelet else (),
    )


def _offerings(
    info: InstanceTypeInfo, subnets: Iterable[Subnet], shelf: Shelf, node_class: EC2NodeClass
) -> Iterable[Offering]:
    is_possible = not obstacle(info, node_class)
    for subnet in subnets:
        prices = {
            labels.ON_DEMAND: shelf.market.on_demand.get(info.name),
            labels.SPOT: shelf.spot.get((info.name, subnet.zone)),
        }
        for capacity_type, price in prices.items():
            if price is not None and capacity_type in info.usage_classes:
                yield Offering(
                    zone=subnet.zone,
                    zone_id=subnet.zone_id,
                    capacity_type=capacity_type,
                    price_usd_per_hour=price,
                    available=is_possible,
                    is_estimated=capacity_type in shelf.market.estimated,
                )


def _reserved(
    info: InstanceTypeInfo, subnets: Iterable[Subnet], shelf: Shelf, node_class: EC2NodeClass
) -> Iterable[Offering]:
    ids = {subnet.zone: subnet.zone_id for subnet in subnets}
    for one in node_class.resolved_capacity_reservations:
        if one.instance_type == info.name and one.zone in ids:
            yield Offering(
                zone=one.zone,
                zone_id=ids[one.zone],
                capacity_type=labels.RESERVED,
                price_usd_per_hour=shelf.market.on_demand.get(info.name, 0.0) / _RESERVED_SHARE,
                available=one.available_count > 0 and not _is_ending(one, shelf.now) and not obstacle(info, node_class),
                reservation_id=one.reservation_id,
                reservation_capacity=one.available_count,
                reservation_type=one.reservation_type,
                reservation_interruptible=one.is_interruptible,
            )


def _is_ending(one: CapacityReservation, now: datetime | None) -> bool:
    if now is None or one.ends_at is None:
        return False
    return one.ends_at <= (now + _BLOCK_ENDS if one.reservation_type == "capacity-block" else now)
