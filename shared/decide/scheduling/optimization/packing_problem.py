"""The packing problem: demand as items, and supply as bin types.

Items are equal pods, by zone; bin types are the offerings worth considering.

Its solutions are advice only. The problem knows allocatable resources, requirements, even spread over zones, and the
maximum number of equal pods per node. All other constraints are checked by the packing.
"""

from collections.abc import Iterable, Sequence
from operator import ge
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.instance_type_index import WITHOUT_RESERVED
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.instance_types.resource_index import Bits, ResourceIndex
from shared.decide.scheduling.nodes.node_pool_limits import filter_types_within_limits
from shared.decide.scheduling.optimization.bin_types import (
    PODS_AXIS,
    BinType,
    BinTypeFinder,
    compute_scale,
    scale_amounts,
)
from shared.decide.scheduling.optimization.items import Item, build_items
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.node_costs import list_extra_costs
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.model.core.requirements import Requirements


class SupplyFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The offerings of a packing problem."""

    requirements: Requirements = WITHOUT_RESERVED
    """Requirements on offerings. Reserved capacity is used before anything is launched."""
    type_masks: tuple[Mask, ...] = ()
    """By template, the instance types; empty: all."""


ALL_SUPPLY: Final = SupplyFilter()


class PackingProblem(msgspec.Struct, kw_only=True, eq=False):
    """Demand and supply, with amounts scaled so that the total demand is the same for each resource."""

    items: list[Item]
    """Items, the smallest first: the index of an item is its bit."""
    resource_index: ResourceIndex
    """Index of the items' resource needs."""
    bin_types: list[BinType]
    accepted_items: list[Bits]
    """By bin type: the items that it accepts."""


class DualValues(msgspec.Struct, frozen=True, kw_only=True):
    """Value of one pod of each item, resource prices of each bin type, and the value that a dollar buys there.

    *node_counts* is the number of nodes of each bin type in the linear relaxation. *lp_contents* are, by bin type, the
    items on these nodes and their amounts. *lower_bound* is a lower bound of the cost of all pods.
    """

    item_values: tuple[float, ...]
    resource_prices: tuple[Amounts, ...]
    value_ratios: tuple[float, ...]
    node_counts: tuple[float, ...]
    lp_contents: tuple[tuple[tuple[Bits, float], ...], ...]
    lower_bound: float


def build_packing_problem(
    packing: FirstFitPacking,
    classes: Iterable[PodEquivalenceClass],
    closed: frozenset[int] = frozenset(),
    *,
    everywhere: bool = False,
    supply: SupplyFilter = ALL_SUPPLY,
) -> PackingProblem:
    """Return the packing problem of those *classes* that can be modeled.

    Templates in *closed* are not used, and neither are instance types that exceed the limits of their NodePool. With
    *everywhere*, each zone gets at least one pod of a class that is spread over zones. *supply* restricts offerings.
    """
    type_masks = [
        filter_types_within_limits(packing.remaining_limits, template, template.initial_state.mask)
        for template in packing.templates
    ]
    if supply.type_masks:
        type_masks = [mask & allowed for mask, allowed in zip(type_masks, supply.type_masks, strict=True)]
    items = build_items(
        packing, classes, closed | {number for number, mask in enumerate(type_masks) if not mask}, everywhere=everywhere
    )
    scale = compute_scale(items)
    for item in items:
        item.scaled_need = scale_amounts(item.pods.request_vector, scale)
    items.sort(key=lambda item: (item.size, item.class_number, item.zone))
    bin_type_finder = BinTypeFinder(
        packing.templates, list_extra_costs(packing), scale, items, (type_masks, supply.requirements)
    )
    bin_supply = _drop_dominated(
        [(bin_type, bin_type_finder.find_accepted_items(bin_type)) for bin_type in bin_type_finder.bin_types]
    )
    return PackingProblem(
        items=items,
        resource_index=bin_type_finder.resource_index,
        bin_types=[bin_type for bin_type, _ in bin_supply],
        accepted_items=[accepted_items for _, accepted_items in bin_supply],
    )


def _drop_dominated(supply: Sequence[tuple[BinType, Bits]]) -> list[tuple[BinType, Bits]]:
    """Return the bin types for which no cheaper bin type has as much of all resources and accepts the same items.

    *supply* are bin types with the items that they accept. The same instance type in several zones, for example, is
    needed once unless items are bound to zones.
    """
    best_supply: dict[int, tuple[BinType, Bits]] = {}
    for number in sorted(range(len(supply)), key=lambda number: (supply[number][0].price, number)):
        bin_type, accepted_items = supply[number]
        is_dominated = any(
            not accepted_items & ~cheaper_items and all(map(ge, cheaper.capacity, bin_type.capacity))
            for cheaper, cheaper_items in best_supply.values()
        )
        if accepted_items and not is_dominated:
            best_supply[number] = supply[number]
    return [pair for _, pair in sorted(best_supply.items())]


def is_pod_limited(problem: PackingProblem) -> bool:
    """Return whether some node reaches its maximum number of pods before average pods use up its cpu or its memory."""
    items = problem.items
    count = sum(item.count for item in items)
    total_needs = [sum(item.count * item.pods.request_vector[axis] for item in items) for axis in (0, 1)]
    return any(
        bin_type.capacity[PODS_AXIS] * total_needs[0] < count * bin_type.capacity[0]
        and bin_type.capacity[PODS_AXIS] * total_needs[1] < count * bin_type.capacity[1]
        for bin_type in problem.bin_types
    )
