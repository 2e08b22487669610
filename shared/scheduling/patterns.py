"""Nodes to be bought: one after the other the one that costs least for what its pods are worth.

As long as there are pods for it, the same node is bought again. What pods are worth is reckoned again when a good part
of them is gone.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from operator import mul
from typing import Final

import msgspec

from shared.scheduling.filling import Filler, Manner, Pattern
from shared.scheduling.market import Market
from shared.scheduling.stock import Bits
from shared.scheduling.wanted import Item
from shared.scheduling.worth import Appraiser, Worth

PROMISING: Final = 0.85
TRIED: Final = 40
LEAST: Final = 1e-9
ROUNDING: Final = 0.5
REFRESHED: Final = 3
"""So often worth is reckoned; what is left then is little."""
AGAIN: Final = 0.4
"""Of the worth that was there is left when it is reckoned again."""


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """So many equal nodes."""

    pattern: Pattern
    count: int


def shopped(market: Market, appraiser: Appraiser, filler: Filler, manner: Manner) -> Iterator[Bought]:
    """Answer what is bought for all that *filler* has left, one after the other, as far as rows are open."""
    is_faithful = manner.faithful
    known, counted = appraiser.worth(filler.left), 1
    while filler.there:
        shopping = Shopping(market, filler, known, manner, promising(market, filler, known))
        worth = sum(map(mul, known.items, filler.left))
        is_last = counted >= REFRESHED and not is_faithful
        found = list(shopping.until(0.0 if is_last else worth * AGAIN, is_faithful=is_faithful))
        yield from found
        if is_last or not (found or is_faithful):
            return
        is_faithful = is_faithful and bool(found)
        if counted < REFRESHED:
            known, counted = appraiser.worth(filler.left), counted + 1


def promising(
    market: Market, filler: Filler, known: Worth, *, least: float = PROMISING, most: int = TRIED
) -> list[int]:
    """Answer the rows that pay best, some for each item that is wanted."""
    ranked = sorted(range(len(known.rows)), key=lambda row: (-known.rows[row], row))
    chosen = [row for row in ranked[:most] if known.rows[row] >= least]
    missing = filler.there
    for row in chosen:
        missing &= ~market.open_to[row]
    for row in ranked:
        if missing & market.open_to[row]:
            chosen.append(row)
            missing &= ~market.open_to[row]
    return chosen


class Shopping:
    """Buys nodes of some rows, the best first."""

    def __init__(self, market: Market, filler: Filler, known: Worth, manner: Manner, rows: list[int]) -> None:
        """Buy what pays best by what is *known*."""
        self._market, self._filler, self._known, self._manner, self._rows = market, filler, known, manner, rows

    def until(self, least: float, *, is_faithful: bool = False) -> Iterator[Bought]:
        """Buy until no more than *least* of the worth is left.

        A node is filled on trial only when nothing that is known can be cheaper, and again once its pods are gone.
        """
        filler, known = self._filler, self._known
        allotted = {row: int(known.nodes[row] + ROUNDING) for row in self._rows}
        mixes = {row: _Mix(known.mixes[row]) for row in self._rows} if is_faithful and self._manner.mixed else {}
        rows = [row for row in self._rows if allotted[row] or not is_faithful]
        ranked = [(1 / max(known.rows[row], LEAST), row, Pattern(row=row, pods=())) for row in rows]
        heapify(ranked)
        here = sum(map(mul, known.items, filler.left))
        while ranked and filler.there and here > least:
            _, row, pattern = heappop(ranked)
            if not pattern.pods or not filler.has(pattern.pods):
                first = mixes[row].items if row in mixes else None
                pattern = filler.fill(row, known, self._manner, first)
                if pattern.pods:
                    heappush(ranked, (self._ratio(pattern), row, pattern))
                continue
            times = min(filler.left[item] // some for item, some in pattern.pods)
            if is_faithful:
                times = min(times, allotted[row])
                times = mixes[row].take(pattern.pods, times, self._market.items) if row in mixes else times
                allotted[row] -= times
            filler.take(pattern.pods, times)
            here -= times * self._worth(pattern)
            if allotted[row] > 0 or not is_faithful:
                heappush(ranked, (self._ratio(pattern), row, pattern))
            yield Bought(pattern=pattern, count=times)

    def _worth(self, pattern: Pattern) -> float:
        return sum(some * self._known.items[item] for item, some in pattern.pods)

    def _ratio(self, pattern: Pattern) -> float:
        return self._market.rows[pattern.row].price / max(self._worth(pattern), LEAST)


class _Mix:
    """What nodes of a row are to hold, were pods fluid, as far as they do not hold it yet."""

    def __init__(self, mix: Sequence[tuple[Bits, float]]) -> None:
        self._left = list(mix)

    @property
    def items(self) -> Bits:
        """The items that are missing."""
        return sum(some for some, _ in self._left)

    def take(self, pods: Sequence[tuple[int, int]], times: int, items: Sequence[Item]) -> int:
        """Take a node with these pods off as often as it is wanted, once to *times*; answer how often."""
        uses = [sum(count * items[item].size for item, count in pods if some >> item & 1) for some, _ in self._left]
        pairs = list(zip(self._left, uses, strict=True))
        often = min((int(amount / use + ROUNDING) for (_, amount), use in pairs if use > 0), default=times)
        often = max(1, min(times, often))
        self._left = [(some, amount - often * use) for (some, amount), use in pairs if amount - often * use >= use / 2]
        return often
