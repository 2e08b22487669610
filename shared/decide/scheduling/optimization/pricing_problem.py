"""Pricing problem: the most valuable (fractional) pod mix for each bin type, a bounded knapsack over item groups."""

from collections.abc import Sequence
from typing import Final

from shared.decide.scheduling.instance_types.resource_index import Bits
from shared.decide.scheduling.optimization.bin_types import PODS_AXIS, BinType
from shared.decide.scheduling.optimization.item_groups import ItemGroup
from shared.decide.scheduling.optimization.items import NO_HOST_GROUP
from shared.decide.scheduling.optimization.linear_programming.fractional_knapsack import (
    FractionalKnapsack,
    KnapsackSolution,
)
from shared.decide.scheduling.optimization.linear_programming.restricted_master_problem import Column
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts

MIN_VALUE_RATIO: Final = 0.97
"""A bin type whose upper bound of value per dollar is below this ratio is not solved."""


class PricingProblem:
    """Pricing problem of one bin type."""

    def __init__(self, number: int, bin_type: BinType, accepted_items: Bits, item_groups: list[ItemGroup]) -> None:
        """Include those *item_groups* whose items are all among *accepted_items*."""
        self.number, self._bin_type = number, bin_type
        self.group_indices = [
            group_index
            for group_index, item_group in enumerate(item_groups)
            if not item_group.item_bits & ~accepted_items
        ]
        self._places_by_group = {item_group: group_index for group_index, item_group in enumerate(self.group_indices)}
        accepted_groups = [item_groups[group_index] for group_index in self.group_indices]
        host_limits = sorted(
            {
                (item_group.host_group, item_group.max_per_node)
                for item_group in accepted_groups
                if item_group.host_group != NO_HOST_GROUP
            }
        )
        self._needs = [
            (
                *item_group.need,
                *(item_group.pods if item_group.host_group == group else 0.0 for group, _ in host_limits),
            )
            for item_group in accepted_groups
        ]
        self._row_amounts = [item_group.list_row_amounts() for item_group in accepted_groups]
        self._pods = [item_group.pods for item_group in accepted_groups]
        self._capacity = (*bin_type.scaled_capacity, *(float(max_per_node) for _, max_per_node in host_limits))
        self._knapsack = FractionalKnapsack(self._capacity, self._needs)
        self.solution = KnapsackSolution(value=0.0, amounts=(), resource_prices=(0.0,) * len(self._capacity))
        self.value_ratio = 0.0

    def solve(self, group_values: Sequence[float], *, force: bool = False) -> None:
        """Find the most valuable filling.

        Nothing is solved if the upper bound from the last prices rules out a gain; *force* solves always.
        """
        values = tuple(group_values[index] for index in self.group_indices)
        upper_bound = None if force else self._knapsack.compute_upper_bound(values)
        if upper_bound is not None and upper_bound < MIN_VALUE_RATIO * self._bin_type.price:
            self.value_ratio = upper_bound / self._bin_type.price
            return
        self.solution = self._knapsack.solve(values)
        self.value_ratio = self.solution.value / self._bin_type.price

    @property
    def work(self) -> int:
        """Work spent on this bin type so far, in multiplications."""
        return self._knapsack.work

    def build_column(self) -> Column:
        """Return the last filling as a column of the restricted master problem."""
        amounts_by_row: dict[int, float] = {}
        for place, amount in self.solution.amounts:
            for row, part in self._row_amounts[place]:
                amounts_by_row[row] = amounts_by_row.get(row, 0.0) + part * amount
        contents = tuple((self.group_indices[place], amount) for place, amount in self.solution.amounts)
        return Column(
            price=self._bin_type.price,
            amounts=tuple(sorted(amounts_by_row.items())),
            source=self.number,
            contents=contents,
        )

    def compute_resource_prices(self) -> Amounts:
        """Return the price of each resource.

        Prices are scaled up such that the full capacity costs at least the price of the bin type.
        """
        value = self.solution.value
        scale = max(1.0, self._bin_type.price / value) if value else 1.0
        return tuple(scale * price for price in self.solution.resource_prices[: len(self._bin_type.scaled_capacity)])

    def compute_max_amount(self, group_index: int) -> float:
        """Return how much of item group *group_index* fits on an empty node; 0 if the bin type does not accept it."""
        place = self._places_by_group.get(group_index)
        if place is None:
            return 0.0
        return min(
            capacity / need for capacity, need in zip(self._capacity, self._needs[place], strict=True) if need > 0
        )

    @property
    def price(self) -> float:
        """Price of the bin type."""
        return self._bin_type.price

    def price_item_groups(self, memory_weight: float, slot_value: float = 0.0) -> list[float]:
        """Return the cost of each item group by the resources that it uses.

        Memory is worth *memory_weight* units of cpu, a pod slot *slot_value* units.
        """
        cpu, memory = self._bin_type.scaled_capacity[:2]
        unit_price = self.price / (cpu + memory_weight * memory + slot_value * self._bin_type.capacity[PODS_AXIS])
        pairs = zip(self._needs, self._pods, strict=True)
        return [unit_price * (need[0] + memory_weight * need[1] + slot_value * pods) for need, pods in pairs]
