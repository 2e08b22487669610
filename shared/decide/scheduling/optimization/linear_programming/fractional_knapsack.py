"""Multidimensional fractional knapsack, solved by the primal simplex method with a bounded number of steps.

The solution is advice only: one that is stopped early costs slightly more, but is never invalid.
"""

import math
from collections.abc import Sequence
from heapq import nsmallest
from operator import mul
from typing import Final

import msgspec

from shared.decide.scheduling.optimization.linear_programming.simplex import TOLERANCE, Amounts, pivot_inverse

_MAX_PRICING_PASSES: Final = 24
_MAX_ITEMS_PER_PASS: Final = 4
"""Maximum number of items that enter the basis between two pricing passes over all items."""
_MAX_STEPS_BEFORE_RESET: Final = 200
"""After this number of simplex steps the knapsack restarts empty, so that rounding errors do not accumulate."""


class KnapsackSolution(msgspec.Struct, frozen=True, kw_only=True):
    """Most valuable fractional item mix for a capacity, with the dual value of each resource."""

    value: float
    amounts: tuple[tuple[int, float], ...]
    resource_prices: Amounts


class FractionalKnapsack:
    """Multidimensional fractional knapsack that is solved repeatedly, each time from the last basis (warm start)."""

    def __init__(self, capacity: Amounts, needs: Sequence[Amounts]) -> None:
        """Start with the empty basis; *needs* is the resource need of one unit of each item.

        *work* counts multiplications, approximately: a measure of time that is the same on every computer.
        """
        self._capacity, self._count = capacity, len(needs)
        self._sparse_needs = [[(axis, amount) for axis, amount in enumerate(need) if amount] for need in needs]
        columns = list(zip(*needs, strict=True))
        self._dense_columns = [
            (axis, column) for axis, column in enumerate(columns) if 2 * column.count(0.0) <= len(column)
        ]
        dense_axes = {axis for axis, _ in self._dense_columns}
        self._remaining_entries = [
            (item, axis, amount)
            for item, need in enumerate(self._sparse_needs)
            for axis, amount in need
            if axis not in dense_axes
        ]
        self._last_item_costs_and_total = ([0.0] * self._count, 0.0)
        self.work = 0
        self._reset()

    def solve(self, values: Sequence[float]) -> KnapsackSolution:
        """Return the item amounts that fill the capacity for the highest value; *values* are per unit of each item."""
        if self._steps > _MAX_STEPS_BEFORE_RESET:
            self._reset()
        inverse_values = [1 / worth if worth > 0 else 1.0 for worth in values]
        normalized_values = [1.0 if worth > 0 else -1.0 for worth in values]
        prices, item_costs = self._compute_resource_prices(values), self._last_item_costs_and_total[0]
        for _ in range(_MAX_PRICING_PASSES):
            item_costs = self._compute_item_costs(prices)
            self.work += self._count
            surpluses = [
                value - scale * item_cost
                for value, scale, item_cost in zip(normalized_values, inverse_values, item_costs, strict=True)
            ]
            entering = _choose_entering_items(surpluses, prices)
            if not entering:
                break
            for entering_item in entering:
                prices = self._enter(entering_item, values[entering_item] if entering_item >= 0 else 0.0, prices)
        pairs = zip(self._basis, self._levels, strict=True)
        amounts = {item: amount for item, amount in pairs if item >= 0 and amount > TOLERANCE and values[item] > 0}
        total_value = sum(values[item] * amount for item, amount in amounts.items())
        self._last_item_costs_and_total = (item_costs, sum(map(mul, prices, self._capacity)))
        return KnapsackSolution(
            value=total_value, amounts=tuple(sorted(amounts.items())), resource_prices=tuple(prices)
        )

    def compute_upper_bound(self, values: Sequence[float]) -> float | None:
        """Return an upper bound of the value of a filling, None if there is none.

        The bound follows from the last resource prices (weak duality).
        """
        item_costs, total_cost = self._last_item_costs_and_total
        ratios = [
            value / item_cost if item_cost > 0 else value * math.inf
            for value, item_cost in zip(values, item_costs, strict=True)
            if value
        ]
        scale = max(ratios, default=0.0)
        return None if math.isinf(scale) else scale * total_cost

    def _reset(self) -> None:
        width = range(len(self._capacity))
        self._inverse = [[1.0 if row == column else 0.0 for column in width] for row in width]
        self._levels, self._basis = list(self._capacity), [-1 - row for row in width]
        self._steps = 0

    def _compute_resource_prices(self, values: Sequence[float]) -> list[float]:
        prices = [0.0 for _ in self._capacity]
        for item, inverse_row in zip(self._basis, self._inverse, strict=True):
            if item >= 0 and values[item] > 0:
                prices = [
                    price + values[item] * coefficient for price, coefficient in zip(prices, inverse_row, strict=True)
                ]
        return prices

    def _compute_item_costs(self, prices: Sequence[float]) -> list[float]:
        """Return the cost of one unit of each item at these resource prices."""
        costs = [0.0] * self._count
        for axis, column in self._dense_columns:
            price = prices[axis]
            if price:
                costs = [cost + price * need for cost, need in zip(costs, column, strict=True)]
        for item, axis, need in self._remaining_entries:
            costs[item] += prices[axis] * need
        return costs

    def _enter(self, entering: int, value: float, prices: list[float]) -> list[float]:
        """Let an item enter the basis if its reduced cost is still favorable; return the new resource prices."""
        need = self._sparse_needs[entering] if entering >= 0 else [(-1 - entering, 1.0)]
        surplus = value - sum([prices[axis] * amount for axis, amount in need])
        if surplus <= TOLERANCE * value:
            return prices
        column = [sum([inverse_row[axis] * amount for axis, amount in need]) for inverse_row in self._inverse]
        pairs = enumerate(zip(self._levels, column, strict=True))
        rows = [(level / coefficient, row) for row, (level, coefficient) in pairs if coefficient > TOLERANCE]
        if not rows:
            return prices
        leaving = min(rows)[1]
        pivot_inverse(self._inverse, self._levels, column, leaving)
        self._basis[leaving] = entering
        self._steps += 1
        self.work += len(self._capacity) ** 2
        return [
            price + surplus * inverse_value for price, inverse_value in zip(prices, self._inverse[leaving], strict=True)
        ]


def _choose_entering_items(surpluses: Sequence[float], prices: Sequence[float]) -> list[int]:
    """Return the items with the highest surplus of value over cost.

    ``-1 - axis`` is the slack variable of a resource.
    """
    candidates = [(-surplus, item) for item, surplus in enumerate(surpluses) if surplus > TOLERANCE]
    candidates += [(price, -1 - axis) for axis, price in enumerate(prices) if -price > TOLERANCE]
    return [item for _, item in nsmallest(_MAX_ITEMS_PER_PASS, candidates)]
