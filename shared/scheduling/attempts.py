"""Several plans for the same pods, of which the cheapest is kept; the greedy one is always among them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.scheduling.advice import Advice, advise
from shared.scheduling.costs import cost_of
from shared.scheduling.demand import PodClass
from shared.scheduling.guided import Guide, widen
from shared.scheduling.market import Market, market
from shared.scheduling.outset import Attempt, Outset, finish, up_to
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Placement
from shared.scheduling.rehousing import bettered

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
    outset = Outset(packing, classes, homes)
    greedy = finish(*outset.again())
    first = told(greedy)
    price = first.price_usd_per_hour
    first = replace(first, greedy_usd_per_hour=price)
    if packing.is_late():
        return first
    if packing.options.packing == "Greedy" or not first.new_nodes:
        return first if again is None else replace(first, second_launches=again(first).count)
    others, floor = _others(outset)
    if again is not None:
        return _realisable(first, greedy, [_apart(outset), *others], told, again)
    is_small = price < MUCH and sum(len(one.pods) for one in classes) < MANY
    best = _best(greedy, [*others, *bettered(outset, [greedy, *others], greedy, floor)], is_small=is_small)
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
    equal = sorted((one for one in others if one.holds_what(greedy)), key=Attempt.cost)
    plans = [first, *(told(one) for one in equal[:REHEARSED])]
    plans = [one for one in plans if len(one.unschedulable) <= len(first.unschedulable)]
    rated = [(again(one), one) for one in plans]
    costs = [(left.usd_per_hour + cost_of(one, greedy.packing), place) for place, (left, one) in enumerate(rated)]
    left, chosen = rated[min(costs)[1]]
    return replace(chosen, greedy_usd_per_hour=first.price_usd_per_hour, second_launches=left.count)


def _best(greedy: Attempt, others: list[Attempt], *, is_small: bool) -> Attempt:
    """Answer the plan with the fewest nodes among the cheapest; what the greedy plan holds must be held."""
    first = greedy.cost()
    good = [(first, greedy)]
    for one in others:
        cost = one.cost()
        is_modest = not is_small or one.nodes() <= greedy.nodes() or cost <= first * A_LOT
        if cost < first and is_modest and one.holds_what(greedy):
            good.append((cost, one))
    least = min(cost for cost, _ in good)
    alike = [(one.nodes(), cost, place) for place, (cost, one) in enumerate(good) if cost <= least * ALIKE]
    return good[min(alike)[2]][1]


def _others(outset: Outset) -> tuple[list[Attempt], float]:
    """Answer an advised plan; if that is not as good as can be, as many others as there is time for.

    And what no plan can cost less than, 0 if that is not known.
    """
    if outset.packing.is_late():
        return [], 0.0
    start, some = outset.settled()
    known = market(start, some)
    first, *more = advise(known)
    is_all = sum(item.count for item in known.items) == sum(len(one.pods) for one in some)
    found = [_following(outset, known, first)]
    if found[0].unplaced or found[0].cost() > first.bound * GOOD:
        steps = sum(len(one.pods) + PER_CLASS for one in outset.classes)
        for variation in islice(_in_turn(more, VARIATIONS), EFFORT // steps):
            if outset.packing.is_late():
                break
            if isinstance(variation, Advice):
                found.append(_following(outset, known, variation))
            else:
                found.append(_capped(outset, variation))
    return found, first.bound if is_all else 0.0


def _in_turn(more: Iterable[Advice], caps: Iterable[int]) -> Iterator[Advice | int]:
    return (one for pair in zip_longest(more, caps) for one in pair if one is not None)


def _following(outset: Outset, known: Market, advice: Advice) -> Attempt:
    """Answer the plan that follows the *advice*."""
    fork, some = outset.settled()
    guide = Guide(fork)
    guide.follow(some, known, advice)
    fork.targets = up_to(fork, LEFTOVERS)
    made = finish(fork, some)
    guide.widen()
    return made


def _apart(outset: Outset) -> Attempt:
    """Answer a plan in which pods share new nodes only with their like; each class is advised alone."""
    fork, some = outset.settled()
    guide = Guide(fork)
    for one in (one for one in some if one.pods):
        known = market(fork, [one])
        guide.follow([one], known, advise(known, effort=0)[0])
        fork.targets = up_to(fork, LEFTOVERS)
        one.pods = fork.place(one)
        fork.seal()
    guide.widen()
    return Attempt(packing=fork, left=[one for one in some if one.pods])


def _capped(outset: Outset, cap: int) -> Attempt:
    fork, some = outset.again()
    fork.targets = up_to(fork, cap)
    made = finish(fork, some)
    widen(fork)
    return made
