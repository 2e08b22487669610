"""Warm start: dual values computed once for all pods make packing problems for subsets of the pods cheap to solve.

The dual values of all pods give a lower bound for each subset: no bin type holds more value than it costs. They differ
slightly from the dual values of the subset alone; therefore solutions are improved by large neighborhood search instead
of computing the dual values again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import mul
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.optimization.bin_types import BinType
from shared.decide.scheduling.optimization.dual_values import DualValueSolver
from shared.decide.scheduling.optimization.items import build_items
from shared.decide.scheduling.optimization.large_neighborhood_search import LargeNeighborhoodSearch
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts
from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem
from shared.decide.scheduling.optimization.pattern_selection import PatternSelection, select_bin_types
from shared.decide.scheduling.optimization.patterns import FillStrategy, PatternFiller
from shared.decide.scheduling.optimization.solver import MAX_STEPS_PER_POD, PackingSolution, count_patterns
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass

FILL_STRATEGIES: Final = (FillStrategy(value_exponent=2), FillStrategy(), FillStrategy(value_exponent=30))
IMPROVEMENT_EFFORT_DIVISOR: Final = 6
"""Each solution is improved with this fraction (1/n) of the effort, the best one with the effort that remains at the
end.
"""
NO_DUAL_VALUES: Final = DualValues(
    item_values=(), resource_prices=(), value_ratios=(), node_counts=(), lp_contents=(), lower_bound=0.0
)
MAX_PODS_FOR_CHEAPEST_TYPES: Final = 100
"""Up to this number of pods the cheapest bin type of each item is tried too, because the best for all may be far too
large.
"""
NO_BIN_TYPE: Final = -1
_PRICE_TOLERANCE: Final = 1e-6
QueuedClass: TypeAlias = tuple[int, PodEquivalenceClass]
"""The position of a pod class in the queue, which identifies the class, and the class."""


class WarmStart(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A packing problem with the dual values of its items.

    *min_item_costs* are lower bounds: no bin type has a lower cost per pod of the item.
    """

    classes: tuple[QueuedClass, ...]
    problem: PackingProblem
    dual_values: DualValues
    min_item_costs: Amounts
    cheapest_bin_types: tuple[int, ...]
    """By item: the accepted bin type with the lowest price, which is worth trying for small remainders."""
    item_numbers: Mapping[tuple[int, str], int]
    """Item indices by class number and zone."""

    def order_classes(self, classes_by_position: Mapping[int, PodEquivalenceClass]) -> list[PodEquivalenceClass]:
        """Return the classes in the order of the problem, empty ones for missing classes, then the unknown classes.

        *classes_by_position* is keyed by position in the queue.
        """
        known_positions = {position for position, _ in self.classes}
        ordered_classes = [
            classes_by_position.get(position) or msgspec.structs.replace(pod_class, pods=[])
            for position, pod_class in self.classes
        ]
        return ordered_classes + [
            pod_class
            for position, pod_class in sorted(classes_by_position.items(), key=lambda pair: pair[0])
            if position not in known_positions
        ]

    def count_items(self, packing: FirstFitPacking, classes: Sequence[PodEquivalenceClass]) -> list[int]:
        """Return the number of pods of each item in *classes*, which must be ordered by `order_classes`."""
        counts = [0] * len(self.problem.items)
        for item in build_items(packing, classes):
            number = self.item_numbers.get((item.class_number, item.zone))
            if number is not None:
                counts[number] += item.count
        return counts

    def compute_lower_bound(self, counts: Sequence[int]) -> float:
        """Return a lower bound of the cost of nodes that hold *counts* pods of each item."""
        return math.fsum(map(mul, self.min_item_costs, counts))

    def solve(self, counts: Sequence[int], effort: int, max_cost: float = math.inf) -> PackingSolution:
        """Return a solution for *counts* pods of each item; only the lower bound if that exceeds *max_cost*."""
        lower_bound = self.compute_lower_bound(counts)
        if lower_bound > max_cost or not any(counts):
            return PackingSolution(lower_bound=lower_bound, price=lower_bound)
        effort = min(effort, MAX_STEPS_PER_POD * sum(counts))
        searches = list(self._generate_searches(counts, effort // IMPROVEMENT_EFFORT_DIVISOR))
        best_search = min(searches, key=lambda plan: (plan.price, len(plan.nodes)))
        best_search.improve(effort // 2)
        return PackingSolution(
            selected_patterns=count_patterns(best_search.nodes), lower_bound=lower_bound, price=best_search.price
        )

    def _generate_searches(self, counts: Sequence[int], effort: int) -> Iterator[LargeNeighborhoodSearch]:
        for strategy in FILL_STRATEGIES:
            yield self._start_search(counts, effort, strategy, frozenset())
        if sum(counts) <= MAX_PODS_FOR_CHEAPEST_TYPES:
            cheapest_bin_types = (
                bin_type for bin_type, count in zip(self.cheapest_bin_types, counts, strict=True) if count
            )
            yield self._start_search(counts, effort, FillStrategy(), frozenset(cheapest_bin_types) - {NO_BIN_TYPE})

    def _start_search(
        self, counts: Sequence[int], effort: int, strategy: FillStrategy, extra_bin_types: frozenset[int]
    ) -> LargeNeighborhoodSearch:
        """Return a search that starts from the best-paying bin types and those in *extra_bin_types*."""
        filler = PatternFiller(self.problem, list(counts))
        bin_types = select_bin_types(self.problem, filler, self.dual_values)
        bin_types += sorted(extra_bin_types.difference(bin_types))
        selected_patterns = PatternSelection(self.problem, filler, self.dual_values, strategy, bin_types).select_until(
            0.0
        )
        search = LargeNeighborhoodSearch(
            self.problem,
            self.dual_values,
            [selected.pattern for selected in selected_patterns for _ in range(selected.count)],
        )
        search.improve(effort)
        return search


def build_warm_start(problem: PackingProblem, classes: Sequence[QueuedClass]) -> WarmStart:
    """Return the warm start for *classes*; *problem* is their packing problem, built with `everywhere=True`."""
    is_open = any(problem.accepted_items)
    dual_values = (
        DualValueSolver(problem).compute_dual_values([item.count for item in problem.items])
        if is_open
        else NO_DUAL_VALUES
    )
    items = {(item.class_number, item.zone): number for number, item in enumerate(problem.items) if is_open}
    min_item_costs = _compute_min_item_costs(problem, dual_values) if is_open else (0.0,) * len(problem.items)
    dual_values = msgspec.structs.replace(
        dual_values, item_values=tuple(map(max, dual_values.item_values, min_item_costs))
    )
    empty_classes = tuple((place, msgspec.structs.replace(pod_class, pods=[])) for place, pod_class in classes)
    return WarmStart(
        classes=empty_classes,
        problem=problem,
        dual_values=dual_values,
        min_item_costs=min_item_costs,
        cheapest_bin_types=_find_cheapest_bin_types(problem),
        item_numbers=items,
    )


def _compute_min_item_costs(problem: PackingProblem, dual_values: DualValues) -> Amounts:
    """Return the lowest cost of each item over all bin types, at resource prices at which a full node pays for itself.

    The resource prices of a bin type are the dual values of its resources, plus a small constant so that no item is
    free.
    """
    normalized_prices = list(map(_normalize_prices, problem.bin_types, dual_values.resource_prices))
    return tuple(
        min(
            (
                sum(map(mul, prices, item.scaled_need))
                for prices, open_ in zip(normalized_prices, problem.accepted_items, strict=True)
                if open_ >> place & 1
            ),
            default=0.0,
        )
        for place, item in enumerate(problem.items)
    )


def _find_cheapest_bin_types(problem: PackingProblem) -> tuple[int, ...]:
    ranked_bin_types = sorted(
        range(len(problem.bin_types)), key=lambda bin_type: (problem.bin_types[bin_type].price, bin_type)
    )
    return tuple(
        next((bin_type for bin_type in ranked_bin_types if problem.accepted_items[bin_type] >> place & 1), NO_BIN_TYPE)
        for place in range(len(problem.items))
    )


def _normalize_prices(bin_type: BinType, prices: Amounts) -> Amounts:
    """Return the resource *prices*, by axis, scaled such that the full capacity costs the price of the bin type."""
    positive_prices = [
        price + _PRICE_TOLERANCE / capacity if capacity else price
        for price, capacity in zip(prices, bin_type.scaled_capacity, strict=True)
    ]
    total_cost = sum(map(mul, positive_prices, bin_type.scaled_capacity))
    return tuple(bin_type.price / total_cost * price for price in positive_prices)
