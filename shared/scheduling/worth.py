"""What pods are worth: the prices at which it pays to buy just enough nodes, were pods fluid.

A linear program over lumps of pods that are alike in shape. Its columns are nodes filled with fluid; they are made as
they are needed, until none saves anything worth mentioning. The worth of all pods is then (nearly) a bound of the cost.
Worths that swing from one column to the next teach little: they start where one price of memory against cpu holds
everywhere, and are kept from rising far above the best that are known.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import mul
from typing import Final

import msgspec

from shared.scheduling.lumps import Lump, lumps
from shared.scheduling.market import Market, is_crowded
from shared.scheduling.simplex import Column, Master, Numbers
from shared.scheduling.stalls import CROWDED, DIRECTIONS
from shared.scheduling.stock import Bits
from shared.scheduling.tanks import Tank
from shared.scheduling.wanted import ALONE

PHASES: Final = 3
"""So often the best worths are taken for a new start."""
ROUNDS: Final = 8
"""So often in each columns are made."""
PASSES: Final = 4
"""So often in each of these all columns are offered, at most."""
ENOUGH: Final = 40_000
"""After so many steps worths are good enough ..."""
LEAST: Final = 8_000
"""... and after no fewer, however little effort is wanted."""
PER_STEP: Final = 40
"""Multiplications that take as long as one step of filling a node."""
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

    def __init__(self, market: Market, effort: int = ENOUGH) -> None:
        """Part the pods into lumps; once so many steps are spent worths need not become better."""
        self._effort = max(effort, LEAST)
        self._market = market
        self._lumps = lumps(market)
        pairs = enumerate(zip(market.rows, market.open_to, strict=True))
        self._tanks = [Tank(number, row, open_, self._lumps) for number, (row, open_) in pairs]
        self._demand = _Demand(self._lumps)
        self._pool = [self._demand.alone(row, self._tanks) for row in range(self._demand.width)]
        self._always = len(self._pool)
        self._best: list[float] | None = None
        self._known: dict[tuple[int, ...], Worth] = {}

    def worth(self, counts: Sequence[int]) -> Worth:
        """Answer the worth of each item's pods, where *counts* of them are wanted."""
        key = tuple(counts)
        if key not in self._known:
            self._known[key] = self._reckoned(counts)
        return self._known[key]

    @property
    def steps(self) -> int:
        """How long it has reckoned, in steps of filling a node."""
        return sum(tank.work for tank in self._tanks) // PER_STEP

    def _reckoned(self, counts: Sequence[int]) -> Worth:
        items = self._market.items
        amounts = [
            (sum(counts[index] * items[index].size for index in lump.items), sum(counts[index] for index in lump.items))
            for lump in self._lumps
        ]
        search = _Search(self._tanks, self._demand, amounts, self._pool)
        search.run(self._starts(search), lambda: self.steps > self._effort)
        if self._best is None:
            self._best = search.best
        self._pool[self._always :] = search.used()
        worths = search.by_lump(search.best)
        for tank in self._tanks:
            tank.fill(worths, at_all=True)
        return Worth(
            items=self._by_item(counts, search.best),
            prices=tuple(tank.prices() for tank in self._tanks),
            rows=tuple(tank.ratio for tank in self._tanks),
            nodes=tuple(search.nodes()),
            mixes=tuple(tuple((self._lumps[lump].bits, some) for lump, some in mix) for mix in search.mixes()),
            total=search.bound,
        )

    def _starts(self, search: "_Search") -> Iterator[list[float]]:
        """Answer the worths to begin with: the best that are known, and whatever holds everywhere."""
        count = sum(item.count for item in self._market.items)
        usual = sum(item.count * item.scaled[0] for item in self._market.items) / max(1, count)
        slots = (0.0, *(usual * part for part in CROWDED)) if is_crowded(self._market) else (0.0,)
        if self._best is not None:
            yield search.there(self._best)
            slots = slots[:1]
        yield from (search.plain(direction, slot) for slot in slots for direction in DIRECTIONS)

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
                    if lump.slot >= 0:
                        found[index] += worths[lump.slot]
                    elif lump.group != ALONE:
                        found[index] = max(found[index], worths[lump.row] * items[index].size)
        return tuple(found)

    def _asking(self, place: int) -> list[Numbers]:
        """Answer the prices of the rows that ask least for a lump."""
        need = self._lumps[place].need
        some = [tank for tank in self._tanks if tank.ratio > 0 and place in tank.lumps]
        asked = sorted((sum(map(mul, tank.prices(), need)), tank.number) for tank in some)
        return [self._tanks[number].prices() for _, number in asked[:NEAR]]


class _Demand:
    """What lumps ask of the linear program: a row for those alike, and one for each group that shares such rows."""

    def __init__(self, lumps_: Sequence[Lump]) -> None:
        self._lumps = lumps_
        self.width = 1 + max((max(lump.row, lump.slot) for lump in lumps_), default=-1)
        self._slots = frozenset(lump.slot for lump in lumps_)
        self.bounded = frozenset(range(self.width)) - {lump.row for lump in lumps_ if lump.group == ALONE}
        """Rows of nothing but pods of which nodes hold only so many."""

    def of(self, amounts: Sequence[tuple[float, int]]) -> list[float]:
        """Answer what is asked for; *amounts*: by lump, and in pods."""
        found = [0.0] * self.width
        for lump, (amount, pods) in zip(self._lumps, amounts, strict=True):
            found[lump.row] += amount
            if lump.slot >= 0:
                found[lump.slot] += pods
        return found

    def by_lump(self, worths: Sequence[float]) -> list[float]:
        """Answer the worth of lumps, given that of rows."""
        return [sum([part * worths[row] for row, part in lump.rows()]) for lump in self._lumps]

    def plain(self, tanks: Sequence[Tank], direction: float, slot: float) -> list[float]:
        """Answer what each row costs where it costs least; a place in a group costs nothing."""
        found = [0.0 if row in self._slots else DEAR for row in range(self.width)]
        for tank in tanks:
            for place, asked in zip(tank.lumps, tank.asks(direction, slot), strict=True):
                row = self._lumps[place].row
                found[row] = min(found[row], asked)
        return found

    def alone(self, row: int, tanks: Sequence[Tank]) -> Column:
        """Answer the cheapest way to have nothing but what *row* asks for; of a group, whatever the room is worth."""
        parts = [(place, part) for place, lump in enumerate(self._lumps) for one, part in lump.rows() if one == row]
        some = [
            (tank.price / (part * amount), tank.number, place, amount, part)
            for tank in tanks
            for place, part in parts
            if (amount := tank.alone(place)) > 0
        ]
        _, number, place, amount, part = min(some)
        is_node = row not in self._slots
        return Column(
            price=tanks[number].price,
            amounts=((row, part * amount),),
            source=number if is_node else -1,
            holds=((place, amount),) if is_node else (),
        )


class _Search:
    """Looks for worths that are high, with nothing left that would pay more than it costs."""

    def __init__(
        self, tanks: list[Tank], demand: _Demand, amounts: Sequence[tuple[float, int]], pool: Sequence[Column]
    ) -> None:
        """Begin with *pool*: the i-th column is of row i alone."""
        self._tanks, self._demand, self._amounts = tanks, demand, demand.of(amounts)
        self._is_there = [pods > 0 for _, pods in amounts]
        self._pool = list(pool)
        self.best, self.bound = [0.0 for _ in self._amounts], 0.0
        self._master = Master((), ())

    def run(self, starts: Iterable[list[float]], is_over: Callable[[], bool]) -> None:
        """Look, until it *is_over*; *starts*: worths to begin with."""
        for worths in starts:
            self._try(worths)
            self._pool.extend(tank.column() for tank in self._tanks if tank.ratio >= PAYS)
        for _ in range(PHASES):
            self._master = Master(self._amounts, [self._start(row) for row in range(len(self.best))])
            self._make_columns(is_over)
            if self._master.cost <= CLOSE * self.bound or not self._is_short() or is_over():
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
            for lump, amount in column.holds if column.source >= 0 and level > _SLIVER else ():
                mix = found[column.source]
                mix[lump] = mix.get(lump, 0.0) + level * amount
        return [sorted(mix.items()) for mix in found]

    def _start(self, row: int) -> Column:
        """Answer a column of one lump: not much above its worth, if that is known well without its group."""
        if row in self._demand.bounded:
            return self._pool[row]
        return Column(price=max(_TINY, HIGH * self.best[row]), amounts=((row, 1.0),))

    def _is_short(self) -> bool:
        """Whether something is bought without a node."""
        pairs = zip(self._master.basis, self._master.level, strict=True)
        return any(column.source < 0 and level > _SLIVER for column, level in pairs)

    def _make_columns(self, is_over: Callable[[], bool]) -> None:
        for _ in range(ROUNDS):
            self._settle()
            there = self.there(self._master.worths)
            mixed = zip(self.best, there, strict=True)
            self._try([STEADY * one + (1 - STEADY) * other for one, other in mixed])
            if self._master.cost <= CLOSE * self.bound:
                return
            if not self._improve():
                self._try(there)
                if not self._improve():
                    return
            if is_over():
                return

    def _settle(self) -> None:
        """Find the least cost with the columns that are there."""
        for _ in range(PASSES):
            is_better = False
            for column in self._pool:
                is_better = self._master.offer(column) or is_better
            for _ in self._amounts:
                if not self._master.give_away():
                    break
                is_better = True
            if not is_better:
                return

    def by_lump(self, worths: Sequence[float]) -> list[float]:
        """Answer the worth of lumps, given that of rows; nothing where none is left."""
        pairs = zip(self._demand.by_lump(worths), self._is_there, strict=True)
        return [worth if is_there else 0.0 for worth, is_there in pairs]

    def _try(self, worths: list[float]) -> None:
        """Fill every tank; the worths that a dollar buys, at most, are a bound."""
        by_lump = self.by_lump(worths)
        for tank in self._tanks:
            tank.fill(by_lump)
        most = max((1.0, *(tank.ratio for tank in self._tanks)))
        bound = sum(map(mul, worths, self._amounts)) / most
        if bound > self.bound:
            self.best, self.bound = [one / most for one in worths], bound

    def plain(self, direction: float, slot: float) -> list[float]:
        """Answer what each row costs where it costs least, at one price of memory, and of a slot, against cpu."""
        return self.there(self._demand.plain(self._tanks, direction, slot))

    def there(self, worths: Iterable[float]) -> list[float]:
        """Answer *worths*, or nothing where nothing is asked for."""
        return [one if amount > 0 else 0.0 for one, amount in zip(worths, self._amounts, strict=True)]

    def _improve(self) -> bool:
        """Add columns that hold most worth; whether some save something."""
        found = [tank.column() for tank in self._tanks if tank.ratio >= 1]
        self._pool += found
        return any(self._master.saves(column) > _TINY for column in found)
