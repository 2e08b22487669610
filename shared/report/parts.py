"""What days cost, added up by what costs are told apart by."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from shared.report.days import Day, Share

NAMES: Final[Mapping[str, Callable[[Share], str]]] = {
    "pool": lambda one: one.pool,
    "type": lambda one: one.instance_type,
    "capacity-type": lambda one: one.capacity_type,
    "label": lambda one: one.label,
}


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Machines that have something in common, over all days."""

    name: str
    nodes: int
    """Summed over the days: one that is there on two counts twice."""
    node_hours: float
    usd: float
    on_demand_usd: float
    idle_usd: float


def parts_of(days: Iterable[Day], by: str) -> tuple[Part, ...]:
    """Answer what *days* cost, told apart *by* one of `NAMES`, dearest first."""
    found: dict[str, list[Share]] = defaultdict(list)
    for one in days:
        for share in one.shares:
            found[NAMES[by](share)].append(share)
    parts = [_part(name, some) for name, some in found.items()]
    return tuple(sorted(parts, key=lambda one: (-one.usd, -one.node_hours, one.name)))


def _part(name: str, some: Iterable[Share]) -> Part:
    every = list(some)

    def total(amount: Callable[[Share], float]) -> float:
        return round(sum(map(amount, every)), 6)

    return Part(
        name=name,
        nodes=sum(one.nodes for one in every),
        node_hours=total(lambda one: one.node_hours),
        usd=total(lambda one: one.usd),
        on_demand_usd=total(lambda one: one.on_demand_usd),
        idle_usd=total(lambda one: one.idle_usd),
    )
