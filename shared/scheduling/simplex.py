"""Two small linear programs, solved by the simplex method with a bounded number of steps.

They only advise: a solution that is stopped early is a little dearer, never wrong.
"""

from collections.abc import Sequence
from operator import mul
from typing import Final, TypeAlias

import msgspec

Numbers: TypeAlias = tuple[float, ...]
_TINY: Final = 1e-9
_STEPS: Final = 24


class Fill(msgspec.Struct, frozen=True, kw_only=True):
    """The worthiest mix of fluids in a room, and what more room would be worth, by resource."""

    worth: float
    amounts: tuple[tuple[int, float], ...]
    prices: Numbers


def richest(room: Numbers, needs: Sequence[Numbers], worths: Numbers) -> Fill:
    """Answer the amounts of fluids, each with its *needs* and worth per amount, that fill *room* for the most worth."""
    width = range(len(room))
    inverse = [[1.0 if row == column else 0.0 for column in width] for row in width]
    level, basis = list(room), [-1 - row for row in width]
    prices = [0.0 for _ in width]
    for _ in range(_STEPS):
        entering = _entering(prices, needs, worths)
        if entering is None:
            break
        need = needs[entering] if entering >= 0 else tuple(1.0 if axis == -1 - entering else 0.0 for axis in width)
        surplus = (worths[entering] if entering >= 0 else 0.0) - sum(map(mul, prices, need))
        column = [sum(map(mul, line, need)) for line in inverse]
        rows = [(level[row] / column[row], row) for row in width if column[row] > _TINY]
        if not rows:
            break
        leaving = min(rows)[1]
        _pivot(inverse, level, column, leaving)
        basis[leaving] = entering
        prices = [price + surplus * more for price, more in zip(prices, inverse[leaving], strict=True)]
    used = {one: amount for one, amount in zip(basis, level, strict=True) if one >= 0 and amount > _TINY}
    worth = sum(worths[one] * amount for one, amount in used.items())
    return Fill(worth=worth, amounts=tuple(sorted(used.items())), prices=tuple(prices))


def _entering(prices: list[float], needs: Sequence[Numbers], worths: Numbers) -> int | None:
    """Answer what is worth most above its price; ``-1 - axis`` is room that is better left empty."""
    best, found = _TINY, None
    for index, need in enumerate(needs):
        worth = worths[index]
        if worth > 0:
            surplus = 1 - sum(map(mul, prices, need)) / worth
            if surplus > best:
                best, found = surplus, index
    for axis, price in enumerate(prices):
        if -price > best:
            best, found = -price, -1 - axis
    return found


def _pivot(inverse: list[list[float]], level: list[float], column: Sequence[float], leaving: int) -> None:
    scale = 1 / column[leaving]
    row = inverse[leaving] = [scale * one for one in inverse[leaving]]
    level[leaving] *= scale
    for other, factor in enumerate(column):
        if other != leaving and abs(factor) > _TINY:
            inverse[other] = [one - factor * mine for one, mine in zip(inverse[other], row, strict=True)]
            level[other] = max(0.0, level[other] - factor * level[leaving])


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A way to meet some of the demand: amounts by row, for a price."""

    price: float
    amounts: tuple[tuple[int, float], ...]
    source: int = -1
    """Whose column it is, for those who ask."""


class Master:
    """The least cost of meeting a demand, by rows, from columns that are offered one after the other."""

    def __init__(self, demand: Sequence[float], first: Sequence[Column]) -> None:
        """Start with *first*, of which the i-th meets row i and nothing else."""
        width = range(len(demand))
        self._inverse = [[0.0] * len(demand) for _ in width]
        self.level = [0.0 for _ in width]
        self.basis = list(first)
        for row, one in enumerate(first):
            [(_, amount)] = one.amounts
            self._inverse[row][row] = 1 / amount
            self.level[row] = demand[row] / amount
        self.worths = self._worths()

    @property
    def cost(self) -> float:
        """What the demand costs with the columns that are in use."""
        return sum(one.price * level for one, level in zip(self.basis, self.level, strict=True))

    def offer(self, column: Column) -> bool:
        """Take *column* into use if that saves something; whether it did."""
        surplus = sum(self.worths[row] * amount for row, amount in column.amounts) - column.price
        if surplus <= _TINY:
            return False
        entering = [sum(line[row] * amount for row, amount in column.amounts) for line in self._inverse]
        rows = [(self.level[row] / one, row) for row, one in enumerate(entering) if one > _TINY]
        if not rows:
            return False
        leaving = min(rows)[1]
        _pivot(self._inverse, self.level, entering, leaving)
        factor = surplus
        self.basis[leaving] = column
        self.worths = [one - factor * mine for one, mine in zip(self.worths, self._inverse[leaving], strict=True)]
        return True

    def give_away(self) -> bool:
        """Meet more than the demand of the row whose worth is most below zero; whether there is one."""
        least = min(self.worths)
        row = self.worths.index(least)
        return least < -_TINY and self.offer(Column(price=0.0, amounts=((row, -1.0),)))

    def _worths(self) -> list[float]:
        prices = [one.price for one in self.basis]
        width = range(len(prices))
        return [sum(prices[row] * self._inverse[row][column] for row in width) for column in width]
