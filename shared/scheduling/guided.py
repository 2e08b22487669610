"""A packing that follows advice: nodes are opened as the market advised, and filled as it said.

Every pod still goes through the same door, which checks all that binds it. What the door refuses is placed like any
other pod; so bad advice costs money, and no more.
"""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

import msgspec

from shared.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements
from shared.scheduling.advice import Advice, advise
from shared.scheduling.demand import PodClass
from shared.scheduling.market import Market, market
from shared.scheduling.opened import Opened
from shared.scheduling.pack import Packing
from shared.scheduling.ports import conflict
from shared.scheduling.shelf import Mask
from shared.scheduling.stalls import Row
from shared.scheduling.templates import Narrowed
from shared.scheduling.wanted import at_stage, in_zone, possible

NEARLY: Final = 1.15
"""Times the least price: types up to there are as good."""
VARIETY: Final = 10
"""So many types are listed, where they exist, whatever they cost."""
ROUNDS: Final = 4
"""So often advice is asked for where limits were in the way."""


class Loose(msgspec.Struct, kw_only=True, eq=False):
    """A node that was opened on advice: what it could be if only its pods bound it, and what it was when it had them.

    It is kept to the capacity type that it was bought for, lest a pod that comes later makes it dear.
    """

    node: Opened
    state: Narrowed
    filled: Narrowed


class Guide:
    """Opens nodes in a packing, and knows how they may be loosened in the end."""

    def __init__(self, packing: Packing) -> None:
        """Begin where *packing* is."""
        self._packing = packing
        self._loose: dict[int, Loose] = {}
        self._closed: set[int] = set()

    def follow(self, classes: list[PodClass], known: Market, advice: Advice) -> None:
        """Open the nodes that were advised, and place the pods that they are for; what is left stays in *classes*.

        Where a NodePool's limits forbid some of the nodes, advice is asked for again, without that pool.
        """
        for _ in range(ROUNDS):
            before = set(self._closed)
            self._settle(classes, known, self._opened(known, advice))
            if self._closed == before:
                return
            known = market(self._packing, classes, frozenset(self._closed))
            advice = advise(known)[0]

    def widen(self) -> None:
        """Let each node be whatever holds its pods and costs little more than the cheapest that does."""
        if all(group.rule.key in (HOSTNAME, ZONE) for group in self._packing.topology.groups):
            for one in self._loose.values():
                _loosen(one)
        widen(self._packing)

    def _opened(self, known: Market, advice: Advice) -> dict[int, list[tuple[int, int]]]:
        """Open what was bought; answer, by item, which nodes are for how many."""
        slots: dict[int, list[tuple[int, int]]] = {}
        for one in advice.bought:
            row = known.rows[one.pattern.row]
            is_zonal = any(known.items[item].zone for item, _ in one.pattern.pods)
            for _ in range(one.count):
                number = self._open(row, is_zonal=is_zonal)
                if number is None:
                    self._closed.add(row.template)
                    break
                for item, count in one.pattern.pods:
                    slots.setdefault(item, []).append((number, count))
        return slots

    def _open(self, row: Row, *, is_zonal: bool) -> int | None:
        template = self._packing.templates[row.template]
        state = template.narrow(template.start, in_zone(row.zone)) if is_zonal else template.start
        kept = None if state is None else template.narrow(state, _of_kind(row.kind[0]))
        if state is None or kept is None:
            return None
        mask = row.bit
        if state.minima:
            mask = template.shelf.fitting(kept.mask, template.shelf.rooms[row.bit.bit_length() - 1])
        number = self._packing.open(template, kept, mask)
        if number is not None:
            self._loose[number] = Loose(node=self._packing.opened[number], state=state, filled=kept)
        return number

    def _settle(self, classes: list[PodClass], known: Market, slots: dict[int, list[tuple[int, int]]]) -> None:
        """Place pods on the nodes that are for them: first those that are bound, as others might be in their way."""
        by_class: dict[int, list[int]] = {}
        for index in sorted(slots):
            by_class.setdefault(known.items[index].number, []).append(index)
        for number, pods in sorted(enumerate(classes), key=lambda pair: (not any(pair[1].bound), pair[0])):
            lanes = [slots[index] for index in by_class.get(number, ())]
            if lanes:
                pods.pods = self._place(pods, lanes)
        for one in self._loose.values():
            one.filled = one.node.state

    def _place(self, pods: PodClass, lanes: list[list[tuple[int, int]]]) -> list[Pod]:
        left = list(pods.pods)
        stage = possible(self._packing, pods)
        pods = at_stage(pods, stage)
        turns = _in_turn(lanes) if pods.bound[0] else chain.from_iterable(lanes)
        for number, count in turns:
            if not left:
                break
            done = self._packing.place_on(number, pods, left[:count])
            left = left[done:]
            self._packing.given_up += stage * done
            if done:
                self._narrow(self._loose[number], pods)
        return left

    def _narrow(self, one: Loose, pods: PodClass) -> None:
        for wanted in (pods.stages[0].requirements, pods.alternatives[0]):
            one.state = one.node.template.narrow(one.state, wanted) or one.state


def _of_kind(capacity_type: str) -> Requirements:
    return Requirements(items=(Requirement(key=CAPACITY_TYPE, values=frozenset((capacity_type,))),))


def _in_turn(lanes: list[list[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Answer the nodes once for each pod, a pod of each lane in turn: that keeps zones even."""
    singles = [[(node, 1) for node, count in lane for _ in range(count)] for lane in lanes]
    return (node for some in zip_longest(*singles) for node in some if node is not None)


def _loosen(one: Loose) -> None:
    """Let the node be of any capacity type again, unless somebody else has come."""
    node = one.node
    if not node.pods or node.state is not one.filled:
        return
    zone = node.state.requirements[ZONE]
    wide = (
        node.template.narrow(one.state, Requirements(items=(zone,))) if ZONE in node.state.requirements else one.state
    )
    if wide is not None and wide.mask & node.mask == node.mask and not node.is_relaxed:
        node.state = wide


def widen(packing: Packing) -> None:
    """Let each node be any type that holds its pods and costs little more than the cheapest."""
    for node in packing.opened:
        if node.pods:
            node.mask |= _alternatives(node, is_limited=node.template.pool.name in packing.limits)


def _alternatives(node: Opened, *, is_limited: bool) -> Mask:
    if is_limited:
        return 0
    shelf = node.template.shelf
    mask = 0
    for group in node.template.overheads:
        part = node.state.mask & group.mask
        if part and not conflict(group.ports, tuple(node.ports)):
            mask |= shelf.fitting(part, tuple(map(sum, zip(node.used, group.needs, strict=True))))
    priced = shelf.cheapest_first(node.state.requirements, mask)
    if not priced:
        return 0
    most = NEARLY * priced[0].offering.price_usd_per_hour
    return sum(
        one.bit for place, one in enumerate(priced) if place < VARIETY or one.offering.price_usd_per_hour <= most
    )
