"""What could be bought for which pods: demand by equal pods and zone, and the offerings that are worth a look.

Advice only. It knows room, requirements, zones that pods must share evenly, and how many equal pods may be on one node;
whatever else binds a pod is left to the packing.
"""

from collections.abc import Iterable

import msgspec

from shared.scheduling.costs import node_costs
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.stalls import SLOTS, Row, Stalls, scale_of, scaled_by
from shared.scheduling.stock import Bits, Stock
from shared.scheduling.wanted import Item, wanted


class Market(msgspec.Struct, kw_only=True, eq=False):
    """Demand and supply; amounts are scaled so that all the pods together need as much of each resource."""

    items: list[Item]
    """The smallest first: the place of an item is its bit."""
    stock: Stock
    """Their needs."""
    rows: list[Row]
    open_to: list[Bits]
    """By row: the items that may be there."""


def market(
    packing: Packing, classes: Iterable[PodClass], closed: frozenset[int] = frozenset(), *, everywhere: bool = False
) -> Market:
    """Answer the market for those of *classes* of which enough is known; *closed*: templates without a part in it.

    Types that a NodePool's limits leave no room for are not on offer. *everywhere*: for some pods in each zone.
    """
    masks = [packing.within_limits(one, one.start.mask) for one in packing.templates]
    found = wanted(
        packing, classes, closed | {number for number, mask in enumerate(masks) if not mask}, everywhere=everywhere
    )
    scale = scale_of(found)
    for item in found:
        item.scaled = scaled_by(item.pods.need, scale)
    found.sort(key=lambda item: (item.size, item.number, item.zone))
    stalls = Stalls(packing.templates, node_costs(packing), scale, found, masks)
    rows = stalls.rows
    return Market(items=found, stock=stalls.stock, rows=rows, open_to=[stalls.open_to(row) for row in rows])


def is_crowded(market: Market) -> bool:
    """Whether some node would be full of usual pods before their cpu or their memory is used up."""
    items = market.items
    count = sum(item.count for item in items)
    usual = [sum(item.count * item.pods.need[axis] for item in items) for axis in (0, 1)]
    return any(
        row.room[SLOTS] * usual[0] < count * row.room[0] and row.room[SLOTS] * usual[1] < count * row.room[1]
        for row in market.rows
    )
