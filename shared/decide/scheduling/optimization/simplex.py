"""Two small linear programs, solved by the primal simplex method with a bounded number of steps.

Their results are advice only: a solution that is stopped early costs slightly more, but is never invalid.
"""

import math
from collections.abc import Sequence
from heapq import nsmallest
from operator import mul
from typing import Final, TypeAlias

import msgspec

Amounts: TypeAlias = tuple[float, ...]
_TOLERANCE: Final = 1e-9
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
        amounts = {item: amount for item, amount in pairs if item >= 0 and amount > _TOLERANCE and values[item] > 0}
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
        if surplus <= _TOLERANCE * value:
            return prices
        column = [sum([inverse_row[axis] * amount for axis, amount in need]) for inverse_row in self._inverse]
        pairs = enumerate(zip(self._levels, column, strict=True))
        rows = [(level / coefficient, row) for row, (level, coefficient) in pairs if coefficient > _TOLERANCE]
        if not rows:
            return prices
        leaving = min(rows)[1]
        _pivot_inverse(self._inverse, self._levels, column, leaving)
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
    candidates = [(-surplus, item) for item, surplus in enumerate(surpluses) if surplus > _TOLERANCE]
    candidates += [(price, -1 - axis) for axis, price in enumerate(prices) if -price > _TOLERANCE]
    return [item for _, item in nsmallest(_MAX_ITEMS_PER_PASS, candidates)]


def _pivot_inverse(inverse: list[list[float]], levels: list[float], column: Sequence[float], leaving: int) -> None:
    scale = 1 / column[leaving]
    pivot_row = inverse[leaving] = [scale * value for value in inverse[leaving]]
    levels[leaving] *= scale
    for row_index, factor in enumerate(column):
        if row_index != leaving and abs(factor) > _TOLERANCE:
            inverse[row_index] = [
                value - factor * pivot_value for value, pivot_value in zip(inverse[row_index], pivot_row, strict=True)
            ]
            levels[row_index] = max(0.0, levels[row_index] - factor * levels[leaving])


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the linear program: its amounts by row, at a price."""

    price: float
    amounts: tuple[tuple[int, float], ...]
    source: int = -1
    """Index of the bin type that the column fills; -1 for an artificial or slack column."""
    contents: tuple[tuple[int, float], ...] = ()
    """Amounts of each item group in the column."""


class RestrictedMasterProblem:
    """Covering linear program: meets the demand of each row at minimum cost, with the columns offered so far."""

    def __init__(self, demand: Sequence[float], initial_basis: Sequence[Column]) -> None:
        """Start with *initial_basis*, of which column i meets the demand of row i alone."""
        width = range(len(demand))
        self._inverse = [[0.0] * len(demand) for _ in width]
        self.levels = [0.0 for _ in width]
        self.basis = list(initial_basis)
        for row, column in enumerate(initial_basis):
            [(_, amount)] = column.amounts
            self._inverse[row][row] = 1 / amount
            self.levels[row] = demand[row] / amount
        self.dual_values = self._compute_dual_values()

    @property
    def cost(self) -> float:
        """Cost of the current basic solution."""
        return sum(column.price * level for column, level in zip(self.basis, self.levels, strict=True))

    def compute_saving(self, column: Column) -> float:
        """Return the negative reduced cost of *column*: the dual value of its amounts minus its price."""
        dual_values = self.dual_values
        return sum([dual_values[row] * amount for row, amount in column.amounts]) - column.price

    def offer_column(self, column: Column) -> bool:
        """Let *column* enter the basis if that saves cost; return whether it did."""
        surplus = self.compute_saving(column)
        if surplus <= _TOLERANCE:
            return False
        entering = [sum([inverse_row[row] * amount for row, amount in column.amounts]) for inverse_row in self._inverse]
        rows = [
            (self.levels[row] / coefficient, row)
            for row, coefficient in enumerate(entering)
            if coefficient > _TOLERANCE
        ]
        if not rows:
            return False
        leaving = min(rows)[1]
        _pivot_inverse(self._inverse, self.levels, entering, leaving)
        factor = surplus
        self.basis[leaving] = column
        self.dual_values = [
            dual_value - factor * pivot_value
            for dual_value, pivot_value in zip(self.dual_values, self._inverse[leaving], strict=True)
        ]
        return True

    def offer_surplus(self) -> bool:
        """Exceed the demand of the row with the most negative dual value; return whether the solution changed."""
        lowest_value = min(self.dual_values)
        row = self.dual_values.index(lowest_value)
        return lowest_value < -_TOLERANCE and self.offer_column(Column(price=0.0, amounts=((row, -1.0),)))

    def _compute_dual_values(self) -> list[float]:
        prices = [basis_column.price for basis_column in self.basis]
        width = range(len(prices))
        return [sum(prices[row] * self._inverse[row][column_index] for row in width) for column_index in width]
