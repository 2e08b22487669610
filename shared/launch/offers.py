"""Which offerings a claim may be launched with now."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.launch.subnets import roomiest
from shared.model.catalogue import InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.ec2 import CapacityType, ReservationType
from shared.model.labels import (
    CAPACITY_TYPE,
    NODEPOOL,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    SPOT,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
)
from shared.model.nodes import NodeClaim
from shared.model.requirements import Requirement, Requirements, requirements

EXOTIC: Final = (
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "amd.com/gpu",
    "nvidia.com/gpu",
    "habana.ai/gaudi",
)
KINDS: Final[tuple[ReservationType, ...]] = ("default", "capacity-block", "interruptible")
"""Kinds of reservations; among equally cheap ones the first is used."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One offering of one type, and the subnet that a machine would get its address from."""

    instance_type: InstanceType
    offering: Offering
    subnet_id: str

    @property
    def zone(self) -> str:
        """The zone."""
        return self.offering.zone

    def rank(self) -> tuple[float, str, str, str]:
        """Answer what offers are sorted by: price, type, zone, reservation."""
        offering = self.offering
        return (offering.price_usd_per_hour, self.instance_type.name, offering.zone, offering.reservation_id)


def offers(claim: NodeClaim, cluster: Cluster, counts: Mapping[str, int]) -> tuple[Offer, ...]:
    """Answer every available offering that satisfies and holds *claim*, sorted by type, zone and capacity type.

    *counts* are the addresses that are left, by subnet id. A zone in which every subnet is full offers nothing.
    """
    node_class = next(one for one in cluster.node_classes if one.name == claim.node_class.name)
    subnets = roomiest(node_class.resolved_subnets, counts, cluster.unavailable, cluster.taken_at)
    pool = claim.meta.label(NODEPOOL)
    types = cluster.catalogue.types_for(node_class.name, pool) if cluster.catalogue is not None else ()
    defined = WELL_KNOWN | custom_keys(claim)
    found = [
        Offer(instance_type=one, offering=offering, subnet_id=subnets[offering.zone].subnet_id)
        for one in types
        if one.requirements.is_compatible(claim.requirements, defined) and claim.requests.fits(one.allocatable)
        for offering in one.offerings
        if offering.zone in subnets and is_open(one, offering, claim.requirements, cluster)
    ]
    return tuple(_without_dear_spot(_without_exotic(_one_reservation_each(found), claim), claim))


def custom_keys(claim: NodeClaim) -> frozenset[str]:
    """Answer the keys that the claim itself defines: no instance type says anything about them."""
    return frozenset(item.key for item in claim.requirements if item.key not in WELL_KNOWN)


def is_open(kind: InstanceType, offering: Offering, wanted: Requirements, cluster: Cluster) -> bool:
    """Whether *offering* is for sale, was not refused lately, and is what *wanted* asks for."""
    return (
        offering.available
        and (offering.capacity_type != RESERVED or offering.reservation_capacity > 0)
        and not _is_refused(kind, offering, cluster)
        and not wanted.conflict(_requirements(offering))
    )


def preferred(some: Iterable[Offer], *, steady: bool) -> tuple[Offer, ...]:
    """Answer the offers of the capacity type to ask for: reserved before spot before on-demand.

    Where *steady* is wished for, spot was refused several times running: on-demand comes before it.
    """
    offered: dict[str, list[Offer]] = {}
    for offer in some:
        offered.setdefault(offer.offering.capacity_type, []).append(offer)
    ranked = (RESERVED, ON_DEMAND, SPOT) if steady else (RESERVED, SPOT, ON_DEMAND)
    return tuple(next((offered[one] for one in ranked if one in offered), ()))


def capacity_type_of(some: Iterable[Offer]) -> CapacityType:
    """Answer the capacity type that all of *some* have; on-demand if there are none."""
    kinds: tuple[CapacityType, ...] = ("reserved", "spot")
    have = {offer.offering.capacity_type for offer in some}
    return next((kind for kind in kinds if kind in have), "on-demand")


def reservation_type_of(offering: Offering) -> ReservationType:
    """Answer what kind of reservation *offering* draws from."""
    if offering.capacity_type != RESERVED:
        return ""
    if offering.reservation_interruptible:
        return "interruptible"
    return "capacity-block" if offering.reservation_type == "capacity-block" else "default"


def _is_refused(kind: InstanceType, offering: Offering, cluster: Cluster) -> bool:
    group_id = kind.group_id if cluster.unavailable else ""
    return any(one.covers(kind.name, offering, cluster.taken_at, group_id) for one in cluster.unavailable)


def _one_reservation_each(found: list[Offer]) -> list[Offer]:
    """Keep reservations of one kind, and of each type and zone the one with the most left; the others as they are.

    One launch can draw from one kind only: from the kind with the cheapest offering. Of capacity blocks just one is
    kept, because EC2 takes no choice of them.
    """
    reserved = [one for one in found if one.offering.capacity_type == RESERVED]
    if not reserved:
        return found
    cheapest = min(reserved, key=lambda one: (one.rank()[0], KINDS.index(reservation_type_of(one.offering))))
    kind = reservation_type_of(cheapest.offering)
    same = [one for one in reserved if reservation_type_of(one.offering) == kind]
    if kind == "capacity-block":
        same = [min(same, key=Offer.rank)]
    roomy: dict[tuple[str, str], Offer] = {}
    for one in sorted(same, key=lambda one: (-one.offering.reservation_capacity, one.offering.reservation_id)):
        roomy.setdefault((one.instance_type.name, one.zone), one)
    kept = set(map(id, roomy.values()))
    return [one for one in found if one.offering.capacity_type != RESERVED or id(one) in kept]


def _requirements(offering: Offering) -> Requirements:
    values = {CAPACITY_TYPE: offering.capacity_type, ZONE: offering.zone, ZONE_ID: offering.zone_id}
    if offering.capacity_type == RESERVED:
        values |= {
            RESERVATION_ID: offering.reservation_id,
            RESERVATION_TYPE: offering.reservation_type or "default",
            RESERVATION_INTERRUPTIBLE: "true" if offering.reservation_interruptible else "false",
        }
    return requirements(Requirement(key=key, values=frozenset((value,))) for key, value in values.items() if value)


def _without_exotic(found: list[Offer], claim: NodeClaim) -> list[Offer]:
    if any(item.min_values is not None for item in claim.requirements):
        return found
    plain = [offer for offer in found if not _is_exotic(offer.instance_type)]
    return plain or found


def _is_exotic(one: InstanceType) -> bool:
    return "metal" in one.name or any(one.capacity[name] for name in EXOTIC)


def _without_dear_spot(found: list[Offer], claim: NodeClaim) -> list[Offer]:
    if any(item.min_values is not None for item in claim.requirements):
        return found
    steady = [one.offering.price_usd_per_hour for one in found if one.offering.capacity_type == ON_DEMAND]
    if not steady:
        return found
    limit = min(steady)
    return [one for one in found if one.offering.capacity_type != SPOT or one.offering.price_usd_per_hour <= limit]
