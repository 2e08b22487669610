"""A packing that follows advice: nodes are opened as the market advised, and filled as it said.

Every pod still goes through the same door, which checks all that binds it. What the door refuses is placed like any
other pod; so bad advice costs money, and no more.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from typing import Final

from shared.model.pods import Pod
from shared.scheduling.demand import PodClass
from shared.scheduling.market import Market, Row, in_zone
from shared.scheduling.opened import Opened
from shared.scheduling.pack import Packing
from shared.scheduling.patterns import Bought
from shared.scheduling.ports import conflict
from shared.scheduling.shelf import Mask

NEARLY: Final = 1.15
"""Times the least price: types up to there are as good."""
VARIETY: Final = 10
"""So many types are listed, where they exist, whatever they cost."""


def follow(packing: Packing, classes: list[PodClass], market: Market, bought: Iterable[Bought]) -> None:
    """Open the nodes that were *bought*, and place the pods that they were bought for."""
    slots: dict[int, list[tuple[int, int]]] = {}
    for one in bought:
        row = market.rows[one.pattern.row]
        is_zonal = any(market.items[item].zone for item, _ in one.pattern.pods)
        for _ in range(one.count):
            number = _open(packing, row, is_zonal=is_zonal)
            for item, count in one.pattern.pods if number is not None else ():
                slots.setdefault(item, []).append((number or 0, count))
    by_class: dict[int, list[int]] = {}
    for index in sorted(slots):
        by_class.setdefault(market.items[index].number, []).append(index)
    for number, pods in enumerate(classes):
        lanes = [slots[index] for index in by_class.get(number, ())]
        if lanes:
            pods.pods = _place(packing, pods, lanes)


def _open(packing: Packing, row: Row, *, is_zonal: bool) -> int | None:
    template = packing.templates[row.template]
    state = template.narrow(template.start, in_zone(row.zone)) if is_zonal else template.start
    if state is None:
        return None
    mask = row.bit
    if state.minima:
        mask = template.shelf.fitting(state.mask, template.shelf.rooms[row.bit.bit_length() - 1])
    return packing.open(template, state, mask)


def _place(packing: Packing, pods: PodClass, lanes: list[list[tuple[int, int]]]) -> list[Pod]:
    left = list(pods.pods)
    if not pods.bound[0]:
        for node, count in chain.from_iterable(lanes):
            left = left[packing.place_on(node, pods, left[:count]) :] if left else left
        return left
    for node in _in_turn(lanes):
        left = left[packing.place_on(node, pods, left[:1]) :] if left else left
    return left


def _in_turn(lanes: list[list[tuple[int, int]]]) -> Iterator[int]:
    """Answer the nodes once for each pod, a pod of each lane in turn: that keeps zones even."""
    singles = [[node for node, count in lane for _ in range(count)] for lane in lanes]
    return (node for some in zip_longest(*singles) for node in some if node is not None)


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
