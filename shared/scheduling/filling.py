"""One node, filled with the largest pods that lie along what it has left."""

import math
from collections.abc import Sequence
from operator import mul
from typing import Final

import msgspec

from shared.scheduling.lumps import shape_of
from shared.scheduling.market import Market, is_crowded
from shared.scheduling.stalls import SLOTS
from shared.scheduling.stock import Bits, bits, places
from shared.scheduling.wanted import ALONE
from shared.scheduling.worth import Worth

TWICE: Final = 2.0
_NOTHING: Final = 1e-30


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
        self._is_full = is_crowded(market)
        self._by: Worth | None = None
        self._seen: dict[tuple[int, int], _Look] = {}
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
        look = self._looks(known, number, manner.strict)
        fitting = self._market.stock.fitting
        if taken:
            open_ &= ~bits([item for item, count in taken.items() if count >= left[item]])
        while open_ := fitting(free, open_):
            self.steps += 1
            index = self._best(open_, look, free[0] / room[0], free[1] / room[1], free[SLOTS] / (room[SLOTS] or 1))
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

    def _best(self, open_: Bits, look: "_Look", cpu: float, memory: float, slots: float) -> int:
        """Answer the item that pays best and lies along what is free: of each shape the largest is looked at."""
        best, index, known = -1.0, -1, look.known
        for column in self._columns:
            some = open_ & column
            if some:
                head = some.bit_length() - 1
                found = known.get(head)
                if found is None:
                    found = known[head] = look.at(head)
                score = (found[0] * cpu + found[1] * memory + found[2] * slots) ** 2
                if score > best:
                    best, index = score, head
        return index

    def _looks(self, known: Worth, row: int, strict: int) -> "_Look":
        """Answer how items look in a row, by worths that are the same as long as *known* is."""
        if self._by is not known:
            self._by = known
            self._seen.clear()
        key = (row, strict)
        if key not in self._seen:
            self._seen[key] = _Look(known, row, self._market, strict, is_full=self._is_full)
        return self._seen[key]

    def _crowded(self, group: int, count: int) -> Bits:
        """Answer the items of *group* that bear no more than *count* of it on their node."""
        return sum(some for most, some in self._full[group] if most <= count)


class _Look:
    """How well items pay for their room in one row, and which way they point there."""

    def __init__(self, known: Worth, row: int, market: Market, strict: int, *, is_full: bool) -> None:
        self._strict, self._room = strict, market.rows[row].room
        self._worths, self._prices, self._items = known.items, known.prices[row], market.items
        self._slots = 1 / self._room[SLOTS] if is_full and self._room[SLOTS] else 0.0
        self.known: dict[int, tuple[float, float, float]] = {}

    def at(self, index: int) -> tuple[float, float, float]:
        """Answer parts of cpu, memory and slots, as long as the root of the item's worth for its price, to some power.

        How many pods there may be is looked at only where they are so small that it matters.
        """
        item = self._items[index]
        asked = sum(map(mul, self._prices, item.scaled))
        ratio = self._worths[index] / asked if asked > 0 else TWICE
        x, y = item.pods.need[0] / self._room[0], item.pods.need[1] / self._room[1]
        z = self._slots
        long = math.sqrt(max(0.0, min(TWICE, ratio)) ** self._strict / (x * x + y * y + z * z + _NOTHING))
        return long * x, long * y, long * z


def _columns(market: Market) -> list[Bits]:
    """Part items by shape; by size, too, where they are so small that it matters how many they are."""
    columns: dict[tuple[int, int], list[int]] = {}
    crowded = is_crowded(market)
    for index, item in enumerate(market.items):
        size = round(math.log2(item.size)) if crowded else 0
        columns.setdefault((shape_of(item), size), []).append(index)
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
