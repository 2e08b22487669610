"""What pods are worth: the prices at which it pays to buy just enough nodes, were pods fluid.

A linear program over lumps of pods that are alike in shape. Its columns are nodes filled with fluid; they are made as
they are needed, until none saves anything worth mentioning. The worth of all pods is then (nearly) a bound of the cost.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, mul
from typing import Final

import msgspec

from shared.scheduling.market import ALONE, Item, Market, Row
from shared.scheduling.simplex import Column, Fill, Master, Numbers, richest

SHAPES: Final = tuple(2.0 ** (power / 2) for power in range(-9, 10))
"""Of memory to cpu: lumps lie between two of these."""
ROUNDS: Final = 20
AT_ONCE: Final = 16
CLOSE: Final = 1.004
STEADY: Final = 0.6
"""How much of the best worths so far goes into the next that are tried: worths that swing teach little."""
PALTRY: Final = 0.97
"""A row where a dollar buys no more than this is not looked at closely."""
DEAR: Final = 1e6
EXACT: Final = 80
"""Up to so many items each group of pods that few nodes hold many of is reckoned with for itself."""
OWN: Final = ALONE - 1
_SLIVER: Final = 1e-6


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod of each item is worth, what room costs in each row, and how much worth a dollar buys there.

    *nodes*: how many of each row were bought, were pods fluid.
    """

    items: tuple[float, ...]
    prices: tuple[Numbers, ...]
    rows: tuple[float, ...]
    nodes: tuple[float, ...]
    total: float


class Lump(msgspec.Struct, kw_only=True, eq=False):
    """Items alike; *need* is per amount, and so are *pods*, of which a node holds *most* of the *group*.

    Where there are many items, those that have a group to themselves are thrown together: the lump is their group.
    """

    items: list[int]
    need: Numbers
    pods: float
    most: int
    group: int


class Appraiser:
    """Knows what pods are worth while their number falls."""

    def __init__(self, market: Market) -> None:
        """Part the pods into lumps."""
        self._market = market
        self._lumps = _lumps(market)
        place_of = {item: index for index, lump in enumerate(self._lumps) for item in lump.items}
        pairs = enumerate(zip(market.rows, market.open_to, strict=True))
        self._tanks = [_Tank(number, row, open_, place_of, self._lumps) for number, (row, open_) in pairs]
        self._alone = [_alone(index, self._tanks) for index in range(len(self._lumps))]
        self._pool: list[Column] = []
        self._known: dict[tuple[int, ...], Worth] = {}

    def worth(self, counts: Sequence[int]) -> Worth:
        """Answer the worth of each item's pods, where *counts* of them are wanted."""
        key = tuple(counts)
        if key not in self._known:
            self._known[key] = self._reckoned(counts)
        return self._known[key]

    def _reckoned(self, counts: Sequence[int]) -> Worth:
        amounts = [self._amount(lump, counts) for lump in self._lumps]
        master = Master(amounts, self._alone)
        for column in self._pool:
            master.offer(column)
        self._settle(master)
        best, bound = self._worths(master, amounts), 0.0
        for _ in range(ROUNDS):
            there = self._worths(master, amounts)
            asked = [STEADY * one + (1 - STEADY) * other for one, other in zip(best, there, strict=True)]
            most = self._fill(asked)
            if sum(map(mul, asked, amounts)) / most > bound:
                best, bound = [one / most for one in asked], sum(map(mul, asked, amounts)) / most
            if master.cost <= CLOSE * bound or not (self._improve(master) or self._improve_at(there, master)):
                break
            self._settle(master)
        self._pool = [column for column, level in zip(master.basis, master.level, strict=True) if level > _SLIVER]
        for tank in self._tanks:
            tank.fill(best, at_all=True)
        return Worth(
            items=self._by_item(counts, best),
            prices=tuple(tank.filled.prices[: len(tank.prices())] for tank in self._tanks),
            rows=tuple(tank.ratio for tank in self._tanks),
            nodes=tuple(self._nodes(master)),
            total=master.cost,
        )

    def _nodes(self, master: Master) -> list[float]:
        found = [0.0 for _ in self._tanks]
        for column, level in zip(master.basis, master.level, strict=True):
            if column.source >= 0:
                found[column.source] += level
        return found

    def _settle(self, master: Master) -> None:
        while master.give_away():
            pass

    def _worths(self, master: Master, amounts: Sequence[float]) -> list[float]:
        return [worth if amount > 0 else 0.0 for worth, amount in zip(master.worths, amounts, strict=True)]

    def _fill(self, worths: Sequence[float]) -> float:
        """Fill every tank; answer the most worth that a dollar buys, at least one dollar's."""
        for tank in self._tanks:
            tank.fill(worths)
        return max(1.0, *(tank.ratio for tank in self._tanks))

    def _improve(self, master: Master) -> bool:
        """Offer the columns that hold most worth; whether some saved something."""
        ranked = sorted(range(len(self._tanks)), key=lambda index: (-self._tanks[index].ratio, index))
        taken = [master.offer(self._tanks[index].column()) for index in ranked[:AT_ONCE]]
        return any(taken)

    def _improve_at(self, worths: Sequence[float], master: Master) -> bool:
        self._fill(worths)
        return self._improve(master)

    def _amount(self, lump: Lump, counts: Sequence[int]) -> float:
        return sum(counts[index] * size_of(self._market.items[index]) for index in lump.items)

    def _by_item(self, counts: Sequence[int], worths: Sequence[float]) -> tuple[float, ...]:
        """Answer the least that any row asks for a pod: prices of its room such that a full node pays for itself.

        What may be on a node only so many times costs more than its room: the worth of its lump.
        """
        items = self._market.items
        found = [DEAR if count else 0.0 for count in counts]
        for tank in self._tanks:
            prices = tank.prices() if tank.ratio > 0 else ()
            for index in tank.items if prices else ():
                if counts[index]:
                    found[index] = min(found[index], sum(map(mul, prices, items[index].scaled)))
        for lump, worth in zip(self._lumps, worths, strict=True):
            for index in lump.items:
                if items[index].group != ALONE and counts[index]:
                    found[index] = max(found[index], worth * size_of(items[index]))
        return tuple(found)


def size_of(item: Item) -> float:
    """Answer how large one pod is: usual amounts of cpu and memory."""
    return item.scaled[0] + item.scaled[1]


def shape_of(item: Item) -> int:
    """Answer which of the shapes, from little memory to much, it has."""
    return bisect_left(SHAPES, item.scaled[1] / max(item.scaled[0], _SLIVER))


def _lumps(market: Market) -> list[Lump]:
    rows_of: dict[int, int] = {}
    for number, open_ in enumerate(market.open_to):
        for index in open_:
            rows_of[index] = rows_of.get(index, 0) | 1 << number
    owners = _owners(market.items)
    is_rough = len(market.items) > EXACT
    groups: dict[tuple[tuple[object, ...], int], list[int]] = {}
    for index in sorted(rows_of):
        item = market.items[index]
        where = tuple((number, id(state)) for number, state in item.where)
        is_own = is_rough and item.group != ALONE and len(owners[item.group]) == 1
        group = OWN if is_own else item.group
        groups.setdefault(((where, shape_of(item), _magnitude(item)), group), []).append(index)
    found: list[Lump] = []
    for (_, group), some in groups.items():
        together = reduce(and_, (rows_of[index] for index in some))
        for part in [some] if together else [[index] for index in some]:
            own = OWN - len(found) if group == OWN else group
            found.append(_lump([market.items[index] for index in part], part, own))
    return found


def _owners(items: Iterable[Item]) -> dict[int, set[int]]:
    """Answer the classes that are in each group."""
    found: dict[int, set[int]] = {}
    for item in items:
        found.setdefault(item.group, set()).add(item.number)
    return found


def _magnitude(item: Item) -> int:
    """Answer how many times two cores and their memory have to be quadrupled to be as large."""
    return (int(size_of(item)) // 4).bit_length() // 2


def _lump(items: Sequence[Item], indices: list[int], group: int) -> Lump:
    amount = sum(item.count * size_of(item) for item in items)
    axes = range(len(items[0].scaled))
    need = tuple(sum(item.count * item.scaled[axis] for item in items) / amount for axis in axes)
    pods = sum(item.count for item in items) / amount
    most = sum({item.group: item.most for item in items}.values()) if group <= OWN else items[0].most
    return Lump(items=indices, need=need, pods=pods, most=most, group=group)


class _Tank:
    """A row to be filled with lumps."""

    def __init__(
        self, number: int, row: Row, open_: Iterable[int], place_of: dict[int, int], lumps: list[Lump]
    ) -> None:
        self.number, self._row = number, row
        here = set(open_)
        some = {place_of[item] for item in here}
        self._lumps = sorted(one for one in some if here.issuperset(lumps[one].items))
        self.items = sorted(item for one in self._lumps for item in lumps[one].items)
        bounds = sorted({(lumps[one].group, lumps[one].most) for one in self._lumps if lumps[one].group != ALONE})
        self._needs = [
            (*lumps[one].need, *(lumps[one].pods if lumps[one].group == group else 0.0 for group, _ in bounds))
            for one in self._lumps
        ]
        self._room = (*row.scaled, *(float(most) for _, most in bounds))
        self.filled = Fill(worth=0.0, amounts=(), prices=(0.0,) * len(self._room))
        self.ratio = 0.0

    def fill(self, worths: Sequence[float], *, at_all: bool = False) -> None:
        """Fill it for the most worth, unless the prices of the last time say that it cannot pay, or *at_all*."""
        mine = tuple(worths[index] for index in self._lumps)
        most = None if at_all else self._most(mine)
        if most is not None and most < PALTRY * self._row.price:
            self.ratio = most / self._row.price
            return
        self.filled = richest(self._room, self._needs, mine)
        self.ratio = self.filled.worth / self._row.price

    def column(self) -> Column:
        """Answer what it holds."""
        amounts = tuple((self._lumps[place], amount) for place, amount in self.filled.amounts)
        return Column(price=self._row.price, amounts=amounts, source=self.number)

    def prices(self) -> Numbers:
        """Answer what its room costs: if all of it is worth having, no less than the price."""
        whole = self.filled.worth
        scale = max(1.0, self._row.price / whole) if whole else 1.0
        return tuple(scale * one for one in self.filled.prices[: len(self._row.scaled)])

    def alone(self, lump: int) -> float:
        """Answer how much of *lump* fits."""
        if lump not in self._lumps:
            return 0.0
        place = self._lumps.index(lump)
        return min(room / one for room, one in zip(self._room, self._needs[place], strict=True) if one > 0)

    @property
    def price(self) -> float:
        """Of the row."""
        return self._row.price

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


def _alone(lump: int, tanks: list[_Tank]) -> Column:
    """Answer the cheapest way to have nothing but *lump*."""
    some = [(tank.price / amount, tank.number, amount) for tank in tanks if (amount := tank.alone(lump)) > 0]
    if not some:
        return Column(price=DEAR, amounts=((lump, 1.0),))
    _, number, amount = min(some)
    return Column(price=tanks[number].price, amounts=((lump, amount),), source=number)
