"""What the nodes cost that a decision asks for."""

from cli.replayed import Decision
from shared.model.action import CreateNodeClaim
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodes import NodeClaim


def bill(decided: Decision, cluster: Cluster) -> tuple[int, float]:
    """Answer how many nodes *decided* asks for, and what they cost per hour, each at its cheapest offering.

    One for which nothing is sold counts nothing.
    """
    claims = [one.claim for one in decided.actions if isinstance(one, CreateNodeClaim)]
    sold = cluster.catalogue
    return len(claims), sum(_cheapest(one, sold) for one in claims) if sold is not None else 0.0


def _cheapest(claim: NodeClaim, sold: Catalogue) -> float:
    types, zones, kinds = (claim.requirements[key] for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
    return min(
        (
            offering.price_usd_per_hour
            for kind in sold.types_for(claim.node_class.name, claim.meta.label(NODEPOOL))
            if types.has(kind.name)
            for offering in kind.offerings
            if offering.available and zones.has(offering.zone) and kinds.has(offering.capacity_type)
        ),
        default=0.0,
    )
