"""Restricted master problem of the column generation: a covering linear program over the columns found so far.

It is solved by the primal simplex method, one entering column at a time. A solution that is stopped early costs
slightly more, but is never invalid.
"""

from collections.abc import Sequence

import msgspec

from shared.decide.scheduling.optimization.linear_programming.simplex import TOLERANCE, pivot_inverse


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
        if surplus <= TOLERANCE:
            return False
        entering = [sum([inverse_row[row] * amount for row, amount in column.amounts]) for inverse_row in self._inverse]
        rows = [
            (self.levels[row] / coefficient, row) for row, coefficient in enumerate(entering) if coefficient > TOLERANCE
        ]
        if not rows:
            return False
        leaving = min(rows)[1]
        pivot_inverse(self._inverse, self.levels, entering, leaving)
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
        return lowest_value < -TOLERANCE and self.offer_column(Column(price=0.0, amounts=((row, -1.0),)))

    def _compute_dual_values(self) -> list[float]:
        prices = [basis_column.price for basis_column in self.basis]
        width = range(len(prices))
        return [sum(prices[row] * self._inverse[row][column_index] for row in width) for column_index in width]
