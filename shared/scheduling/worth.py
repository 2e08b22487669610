"""What pods are worth: the prices at which it pays to buy just enough nodes, were pods fluid.

A linear program over lumps of pods that are alike in shape. Its columns are nodes filled with fluid; they are made as
they are needed, until none saves anything worth mentioning. The worth of all pods is then (nearly) a bound of the cost.
Worths that swing from one column to the next teach little: they start where one price of memory against cpu holds
everywhere, and are kept from rising far above the best that are known.
"""

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Final

import msgspec

from shared.scheduling.lumps import lumps
from shared.scheduling.market import Market
from shared.scheduling.simplex import Column, Master, Numbers
from shared.scheduling.stalls import DIRECTIONS
from shared.scheduling.stock import Bits
from shared.scheduling.tanks import Tank
from shared.scheduling.wanted import ALONE

PHASES: Final = 3
"""So often the best worths are taken for a new start."""
ROUNDS: Final = 8
"""So often in each columns are made."""
CLOSE: Final = 1.004
HIGH: Final = 1.1
"""Times the best worth that is known: what a lump may be bought for without a node, while columns are made."""
STEADY: Final = 0.6
"""How much of the best worths so far goes into the next that are tried."""
PAYS: Final = 0.995
"""A row is used where a dollar buys at least so much."""
NEAR: Final = 6
"""What a pod is worth is looked up in so many rows: those that ask least for its lump."""
DEAR: Final = 1e6
_SLIVER: Final = 1e-6
_TINY: Final = 1e-9


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod of each item is worth, what room costs in each row, and how much worth a dollar buys there.

    *nodes*: how many of each row were bought, were pods fluid; *mixes*: by row, which items they would hold, and how
    much of these; *total*: what all would cost then, at least.
    """

    items: tuple[float, ...]
    prices: tuple[Numbers, ...]
    rows: tuple[float, ...]
    nodes: tuple[float, ...]
    mixes: tuple[tuple[tuple[Bits, float], ...], ...]
    total: float


class Appraiser:
    """Knows what pods are worth while their number falls."""

    def __init__(self, market: Market) -> None:
        """Part the pods into lumps."""
        self._market = market
        self._lumps = lumps(market)
        pairs = enumerate(zip(market.rows, market.open_to, strict=True))
        self._tanks = [Tank(number, row, open_, self._lumps) for number, (row, open_) in pairs]
        self._pool = [_alone(index, self._tanks) for index in range(len(self._lumps))]
        self._always = len(self._pool)
        self._grouped = frozenset(place for place, lump in enumerate(self._lumps) if lump.group != ALONE)
        self._known: dict[tuple[int, ...], Worth] = {}

    def worth(self, counts: Sequence[int]) -> Worth:
        """Answer the worth of each item's pods, where *counts* of them are wanted."""
        key = tuple(counts)
        if key not in self._known:
            self._known[key] = self._reckoned(counts)
        return self._known[key]

    def _reckoned(self, counts: Sequence[int]) -> Worth:
        items = self._market.items
        amounts = [sum(counts[index] * items[index].size for index in lump.items) for lump in self._lumps]
        search = _Search(self._tanks, amounts, self._pool, self._grouped)
        search.run()
        self._pool[self._always :] = search.used()
        for tank in self._tanks:
            tank.fill(search.best, at_all=True)
        return Worth(
            items=self._by_item(counts, search.best),
            prices=tuple(tank.prices() for tank in self._tanks),
            rows=tuple(tank.ratio for tank in self._tanks),
            nodes=tuple(search.nodes()),
            mixes=tuple(tuple((self._lumps[lump].bits, some) for lump, some in mix) for mix in search.mixes()),
            total=search.bound,
        )

    def _by_item(self, counts: Sequence[int], worths: Sequence[float]) -> tuple[float, ...]:
        """Answer the least that any row asks for a pod: prices of its room such that a full node pays for itself.

        What may be on a node only so many times costs more than its room: the worth of its lump.
        """
        items = self._market.items
        found = [DEAR if count else 0.0 for count in counts]
        for place, lump in enumerate(self._lumps):
            asking = self._asking(place)
            for index in lump.items if asking else ():
                if counts[index]:
                    found[index] = min(sum(map(mul, prices, items[index].scaled)) for prices in asking)
                    if items[index].group != ALONE:
                        found[index] = max(found[index], worths[place] * items[index].size)
        return tuple(found)

    def _asking(self, place: int) -> list[Numbers]:
        """Answer the prices of the rows that ask least for a lump."""
        need = self._lumps[place].need
        some = [tank for tank in self._tanks if tank.ratio > 0 and place in tank.lumps]
        asked = sorted((sum(map(mul, tank.prices(), need)), tank.number) for tank in some)
        return [self._tanks[number].prices() for _, number in asked[:NEAR]]


class _Search:
    """Looks for worths that are high, with nothing left that would pay more than it costs."""

    def __init__(
        self, tanks: list[Tank], amounts: list[float], pool: Sequence[Column], grouped: frozenset[int]
    ) -> None:
        """Begin with *pool*: the i-th column is of lump i alone; *grouped*: lumps that nodes hold only so much of."""
        self._grouped = grouped
        self._tanks, self._amounts = tanks, amounts
        self._pool = list(pool)
        self.best, self.bound = [0.0 for _ in amounts], 0.0
        self._master = Master((), ())

    def run(self) -> None:
        for direction in DIRECTIONS:
            self._try(self._plain(direction))
            self._pool.extend(tank.column() for tank in self._tanks if tank.ratio >= PAYS)
        for _ in range(PHASES):
            self._master = Master(self._amounts, [self._start(row) for row in range(len(self.best))])
            for column in self._pool:
                self._master.offer(column)
            self._make_columns()
            self._pool.extend(self.used())
            if self._master.cost <= CLOSE * self.bound or not self._is_short():
                return

    def used(self) -> list[Column]:
        """Answer the columns in use."""
        pairs = zip(self._master.basis, self._master.level, strict=True)
        return [column for column, level in pairs if column.source >= 0 and level > _SLIVER]

    def nodes(self) -> list[float]:
        """Answer how many of each row they are."""
        found = [0.0 for _ in self._tanks]
        for column, level in zip(self._master.basis, self._master.level, strict=True):
            if column.source >= 0:
                found[column.source] += level
        return found

    def mixes(self) -> list[list[tuple[int, float]]]:
        """Answer, by row, how much of which lumps they hold."""
        found: list[dict[int, float]] = [{} for _ in self._tanks]
        for column, level in zip(self._master.basis, self._master.level, strict=True):
            for lump, amount in column.amounts if column.source >= 0 and level > _SLIVER else ():
                mix = found[column.source]
                mix[lump] = mix.get(lump, 0.0) + level * amount
        return [sorted(mix.items()) for mix in found]

    def _start(self, row: int) -> Column:
        """Answer a column of one lump: not much above its worth, if that is known well without its group."""
        if row in self._grouped:
            return self._pool[row]
        return Column(price=max(_TINY, HIGH * self.best[row]), amounts=((row, 1.0),))

    def _is_short(self) -> bool:
        """Whether something is bought without a node."""
        pairs = zip(self._master.basis, self._master.level, strict=True)
        return any(column.source < 0 and level > _SLIVER for column, level in pairs)

    def _make_columns(self) -> None:
        for _ in range(ROUNDS):
            for _ in self._amounts:
                if not self._master.give_away():
                    break
            pairs = zip(self._master.worths, self._amounts, strict=True)
            there = [worth if amount > 0 else 0.0 for worth, amount in pairs]
            mixed = zip(self.best, there, strict=True)
            self._try([STEADY * one + (1 - STEADY) * other for one, other in mixed])
            if self._master.cost <= CLOSE * self.bound:
                return
            if not self._improve():
                self._try(there)
                if not self._improve():
                    return

    def _try(self, worths: list[float]) -> None:
        """Fill every tank; the worths that a dollar buys, at most, are a bound."""
        for tank in self._tanks:
            tank.fill(worths)
        most = max(1.0, *(tank.ratio for tank in self._tanks))
        bound = sum(map(mul, worths, self._amounts)) / most
        if bound > self.bound:
            self.best, self.bound = [one / most for one in worths], bound

    def _plain(self, direction: float) -> list[float]:
        """Answer what each lump costs where it costs least, at one price of memory against cpu everywhere."""
        found = [DEAR for _ in self._amounts]
        for tank in self._tanks:
            for lump, asked in zip(tank.lumps, tank.asks(direction), strict=True):
                found[lump] = min(found[lump], asked)
        return [one if amount > 0 else 0.0 for one, amount in zip(found, self._amounts, strict=True)]

    def _improve(self) -> bool:
        """Offer the columns that hold most worth, one for each lump; whether some saved something."""
        covered: set[int] = set()
        is_better = False
        for tank in self._ranked():
            column = tank.column()
            lumps_of = {lump for lump, _ in column.amounts}
            if not lumps_of <= covered:
                covered |= lumps_of
                is_better = self._master.offer(column) or is_better
        return is_better

    def _ranked(self) -> Iterator[Tank]:
        some = [tank for tank in self._tanks if tank.ratio >= 1]
        return iter(sorted(some, key=lambda tank: (-tank.ratio, tank.number)))


def _alone(lump: int, tanks: list[Tank]) -> Column:
    """Answer the cheapest way to have nothing but *lump*."""
    some = [(tank.price / amount, tank.number, amount) for tank in tanks if (amount := tank.alone(lump)) > 0]
    _, number, amount = min(some)
    return Column(price=tanks[number].price, amounts=((lump, amount),), source=number)
