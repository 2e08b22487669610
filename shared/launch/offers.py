"""Which offerings a claim may be launched with now."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.model.catalogue import InstanceType, Offering, UnavailableOffering
from shared.model.cluster import Cluster
from shared.model.ec2 import CapacityType, Subnet
from shared.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, WELL_KNOWN, ZONE, ZONE_ID
from shared.model.nodes import NodeClaim
from shared.model.requirements import Requirement, Requirements, requirements

EXOTIC: Final = (
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "amd.com/gpu",
    "nvidia.com/gpu",
    "habana.ai/gaudi",
)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One offering of one type, and the subnet that a machine would get its address from."""

    instance_type: InstanceType
    offering: Offering
    subnet_id: str

    @property
    def zone(self) -> str:
        """The zone."""
        return self.offering.zone


def offers(claim: NodeClaim, cluster: Cluster) -> tuple[Offer, ...]:
    """Answer every available offering that satisfies and holds *claim*, sorted by type, zone and capacity type."""
    node_class = next(one for one in cluster.node_classes if one.name == claim.node_class.name)
    subnets = roomiest(node_class.resolved_subnets)
    types = cluster.catalogue.types_for(node_class.name) if cluster.catalogue is not None else ()
    found = [
        Offer(instance_type=one, offering=offering, subnet_id=subnets[offering.zone].subnet_id)
        for one in types
        if one.requirements.is_compatible(claim.requirements, WELL_KNOWN | custom_keys(claim))
        and claim.requests.fits(one.allocatable)
        for offering in one.offerings
        if offering.zone in subnets and is_open(one.name, offering, claim.requirements, cluster)
    ]
    return tuple(_without_dear_spot(_without_exotic(found, claim), claim))


def custom_keys(claim: NodeClaim) -> frozenset[str]:
    """Answer the keys that the claim itself defines: no instance type says anything about them."""
    return frozenset(item.key for item in claim.requirements if item.key not in WELL_KNOWN)


def is_open(type_name: str, offering: Offering, wanted: Requirements, cluster: Cluster) -> bool:
    """Whether *offering* is for sale, was not refused lately, and is what *wanted* asks for."""
    return (
        offering.available
        and not _is_refused(type_name, offering, cluster.unavailable, cluster)
        and not wanted.conflict(_requirements(offering))
    )


def _is_refused(
    type_name: str, offering: Offering, unavailable: Iterable[UnavailableOffering], cluster: Cluster
) -> bool:
    return any(one.covers(type_name, offering, cluster.taken_at) for one in unavailable)


def preferred_capacity_type(some: Iterable[Offer]) -> CapacityType:
    """Answer reserved before spot before on-demand, whichever is offered first; on-demand if nothing is."""
    offered = {offer.offering.capacity_type for offer in some}
    ranked: tuple[CapacityType, ...] = ("reserved", "spot")
    return next((one for one in ranked if one in offered), "on-demand")


def roomiest(subnets: Iterable[Subnet]) -> Mapping[str, Subnet]:
    """Answer by zone the first of *subnets*, which stand with the most free addresses first."""
    found: dict[str, Subnet] = {}
    for subnet in subnets:
        found.setdefault(subnet.zone, subnet)
    return found


def _requirements(offering: Offering) -> Requirements:
    values = {CAPACITY_TYPE: offering.capacity_type, ZONE: offering.zone, ZONE_ID: offering.zone_id}
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
