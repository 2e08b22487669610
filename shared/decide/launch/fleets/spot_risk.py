"""The spot offerings of a launch request when there is a history of offerings: EC2 knows their prices, not their risk.

EC2 selects one of the offerings in a request by price and free capacity. So offerings that are cheap but often
interrupted are left out of the request, and of equally cheap offerings, those that the NodePool uses most.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from shared.decide.launch.fleets.offerings import LaunchOffering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, SPOT, ZONE
from shared.model.karpenter.node_claim import NodeClaim

MAX_DROPPED_SHARE: Final = 0.5
"""Of the spot offerings of a request: a request with few offerings is refused more often."""
EQUAL_PRICE_RATIO: Final = 1.01
"""Offerings up to this multiple of the lowest price are equally cheap."""


def select_safe_offerings(
    launch_offerings: Iterable[LaunchOffering], claim: NodeClaim, cluster: ClusterSnapshot
) -> tuple[LaunchOffering, ...]:
    """Return the offerings of one capacity type for a request, sorted as before.

    Without a history of offerings, for other capacity types than spot, and for claims with minValues, all are returned.
    """
    offerings = tuple(launch_offerings)
    is_spot = all(offer.offering.capacity_type == SPOT for offer in offerings)
    if cluster.offering_history is None or claim.requirements.has_min_values or not is_spot:
        return offerings
    return _drop_crowded_offerings(_drop_risky_offerings(offerings), claim, cluster)


def _drop_risky_offerings(offerings: tuple[LaunchOffering, ...]) -> tuple[LaunchOffering, ...]:
    """Leave out offerings that cost more, with their risk, than the cheapest offering without interruptions."""
    safe_prices = [
        offer.offering.price_usd_per_hour for offer in offerings if not offer.offering.interruption_usd_per_hour
    ]
    if not safe_prices:
        return offerings
    acceptable = [
        offer
        for offer in offerings
        if not offer.offering.interruption_usd_per_hour or offer.offering.price_usd_per_hour <= min(safe_prices)
    ]
    requested = {id(offer) for offer in acceptable}
    risky = sorted((offer for offer in offerings if id(offer) not in requested), key=LaunchOffering.get_sort_key)
    retained_count = max(len(risky) - int(len(offerings) * MAX_DROPPED_SHARE), 0)
    requested |= {id(offer) for offer in risky[:retained_count]}
    return tuple(offer for offer in offerings if id(offer) in requested)


def _drop_crowded_offerings(
    offerings: tuple[LaunchOffering, ...], claim: NodeClaim, cluster: ClusterSnapshot
) -> tuple[LaunchOffering, ...]:
    """Of the equally cheap offerings, keep those with the fewest nodes of the NodePool."""
    if not offerings:
        return offerings
    lowest_price = min(offer.offering.price_usd_per_hour for offer in offerings)
    equal = [offer for offer in offerings if offer.offering.price_usd_per_hour <= lowest_price * EQUAL_PRICE_RATIO]
    node_counts = Counter(
        (other.meta.get_label(INSTANCE_TYPE), other.meta.get_label(ZONE))
        for other in cluster.node_claims
        if other.meta.get_label(NODEPOOL) == claim.meta.get_label(NODEPOOL)
        and other.meta.get_label(CAPACITY_TYPE) == SPOT
        and not other.is_deleting()
    )
    fewest_nodes = min(node_counts[offer.instance_type.name, offer.zone] for offer in equal)
    crowded = {id(offer) for offer in equal if node_counts[offer.instance_type.name, offer.zone] > fewest_nodes}
    return tuple(offer for offer in offerings if id(offer) not in crowded)
