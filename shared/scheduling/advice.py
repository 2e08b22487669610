"""What to buy: several ways of filling nodes are tried, the best is mended."""

from collections import Counter
from typing import Final

import msgspec

from shared.scheduling.filling import Filler, Manner, Pattern
from shared.scheduling.market import Market
from shared.scheduling.mending import Mender
from shared.scheduling.patterns import Bought, shopped
from shared.scheduling.worth import Appraiser, Worth

MANNERS: Final = (
    Manner(faithful=True, mixed=True),
    Manner(strict=2),
    Manner(),
    Manner(strict=30),
    Manner(strict=1, at_a_time=1000),
    Manner(faithful=True),
)
"""The most promising first."""
GOOD: Final = 1.01
"""A plan that costs no more than this times the bound is not bettered."""
FEW: Final = 0.15
"""This part of the effort is spent on mending each; what is left at the end, on mending the best."""
STEPS: Final = 40_000
"""The usual effort: a pod, or some equal ones, put on a node on trial is a step; so is what takes as long."""

SMALL: Final = 500
"""So few pods are planned for in all manners, however good the first plan is."""
PER_POD: Final = 200
"""No more steps than so many for each pod."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What to buy, in order; *bound*: what the pods would cost were they fluid."""

    bought: tuple[Bought, ...] = ()
    bound: float = 0.0
    price: float = 0.0


def advise(market: Market, effort: int = STEPS) -> tuple[Advice, ...]:
    """Answer nodes for all items, as far as rows are open to them: plans, the cheapest first, at least one.

    About *effort* steps are spent. Plans that are a little dearer may do better by pods that no advice is given for.
    """
    if not any(market.open_to):
        return (Advice(),)
    counts = [item.count for item in market.items]
    effort = min(effort, PER_POD * sum(counts))
    appraiser = Appraiser(market, effort)
    known = appraiser.worth(counts)
    plans: list[Mender] = []
    raw: list[Advice] = []
    left = effort - appraiser.steps
    for manner in MANNERS:
        filler, before = Filler(market, list(counts)), appraiser.steps
        bought = shopped(market, appraiser, filler, manner)
        plan = Mender(market, known, [one.pattern for one in bought for _ in range(one.count)])
        left -= appraiser.steps - before
        raw.append(_advice(plan, known))
        left -= filler.steps + plan.run(int(FEW * effort))
        plans.append(plan)
        is_good = plan.price <= GOOD * known.total and sum(counts) > SMALL
        if left < filler.steps or is_good:
            break
    best = min(plans, key=lambda plan: (plan.price, len(plan.nodes)))
    if best.price > GOOD * known.total:
        best.run(max(0, left))
    found = [*(_advice(plan, known) for plan in plans), *raw]
    found.sort(key=lambda one: (one.price, sum(some.count for some in one.bought)))
    return tuple(one for place, one in enumerate(found) if one not in found[:place])


def _advice(plan: Mender, known: Worth) -> Advice:
    return Advice(bought=counted(plan.nodes), bound=known.total, price=plan.price)


def counted(nodes: list[Pattern]) -> tuple[Bought, ...]:
    """Answer equal *nodes* once each, with how many they are."""
    return tuple(Bought(pattern=node, count=count) for node, count in Counter(nodes).items())
