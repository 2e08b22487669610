"""Nodes to be bought: one after the other the one that costs least for what its pods are worth.

A node is filled with the largest pods that lie along what it has left; as long as there are pods for it, the same node
is bought again. What pods are worth is reckoned again when a good part of them is gone.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from operator import le, mul
from typing import Final

import msgspec

from shared.model.resources import Vector
from shared.scheduling.market import ALONE, Item, Market
from shared.scheduling.worth import Appraiser, Worth, shape_of, size_of

PROMISING: Final = 0.85
TRIED: Final = 40
LEAST: Final = 1e-9
SWEEP: Final = 0.1
"""So many of the items may be used up before they are swept out."""
TWICE: Final = 2.0
ROUNDING: Final = 0.5
FEW: Final = 16
REFRESHED: Final = 8
"""So often worth is reckoned; what is left then is little."""
AGAIN: Final = 0.6
"""Of the worth that was there is left when it is reckoned again."""
ENOUGH: Final = 20_000
"""So many nodes are filled on trial at most."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """A row and what pods go there: by item, how many."""

    row: int
    pods: tuple[tuple[int, int], ...]


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """So many equal nodes."""

    pattern: Pattern
    count: int


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is filled: *strict*, how much a pod that would pay better elsewhere is shunned (a power)."""

    strict: int = 8
    at_a_time: int = 4
    """Of what would fit of one item such a part is taken before looking again."""
    faithful: bool = False
    """No more nodes of a row than would be bought were pods fluid, before that is reckoned again."""


USUAL: Final = Manner()


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What to buy, in order; *bound*: what the pods would cost were they fluid."""

    bought: tuple[Bought, ...] = ()
    bound: float = 0.0


def buy(market: Market, appraiser: Appraiser, manner: Manner = USUAL) -> Advice:
    """Answer nodes for all items, as far as rows are open to them; *appraiser* is that of the market."""
    if not market.rows:
        return Advice()
    shopping = _Shopping(market, appraiser, manner)
    return Advice(bought=tuple(shopping.run()), bound=shopping.bound)


class _Shopping:
    def __init__(self, market: Market, appraiser: Appraiser, manner: Manner) -> None:
        self._market, self._manner, self._appraiser = market, manner, appraiser
        self._left = [item.count for item in market.items]
        self._faithful = manner.faithful
        self._tried = 0
        self._gone = 0
        self._by_row: dict[int, tuple[int, list[list[int]]]] = {}
        self._rows = max(FEW, min(TRIED, ENOUGH // (1 + len(market.items))))
        self.bound = 0.0

    def run(self) -> Iterator[Bought]:
        known: Worth | None = None
        for round_ in count():
            if not any(self._left):
                return
            if known is None or round_ < REFRESHED:
                known = self._appraiser.worth(self._left)
            self.bound = self.bound or known.total
            start = sum(map(mul, known.items, self._left))
            found = list(self._until(known, start * AGAIN))
            if not found and not self._faithful:
                return
            self._faithful = self._faithful and bool(found)
            yield from found

    def _until(self, known: Worth, least: float) -> Iterator[Bought]:
        """Buy until no more than *least* of the worth is left."""
        rows = self._promising(known)
        allotted = {row: int(number + ROUNDING) for row, number in enumerate(known.nodes)}
        best: dict[int, tuple[float, Pattern]] = {}
        here = sum(map(mul, known.items, self._left))
        while here > least and self._tried < ENOUGH:
            for row in rows:
                if row not in best or not self._has(best[row][1]):
                    best.pop(row, None)
                    pattern = self._fill(row, known)
                    if pattern.pods:
                        best[row] = (self._ratio(pattern, known), pattern)
            ranked = [(ratio, row) for row, (ratio, _) in best.items() if allotted[row] or not self._faithful]
            if not ranked:
                return
            pattern = best[min(ranked)[1]][1]
            times = min(self._left[item] // some for item, some in pattern.pods)
            if self._faithful:
                times = min(times, allotted[pattern.row])
                allotted[pattern.row] -= times
            for item, some in pattern.pods:
                self._left[item] -= times * some
                self._gone += not self._left[item]
                here -= times * some * known.items[item]
            yield Bought(pattern=pattern, count=times)

    def _promising(self, known: Worth) -> list[int]:
        """Answer the rows that pay best, some for each item that is wanted."""
        ranked = sorted(range(len(known.rows)), key=lambda row: (-known.rows[row], row))
        chosen = [row for row in ranked[: self._rows] if known.rows[row] >= PROMISING]
        covered = {item for row in chosen for item in self._market.open_to[row]}
        for row in ranked:
            fresh = [item for item in self._market.open_to[row] if self._left[item] and item not in covered]
            if fresh:
                chosen.append(row)
                covered.update(fresh)
        return chosen

    def _has(self, pattern: Pattern) -> bool:
        return all(self._left[item] >= some for item, some in pattern.pods)

    def _ratio(self, pattern: Pattern, known: Worth) -> float:
        worth = sum(some * known.items[item] for item, some in pattern.pods)
        return self._market.rows[pattern.row].price / max(worth, LEAST)

    def _fill(self, number: int, known: Worth) -> Pattern:
        self._tried += 1
        row = self._market.rows[number]
        free = list(row.room)
        heads = [_Head(column, self._market.items, self._left) for column in self._columns(number)]
        heads = [head for head in heads if head.move(free, {}, {})]
        tight = _Tightness(known, number, self._market.items, self._manner.strict)
        taken: dict[int, int] = {}
        grouped = {ALONE: 0}
        while heads:
            scores = [tight.of(head.index) * _along(head.item.pods.need, free, row.room) for head in heads]
            head = heads[scores.index(max(scores))]
            need = head.item.pods.need
            room = min(have // one for one, have in zip(need, free, strict=True) if one)
            before, group = taken.get(head.index, 0), head.item.group
            most = head.item.most - grouped.get(group, 0)
            some = min(self._left[head.index] - before, most, max(1, room // self._manner.at_a_time))
            taken[head.index] = before + some
            if group != ALONE:
                grouped[group] = grouped.get(group, 0) + some
            free = [have - some * one for one, have in zip(need, free, strict=True)]
            heads = [one for one in heads if one.move(free, taken, grouped)]
        return Pattern(row=number, pods=tuple(sorted(taken.items())))

    def _columns(self, number: int) -> list[list[int]]:
        """Answer what may be on a row by shape; what is used up is swept out now and then."""
        known = self._by_row.get(number)
        if known is None or self._gone > known[0] + SWEEP * len(self._left):
            open_ = [index for index in self._market.open_to[number] if self._left[index]]
            known = self._by_row[number] = (self._gone, _columns(open_, self._market.items))
        return known[1]


class _Tightness:
    """How well an item pays for its room in one row."""

    def __init__(self, known: Worth, row: int, items: Sequence[Item], strict: int) -> None:
        self._strict = strict
        self._worths, self._prices, self._items = known.items, known.prices[row], items
        self._known: dict[int, float] = {}

    def of(self, index: int) -> float:
        if index not in self._known:
            asked = sum(map(mul, self._prices, self._items[index].scaled))
            self._known[index] = min(TWICE, self._worths[index] / asked if asked > 0 else TWICE) ** self._strict
        return self._known[index]


class _Head:
    """The largest item of a column that a node has room for."""

    def __init__(self, column: list[int], items: Sequence[Item], left: Sequence[int]) -> None:
        self._column, self._items, self._left = column, items, left
        self._place = len(column) - 1
        self.index = column[-1]
        self.item = items[self.index]

    def move(self, free: Sequence[int], taken: Mapping[int, int], grouped: Mapping[int, int]) -> bool:
        """Step down to an item that may still be taken, and fits in *free*; whether there is one."""
        while self._place >= 0:
            self.index = self._column[self._place]
            self.item = self._items[self.index]
            is_left = taken.get(self.index, 0) < self._left[self.index]
            if is_left and grouped.get(self.item.group, 0) < self.item.most and _fits(self.item, free):
                return True
            self._place -= 1
        return False


def _columns(indices: Sequence[int], items: Sequence[Item]) -> list[list[int]]:
    """Part items by shape."""
    columns: dict[int, list[int]] = {}
    for index in sorted(indices, key=lambda index: (size_of(items[index]), index)):
        columns.setdefault(shape_of(items[index]), []).append(index)
    return [some for _, some in sorted(columns.items())]


def _fits(item: Item, free: Sequence[int]) -> bool:
    return all(map(le, item.pods.need, free))


def _along(need: Vector, free: Sequence[int], room: Vector) -> float:
    """Answer how much *need* points where *free* points, as parts of *room*: squared cosine."""
    x, y = need[0] / room[0], need[1] / room[1]
    u, v = free[0] / room[0], free[1] / room[1]
    return (x * u + y * v) ** 2 / ((x * x + y * y) * (u * u + v * v) + 1e-30)
