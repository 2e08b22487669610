"""Two small linear programs, solved by the simplex method with a bounded number of steps.

They only advise: a solution that is stopped early is a little dearer, never wrong.
"""

import math
from collections.abc import Sequence
from heapq import nsmallest
from operator import mul
from typing import Final, TypeAlias

import msgspec

Numbers: TypeAlias = tuple[float, ...]
_TINY: Final = 1e-9
_STEPS: Final = 24
_AT_ONCE: Final = 4
"""So many fluids are taken in between two looks at all."""
_STALE: Final = 200
"""After so many steps a vessel is emptied, lest small errors grow."""


class Fill(msgspec.Struct, frozen=True, kw_only=True):
    """The worthiest mix of fluids in a room, and what more room would be worth, by resource."""

    worth: float
    amounts: tuple[tuple[int, float], ...]
    prices: Numbers


class Vessel:
    """A room that is filled with fluids again and again: each time from where the last filling ended."""

    def __init__(self, room: Numbers, needs: Sequence[Numbers]) -> None:
        """Start empty; *needs*: by fluid, what an amount of it takes of each part of the room.

        *work* counts multiplications, about: a clock that goes alike on every machine.
        """
        self._room, self._count = room, len(needs)
        self._sparse = [[(axis, one) for axis, one in enumerate(need) if one] for need in needs]
        axes = list(zip(*needs, strict=True))
        self._dense = [(axis, column) for axis, column in enumerate(axes) if 2 * column.count(0.0) <= len(column)]
        dense = {axis for axis, _ in self._dense}
        self._rest = [
            (fluid, axis, one) for fluid, need in enumerate(self._sparse) for axis, one in need if axis not in dense
        ]
        self._last = ([0.0] * self._count, 0.0)
        self.work = 0
        self._empty()

    def fill(self, worths: Sequence[float]) -> Fill:
        """Answer the amounts of fluids, each with its worth per amount, that fill the room for the most worth."""
        if self._steps > _STALE:
            self._empty()
        scales = [1 / worth if worth > 0 else 1.0 for worth in worths]
        wanted = [1.0 if worth > 0 else -1.0 for worth in worths]
        prices, asked = self._prices(worths), self._last[0]
        for _ in range(_STEPS):
            asked = self._asked(prices)
            self.work += self._count
            surpluses = [one - scale * ask for one, scale, ask in zip(wanted, scales, asked, strict=True)]
            entering = _best(surpluses, prices)
            if not entering:
                break
            for fluid in entering:
                prices = self._enter(fluid, worths[fluid] if fluid >= 0 else 0.0, prices)
        pairs = zip(self._basis, self._level, strict=True)
        used = {one: amount for one, amount in pairs if one >= 0 and amount > _TINY and worths[one] > 0}
        worth = sum(worths[one] * amount for one, amount in used.items())
        self._last = (asked, sum(map(mul, prices, self._room)))
        return Fill(worth=worth, amounts=tuple(sorted(used.items())), prices=tuple(prices))

    def most(self, worths: Sequence[float]) -> float | None:
        """Answer what a filling can be worth at most, by the last prices (duality); None: they do not say."""
        asked, whole = self._last
        ratios = [
            worth / ask if ask > 0 else worth * math.inf for worth, ask in zip(worths, asked, strict=True) if worth
        ]
        scale = max(ratios, default=0.0)
        return None if math.isinf(scale) else scale * whole

    def _empty(self) -> None:
        width = range(len(self._room))
        self._inverse = [[1.0 if row == column else 0.0 for column in width] for row in width]
        self._level, self._basis = list(self._room), [-1 - row for row in width]
        self._steps = 0

    def _prices(self, worths: Sequence[float]) -> list[float]:
        found = [0.0 for _ in self._room]
        for one, line in zip(self._basis, self._inverse, strict=True):
            if one >= 0 and worths[one] > 0:
                found = [price + worths[one] * more for price, more in zip(found, line, strict=True)]
        return found

    def _asked(self, prices: Sequence[float]) -> list[float]:
        """Answer what an amount of each fluid costs by room."""
        found = [0.0] * self._count
        for axis, column in self._dense:
            price = prices[axis]
            if price:
                found = [one + price * need for one, need in zip(found, column, strict=True)]
        for fluid, axis, need in self._rest:
            found[fluid] += prices[axis] * need
        return found

    def _enter(self, entering: int, worth: float, prices: list[float]) -> list[float]:
        """Take a fluid in if it still pays, as much as there is room for; answer the new prices."""
        need = self._sparse[entering] if entering >= 0 else [(-1 - entering, 1.0)]
        surplus = worth - sum([prices[axis] * one for axis, one in need])
        if surplus <= _TINY * worth:
            return prices
        column = [sum([line[axis] * one for axis, one in need]) for line in self._inverse]
        pairs = enumerate(zip(self._level, column, strict=True))
        rows = [(level / one, row) for row, (level, one) in pairs if one > _TINY]
        if not rows:
            return prices
        leaving = min(rows)[1]
        _pivot(self._inverse, self._level, column, leaving)
        self._basis[leaving] = entering
        self._steps += 1
        self.work += len(self._room) ** 2
        return [price + surplus * more for price, more in zip(prices, self._inverse[leaving], strict=True)]


def _best(surpluses: Sequence[float], prices: Sequence[float]) -> list[int]:
    """Answer the fluids that are worth most above their price; ``-1 - axis`` is room that is better left empty."""
    some = [(-surplus, fluid) for fluid, surplus in enumerate(surpluses) if surplus > _TINY]
    some += [(price, -1 - axis) for axis, price in enumerate(prices) if -price > _TINY]
    return [fluid for _, fluid in nsmallest(_AT_ONCE, some)]


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
    """Whose column it is, for those who ask ..."""
    holds: tuple[tuple[int, float], ...] = ()
    """... and what is in it."""


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

    def saves(self, column: Column) -> float:
        """Answer how much less than it is worth a *column* costs."""
        worths = self.worths
        return sum([worths[row] * amount for row, amount in column.amounts]) - column.price

    def offer(self, column: Column) -> bool:
        """Take *column* into use if that saves something; whether it did."""
        surplus = self.saves(column)
        if surplus <= _TINY:
            return False
        entering = [sum([line[row] * amount for row, amount in column.amounts]) for line in self._inverse]
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
