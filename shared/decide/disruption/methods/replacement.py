"""Replacements for nodes to disrupt: a node that costs less than its targets, however it is launched."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.replacement_result import Replacement
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.scheduling.instance_types.masks import Mask, merge_masks
from shared.decide.scheduling.instance_types.offering_prices import get_offering_kind
from shared.decide.scheduling.instance_types.price_order import PriceOrder, PriceOrders
from shared.decide.scheduling.nodes.commitment_manager import ON_DEMAND_REQUIREMENTS
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.packing.reservation_manager import ReservationManager
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.decide.scheduling.templates.node_claim_builder import derive_node_claim_name, encode_requirements
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE, ZONE_ID
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements, build_requirements
from shared.model.core.resources import PODS, Axes, compute_min_resources
from shared.model.decisions.placement import CheapestOffering, NewNodeClaim
from shared.model.kubernetes.pod import Pod

MIN_SPOT_TYPES: Final = 15
"""Minimum number of cheaper spot types for a spot-to-spot replacement, to prevent a move after each price change."""


class ReplacementFinder:
    """Finds replacements; reservations of accepted replacements are used up."""

    def __init__(
        self,
        axes: Axes,
        reservation_manager: ReservationManager,
        *,
        spot_to_spot: bool,
        max_instance_types: int,
        claim_names: frozenset[str],
    ) -> None:
        """*reservation_manager*: free capacity of reservations; *claim_names*: names of existing NodeClaims."""
        self._axes, self._reservation_manager, self._claim_names = axes, reservation_manager, claim_names
        self.spot_to_spot, self._max_instance_types = spot_to_spot, max_instance_types
        self._price_orders = PriceOrders()

    def copy_reservation_manager(self) -> ReservationManager:
        """Return a copy of the free reservations that several nodes of one trial can use up."""
        return ReservationManager(remaining=dict(self._reservation_manager.remaining))

    def find_at_any_price(
        self, node: OpenNodeClaim, reservation_manager: ReservationManager, committed_type: str = ""
    ) -> Replacement | ReplacementRefusal:
        """Return a replacement for *node* at any price (drift).

        *committed_type*: the instance type of a replaced node that commitments pay for; it is kept if possible.
        """
        has_committed = committed_type and not node.state.min_value_requirements
        committed_replacement = self._find_committed(node, committed_type) if has_committed else None
        if isinstance(committed_replacement, Replacement):
            return committed_replacement
        node_requirements, mask = self._hold_reservations(node, reservation_manager)
        return self._build_replacement(node, node_requirements, mask)

    def _find_committed(self, node: OpenNodeClaim, instance_type: str) -> Replacement | ReplacementRefusal:
        template, type_index = node.template, node.template.type_index
        requirements = node.state.requirements.without((HOSTNAME,)) & ON_DEMAND_REQUIREMENTS
        same_type = node.state.mask & type_index.find_by_name(_require_instance_type(instance_type))
        mask = template.filter_fitting_types(same_type, node.used, tuple(node.ports))
        return self._build_replacement(node, requirements, mask & type_index.find_offered(requirements))

    def find_cheaper(
        self,
        node: OpenNodeClaim,
        targets: Sequence[Candidate],
        max_node_price: float | None = None,
        reservation_manager: ReservationManager | None = None,
    ) -> Replacement | ReplacementRefusal:
        """Return a replacement that costs less than *targets* together.

        One of several replacements must cost less than *max_node_price*.
        """
        max_price = sum(target.price_usd_per_hour for target in targets) if max_node_price is None else max_node_price
        node_requirements, mask = self._hold_reservations(node, reservation_manager or self.copy_reservation_manager())
        is_spot = all(target.capacity_type == SPOT for target in targets)
        if is_spot and node_requirements[CAPACITY_TYPE].has(SPOT):
            return self._find_spot_to_spot(
                node, node_requirements, targets, max_price, is_single_replacement=max_node_price is None
            )
        node_requirements, mask = self._filter_below_price(node, node_requirements, mask, max_price)
        if len(targets) > 1 and max_node_price is None:
            mask &= self._exclude_current_types(node, node_requirements, mask, targets)
        if not mask:
            return ReplacementRefusal(reason="NoCheaperOffering", message="no cheaper offering")
        if not has_min_values(node.template, node.state, mask):
            return ReplacementRefusal(
                reason="MinValuesNotMet", message="the cheaper instance types do not meet minValues"
            )
        node_requirements, mask = self._narrow_capacity_type(node, node_requirements, mask, max_price)
        return self._build_replacement(node, node_requirements, mask)

    def find_lowest_price(self, node: OpenNodeClaim) -> float:
        """Return the price of the node's cheapest offering; infinity if it has none."""
        cheapest_type = node.template.type_index.find_cheapest(node.state.requirements.without((HOSTNAME,)), node.mask)
        return inf if cheapest_type is None else cheapest_type.offering.price_usd_per_hour

    def accept(self, replacement: Replacement, pods: Mapping[str, Pod]) -> NewNodeClaim:
        """Return the new NodeClaim for *replacement* and subtract its reservations from the free ones."""
        node, template = replacement.open_node_claim, replacement.open_node_claim.template
        self._hold_reservations(node, self._reservation_manager)
        priced_types = template.type_index.sort_by_price(replacement.requirements, replacement.type_mask)
        daemon_overhead = compute_min_resources(
            group.requests for group in template.daemon_overheads if group.mask & replacement.type_mask
        )
        node_pods = [pods[name] for name in node.pods]
        return NewNodeClaim(
            name=derive_node_claim_name(
                template.pool.name, node_pods, encode_requirements(replacement.requirements), self._claim_names
            ),
            node_pool=template.pool.name,
            requirements=replacement.requirements,
            instance_types=tuple(priced_type.name for priced_type in priced_types),
            pods=tuple(sorted(node.pods)),
            requests=self._axes.decode_vector(node.used) + daemon_overhead,
            daemon_pods=daemon_overhead[PODS],
            cheapest=replacement.cheapest,
            min_values_relaxed=node.is_relaxed,
        )

    def _hold_reservations(
        self, node: OpenNodeClaim, reservation_manager: ReservationManager
    ) -> tuple[Requirements, Mask]:
        node_requirements = node.state.requirements.without((HOSTNAME,))
        instance_type_index = node.template.type_index
        if reservation_manager.remaining and instance_type_index.list_reservation_ids(node_requirements, node.mask):
            return reservation_manager.reserve(node, node_requirements)
        return node_requirements, node.mask & instance_type_index.find_offered(node_requirements)

    def _get_price_order(self, node: OpenNodeClaim, node_requirements: Requirements) -> PriceOrder:
        return self._price_orders.get_price_order(node.template.type_index, node_requirements)

    def _filter_below_price(
        self, node: OpenNodeClaim, node_requirements: Requirements, mask: Mask, max_price: float
    ) -> tuple[Requirements, Mask]:
        """Return the types that cost less than *max_price* in all zones, or else in the zones of the cheapest type."""
        cheaper_types = mask & self._get_price_order(node, node_requirements).find_types_below(max_price)
        if cheaper_types or any(item.key in (ZONE, ZONE_ID) for item in node.state.min_value_requirements):
            return node_requirements, cheaper_types
        instance_type_index = node.template.type_index
        for capacity_type in (SPOT, ON_DEMAND):
            narrowed_requirements = node_requirements & build_label_requirements({CAPACITY_TYPE: capacity_type})
            cheapest_type = (
                instance_type_index.find_cheapest(narrowed_requirements, mask)
                if node_requirements[CAPACITY_TYPE].has(capacity_type)
                else None
            )
            if cheapest_type is None or cheapest_type.offering.price_usd_per_hour >= max_price:
                continue
            kinds, offerings = (
                frozenset(instance_type_index.list_kinds(narrowed_requirements)),
                instance_type_index.offerings[cheapest_type.bit.bit_length() - 1],
            )
            cheaper_offerings = (
                offering
                for offering in offerings
                if get_offering_kind(offering) in kinds and offering.price_usd_per_hour < max_price
            )
            narrowed_requirements &= Requirements(
                items=(Requirement(key=ZONE, values=frozenset(offering.zone for offering in cheaper_offerings)),)
            )
            return narrowed_requirements, mask & instance_type_index.find_offered(
                narrowed_requirements
            ) & self._get_price_order(node, narrowed_requirements).find_types_below(max_price)
        return node_requirements, 0

    def _narrow_capacity_type(
        self, node: OpenNodeClaim, node_requirements: Requirements, mask: Mask, max_price: float
    ) -> tuple[Requirements, Mask]:
        """Restrict to one capacity type if spot and on-demand are allowed, so that the expensive one is not used."""
        capacity_types, instance_type_index = node_requirements[CAPACITY_TYPE], node.template.type_index
        if not (
            capacity_types.has(SPOT) and capacity_types.has(ON_DEMAND)
        ) or RESERVED in instance_type_index.list_capacity_types(node_requirements, mask):
            return node_requirements, mask
        for capacity_type in (SPOT, ON_DEMAND):
            narrowed_requirements = node_requirements & build_label_requirements({CAPACITY_TYPE: capacity_type})
            cheaper_types = (
                mask
                & instance_type_index.find_offered(narrowed_requirements)
                & self._get_price_order(node, narrowed_requirements).find_types_below(max_price)
            )
            if cheaper_types and has_min_values(node.template, node.state, cheaper_types):
                return narrowed_requirements, cheaper_types
        return node_requirements, 0

    def _find_spot_to_spot(
        self,
        node: OpenNodeClaim,
        node_requirements: Requirements,
        targets: Sequence[Candidate],
        max_price: float,
        *,
        is_single_replacement: bool,
    ) -> Replacement | ReplacementRefusal:
        if not self.spot_to_spot:
            message = (
                "spot nodes are replaced with spot nodes only if the feature gate SpotToSpotConsolidation is enabled"
            )
            return ReplacementRefusal(reason="SpotToSpotDisabled", message=message)
        spot_requirements = node_requirements & build_label_requirements({CAPACITY_TYPE: SPOT})
        instance_type_index, template = node.template.type_index, node.template
        mask = (
            node.mask
            & instance_type_index.find_offered(spot_requirements)
            & self._get_price_order(node, spot_requirements).find_types_below(max_price)
        )
        if len(targets) > 1 and is_single_replacement:
            mask &= self._exclude_current_types(node, spot_requirements, mask, targets)
        if not mask:
            return ReplacementRefusal(reason="NoCheaperOffering", message="no cheaper spot offering")
        if not has_min_values(template, node.state, mask):
            return ReplacementRefusal(
                reason="MinValuesNotMet", message="the cheaper spot instance types do not meet minValues"
            )
        if len(targets) == 1:
            count = mask.bit_count()
            if count < MIN_SPOT_TYPES:
                message = (
                    f"a spot node is replaced only if {MIN_SPOT_TYPES} instance types are cheaper; cheaper "
                    f"here: {count}"
                )
                return ReplacementRefusal(reason="TooFewSpotTypes", message=message)
            mask = self._select_cheapest_spot_types(node, spot_requirements, mask)
        return self._build_replacement(node, spot_requirements, mask)

    def _select_cheapest_spot_types(self, node: OpenNodeClaim, node_requirements: Requirements, mask: Mask) -> Mask:
        """Return the cheapest types: fifteen, or as many as minValues require."""
        bits = [priced_type.bit for priced_type in node.template.type_index.sort_by_price(node_requirements, mask)]
        count = min(MIN_SPOT_TYPES, len(bits))
        while count < len(bits) and not has_min_values(node.template, node.state, merge_masks(bits[:count])):
            count += 1
        return merge_masks(bits[:count])

    def _exclude_current_types(
        self, node: OpenNodeClaim, node_requirements: Requirements, mask: Mask, targets: Sequence[Candidate]
    ) -> Mask:
        """Return the types that cost less than each target with a type in *mask*: such a target can be kept."""
        current_types = node.template.type_index.find_by_name(
            Requirement(key=INSTANCE_TYPE, values=frozenset(target.instance_type for target in targets))
        )
        shared_types = current_types & mask
        type_names = {instance_type.name for instance_type in node.template.type_index.types} if shared_types else set()
        prices = [
            target.price_usd_per_hour
            for target in targets
            if shared_types
            and target.price_usd_per_hour > 0
            and target.instance_type in type_names
            and shared_types & node.template.type_index.find_by_name(_require_instance_type(target.instance_type))
        ]
        return mask & self._get_price_order(node, node_requirements).find_types_below(min(prices)) if prices else mask

    def _build_replacement(
        self, node: OpenNodeClaim, node_requirements: Requirements, mask: Mask
    ) -> Replacement | ReplacementRefusal:
        instance_type_index, template = node.template.type_index, node.template
        priced_types = instance_type_index.sort_by_price(node_requirements, mask)
        if len(priced_types) > self._max_instance_types:
            priced_types = priced_types[: self._max_instance_types]
            mask = merge_masks(priced_type.bit for priced_type in priced_types)
        if not priced_types:
            return ReplacementRefusal(reason="NoCheaperOffering", message="no offering is available")
        if not has_min_values(template, node.state, mask):
            return ReplacementRefusal(
                reason="MinValuesNotMet", message="its cheapest instance types do not meet minValues"
            )
        capacity_types = instance_type_index.list_capacity_types(node_requirements, mask)
        replacement_requirements = node_requirements & build_requirements(
            (Requirement(key=CAPACITY_TYPE, values=capacity_types),)
        )
        worst_price_by_type = self._get_price_order(node, replacement_requirements).worst_price_by_type
        offering = priced_types[0].offering
        return Replacement(
            open_node_claim=node,
            requirements=replacement_requirements,
            type_mask=mask,
            cheapest=CheapestOffering(
                instance_type=priced_types[0].name,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
                price_usd_per_hour=offering.price_usd_per_hour,
                reservation_id=offering.reservation_id,
                interruption_usd_per_hour=offering.interruption_usd_per_hour,
            ),
            worst_price_usd_per_hour=max(
                worst_price_by_type[priced_type.bit.bit_length() - 1] for priced_type in priced_types
            ),
        )


def _require_instance_type(name: str) -> Requirement:
    return Requirement(key=INSTANCE_TYPE, values=frozenset((name,)))
