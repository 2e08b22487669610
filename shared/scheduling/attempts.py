"""Several plans for the same pods, of which the cheapest is kept; the greedy one is always among them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.resources import CPU
from shared.scheduling.demand import PodClass
from shared.scheduling.guided import follow, widen
from shared.scheduling.market import Market, market
from shared.scheduling.pack import Packing
from shared.scheduling.patterns import Advice, Manner, buy
from shared.scheduling.placement import Placement
from shared.scheduling.worth import Appraiser

VARIATIONS: Final = (
    Manner(faithful=True),
    Manner(strict=2),
    16000,
    Manner(at_a_time=1000),
    8000,
    Manner(strict=1, at_a_time=1000),
    32000,
    Manner(strict=30),
    4000,
    64000,
)
"""Other plans, the most promising first: nodes filled in another manner, or none of more than so many milli cpu."""
LEFTOVERS: Final = 4000
"""The same, for pods that no advice was given for."""
EFFORT: Final = 6000
"""So many steps are spent on trial, over and above the greedy and the advised plan: one for each pod ..."""
PER_CLASS: Final = 10
"""... and so many for each class of pods."""
GOOD: Final = 1.04
"""A plan that costs no more than this times the bound need not be bettered."""
MANY: Final = 30
"""A batch of fewer pods, and cheaper than `MUCH`, gets more nodes than the greedy plan has only if that saves a lot."""
MUCH: Final = 1.0
A_LOT: Final = 0.75
"""So much of the greedy plan's price, or less."""
ALIKE: Final = 1.02
"""Plans that cost no more than this times the cheapest are as good."""


class Attempt(msgspec.Struct, kw_only=True, eq=False):
    """A packing that is done, and the pods, by class, that it has no place for."""

    packing: Packing
    left: list[PodClass]

    @property
    def unplaced(self) -> int:
        """How many pods have no place."""
        return sum(len(one.pods) for one in self.left)

    def price(self) -> float:
        """Answer what the new nodes cost per hour, reservations aside."""
        found = 0.0
        for node in self.packing.opened:
            if node.pods:
                one = node.template.shelf.cheapest(node.state.requirements, node.mask)
                found += 0.0 if one is None else one.offering.price_usd_per_hour
        return found

    def nodes(self) -> int:
        """Count the new nodes."""
        return sum(1 for node in self.packing.opened if node.pods)


def cheapest(
    packing: Packing, classes: list[PodClass], homes: Mapping[str, int], told: Callable[[Attempt], Placement]
) -> Placement:
    """Answer the best plan, as *told*: it places what the greedy one places, and costs no more."""
    greedy = _greedy(packing, classes, homes)
    first = told(greedy)
    price = first.price_usd_per_hour
    first = replace(first, greedy_usd_per_hour=price)
    if packing.options.packing == "Greedy" or not first.new_nodes:
        return first
    best = _best(greedy, list(_others(packing, classes, homes)), is_small=_is_small(classes, price))
    if best is greedy:
        return first
    chosen = told(best)
    if len(chosen.unschedulable) > len(first.unschedulable) or chosen.price_usd_per_hour > price:
        return first
    return replace(chosen, greedy_usd_per_hour=price)


def _is_small(classes: list[PodClass], price: float) -> bool:
    return price < MUCH and sum(len(one.pods) for one in classes) < MANY


def _best(greedy: Attempt, others: list[Attempt], *, is_small: bool) -> Attempt:
    """Answer the plan with the fewest nodes among the cheapest; what the greedy plan holds must be held."""
    first = greedy.price()
    good = [(first, greedy)]
    for one in others:
        cost = one.price()
        is_modest = not is_small or one.nodes() <= greedy.nodes() or cost <= first * A_LOT
        is_equal = one.unplaced <= greedy.unplaced and one.packing.given_up <= greedy.packing.given_up
        if cost < first and is_modest and is_equal:
            good.append((cost, one))
    least = min(cost for cost, _ in good)
    alike = [(one.nodes(), cost, place) for place, (cost, one) in enumerate(good) if cost <= least * ALIKE]
    return good[min(alike)[2]][1]


def _others(packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> Iterator[Attempt]:
    """Answer an advised plan; if that is not as good as can be, as many others as there is time for."""
    start = _Start(packing, classes, homes)
    known = market(*start.again())
    appraiser = Appraiser(known)
    advice = buy(known, appraiser)
    advised = _following(start, known, advice)
    yield advised
    if advised.unplaced or advised.price() > advice.bound * GOOD:
        steps = sum(len(one.pods) + PER_CLASS for one in classes)
        for variation in VARIATIONS[: EFFORT // steps]:
            if isinstance(variation, Manner):
                yield _following(start, known, buy(known, appraiser, variation))
            else:
                yield _capped(packing, classes, homes, variation)


class _Start:
    """Where advised plans start: what has room on nodes that are there is placed."""

    def __init__(self, packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> None:
        self._packing, self._classes, self._homes = packing, classes, homes

    def again(self) -> tuple[Packing, list[PodClass]]:
        """Answer it anew."""
        fork, some = self._packing.fork(), _copies(self._classes)
        _at_home(fork, some, self._homes)
        for one in some:
            one.pods = fork.place_on_standing(one)
        return fork, some


def _following(start: _Start, known: Market, advice: Advice) -> Attempt:
    """Answer the plan that follows the *advice*."""
    fork, some = start.again()
    follow(fork, some, known, advice.bought)
    fork.targets = _up_to(fork, LEFTOVERS)
    left = _rest(fork, some)
    widen(fork)
    return Attempt(packing=fork, left=left)


def _greedy(packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> Attempt:
    fork, some = packing.fork(), _copies(classes)
    _at_home(fork, some, homes)
    return Attempt(packing=fork, left=_rest(fork, some))


def _capped(packing: Packing, classes: list[PodClass], homes: Mapping[str, int], cap: int) -> Attempt:
    fork, some = packing.fork(), _copies(classes)
    fork.targets = _up_to(packing, cap)
    _at_home(fork, some, homes)
    left = _rest(fork, some)
    widen(fork)
    return Attempt(packing=fork, left=left)


def _up_to(packing: Packing, cap: int) -> tuple[int, ...]:
    return tuple(one.start.mask & one.shelf.within({CPU: cap}) for one in packing.templates)


def _copies(classes: list[PodClass]) -> list[PodClass]:
    return [replace(one, pods=list(one.pods)) for one in classes]


def _at_home(packing: Packing, some: list[PodClass], homes: Mapping[str, int]) -> None:
    for one in some:
        one.pods = packing.place_at_home(one, homes)


def _rest(packing: Packing, some: list[PodClass]) -> list[PodClass]:
    """Place all; go round again while that helped, for pods that wait for other pods. Answer what is left over."""
    waiting = [one for one in some if one.pods]
    while waiting:
        before = sum(len(one.pods) for one in waiting)
        for one in waiting:
            one.pods = packing.place(one)
        waiting = [one for one in waiting if one.pods]
        after = sum(len(one.pods) for one in waiting)
        if after == before or not any(any(one.bound) for one in waiting):
            break
    return waiting
