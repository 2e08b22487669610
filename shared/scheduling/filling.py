"""One node, filled with the largest pods that lie along what it has left."""

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Final

import msgspec

from shared.model.resources import Vector
from shared.scheduling.lumps import shape_of
from shared.scheduling.market import Market
from shared.scheduling.stock import Bits, bits, places
from shared.scheduling.wanted import ALONE
from shared.scheduling.worth import Worth

TWICE: Final = 2.0


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is filled: *strict*, how much a pod that would pay better elsewhere is shunned (a power)."""

    strict: int = 8
    at_a_time: int = 4
    """Of what would fit of one item such a part is taken before looking again."""
    faithful: bool = False
    """No more nodes of a row than would be bought were pods fluid, before that is reckoned again ..."""
    mixed: bool = False
    """... and with the pods first that they would hold then."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """A row and what pods go there: by item, how many."""

    row: int
    pods: tuple[tuple[int, int], ...]


class Filler:
    """Fills nodes of any row with what is left of the items."""

    def __init__(self, market: Market, left: list[int]) -> None:
        """Start with *left*, by item; tell `take` what becomes less."""
        self._market, self.left = market, left
        self.steps = 0
        self.there = bits([index for index, count in enumerate(left) if count])
        self._columns = _columns(market)
        self._full = _full(market)

    def take(self, pods: Sequence[tuple[int, int]], times: int) -> None:
        """Count *pods* out, so many times; below zero: back in."""
        for item, some in pods:
            self.left[item] -= times * some
            if self.left[item]:
                self.there |= 1 << item
            else:
                self.there &= ~(1 << item)

    def clear(self) -> None:
        """Leave nothing."""
        for item in places(self.there):
            self.left[item] = 0
        self.there = 0

    def has(self, pods: Sequence[tuple[int, int]]) -> bool:
        """Whether all of *pods* are left."""
        return all(self.left[item] >= some for item, some in pods)

    def fill(self, number: int, known: Worth, manner: Manner, first: Bits | None = None) -> Pattern:
        """Answer a node of row *number*, full; *first*: with these items before any others."""
        row = self._market.rows[number]
        empty = Pattern(row=number, pods=())
        if first is None:
            return self.top_up(empty, list(row.room), known, manner)
        some = self.top_up(empty, list(row.room), known, manner, first)
        free = list(row.room)
        for item, count in some.pods:
            free = [have - count * one for one, have in zip(self._market.items[item].pods.need, free, strict=True)]
        return self.top_up(some, free, known, manner) if some.pods else some

    def top_up(self, node: Pattern, free: list[int], known: Worth, manner: Manner, among: Bits = -1) -> Pattern:
        """Answer *node* when as much as may be was added to what is on it, in *free*."""
        number, taken = node.row, dict(node.pods)
        room, items, left = self._market.rows[number].room, self._market.items, self.left
        open_ = self.there & self._market.open_to[number] & among
        grouped = _grouped(taken, self._market)
        for group, count in grouped.items():
            open_ &= ~self._crowded(group, count)
        tight = _Tightness(known, number, self._market, manner.strict)
        fitting = self._market.stock.fitting
        if taken:
            open_ &= ~bits([item for item, count in taken.items() if count >= left[item]])
        while open_ := fitting(free, open_):
            self.steps += 1
            best, index = -1.0, -1
            for head in self._heads(open_):
                score = tight.of(head) * _along(items[head].pods.need, free, room)
                if score > best:
                    best, index = score, head
            item = items[index]
            need = item.pods.need
            fits = min(have // one for one, have in zip(need, free, strict=True) if one)
            rest = left[index] - taken.get(index, 0)
            some = min(rest, item.most - grouped.get(item.group, 0), max(1, fits // manner.at_a_time))
            taken[index] = taken.get(index, 0) + some
            free = [have - some * one for one, have in zip(need, free, strict=True)]
            if item.group != ALONE:
                grouped[item.group] = grouped.get(item.group, 0) + some
                open_ &= ~self._crowded(item.group, grouped[item.group])
            if some == rest:
                open_ &= ~(1 << index)
        return Pattern(row=number, pods=tuple(sorted(taken.items())))

    def _heads(self, open_: Bits) -> Iterator[int]:
        """Answer the largest item of each shape."""
        for column in self._columns:
            some = open_ & column
            if some:
                yield some.bit_length() - 1

    def _crowded(self, group: int, count: int) -> Bits:
        """Answer the items of *group* that bear no more than *count* of it on their node."""
        return sum(some for most, some in self._full[group] if most <= count)


class _Tightness:
    """How well an item pays for its room in one row."""

    def __init__(self, known: Worth, row: int, market: Market, strict: int) -> None:
        self._strict = strict
        self._worths, self._prices, self._items = known.items, known.prices[row], market.items
        self._known: dict[int, float] = {}

    def of(self, index: int) -> float:
        found = self._known.get(index)
        if found is None:
            asked = sum(map(mul, self._prices, self._items[index].scaled))
            found = min(TWICE, self._worths[index] / asked if asked > 0 else TWICE) ** self._strict
            self._known[index] = found
        return found


def _columns(market: Market) -> list[Bits]:
    """Part items by shape."""
    columns: dict[int, list[int]] = {}
    for index, item in enumerate(market.items):
        columns.setdefault(shape_of(item), []).append(index)
    return [bits(some) for _, some in sorted(columns.items())]


def _full(market: Market) -> dict[int, list[tuple[int, Bits]]]:
    """Answer, by group, which items bear how many of it on their node."""
    found: dict[int, dict[int, list[int]]] = {}
    for index, item in enumerate(market.items):
        if item.group != ALONE:
            found.setdefault(item.group, {}).setdefault(item.most, []).append(index)
    return {group: [(most, bits(some)) for most, some in sorted(by.items())] for group, by in found.items()}


def _grouped(taken: dict[int, int], market: Market) -> dict[int, int]:
    found: dict[int, int] = {}
    for index, count in taken.items():
        group = market.items[index].group
        if group != ALONE:
            found[group] = found.get(group, 0) + count
    return found


def _along(need: Vector, free: Sequence[int], room: Vector) -> float:
    """Answer how much *need* points where *free* points, as parts of *room*: squared cosine."""
    x, y = need[0] / room[0], need[1] / room[1]
    u, v = free[0] / room[0], free[1] / room[1]
    return (x * u + y * v) ** 2 / ((x * x + y * y) * (u * u + v * v) + 1e-30)
