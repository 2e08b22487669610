"""A packing that follows advice: nodes are opened as the market advised, and filled as it said.

Every pod still goes through the same door, which checks all that binds it. What the door refuses is placed like any
other pod; so bad advice costs money, and no more.
"""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

import msgspec

from shared.model.labels import CAPACITY_TYPE, HOSTNAME, RESERVED, ZONE
from shared.model.pods import Pod
from shared.model.requirements import ANYTHING, Requirement, Requirements
from shared.scheduling.advice import Advice, advise
from shared.scheduling.demand import PodClass
from shared.scheduling.market import Market, market
from shared.scheduling.opened import Opened
from shared.scheduling.pack import Packing
from shared.scheduling.shelf import Mask
from shared.scheduling.stalls import Row
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.wanted import at_stage, in_zone, possible

NEARLY: Final = 1.15
"""Times the least price: types up to there are as good."""
VARIETY: Final = 10
"""So many types are listed, where they exist, whatever they cost."""
ROUNDS: Final = 6
"""So often advice is asked for where limits were in the way ..."""
WITHIN: Final = 3
"""... and so often for nodes that are still within them; then their NodePools have no part in it any more."""
LESS: Final = 8_000
"""The effort that is worth then."""


class Loose(msgspec.Struct, kw_only=True, eq=False):
    """A node that is kept to the capacity type that it was bought for, lest a pod that comes later makes it dear."""

    node: Opened
    state: Narrowed
    """What it could be if only its pods bound it."""


class Guide:
    """Opens nodes in a packing, and knows how they may be loosened in the end."""

    def __init__(self, packing: Packing) -> None:
        """Begin where *packing* is."""
        self._packing = packing
        self._loose: dict[int, Loose] = {}
        self._closed: set[int] = set()

    def follow(self, classes: list[PodClass], known: Market, advice: Advice) -> None:
        """Open the nodes that were advised, and place the pods that they are for; what is left stays in *classes*.

        Where a NodePool's limits forbid some of the nodes, advice is asked for again, for what they leave; and without
        that pool once no node more was opened in it.
        """
        tight: set[int] = set()
        for turn in range(ROUNDS):
            first = len(self._packing.opened)
            slots, refused = self._opened(known, advice)
            self._settle(classes, known, slots)
            tight |= refused
            if tight <= self._closed or not any(one.pods for one in classes):
                return
            grown = {id(node.template) for node in self._packing.opened[first:]} if turn < WITHIN else set()
            self._closed |= {number for number in tight if id(self._packing.templates[number]) not in grown}
            known = market(self._packing, classes, frozenset(self._closed))
            advice = advise(known, effort=LESS)[0]

    def widen(self) -> None:
        """Let each node be whatever holds its pods and costs little more than the cheapest that does."""
        if all(group.rule.key in (HOSTNAME, ZONE) for group in self._packing.topology.groups):
            self._narrow()
            for one in self._loose.values():
                _loosen(one)
        widen(self._packing)

    def reopen(self, node: Opened) -> int | None:
        """Open a node like *node*, empty, of the type that it would be bought as; answer its number if it may be."""
        template, asked = node.template, node.state.requirements
        priced = template.shelf.cheapest(asked, node.mask)
        state: Narrowed | None = template.start
        if state is not None and ZONE in asked:
            state = template.narrow(state, Requirements(items=(asked[ZONE],)))
        if state is None or priced is None:
            return None
        kind = priced.offering.capacity_type
        return self._join(template, state, _of_kind(kind) if kind != RESERVED else ANYTHING, priced.bit)

    def _opened(self, known: Market, advice: Advice) -> tuple[dict[int, list[tuple[int, int]]], set[int]]:
        """Open what was bought; answer, by item, which nodes are for how many, and which templates limits forbade."""
        slots: dict[int, list[tuple[int, int]]] = {}
        refused: set[int] = set()
        for one in advice.bought:
            row = known.rows[one.pattern.row]
            is_zonal = any(known.items[item].zone for item, _ in one.pattern.pods)
            for _ in range(one.count):
                number = self._open(row, is_zonal=is_zonal)
                if number is None:
                    refused.add(row.template)
                    break
                for item, count in one.pattern.pods:
                    slots.setdefault(item, []).append((number, count))
        return slots, refused

    def _open(self, row: Row, *, is_zonal: bool) -> int | None:
        template = self._packing.templates[row.template]
        state = template.narrow(template.start, in_zone(row.zone)) if is_zonal else template.start
        return None if state is None else self._join(template, state, _of_kind(row.kind[0]), row.bit)

    def _join(self, template: Template, state: Narrowed, kind: Requirements, mask: Mask) -> int | None:
        kept = template.narrow(state, kind)
        if kept is None:
            return None
        if state.minima:
            mask = template.shelf.fitting(kept.mask, template.shelf.rooms[mask.bit_length() - 1])
        number = self._packing.open(template, kept, mask)
        if number is not None:
            self._loose[number] = Loose(node=self._packing.opened[number], state=state)
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

    def _place(self, pods: PodClass, lanes: list[list[tuple[int, int]]]) -> list[Pod]:
        stage = possible(self._packing, pods)
        pods, done = at_stage(pods, stage), 0
        turns = _in_turn(lanes) if pods.bound[0] else chain.from_iterable(lanes)
        for number, count in turns:
            if done == len(pods.pods):
                break
            done += self._packing.place_on(number, pods, pods.pods[done : done + count])
        self._packing.given_up += stage * done
        return pods.pods[done:]

    def _narrow(self) -> None:
        """Let pods bind what their nodes could be; a pod that could be in several places keeps its node as it is."""
        standing = len(self._packing.standing)
        for number, pods, aim, _ in self._packing.trail:
            one = self._loose.get(number - standing)
            if one is not None:
                alone = len(pods.alternatives) == 1
                where = pods.alternatives[0] if alone else one.node.state.requirements
                for wanted in (aim.stage.requirements, where):
                    one.state = one.node.template.narrow(one.state, wanted) or one.state


def _of_kind(capacity_type: str) -> Requirements:
    return Requirements(items=(Requirement(key=CAPACITY_TYPE, values=frozenset((capacity_type,))),))


def _in_turn(lanes: list[list[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Answer the nodes once for each pod, a pod of each lane in turn: that keeps zones even."""
    singles = [[(node, 1) for node, count in lane for _ in range(count)] for lane in lanes]
    return (node for some in zip_longest(*singles) for node in some if node is not None)


def _loosen(one: Loose) -> None:
    """Let the node be of any capacity type again."""
    node = one.node
    if not node.pods:
        return
    zone = node.state.requirements[ZONE]
    wide = (
        node.template.narrow(one.state, Requirements(items=(zone,))) if ZONE in node.state.requirements else one.state
    )
    if wide is not None and wide.mask & node.mask == node.mask and not node.is_relaxed:
        node.state = wide


def widen(packing: Packing) -> None:
    """Let each node be any type that holds its pods and costs little more than the cheapest, within all limits."""
    for node in packing.opened:
        if node.pods and node.template.pool.name in packing.limits:
            packing.grow(node, _alternatives(node, packing.affordable(node)))
        elif node.pods:
            key = (node.used, tuple(node.ports))
            found = node.state.wide.get(key)
            if found is None:
                found = node.state.wide[key] = _alternatives(node, node.state.mask)
            node.mask |= found


def _alternatives(node: Opened, among: Mask) -> Mask:
    shelf = node.template.shelf
    mask = node.template.holding(node.state.mask & among, node.used, tuple(node.ports))
    priced = shelf.cheapest_first(node.state.requirements, mask)
    if not priced:
        return 0
    most = NEARLY * priced[0].offering.price_usd_per_hour
    return sum(
        one.bit for place, one in enumerate(priced) if place < VARIETY or one.offering.price_usd_per_hour <= most
    )
