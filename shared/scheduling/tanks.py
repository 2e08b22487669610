"""Types as tanks: filled with lumps of pods as if these were fluid, for as much worth as they hold."""

from collections.abc import Sequence
from typing import Final

from shared.scheduling.lumps import Lump
from shared.scheduling.simplex import Column, Fill, Numbers, Vessel
from shared.scheduling.stalls import SLOTS, Row
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
        self._places = {lump: place for place, lump in enumerate(self.lumps)}
        some = [lumps[place] for place in self.lumps]
        bounds = sorted({(lump.group, lump.most) for lump in some if lump.group != ALONE})
        self._needs = [
            (*lump.need, *(lump.pods if lump.group == group else 0.0 for group, _ in bounds)) for lump in some
        ]
        self._rows = [lump.rows() for lump in some]
        self._pods = [lump.pods for lump in some]
        self._room = (*row.scaled, *(float(most) for _, most in bounds))
        self._vessel = Vessel(self._room, self._needs)
        self.filled = Fill(worth=0.0, amounts=(), prices=(0.0,) * len(self._room))
        self.ratio = 0.0

    def fill(self, worths: Sequence[float], *, at_all: bool = False) -> None:
        """Fill it for the most worth, unless the prices of the last time say that it cannot pay, or *at_all*."""
        mine = tuple(worths[index] for index in self.lumps)
        most = None if at_all else self._vessel.most(mine)
        if most is not None and most < PALTRY * self._row.price:
            self.ratio = most / self._row.price
            return
        self.filled = self._vessel.fill(mine)
        self.ratio = self.filled.worth / self._row.price

    @property
    def work(self) -> int:
        """How much was reckoned for it so far, in multiplications."""
        return self._vessel.work

    def column(self) -> Column:
        """Answer what it holds."""
        rows: dict[int, float] = {}
        for place, amount in self.filled.amounts:
            for row, part in self._rows[place]:
                rows[row] = rows.get(row, 0.0) + part * amount
        holds = tuple((self.lumps[place], amount) for place, amount in self.filled.amounts)
        return Column(price=self._row.price, amounts=tuple(sorted(rows.items())), source=self.number, holds=holds)

    def prices(self) -> Numbers:
        """Answer what its room costs: if all of it is worth having, no less than the price."""
        whole = self.filled.worth
        scale = max(1.0, self._row.price / whole) if whole else 1.0
        return tuple(scale * one for one in self.filled.prices[: len(self._row.scaled)])

    def alone(self, lump: int) -> float:
        """Answer how much of *lump* fits."""
        place = self._places.get(lump)
        if place is None:
            return 0.0
        return min(room / one for room, one in zip(self._room, self._needs[place], strict=True) if one > 0)

    @property
    def price(self) -> float:
        """Of the row."""
        return self._row.price

    def asks(self, direction: float, slot: float = 0.0) -> list[float]:
        """Answer what each of its lumps costs by room: memory is worth *direction* parts of cpu, a slot so many."""
        cpu, memory = self._row.scaled[:2]
        unit = self.price / (cpu + direction * memory + slot * self._row.room[SLOTS])
        pairs = zip(self._needs, self._pods, strict=True)
        return [unit * (need[0] + direction * need[1] + slot * pods) for need, pods in pairs]
