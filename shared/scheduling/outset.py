"""What a plan is, where each of them starts, and how first fit ends it."""

from collections.abc import Mapping
from math import inf

import msgspec
from msgspec.structs import replace

from shared.model.resources import CPU
from shared.scheduling.costs import node_costs
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.reserved import fill_reserved, offers_reserved
from shared.scheduling.results import units_of
from shared.scheduling.wanted import at_stage, possible


class Attempt(msgspec.Struct, kw_only=True, eq=False):
    """A packing that is done, and the pods, by class, that it has no place for."""

    packing: Packing
    left: list[PodClass]
    reckoned: float | None = None
    """What it costs, once that was asked."""

    @property
    def unplaced(self) -> int:
        """How many pods have no place."""
        return sum(len(one.pods) for one in self.left)

    def cost(self) -> float:
        """Answer what the new nodes cost per hour, their volumes and the like included."""
        if self.reckoned is None:
            self.reckoned = cost_of_nodes(self.packing)
        return self.reckoned

    def nodes(self) -> int:
        """Count the new nodes."""
        return sum(1 for node in self.packing.opened if node.pods)

    def is_relaxed(self) -> bool:
        """Whether some node has less variety than its NodePool asks."""
        return any(node.is_relaxed for node in self.packing.opened)

    def holds_what(self, other: "Attempt") -> bool:
        """Whether no more pods are without a place, and no more preferences given up, than in the *other*."""
        return self.unplaced <= other.unplaced and self.packing.given_up <= other.packing.given_up


def cost_of_nodes(packing: Packing) -> float:
    """Answer what the opened nodes cost per hour, each at its cheapest; without end if some can be had nowhere.

    What is reserved costs what it says as often as it is there, in the order in which nodes were opened.
    """
    extras = dict(zip(map(id, packing.templates), node_costs(packing), strict=True))
    units = units_of(packing, packing.topology.cluster) if offers_reserved(packing) else None
    found = 0.0
    for node in packing.opened:
        if node.pods:
            asked, mask, shelf = node.state.requirements, node.mask, node.template.shelf
            if units is not None and shelf.reservations(asked, mask):
                asked, mask = units.hold(node, asked)
            one = shelf.cheapest(asked, mask)
            found += extras[id(node.template)] + (inf if one is None else one.offering.price_usd_per_hour)
    return found


class Outset:
    """Where plans start: nothing is placed but the pods that are at home."""

    def __init__(self, packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> None:
        """Start from *packing*; *homes*: by pod, the number of the node that is on its way for it."""
        self.packing, self.classes, self._homes = packing, classes, homes

    def again(self) -> tuple[Packing, list[PodClass]]:
        """Answer it anew, and the pods that are left."""
        fork = self.packing.fork()
        some = [replace(one, pods=list(one.pods)) for one in self.classes]
        for one in some:
            one.pods = fork.place_at_home(one, self._homes)
        return fork, some

    def settled(self) -> tuple[Packing, list[PodClass]]:
        """Answer it anew, with what has room on nodes that are there, or on capacity that is reserved."""
        fork, some = self.again()
        for one in some:
            stage, before = possible(fork, one), len(one.pods)
            one.pods = fork.place_on_standing(at_stage(one, stage))
            fork.given_up += stage * (before - len(one.pods))
        fill_reserved(fork, some)
        return fork, some


def up_to(packing: Packing, cap: int) -> tuple[int, ...]:
    """Answer, by template, the types with no more than *cap* milli cpu."""
    return tuple(one.start.mask & one.shelf.within({CPU: cap}) for one in packing.templates)


def finish(packing: Packing, some: list[PodClass]) -> Attempt:
    """Place all; go round again while that helped, for pods that wait for other pods."""
    waiting = [one for one in some if one.pods]
    while waiting:
        before = sum(len(one.pods) for one in waiting)
        for one in waiting:
            one.pods = packing.place(one)
        waiting = [one for one in waiting if one.pods]
        after = sum(len(one.pods) for one in waiting)
        if after == before or not any(any(one.bound) for one in waiting):
            break
    return Attempt(packing=packing, left=waiting)
