"""Dual values of items: the marginal cost of one more pod of a shape."""

from collections.abc import Iterator, Sequence
from operator import mul

from shared.decide.scheduling.optimization.bin_types import MEMORY_WEIGHTS, POD_SLOT_WEIGHTS
from shared.decide.scheduling.optimization.column_generation import (
    DEFAULT_EFFORT_STEPS,
    MAX_PRICED_BIN_TYPES,
    MIN_EFFORT_STEPS,
    MULTIPLICATIONS_PER_STEP,
    PROHIBITIVE_VALUE_USD,
    ColumnGeneration,
    DemandRows,
)
from shared.decide.scheduling.optimization.item_groups import build_item_groups
from shared.decide.scheduling.optimization.items import NO_HOST_GROUP
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts
from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem, is_pod_limited
from shared.decide.scheduling.optimization.pricing_problem import PricingProblem


class DualValueSolver:
    """Computes dual values as the number of remaining pods falls."""

    def __init__(self, problem: PackingProblem, effort: int = DEFAULT_EFFORT_STEPS) -> None:
        """Build the item groups; after *effort* steps the dual values are no longer improved."""
        self._effort = max(effort, MIN_EFFORT_STEPS)
        self._problem = problem
        self._item_groups = build_item_groups(problem.items, problem.accepted_items)
        pairs = enumerate(zip(problem.bin_types, problem.accepted_items, strict=True))
        self._pricing_problems = [
            PricingProblem(number, bin_type, accepted_items, self._item_groups)
            for number, (bin_type, accepted_items) in pairs
        ]
        self._demand_rows = DemandRows(self._item_groups)
        self._column_pool = [
            self._demand_rows.build_initial_column(bin_type, self._pricing_problems)
            for bin_type in range(self._demand_rows.width)
        ]
        self._initial_column_count = len(self._column_pool)
        self._best_row_values: list[float] | None = None
        self._cached_dual_values: dict[tuple[int, ...], DualValues] = {}

    def compute_dual_values(self, counts: Sequence[int]) -> DualValues:
        """Return the dual values for a demand of *counts* pods of each item."""
        key = tuple(counts)
        if key not in self._cached_dual_values:
            self._cached_dual_values[key] = self._solve(counts)
        return self._cached_dual_values[key]

    @property
    def steps(self) -> int:
        """Work spent so far, in steps of filling a node."""
        return sum(pricing.work for pricing in self._pricing_problems) // MULTIPLICATIONS_PER_STEP

    def _solve(self, counts: Sequence[int]) -> DualValues:
        items = self._problem.items
        amounts = [
            (
                sum(counts[index] * items[index].size for index in item_group.items),
                sum(counts[index] for index in item_group.items),
            )
            for item_group in self._item_groups
        ]
        search = ColumnGeneration(self._pricing_problems, self._demand_rows, amounts, self._column_pool)
        search.run(self._generate_start_values(search), lambda: self.steps > self._effort)
        if self._best_row_values is None:
            self._best_row_values = search.best_row_values
        self._column_pool[self._initial_column_count :] = search.list_used_columns()
        group_values = search.compute_group_values(search.best_row_values)
        for pricing in self._pricing_problems:
            pricing.solve(group_values, force=True)
        return DualValues(
            item_values=self._compute_item_values(counts, search.best_row_values),
            resource_prices=tuple(tank.compute_resource_prices() for tank in self._pricing_problems),
            value_ratios=tuple(tank.value_ratio for tank in self._pricing_problems),
            node_counts=tuple(search.count_nodes()),
            lp_contents=tuple(
                tuple((self._item_groups[item_group].item_bits, item_bits) for item_group, item_bits in contents)
                for contents in search.sum_contents()
            ),
            lower_bound=search.lower_bound,
        )

    def _generate_start_values(self, search: "ColumnGeneration") -> Iterator[list[float]]:
        """Yield the row values to start from: the best known ones, then uniform prices of memory and of pod slots."""
        count = sum(item.count for item in self._problem.items)
        mean_cpu = sum(item.count * item.scaled_need[0] for item in self._problem.items) / max(1, count)
        slot_values = (
            (0.0, *(mean_cpu * part for part in POD_SLOT_WEIGHTS)) if is_pod_limited(self._problem) else (0.0,)
        )
        if self._best_row_values is not None:
            yield search.mask_by_demand(self._best_row_values)
            slot_values = slot_values[:1]
        yield from (
            search.compute_uniform_values(memory_weight, slot_value)
            for slot_value in slot_values
            for memory_weight in MEMORY_WEIGHTS
        )

    def _compute_item_values(self, counts: Sequence[int], row_values: Sequence[float]) -> tuple[float, ...]:
        """Return the value of one pod of each item: the lowest cost of its resources on any bin type.

        The resource prices of a bin type are such that a full node pays for itself. Pods that are limited per node cost
        more than their resources: the dual value of their item group.
        """
        items = self._problem.items
        values = [PROHIBITIVE_VALUE_USD if count else 0.0 for count in counts]
        for group_index, item_group in enumerate(self._item_groups):
            price_vectors = self._find_lowest_prices(group_index)
            for index in item_group.items if price_vectors else ():
                if counts[index]:
                    values[index] = min(sum(map(mul, prices, items[index].scaled_need)) for prices in price_vectors)
                    if item_group.group_row >= 0:
                        values[index] += row_values[item_group.group_row]
                    elif item_group.host_group != NO_HOST_GROUP:
                        values[index] = max(values[index], row_values[item_group.row] * items[index].size)
        return tuple(values)

    def _find_lowest_prices(self, group_index: int) -> list[Amounts]:
        """Return the resource prices of the bin types at which the item group costs least."""
        need = self._item_groups[group_index].need
        accepting = [
            pricing
            for pricing in self._pricing_problems
            if pricing.value_ratio > 0 and group_index in pricing.group_indices
        ]
        ranked = sorted(
            (sum(map(mul, pricing.compute_resource_prices(), need)), pricing.number) for pricing in accepting
        )
        return [self._pricing_problems[number].compute_resource_prices() for _, number in ranked[:MAX_PRICED_BIN_TYPES]]
