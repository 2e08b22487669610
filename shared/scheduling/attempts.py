"""Several plans for the same pods, of which the cheapest is kept; the greedy one is always among them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.resources import CPU
from shared.scheduling.advice import Advice, advise
from shared.scheduling.costs import cost_of, node_costs
from shared.scheduling.demand import PodClass
from shared.scheduling.guided import Guide, widen
from shared.scheduling.market import Market, market
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Placement
from shared.scheduling.wanted import at_stage, possible

VARIATIONS: Final = (16000, 8000, 32000, 4000, 64000)
"""Other plans, the most promising first: no node of more than so many milli cpu; in turn with what else is advised."""
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
REHEARSED: Final = 5
"""So many plans are played through where kube-scheduler is told nothing."""
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

    def cost(self) -> float:
        """Answer what the new nodes cost per hour, their volumes and the like included, reservations aside."""
        extras = dict(zip(map(id, self.packing.templates), node_costs(self.packing), strict=True))
        found = 0.0
        for node in self.packing.opened:
            if node.pods:
                one = node.template.shelf.cheapest(node.state.requirements, node.mask)
                found += extras[id(node.template)] + (0.0 if one is None else one.offering.price_usd_per_hour)
        return found

    def nodes(self) -> int:
        """Count the new nodes."""
        return sum(1 for node in self.packing.opened if node.pods)


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of a plan that kube-scheduler, left to itself, would leave without a place, and what nodes for them cost."""

    count: int
    usd_per_hour: float


def cheapest(
    packing: Packing,
    classes: list[PodClass],
    homes: Mapping[str, int],
    told: Callable[[Attempt], Placement],
    again: Callable[[Placement], Again] | None = None,
) -> Placement:
    """Answer the best plan, as *told*: it places what the greedy one places, and costs no more.

    With *again*, what is compared is what plans cost together with the nodes that would have to be launched after them.
    """
    greedy = _greedy(packing, classes, homes)
    first = told(greedy)
    price = first.price_usd_per_hour
    first = replace(first, greedy_usd_per_hour=price)
    if packing.is_late():
        return first
    if again is not None:
        others = [] if packing.options.packing == "Greedy" else [_apart(packing, classes, homes)]
        others += [] if packing.options.packing == "Greedy" else _others(packing, classes, homes)
        return _realisable(first, greedy, others, told, again)
    if packing.options.packing == "Greedy" or not first.new_nodes:
        return first
    best = _best(greedy, list(_others(packing, classes, homes)), is_small=_is_small(classes, price))
    if best is greedy:
        return first
    chosen = told(best)
    is_dearer = cost_of(chosen, packing) > cost_of(first, packing)
    if len(chosen.unschedulable) > len(first.unschedulable) or is_dearer:
        return first
    return replace(chosen, greedy_usd_per_hour=price)


def _realisable(
    first: Placement,
    greedy: Attempt,
    others: Iterable[Attempt],
    told: Callable[[Attempt], Placement],
    again: Callable[[Placement], Again],
) -> Placement:
    """Answer what costs least in the end: the greedy plan, told *first*, or one of the cheapest of the *others*."""
    equal = [
        one for one in others if one.unplaced <= greedy.unplaced and one.packing.given_up <= greedy.packing.given_up
    ]
    plans = [first, *(told(one) for one in sorted(equal, key=Attempt.cost)[:REHEARSED])]
    plans = [one for one in plans if len(one.unschedulable) <= len(first.unschedulable)]
    rated = [(again(one), one) for one in plans]
    costs = [(left.usd_per_hour + cost_of(one, greedy.packing), place) for place, (left, one) in enumerate(rated)]
    left, chosen = rated[min(costs)[1]]
    return replace(chosen, greedy_usd_per_hour=first.price_usd_per_hour, second_launches=left.count)


def _is_small(classes: list[PodClass], price: float) -> bool:
    return price < MUCH and sum(len(one.pods) for one in classes) < MANY


def _best(greedy: Attempt, others: list[Attempt], *, is_small: bool) -> Attempt:
    """Answer the plan with the fewest nodes among the cheapest; what the greedy plan holds must be held."""
    first = greedy.cost()
    good = [(first, greedy)]
    for one in others:
        cost = one.cost()
        is_modest = not is_small or one.nodes() <= greedy.nodes() or cost <= first * A_LOT
        is_equal = one.unplaced <= greedy.unplaced and one.packing.given_up <= greedy.packing.given_up
        if cost < first and is_modest and is_equal:
            good.append((cost, one))
    least = min(cost for cost, _ in good)
    alike = [(one.nodes(), cost, place) for place, (cost, one) in enumerate(good) if cost <= least * ALIKE]
    return good[min(alike)[2]][1]


def _others(packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> Iterator[Attempt]:
    """Answer an advised plan; if that is not as good as can be, as many others as there is time for."""
    if packing.is_late():
        return
    start = _Start(packing, classes, homes)
    known = market(*start.again())
    first, *more = advise(known)
    advised = _following(start, known, first)
    yield advised
    if advised.unplaced or advised.cost() > first.bound * GOOD:
        steps = sum(len(one.pods) + PER_CLASS for one in classes)
        for variation in islice(_in_turn(more, VARIATIONS), EFFORT // steps):
            if packing.is_late():
                return
            if isinstance(variation, Advice):
                yield _following(start, known, variation)
            else:
                yield _capped(packing, classes, homes, variation)


def _in_turn(more: Iterable[Advice], caps: Iterable[int]) -> Iterator[Advice | int]:
    return (one for pair in zip_longest(more, caps) for one in pair if one is not None)


class _Start:
    """Where advised plans start: what has room on nodes that are there is placed."""

    def __init__(self, packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> None:
        self._packing, self._classes, self._homes = packing, classes, homes

    def again(self) -> tuple[Packing, list[PodClass]]:
        """Answer it anew."""
        fork, some = self._packing.fork(), _copies(self._classes)
        _at_home(fork, some, self._homes)
        for one in some:
            stage, before = possible(fork, one), len(one.pods)
            one.pods = fork.place_on_standing(at_stage(one, stage))
            fork.given_up += stage * (before - len(one.pods))
        return fork, some


def _following(start: _Start, known: Market, advice: Advice) -> Attempt:
    """Answer the plan that follows the *advice*."""
    fork, some = start.again()
    guide = Guide(fork)
    guide.follow(some, known, advice)
    fork.targets = _up_to(fork, LEFTOVERS)
    left = _rest(fork, some)
    guide.widen()
    return Attempt(packing=fork, left=left)


def _greedy(packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> Attempt:
    fork, some = packing.fork(), _copies(classes)
    _at_home(fork, some, homes)
    return Attempt(packing=fork, left=_rest(fork, some))


def _apart(packing: Packing, classes: list[PodClass], homes: Mapping[str, int]) -> Attempt:
    """Answer a plan in which pods share new nodes only with their like; each class is advised alone."""
    fork, some = _Start(packing, classes, homes).again()
    guide = Guide(fork)
    for one in (one for one in some if one.pods):
        known = market(fork, [one])
        guide.follow([one], known, advise(known, effort=0)[0])
        fork.targets = _up_to(fork, LEFTOVERS)
        one.pods = fork.place(one)
        fork.seal()
    guide.widen()
    return Attempt(packing=fork, left=[one for one in some if one.pods])


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
