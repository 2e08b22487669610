"""Pods that are valued once, all together: then advice on what to buy for some of them is cheap, again and again.

What pods are worth together is a bound for any of them, too: no node on offer holds more worth than it costs. It is not
quite what they would be worth alone; so plans are mended, not appraised anew.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import mul
from typing import Final, TypeAlias

import msgspec

from shared.scheduling.advice import PER_POD, Advice, counted
from shared.scheduling.demand import PodClass
from shared.scheduling.filling import Filler, Manner
from shared.scheduling.market import Market
from shared.scheduling.mending import Mender
from shared.scheduling.pack import Packing
from shared.scheduling.patterns import Shopping, promising
from shared.scheduling.simplex import Numbers
from shared.scheduling.stalls import Row
from shared.scheduling.wanted import wanted
from shared.scheduling.worth import Appraiser, Worth

MANNERS: Final = (Manner(strict=2), Manner(), Manner(strict=30))
FIRST: Final = 6
"""Such a part of the effort is spent on mending each plan; what is left at the end, on mending the best."""
NOTHING: Final = Worth(items=(), prices=(), rows=(), nodes=(), mixes=(), total=0.0)
FEW: Final = 100
"""For so few pods what pays best for all may be far too large: what is cheapest for each is tried as well."""
NO_ROW: Final = -1
_SLIVER: Final = 1e-6
Placed: TypeAlias = tuple[int, PodClass]
"""A class, and its place in the queue: that is its name here."""


class Valued(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A market, what its pods are worth, and at least: *least* is no more than any node on offer asks for them."""

    classes: tuple[Placed, ...]
    market: Market
    worth: Worth
    least: Numbers
    cheapest: tuple[int, ...]
    """By item: the row of the lowest price that it may be on, worth a look where little is left to be bought for."""
    items: Mapping[tuple[int, str], int]
    """Their numbers, by that of the class, and zone."""

    def in_turn(self, some: Mapping[int, PodClass]) -> list[PodClass]:
        """Answer *some*, by place in the queue, in the order of the market, with empty classes for the others."""
        known = {place for place, _ in self.classes}
        found = [some.get(place) or msgspec.structs.replace(one, pods=[]) for place, one in self.classes]
        return found + [one for place, one in sorted(some.items(), key=lambda pair: pair[0]) if place not in known]

    def counts(self, packing: Packing, some: Sequence[PodClass]) -> list[int]:
        """Answer how many of each item *some* are, which are `in_turn`."""
        found = [0] * len(self.market.items)
        for item in wanted(packing, some):
            number = self.items.get((item.number, item.zone))
            if number is not None:
                found[number] += item.count
        return found

    def bound(self, counts: Sequence[int]) -> float:
        """Answer what nodes on offer cost at least that hold so many of each item."""
        return math.fsum(map(mul, self.least, counts))

    def advise(self, counts: Sequence[int], effort: int, most: float = math.inf) -> Advice:
        """Answer nodes for so many of each item; if they cost more than *most* at least, nothing but that price."""
        bound = self.bound(counts)
        if bound > most or not any(counts):
            return Advice(bound=bound, price=bound)
        effort = min(effort, PER_POD * sum(counts))
        plans = list(self._plans(counts, effort // FIRST))
        best = min(plans, key=lambda plan: (plan.price, len(plan.nodes)))
        best.run(effort // 2)
        return Advice(bought=counted(best.nodes), bound=bound, price=best.price)

    def _plans(self, counts: Sequence[int], effort: int) -> Iterator[Mender]:
        for manner in MANNERS:
            yield self._plan(counts, effort, manner, frozenset())
        if sum(counts) <= FEW:
            cheap = (row for row, count in zip(self.cheapest, counts, strict=True) if count)
            yield self._plan(counts, effort, Manner(), frozenset(cheap) - {NO_ROW})

    def _plan(self, counts: Sequence[int], effort: int, manner: Manner, more: frozenset[int]) -> Mender:
        """Answer a plan of what pays best, and of rows *more*."""
        filler = Filler(self.market, list(counts))
        rows = promising(self.market, filler, self.worth)
        rows += sorted(more.difference(rows))
        bought = Shopping(self.market, filler, self.worth, manner, rows).until(0.0)
        plan = Mender(self.market, self.worth, [one.pattern for one in bought for _ in range(one.count)])
        plan.run(effort)
        return plan


def valued(known: Market, classes: Sequence[Placed]) -> Valued:
    """Answer what the pods of *classes* are worth; *known*: their market, everywhere."""
    is_open = any(known.open_to)
    worth = Appraiser(known).worth([item.count for item in known.items]) if is_open else NOTHING
    items = {(item.number, item.zone): number for number, item in enumerate(known.items) if is_open}
    least = _least(known, worth) if is_open else (0.0,) * len(known.items)
    worth = msgspec.structs.replace(worth, items=tuple(map(max, worth.items, least)))
    empty = tuple((place, msgspec.structs.replace(one, pods=[])) for place, one in classes)
    return Valued(classes=empty, market=known, worth=worth, least=least, cheapest=_cheapest(known), items=items)


def _least(known: Market, worth: Worth) -> Numbers:
    """Answer what each item costs at the row that asks least for it, if room is paid for such that a full node pays.

    What is paid for room, by row, is what that is worth to the pods there; nearly, so that no pod is worth nothing.
    """
    asked = list(map(_full, known.rows, worth.prices))
    return tuple(
        min(
            (
                sum(map(mul, prices, item.scaled))
                for prices, open_ in zip(asked, known.open_to, strict=True)
                if open_ >> place & 1
            ),
            default=0.0,
        )
        for place, item in enumerate(known.items)
    )


def _cheapest(known: Market) -> tuple[int, ...]:
    ranked = sorted(range(len(known.rows)), key=lambda row: (known.rows[row].price, row))
    return tuple(
        next((row for row in ranked if known.open_to[row] >> place & 1), NO_ROW) for place in range(len(known.items))
    )


def _full(row: Row, prices: Numbers) -> Numbers:
    """Answer *prices* of room, by axis, in such a measure that all the room costs what the row does."""
    asked = [one + _SLIVER / room if room else one for one, room in zip(prices, row.scaled, strict=True)]
    whole = sum(map(mul, asked, row.scaled))
    return tuple(row.price / whole * one for one in asked)
