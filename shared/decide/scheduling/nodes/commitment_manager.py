"""Commitments (Savings Plans, Reserved Instances) in scheduling: what is left of them pays for new on-demand nodes.

What is left is used up node by node, in the order in which the nodes were opened, so one plan cannot use it twice. A
node uses it only if that makes the node cheaper. Then the node is restricted to on-demand capacity and to instance
types that are covered as well as the planned one; it counts as the one that uses the most. Prices of NodeOverlays take
precedence: such offerings are not covered.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask, merge_masks
from shared.decide.scheduling.instance_types.offering_prices import OfferingKind
from shared.decide.scheduling.instance_types.price_list import PricedInstanceType
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate
from shared.model.core.labels import CAPACITY_TYPE, ON_DEMAND, OS, RESERVED, ZONE
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.ec2.commitments import Coverage, merge_amounts
from shared.state.commitments.remaining import RemainingCommitments, Tier

COMMITTED_PRICE_DIVISOR: Final = 10_000_000
"""A covered instance is paid for anyway: its price is nearly zero, in the order of the on-demand prices."""
PRICE_TOLERANCE_RATIO: Final = 1.15
"""Instance types with an on-demand price up to this multiple of the planned one are considered equally good."""
MAX_UNCOVERED_RATIO: Final = 0.25
"""A node that is planned for commitments may have at most this uncovered part; spot capacity costs more in general."""
MAX_TRIED_TYPES: Final = 64
"""Number of instance types, the cheapest first, that are tried for one node."""
ON_DEMAND_REQUIREMENTS: Final = build_label_requirements({CAPACITY_TYPE: ON_DEMAND})
_EPSILON_USD: Final = 1e-9


OfferingKey: TypeAlias = tuple[InstanceTypeIndex, tuple[OfferingKind, ...]]


class CommittedNode(msgspec.Struct, frozen=True, kw_only=True):
    """How commitments pay for a new node."""

    requirements: Requirements
    """Those of the node, restricted to on-demand capacity."""
    mask: Mask
    price_usd_per_hour: float
    """What the node adds to the bill."""
    on_demand_usd_per_hour: float
    coverage: Coverage


class CoveredTypes(msgspec.Struct, frozen=True, kw_only=True):
    """The offerings that the commitments of one tier can cover."""

    requirements: Requirements
    type_masks: tuple[Mask, ...]
    """By template."""


class CommittedCapacity:
    """What is left of the commitments before a plan, and the instance types that they can cover."""

    def __init__(self, remaining: RemainingCommitments) -> None:
        """Plans start with copies of *remaining*."""
        self._remaining = remaining
        self._covered_types: dict[OfferingKey, tuple[PricedInstanceType, ...]] = {}

    def start_plan(self) -> "CommitmentManager":
        """Return a manager of everything that is left."""
        return CommitmentManager(self, self._remaining.copy())

    def list_covered_types(
        self, type_index: InstanceTypeIndex, requirements: Requirements
    ) -> tuple[PricedInstanceType, ...]:
        """Return the types that commitments can cover in some offering that *requirements* allow, the cheapest first.

        Each has its cheapest offering, which is on-demand.
        """
        key = (type_index, type_index.list_kinds(requirements))
        covered_types = self._covered_types.get(key)
        if covered_types is None:
            covered_types = self._covered_types[key] = tuple(self._find_covered_types(type_index, requirements))
        return covered_types

    def _find_covered_types(
        self, type_index: InstanceTypeIndex, requirements: Requirements
    ) -> Iterator[PricedInstanceType]:
        for priced_type in type_index.sort_by_price(requirements, type_index.usable):
            instance_type, offering = type_index.types[priced_type.bit.bit_length() - 1], priced_type.offering
            if (
                not offering.is_overlaid
                and instance_type.requirements[OS].has("linux")
                and self._remaining.can_cover(priced_type.name, offering.price_usd_per_hour)
            ):
                yield priced_type


class CommitmentManager:
    """What is left of the commitments while the nodes of one plan are priced."""

    def __init__(self, capacity: CommittedCapacity, remaining: RemainingCommitments) -> None:
        """Use up *remaining*."""
        self._capacity, self._remaining = capacity, remaining

    def reserve_commitments(
        self, node: OpenNodeClaim, node_requirements: Requirements, mask: Mask
    ) -> CommittedNode | None:
        """Return how commitments pay for *node* with a type in *mask*, and use them up; None if that is not cheaper."""
        type_index = node.template.type_index
        cheapest_type = type_index.find_cheapest(node_requirements, mask)
        if cheapest_type is None or cheapest_type.offering.capacity_type == RESERVED or not self._remaining.has_rest():
            return None
        if any(item.key in (CAPACITY_TYPE, ZONE) for item in node.state.min_value_requirements):
            return None  # a covered node has one capacity type, and maybe one zone
        requirements = node_requirements & ON_DEMAND_REQUIREMENTS
        covered_types = [
            priced_type
            for priced_type in self._capacity.list_covered_types(type_index, requirements)
            if priced_type.bit & mask
        ]
        choice = self._choose_type(type_index, requirements, covered_types)
        if choice is None:
            return None
        position, coverage = choice
        planned_type = covered_types[position]
        price = compute_committed_price(coverage, planned_type.offering.price_usd_per_hour)
        if price >= cheapest_type.offering.price_usd_per_hour:
            return None
        equal_types = [
            (planned_type, coverage),
            *self._find_equal_types(covered_types[position + 1 :], planned_type, coverage),
        ]
        if coverage.zone:
            requirements &= build_label_requirements({ZONE: coverage.zone})
        covered_mask = merge_masks(priced_type.bit for priced_type, _ in equal_types)
        covered_mask &= type_index.find_offered(requirements)
        if not has_min_values(node.template, node.state, covered_mask):
            return None
        self._remaining.take(merge_amounts(type_coverage for _, type_coverage in equal_types))
        return CommittedNode(
            requirements=requirements,
            mask=covered_mask,
            price_usd_per_hour=price,
            on_demand_usd_per_hour=planned_type.offering.price_usd_per_hour,
            coverage=coverage,
        )

    def list_tiers(self, packing_templates: Iterable[NodeClaimTemplate]) -> list[CoveredTypes]:
        """Return the instance types that the commitments of each tier can still cover, in the order of AWS."""
        templates = tuple(packing_templates)
        masks_by_tier: dict[Tier, list[Mask]] = {}
        for number, template in enumerate(templates):
            requirements = template.initial_state.requirements & ON_DEMAND_REQUIREMENTS
            for priced_type in self._capacity.list_covered_types(template.type_index, requirements):
                for tier in self._remaining.list_tiers(priced_type.name, priced_type.offering.price_usd_per_hour):
                    masks_by_tier.setdefault(tier, [0] * len(templates))[number] |= priced_type.bit
        return [
            CoveredTypes(
                requirements=ON_DEMAND_REQUIREMENTS & build_label_requirements({ZONE: zone} if zone else {}),
                type_masks=tuple(masks),
            )
            for (_, zone), masks in sorted(masks_by_tier.items())
        ]

    def reserve_type(self, type_index: InstanceTypeIndex, bit: Mask, zone: str) -> bool:
        """Use up what pays for an instance of type *bit* in *zone*; return False if too little is left."""
        number = bit.bit_length() - 1
        prices = [
            offering.price_usd_per_hour
            for offering in type_index.offerings[number]
            if (offering.capacity_type, offering.zone) == (ON_DEMAND, zone)
        ]
        if not prices:
            return False
        coverage = self._remaining.find_coverage(type_index.types[number].name, zone, prices[0])
        if coverage.uncovered_usd_per_hour > MAX_UNCOVERED_RATIO * prices[0]:
            return False
        self._remaining.take(coverage.amounts)
        return True

    def _choose_type(
        self, type_index: InstanceTypeIndex, requirements: Requirements, covered_types: list[PricedInstanceType]
    ) -> tuple[int, Coverage] | None:
        """Return the position and the coverage of the type with the lowest price; of equal prices the first."""
        best_price, choice = 0.0, None
        for position, priced_type in enumerate(covered_types[:MAX_TRIED_TYPES]):
            coverage = self._find_coverage(type_index, requirements, priced_type)
            if coverage.amounts and (choice is None or coverage.uncovered_usd_per_hour < best_price - _EPSILON_USD):
                best_price, choice = coverage.uncovered_usd_per_hour, (position, coverage)
                if best_price <= 0:
                    break
        return choice

    def _find_coverage(
        self, type_index: InstanceTypeIndex, requirements: Requirements, priced_type: PricedInstanceType
    ) -> Coverage:
        """Return the best coverage of *priced_type*: in any zone, or in the zone of zonal Reserved Instances."""
        name, usd_per_hour = priced_type.name, priced_type.offering.price_usd_per_hour
        coverages = [self._remaining.find_coverage(name, "", usd_per_hour)]
        coverages += [
            self._remaining.find_coverage(name, zone, usd_per_hour)
            for zone in self._remaining.find_zones(name, usd_per_hour)
            if type_index.find_offered(requirements & build_label_requirements({ZONE: zone})) & priced_type.bit
        ]
        return min(coverages, key=lambda coverage: (coverage.uncovered_usd_per_hour, not coverage.zone, coverage.zone))

    def _find_equal_types(
        self, covered_types: list[PricedInstanceType], planned_type: PricedInstanceType, coverage: Coverage
    ) -> Iterator[tuple[PricedInstanceType, Coverage]]:
        """Yield the types that cost little more than *planned_type* and are covered by the same commitments as well."""
        max_price = PRICE_TOLERANCE_RATIO * planned_type.offering.price_usd_per_hour
        for priced_type in covered_types[:MAX_TRIED_TYPES]:
            usd_per_hour = priced_type.offering.price_usd_per_hour
            if usd_per_hour > max_price:
                return
            type_coverage = self._remaining.find_coverage(priced_type.name, coverage.zone, usd_per_hour)
            is_covered = type_coverage.uncovered_usd_per_hour <= coverage.uncovered_usd_per_hour + _EPSILON_USD
            if is_covered and type_coverage.commitment_ids == coverage.commitment_ids:
                yield priced_type, type_coverage


def compute_committed_price(coverage: Coverage, on_demand_usd_per_hour: float) -> float:
    """Return what an instance adds to the bill: what is not covered, or nearly nothing."""
    return coverage.uncovered_usd_per_hour + on_demand_usd_per_hour / COMMITTED_PRICE_DIVISOR
