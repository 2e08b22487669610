"""Disruption step by step, with nothing else changing, until it would take no more."""

from collections.abc import Callable, Collection, Iterator

import msgspec

from shared.disruption.aftermath import after
from shared.disruption.candidates import Blocked
from shared.disruption.drafts import Draft
from shared.disruption.prices import PriceList
from shared.disruption.sweep import sweep
from shared.disruption.terms import EVERYTHING, Terms
from shared.disruption.verdicts import Kept
from shared.model.cluster import Cluster
from shared.model.state import StateNode, state_nodes
from shared.scheduling.headroom import plan
from shared.scheduling.placement import Options

REASONS = ("Empty", "Drifted", "Underutilized")
MANY = 1000
"""No cluster takes so many sweeps: each is cheaper than the one before, or there is none."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that NodePools own, by pool, instance type and capacity type; USD per hour."""

    nodes: int
    price_usd_per_hour: float
    kinds: tuple[tuple[tuple[str, str, str], int, float], ...]
    """Each with how many there are, and what they cost together."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One step, and what the fleet costs after it."""

    draft: Draft
    price_usd_per_hour: float


class Consolidated(msgspec.Struct, frozen=True, kw_only=True):
    """All steps."""

    before: Fleet
    after: Fleet
    steps: tuple[Taken, ...]
    blocked: tuple[Blocked, ...]
    kept: tuple[Kept, ...]
    ideal_usd_per_hour: float
    """What the nodes that may be touched would cost, were all their pods placed anew, and the others as they are."""
    is_done: bool
    """Whether disruption would take no step more."""
    cluster: Cluster
    """As it would be then."""


def consolidate(
    cluster: Cluster,
    options: Options,
    terms: Terms,
    *,
    reasons: Collection[str] = REASONS,
    most_steps: int | None = None,
    most_sweeps: int | None = None,
    until: Callable[[float], bool] | None = None,
) -> Consolidated:
    """Take steps until there are none, or *most_steps*, or until the fleet costs what *until* asks for."""
    paused = frozenset(REASONS) - frozenset(reasons)
    first, steps, now = fleet_of(cluster), list[Taken](), cluster
    is_done, price = False, fleet_of(cluster).price_usd_per_hour
    last = sweep(now, options=options, paused=paused, terms=terms)
    for _ in range(MANY if most_sweeps is None else most_sweeps):
        if until is not None and until(price):
            break
        some: list[Draft] = []
        for draft in last.drafts:
            if (most_steps is not None and len(steps) >= most_steps) or (until is not None and until(price)):
                break
            some.append(draft)
            price -= draft.savings_usd_per_hour
            steps.append(Taken(draft=draft, price_usd_per_hour=price))
        now = after(now, some)
        is_whole = len(some) == len(last.drafts)
        is_done = not last.drafts
        if is_done or not is_whole:
            break
        last = sweep(now, options=options, paused=paused, terms=terms)
    there = {state.name for state in state_nodes(now)}
    verdicts = [one for one in last.verdicts if one.node in there]
    return Consolidated(
        before=first,
        after=fleet_of(now),
        steps=tuple(steps),
        blocked=tuple(one for one in verdicts if isinstance(one, Blocked)),
        kept=tuple(one for one in verdicts if isinstance(one, Kept)),
        ideal_usd_per_hour=ideal(cluster, options, terms),
        is_done=is_done,
        cluster=now,
    )


def owned(cluster: Cluster) -> Iterator[StateNode]:
    """Iterate over the nodes that are there and that NodePools own, sorted by name."""
    return (state for state in state_nodes(cluster) if state.node is not None and state.pool and not state.is_marked())


def fleet_of(cluster: Cluster) -> Fleet:
    """Answer what there is."""
    prices = PriceList(cluster.catalogue)
    classes = {pool.name: pool.node_class.name for pool in cluster.node_pools}
    kinds: dict[tuple[str, str, str], list[float]] = {}
    for state in owned(cluster):
        meta = state.meta
        kind = (state.pool, meta.label("node.kubernetes.io/instance-type"), meta.label("karpenter.sh/capacity-type"))
        kinds.setdefault(kind, []).append(prices.price(meta, classes.get(state.pool, "")))
    ranked = sorted(((kind, len(some), sum(some)) for kind, some in kinds.items()), key=lambda one: (-one[2], one[0]))
    return Fleet(
        nodes=sum(count for _, count, _ in ranked),
        price_usd_per_hour=sum(cost for _, _, cost in ranked),
        kinds=tuple(ranked),
    )


def ideal(cluster: Cluster, options: Options, terms: Terms) -> float:
    """Answer what the fleet would cost if all that may be moved were placed anew, by our own solver."""
    found = sweep(cluster, options=options, paused=(EVERYTHING,), terms=terms)
    blocked = {one.node for one in found.verdicts if isinstance(one, Blocked)}
    movable = frozenset(state.name for state in owned(cluster)) - blocked
    prices = PriceList(cluster.catalogue)
    classes = {pool.name: pool.node_class.name for pool in cluster.node_pools}
    stays = sum(prices.price(one.meta, classes.get(one.pool, "")) for one in owned(cluster) if one.name not in movable)
    return stays + plan(cluster, excluded=movable, options=options).placement.price_usd_per_hour
