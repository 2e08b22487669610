"""The offerings that a NodeClaim allows, with current prices."""

from typing import Final

from cli.fleet.document.fleet_decisions import OfferingAlternative
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.requirements import Requirements
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.node_prices import PriceList

MAX_ALTERNATIVES: Final = 6


class AlternativeFinder:
    """Finds the cheapest offerings of NodeClaims; NodeClaims with equal requirements are computed once."""

    def __init__(self, price_list: PriceList) -> None:
        """Use the prices of *price_list*."""
        self._price_list = price_list
        self._alternatives_by_key: dict[tuple[Requirements, str, str], tuple[OfferingAlternative, ...]] = {}

    def find_alternatives(self, claim: NodeClaim) -> tuple[OfferingAlternative, ...]:
        """Return the cheapest offerings that *claim* allows, one for each instance type, cheapest first."""
        key = (claim.requirements, claim.node_class.name, claim.meta.get_label(NODEPOOL))
        if key not in self._alternatives_by_key:
            self._alternatives_by_key[key] = self._list_cheapest(*key)
        return self._alternatives_by_key[key]

    def _list_cheapest(
        self, requirements: Requirements, node_class: str, node_pool: str
    ) -> tuple[OfferingAlternative, ...]:
        allowed_types = requirements[INSTANCE_TYPE]
        types_by_name = self._price_list.list_types(node_class, node_pool)
        zones, capacity_types = requirements[ZONE], requirements[CAPACITY_TYPE]
        cheapest_offerings: list[OfferingAlternative] = []
        for name in () if allowed_types.complement else sorted(allowed_types.values & types_by_name.keys()):
            offerings = (
                OfferingAlternative(
                    instance_type=name,
                    capacity_type=offering.capacity_type,
                    zone=offering.zone,
                    price=offering.price_usd_per_hour,
                )
                for offering in types_by_name[name].offerings
                if offering.price_usd_per_hour
                and zones.has(offering.zone)
                and capacity_types.has(offering.capacity_type)
            )
            cheapest_offerings += sorted(offerings, key=_rank_alternative)[:1]
        return tuple(sorted(cheapest_offerings, key=_rank_alternative)[:MAX_ALTERNATIVES])


def _rank_alternative(alternative: OfferingAlternative) -> tuple[float, str, str, str]:
    return alternative.price, alternative.instance_type, alternative.capacity_type, alternative.zone
