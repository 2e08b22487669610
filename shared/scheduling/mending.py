"""Nodes that cost more than their pods are worth, taken apart and bought anew, again and again.

A few nodes at a time, of those that lose most. Their pods go into room that is left on the nodes that stay, the rest is
bought for as before; if that is no better, all is put back. Advice only, so nothing can break by it.
"""

from collections.abc import Iterator
from heapq import nlargest
from typing import Final

from shared.scheduling.filling import Filler, Manner, Pattern
from shared.scheduling.market import Market
from shared.scheduling.patterns import Shopping, promising
from shared.scheduling.worth import Worth

MANNERS: Final = (Manner(), Manner(strict=2), Manner(strict=30), Manner(strict=4, at_a_time=1000))
PARTS: Final = (2, 4, 8, 16, 3, 6)
"""Of twice so many nodes, those that lose most, about half are taken apart at once."""
WIDE: Final = 0.7
"""A row is bought anew where a dollar buys at least so much."""
PATIENCE: Final = 6
"""So many trials in vain, times the nodes, up to `MANY`, are enough."""
MANY: Final = 20
_TINY: Final = 1e-9


class Mender:
    """A plan that becomes better."""

    def __init__(self, market: Market, known: Worth, nodes: list[Pattern]) -> None:
        """Start with *nodes*; *known*: what pods were worth before anything was bought."""
        self._market, self._known = market, known
        self.nodes = list(nodes)
        self._losses = self._lost(nodes)
        self._filler = Filler(market, [0 for _ in market.items])
        self._coins = _coins()
        self._trial = 0

    @property
    def price(self) -> float:
        """Of all nodes."""
        return sum(self._price(node) for node in self.nodes)

    def run(self, effort: int) -> int:
        """Try until so many steps are spent, or nothing has come of many trials; answer how many steps were."""
        start, barren = self._filler.steps, 0
        while self._filler.steps - start < effort and barren < PATIENCE * min(len(self.nodes), MANY):
            self._filler.steps += len(self.nodes) // 8 + 20
            is_better = self._rebuy(self._victims(), MANNERS[self._trial % len(MANNERS)])
            barren = 0 if is_better else barren + 1
            self._trial += 1
        return self._filler.steps - start

    def _victims(self) -> list[int]:
        """Answer about half of those that lose most."""
        losses = self._losses
        size = PARTS[self._trial // len(MANNERS) % len(PARTS)]
        order = nlargest(2 * size, range(len(self.nodes)), key=losses.__getitem__)
        return sorted(place for place in order if next(self._coins))

    def _lost(self, nodes: list[Pattern]) -> list[float]:
        """Answer what each of *nodes* loses; equal ones are often one object."""
        known = {id(node): node for node in nodes}
        losses = {number: self._loss(node) for number, node in known.items()}
        return [losses[id(node)] for node in nodes]

    def _loss(self, node: Pattern) -> float:
        return self._price(node) - sum(some * self._known.items[item] for item, some in node.pods)

    def _price(self, node: Pattern) -> float:
        return self._market.rows[node.row].price

    def _rebuy(self, places: list[int], manner: Manner) -> bool:
        gone = [self.nodes[place] for place in places]
        cost = sum(self._price(node) for node in gone)
        for node in gone:
            self._filler.take(node.pods, -1)
        bought = self._bought(cost, manner)
        if bought is not None:
            for place in reversed(places):
                del self.nodes[place], self._losses[place]
            self.nodes += bought
            self._losses += self._lost(bought)
        self._filler.clear()
        return bought is not None

    def _bought(self, cost: float, manner: Manner) -> list[Pattern] | None:
        """Answer nodes for all that is left, if they cost less than *cost*."""
        rows = promising(self._market, self._filler, self._known, least=WIDE, most=len(self._market.rows))
        shopping = Shopping(self._market, self._filler, self._known, manner, rows)
        found: list[Pattern] = []
        for one in shopping.until(0.0):
            cost -= one.count * self._price(one.pattern)
            found += [one.pattern] * one.count
            if cost <= _TINY:
                return None
        return None if self._filler.there else found


def _coins() -> Iterator[bool]:
    """Answer heads and tails that look like chance, always the same: every part is to be tried in turn."""
    state = 1
    while True:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        yield bool(state >> 16 & 1)
