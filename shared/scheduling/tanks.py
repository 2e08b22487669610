"""Types as tanks: filled with lumps of pods as if these were fluid, for as much worth as they hold."""

from collections.abc import Sequence
from operator import mul
from typing import Final

from shared.scheduling.lumps import Lump
from shared.scheduling.simplex import Column, Fill, Numbers, richest
from shared.scheduling.stalls import Row
from shared.scheduling.stock import Bits
from shared.scheduling.wanted import ALONE

PALTRY: Final = 0.97
"""A row where a dollar buys no more than this is not looked at closely."""


class Tank:
    """A row to be filled with lumps."""

    def __init__(self, number: int, row: Row, open_: Bits, lumps: list[Lump]) -> None:
        """Let those of *lumps* in that are all of them *open_*."""
        self.number, self._row = number, row
        self.lumps = [place for place, lump in enumerate(lumps) if not lump.bits & ~open_]
        some = [lumps[place] for place in self.lumps]
        bounds = sorted({(lump.group, lump.most) for lump in some if lump.group != ALONE})
        self._needs = [
            (*lump.need, *(lump.pods if lump.group == group else 0.0 for group, _ in bounds)) for lump in some
        ]
        self._room = (*row.scaled, *(float(most) for _, most in bounds))
        self.filled = Fill(worth=0.0, amounts=(), prices=(0.0,) * len(self._room))
        self.ratio = 0.0

    def fill(self, worths: Sequence[float], *, at_all: bool = False) -> None:
        """Fill it for the most worth, unless the prices of the last time say that it cannot pay, or *at_all*."""
        mine = tuple(worths[index] for index in self.lumps)
        most = None if at_all else self._most(mine)
        if most is not None and most < PALTRY * self._row.price:
            self.ratio = most / self._row.price
            return
        self.filled = richest(self._room, self._needs, mine)
        self.ratio = self.filled.worth / self._row.price

    def column(self) -> Column:
        """Answer what it holds."""
        amounts = tuple((self.lumps[place], amount) for place, amount in self.filled.amounts)
        return Column(price=self._row.price, amounts=amounts, source=self.number)

    def prices(self) -> Numbers:
        """Answer what its room costs: if all of it is worth having, no less than the price."""
        whole = self.filled.worth
        scale = max(1.0, self._row.price / whole) if whole else 1.0
        return tuple(scale * one for one in self.filled.prices[: len(self._row.scaled)])

    def alone(self, lump: int) -> float:
        """Answer how much of *lump* fits."""
        if lump not in self.lumps:
            return 0.0
        place = self.lumps.index(lump)
        return min(room / one for room, one in zip(self._room, self._needs[place], strict=True) if one > 0)

    @property
    def price(self) -> float:
        """Of the row."""
        return self._row.price

    def asks(self, direction: float) -> list[float]:
        """Answer what each of its lumps costs by room, if so much memory is worth as much as one part of cpu."""
        cpu, memory = self._row.scaled[:2]
        unit = self.price / (cpu + direction * memory)
        return [unit * (need[0] + direction * need[1]) for need in self._needs]

    def _most(self, worths: Numbers) -> float | None:
        """Answer what a fill can be worth at most, by the last prices (duality); None: they do not say."""
        scale = 0.0
        for worth, need in zip(worths, self._needs, strict=True):
            asked = sum(map(mul, self.filled.prices, need))
            if worth > asked * scale:
                if asked <= 0:
                    return None
                scale = worth / asked
        whole: float = sum(map(mul, self.filled.prices, self._room))
        return scale * whole
