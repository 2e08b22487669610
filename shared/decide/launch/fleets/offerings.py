"""The offerings with which a NodeClaim may be launched now."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

import msgspec

from shared.decide.launch.fleets.subnets import select_subnet_by_zone
from shared.model.cloud_provider.instance_type import InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
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
from shared.model.core.requirements import Requirement, Requirements, build_requirements
from shared.model.core.resources import AMD_GPU, GAUDI, NEURON, NEURON_CORE, NVIDIA_GPU
from shared.model.ec2.types import CapacityType, ReservationType
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.zone_balance import choose_balanced_zone, get_balance_percent

ACCELERATOR_RESOURCES: Final = (NEURON, NEURON_CORE, AMD_GPU, NVIDIA_GPU, GAUDI)
RESERVATION_TYPES: Final[tuple[ReservationType, ...]] = ("default", "capacity-block", "interruptible")
"""Types of capacity reservations; among equally cheap ones the first is used."""
MIN_SPOT_TO_SPOT_TYPES: Final = 15
"""Instance types that stay if Spot nodes can be replaced by Spot nodes: as many as such a replacement requires."""


class LaunchOffering(msgspec.Struct, frozen=True, kw_only=True):
    """One offering of an instance type, and the subnet from which an instance would get its address."""

    instance_type: InstanceType
    offering: Offering
    subnet_id: str

    @property
    def zone(self) -> str:
        """The availability zone."""
        return self.offering.zone

    def get_sort_key(self) -> tuple[float, str, str, str]:
        """Return the sort key: price, type, zone, reservation."""
        offering = self.offering
        return (offering.price_usd_per_hour, self.instance_type.name, offering.zone, offering.reservation_id)


class SpotPriceTolerance(msgspec.Struct, frozen=True, kw_only=True):
    """How much more than the cheapest Spot offering of a request EC2 may choose.

    EC2 weighs price against free capacity (`price-capacity-optimized`), so an instance can be much more expensive than
    planned.
    """

    percent: int = 0
    """Above the price of the cheapest offering; 0: no limit."""
    min_types: int = 1
    """The cheapest offering of so many instance types stays, regardless of its price."""

    def select_offerings(
        self, launch_offerings: Iterable[LaunchOffering], requirements: Requirements
    ) -> tuple[LaunchOffering, ...]:
        """Return the offerings of one capacity type that are within the tolerance, sorted by price.

        Offerings of other capacity types than Spot, and those for *requirements* with minValues, are all returned.
        """
        sorted_offerings = sorted(launch_offerings, key=LaunchOffering.get_sort_key)
        is_limited = self.percent and not requirements.has_min_values
        if not is_limited or not sorted_offerings or sorted_offerings[0].offering.capacity_type != SPOT:
            return tuple(sorted_offerings)
        max_price_usd_per_hour = sorted_offerings[0].offering.price_usd_per_hour * (1 + self.percent / 100)
        cheapest_by_type: dict[str, LaunchOffering] = {}
        for launch_offering in sorted_offerings:
            cheapest_by_type.setdefault(launch_offering.instance_type.name, launch_offering)
        kept_types = frozenset([*cheapest_by_type][: self.min_types])
        return tuple(
            launch_offering
            for launch_offering in sorted_offerings
            if launch_offering.offering.price_usd_per_hour <= max_price_usd_per_hour
            or (
                launch_offering.instance_type.name in kept_types
                and launch_offering is cheapest_by_type[launch_offering.instance_type.name]
            )
        )


class ZoneBalance:
    """Chooses zones for launches of NodePools with the annotation joiner.dev/zone-balance-percent, one by one."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Count the nodes of *cluster* by NodePool and zone, in-flight nodes included."""
        percents = {pool.name: get_balance_percent(pool) for pool in cluster.node_pools}
        self._percent_by_pool = {name: percent for name, percent in percents.items() if percent is not None}
        self._node_classes = frozenset(node_class.name for node_class in cluster.node_classes)
        self._node_counts: dict[str, Counter[str]] = {name: Counter() for name in self._percent_by_pool}
        for claim in cluster.node_claims if self._percent_by_pool else ():
            pool, zone = claim.meta.get_label(NODEPOOL), claim.meta.get_label(ZONE)
            if pool in self._node_counts and zone and not claim.is_deleting():
                self._node_counts[pool][zone] += 1

    def is_balanced(self, claim: NodeClaim) -> bool:
        """Return whether *claim* gets a zone: claims with minValues need all zones."""
        return (
            claim.meta.get_label(NODEPOOL) in self._percent_by_pool
            and claim.node_class.name in self._node_classes
            and not claim.requirements.has_min_values
        )

    def choose_zone(self, claim: NodeClaim, launch_offerings: Iterable[LaunchOffering]) -> str:
        """Return the zone for *claim*, and count it; *launch_offerings* have the preferred capacity type."""
        pool, prices = claim.meta.get_label(NODEPOOL), dict[str, float]()
        for offer in launch_offerings:
            prices[offer.zone] = min(prices.get(offer.zone, inf), offer.offering.price_usd_per_hour)
        zone = choose_balanced_zone(prices, self._node_counts[pool], self._percent_by_pool[pool])
        self._node_counts[pool][zone] += 1
        return zone


def select_launch_offerings(
    claim: NodeClaim, cluster: ClusterSnapshot, counts: Mapping[str, int]
) -> tuple[LaunchOffering, ...]:
    """Return all available offerings that satisfy and fit *claim*, sorted by type, zone and capacity type.

    *counts* are the free addresses by subnet id. A zone in which every subnet is full has no offerings.
    """
    node_class = next(node_class for node_class in cluster.node_classes if node_class.name == claim.node_class.name)
    subnets = select_subnet_by_zone(node_class.resolved_subnets, counts, cluster.unavailable, cluster.taken_at)
    pool = claim.meta.get_label(NODEPOOL)
    types = cluster.catalog.get_instance_types(node_class.name, pool) if cluster.catalog is not None else ()
    defined_keys = WELL_KNOWN | list_custom_keys(claim)
    launch_offerings = [
        LaunchOffering(instance_type=instance_type, offering=offering, subnet_id=subnets[offering.zone].subnet_id)
        for instance_type in types
        if instance_type.requirements.is_compatible(claim.requirements, defined_keys)
        and claim.requests.can_fit(instance_type.allocatable)
        for offering in instance_type.offerings
        if offering.zone in subnets and is_launchable(instance_type, offering, claim.requirements, cluster)
    ]
    return tuple(_drop_expensive_spot(_drop_special_types(_keep_best_reservations(launch_offerings), claim), claim))


def list_custom_keys(claim: NodeClaim) -> frozenset[str]:
    """Return the keys that only the claim defines: no instance type has a requirement for them."""
    return frozenset(item.key for item in claim.requirements if item.key not in WELL_KNOWN)


def is_launchable(
    instance_type: InstanceType, offering: Offering, claim_requirements: Requirements, cluster: ClusterSnapshot
) -> bool:
    """Return whether *offering* is available, was not recently refused, and satisfies *claim_requirements*."""
    return (
        offering.available
        and (offering.capacity_type != RESERVED or offering.reservation_capacity > 0)
        and not _is_unavailable(instance_type, offering, cluster)
        and not claim_requirements.find_conflict(_build_requirements(offering))
    )


def select_preferred_capacity_type(
    launch_offerings: Iterable[LaunchOffering], *, prefers_on_demand: bool
) -> tuple[LaunchOffering, ...]:
    """Return the offerings of the preferred capacity type: reserved before spot before on-demand.

    With *prefers_on_demand*, on-demand precedes spot, because spot requests failed several times in a row.
    """
    offerings_by_capacity_type: dict[str, list[LaunchOffering]] = {}
    for offer in launch_offerings:
        offerings_by_capacity_type.setdefault(offer.offering.capacity_type, []).append(offer)
    capacity_types = (RESERVED, ON_DEMAND, SPOT) if prefers_on_demand else (RESERVED, SPOT, ON_DEMAND)
    return tuple(
        next(
            (
                offerings_by_capacity_type[capacity_type]
                for capacity_type in capacity_types
                if capacity_type in offerings_by_capacity_type
            ),
            (),
        )
    )


def get_capacity_type(launch_offerings: Iterable[LaunchOffering]) -> CapacityType:
    """Return the capacity type that all *launch_offerings* have; on-demand if there are none."""
    kinds: tuple[CapacityType, ...] = ("reserved", "spot")
    have = {offer.offering.capacity_type for offer in launch_offerings}
    return next((kind for kind in kinds if kind in have), "on-demand")


def get_reservation_type(offering: Offering) -> ReservationType:
    """Return the type of the capacity reservation that *offering* uses."""
    if offering.capacity_type != RESERVED:
        return ""
    if offering.reservation_interruptible:
        return "interruptible"
    return "capacity-block" if offering.reservation_type == "capacity-block" else "default"


def _is_unavailable(instance_type: InstanceType, offering: Offering, cluster: ClusterSnapshot) -> bool:
    group_id = instance_type.group_id if cluster.unavailable else ""
    return any(
        unavailable.is_match(instance_type.name, offering, cluster.taken_at, group_id)
        for unavailable in cluster.unavailable
    )


def _keep_best_reservations(launch_offerings: list[LaunchOffering]) -> list[LaunchOffering]:
    """Keep the reservations of one type, and of each instance type and zone the one with the most capacity left.

    Other offerings are kept unchanged. One launch can use one type of reservation only: that of the cheapest offering.
    Of capacity blocks only one is kept, because EC2 accepts no choice among them.
    """
    reserved = [offer for offer in launch_offerings if offer.offering.capacity_type == RESERVED]
    if not reserved:
        return launch_offerings
    cheapest = min(
        reserved,
        key=lambda offer: (offer.get_sort_key()[0], RESERVATION_TYPES.index(get_reservation_type(offer.offering))),
    )
    reservation_type = get_reservation_type(cheapest.offering)
    same_type = [offer for offer in reserved if get_reservation_type(offer.offering) == reservation_type]
    if reservation_type == "capacity-block":
        same_type = [min(same_type, key=LaunchOffering.get_sort_key)]
    largest_by_type_and_zone: dict[tuple[str, str], LaunchOffering] = {}
    for offer in sorted(
        same_type, key=lambda offer: (-offer.offering.reservation_capacity, offer.offering.reservation_id)
    ):
        largest_by_type_and_zone.setdefault((offer.instance_type.name, offer.zone), offer)
    return [
        offer
        for offer in launch_offerings
        if offer.offering.capacity_type != RESERVED
        or offer is largest_by_type_and_zone.get((offer.instance_type.name, offer.zone))
    ]


def _build_requirements(offering: Offering) -> Requirements:
    values = {CAPACITY_TYPE: offering.capacity_type, ZONE: offering.zone, ZONE_ID: offering.zone_id}
    if offering.capacity_type == RESERVED:
        values |= {
            RESERVATION_ID: offering.reservation_id,
            RESERVATION_TYPE: offering.reservation_type or "default",
            RESERVATION_INTERRUPTIBLE: "true" if offering.reservation_interruptible else "false",
        }
    return build_requirements(
        Requirement(key=key, values=frozenset((value,))) for key, value in values.items() if value
    )


def _drop_special_types(launch_offerings: list[LaunchOffering], claim: NodeClaim) -> list[LaunchOffering]:
    if claim.requirements.has_min_values:
        return launch_offerings
    plain = [offer for offer in launch_offerings if not _is_special(offer.instance_type)]
    return plain or launch_offerings


def _is_special(instance_type: InstanceType) -> bool:
    return "metal" in instance_type.name or any(instance_type.capacity[name] for name in ACCELERATOR_RESOURCES)


def _drop_expensive_spot(launch_offerings: list[LaunchOffering], claim: NodeClaim) -> list[LaunchOffering]:
    if claim.requirements.has_min_values:
        return launch_offerings
    on_demand_prices = [
        offer.offering.price_usd_per_hour for offer in launch_offerings if offer.offering.capacity_type == ON_DEMAND
    ]
    if not on_demand_prices:
        return launch_offerings
    cheapest_on_demand = min(on_demand_prices)
    return [
        offer
        for offer in launch_offerings
        if offer.offering.capacity_type != SPOT or offer.offering.price_usd_per_hour <= cheapest_on_demand
    ]
