"""A small plan made cheaper: some of its nodes are taken down, their pods housed anew, as long as that saves.

The market advises on pods of which it knows enough, and first fit asks no prices; so what other pods bind, or a few
whole nodes hold, may end up dear. Here everything goes through the door once more: the rest of the plan is put back as
it was, each node as the type that it would be bought as, and the pods of the nodes taken down follow in one of several
manners. Whatever comes of it is a plan like any other. It takes a look at each pod for each trial, and is for clusters
where that is cheap.
"""

from collections.abc import Iterator
from typing import Final

from shared.model.resources import Vector
from shared.scheduling.demand import PodClass
from shared.scheduling.guided import Guide
from shared.scheduling.opened import Opened
from shared.scheduling.outset import Attempt, Outset, finish, up_to
from shared.scheduling.pack import Packing
from shared.scheduling.shelf import Mask, Shelf

FEW: Final = 500
"""Plans with more pods are left as they are."""
EFFORT: Final = 6_000
"""For each start so many pods and nodes are put back on trial."""
STARTS: Final = 2
"""So many plans are made cheaper, the cheapest of those that are there: what is near the best leads elsewhere."""
WORTHWHILE: Final = 1e-4
"""A part of the price: less is no saving."""
PATIENCE: Final = 12
"""So many trials in vain, times the nodes, are enough."""
SIZES: Final = (1, 2, 2, 3, 2, 4, 3, 6)
"""So many nodes are taken down at once, in turn."""

CAPS: Final = (None, 4000, None, 8000, 2000, 32000, 16000)
"""New nodes have no more milli cpu, if first fit can help it; None: all may go to one."""


class Rehousing:
    """A plan that becomes cheaper."""

    def __init__(self, outset: Outset, plan: Attempt, least: Attempt) -> None:
        """Begin with *plan*, made from *outset*; what the *least* plan holds is to be held."""
        self._outset, self._least = outset, least
        self.plan = plan
        self._stages = {id(aim): stage for one in outset.classes for stage, aim in enumerate(one.aims)}
        self._coins = coins()
        self._wastes: dict[tuple[int, tuple[int, ...]], float] = {}

    def run(self, enough: float) -> None:
        """Try until it costs no more than *enough*, or the effort is spent, or many trials were in vain."""
        effort, barren, turn = EFFORT, 0, 0
        order = self._order()
        while order and effort > 0 and barren < PATIENCE * len(order) and self.plan.cost() > enough:
            if self._outset.packing.is_late():
                return
            trial = self._trial(self._taken_down(order, turn), CAPS[turn % len(CAPS)])
            effort -= len(self.plan.packing.trail) + len(order)
            turn, barren = turn + 1, barren + 1
            if trial.holds_what(self._least) and trial.cost() < self.plan.cost() * (1 - WORTHWHILE):
                self.plan, barren = trial, 0
                order = self._order()

    def _order(self) -> list[Opened]:
        """Answer the new nodes, those first that cost most above what their pods are worth."""
        some = (node for node in self.plan.packing.opened if node.pods)
        return sorted(some, key=lambda node: (-self._waste(node), node.number))

    def _taken_down(self, order: list[Opened], turn: int) -> frozenset[int]:
        """Answer some nodes: each in turn, with others of its NodePool before those of other ones."""
        group = turn // len(CAPS)
        size, anchor = SIZES[group % len(SIZES)], order[group % len(order)]
        alike = [node for node in order if node is not anchor and node.template is anchor.template]
        others = [node for node in order if node.template is not anchor.template]
        found = [anchor]
        for node in (*alike, *others, *alike, *others):
            if len(found) >= size:
                break
            if node not in found and next(self._coins):
                found.append(node)
        return frozenset(node.number for node in found)

    def _trial(self, gone: frozenset[int], cap: int | None) -> Attempt:
        """Answer the plan without the nodes that are *gone*, their pods housed anew."""
        fork, some = self._outset.again()
        guide = Guide(fork)
        self._put_back(fork, some, guide, gone)
        if cap is not None:
            fork.targets = up_to(fork, cap)
        made = finish(fork, some)
        guide.widen()
        return made

    def _put_back(self, fork: Packing, some: list[PodClass], guide: Guide, gone: frozenset[int]) -> None:
        """Put back what is not *gone*, in the same order, as far as it may be still."""
        standing = len(fork.standing)
        numbers: dict[int, int | None] = {number: number for number in range(standing)}
        stays: set[str] = set()
        for number, pods, aim, names in self.plan.packing.trail:
            if number - standing in gone:
                continue
            if number not in numbers:
                opened = guide.reopen(self.plan.packing.opened[number - standing])
                numbers[number] = None if opened is None else standing + opened
            place = numbers[number]
            if place is not None:
                done = fork.put((place, pods, aim, names))
                stays.update(pod.name for pod in names[:done])
                fork.given_up += done * self._stages[id(aim)]
        for one in some:
            one.pods = [pod for pod in one.pods if pod.name not in stays]

    def _waste(self, node: Opened) -> float:
        """Answer what *node* costs above what the cheapest room for its pods costs, were these fluid."""
        key = (id(node.state), node.used)
        if key not in self._wastes:
            shelf, asked = node.template.shelf, node.state.requirements
            sold = shelf.cheapest_first(asked, node.state.mask)
            least = min(one.offering.price_usd_per_hour * _part(node.used, _room(shelf, one.bit)) for one in sold)
            mine = shelf.cheapest(asked, node.mask)
            self._wastes[key] = (0.0 if mine is None else mine.offering.price_usd_per_hour) - least
        return self._wastes[key]


def _room(shelf: Shelf, bit: Mask) -> Vector:
    return shelf.rooms[bit.bit_length() - 1]


def _part(used: Vector, room: Vector) -> float:
    """Answer how much of *room* is *used*."""
    return max(one / have if have > 0 else 0.0 for one, have in zip(used, room, strict=True))


def bettered(outset: Outset, plans: list[Attempt], least: Attempt, floor: float) -> list[Attempt]:
    """Answer plans that cost less than the best of *plans* do; *floor*: what any plan costs.

    What the *least* plan holds they hold too.
    """
    if sum(len(one.pods) for one in outset.classes) > FEW:
        return []
    by_cost = {round(one.cost(), 6): one for one in reversed(plans) if one.holds_what(least) and not one.is_relaxed()}
    found = [Rehousing(outset, by_cost[cost], least) for cost in sorted(by_cost)[:STARTS]]
    for one in found:
        one.run(floor)
    return [one.plan for one in found]


def coins() -> Iterator[bool]:
    """Answer heads and tails that look like chance, always the same."""
    state = 1
    while True:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        yield bool(state >> 16 & 1)
