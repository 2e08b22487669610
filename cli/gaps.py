"""What lies between a fleet and the best there could be: one cause lifted after the other, each with what it costs.

Steps are taken until there are none, with everything in force; then on what they left with one cause less, and so on.
What is still missing to a plan of everything anew is what no step earns: a new node would not be worth it, or no single
exchange gets there.
"""

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.fleets import Fleet, fleet_of, ideal
from cli.steps import Taken, taken
from shared.disruption.pauses import Switches, as_reasons, pauses
from shared.disruption.terms import Terms
from shared.model.cluster import Cluster
from shared.model.labels import (
    DISRUPTION_WINDOWS,
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
    POD_DIGEST,
)
from shared.model.nodepools import NodePool
from shared.model.objects import Condition, Meta
from shared.scheduling.placement import Options

NO_DRIFT: Final = frozenset(("Drifted",))
"""Drift replaces whatever that costs: it is no way to a cheaper fleet."""
Lift = Callable[[Cluster, Terms], tuple[Cluster, Terms]]
Say = Callable[[str], None]


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A cause, and what it costs."""

    cause: str
    says: str
    """What it is, and what to do if that is not meant."""
    usd_per_hour: float


class Rebalanced(msgspec.Struct, frozen=True, kw_only=True):
    """The whole way."""

    before: Fleet
    steps: tuple[Taken, ...]
    """What disruption would do by itself, as things are."""
    after_usd_per_hour: float
    gaps: tuple[Gap, ...]
    ideal_usd_per_hour: float


def rebalanced(cluster: Cluster, options: Options, terms: Terms, say: Say) -> Rebalanced:
    """Answer what *cluster* costs, what it would at best, and what lies between; *say* hears how far it is."""
    before = fleet_of(cluster)
    held = as_reasons(pauses(cluster, (), (), Switches())[0]) | NO_DRIFT
    say("what disruption would do now")
    now, steps = taken(cluster, options, terms, held)
    price = after = _price(now)
    gaps: list[Gap] = []
    for cause, (says, lift) in _LIFTED.items():
        say(f"what {cause} keep")
        wanted, allowed = lift(now, terms)
        paused: Collection[str] = NO_DRIFT
        if (wanted, allowed) != (now, terms) or (cause == "pauses" and held != NO_DRIFT):
            now, _ = taken(wanted, options, allowed, paused)
        terms = allowed
        price, saved = _price(now), price - _price(now)
        gaps.append(Gap(cause=cause, says=says, usd_per_hour=saved))
    for cause, (says, lift) in _ANEW.items():
        say("a plan of everything anew")
        now, terms = lift(now, terms)
        best = min(price, ideal(now, options, terms))
        gaps.append(Gap(cause=cause, says=says, usd_per_hour=price - best))
        price = best
    return Rebalanced(before=before, steps=steps, after_usd_per_hour=after, gaps=tuple(gaps), ideal_usd_per_hour=price)


def _price(cluster: Cluster) -> float:
    return fleet_of(cluster).price_usd_per_hour


def _pools(cluster: Cluster, change: Callable[[NodePool], NodePool]) -> Cluster:
    return replace(cluster, node_pools=tuple(change(one) for one in cluster.node_pools))


def _without(meta: Meta, *keys: str) -> Meta:
    kept = tuple(pair for pair in meta.annotations if pair[0] not in keys)
    return meta if kept == meta.annotations else replace(meta, annotations=kept)


def _as_is(cluster: Cluster, terms: Terms) -> tuple[Cluster, Terms]:
    return cluster, terms


def _budgets(cluster: Cluster, terms: Terms) -> tuple[Cluster, Terms]:
    def freed(one: NodePool) -> NodePool:
        return replace(one, budgets=(), meta=_without(one.meta, DISRUPTION_WINDOWS))

    return _pools(cluster, freed), replace(terms, budgets=())


def _quiet(cluster: Cluster, terms: Terms) -> tuple[Cluster, Terms]:
    """Let every node have been quiet for long enough."""
    claims = tuple(
        replace(one, meta=_without(one.meta, POD_DIGEST), conditions=_consolidatable(one.conditions))
        for one in cluster.node_claims
    )

    def at_once(one: NodePool) -> NodePool:
        return one if one.consolidate_after is None else replace(one, consolidate_after=timedelta())

    return replace(_pools(cluster, at_once), node_claims=claims), terms


def _consolidatable(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    others = tuple(one for one in conditions if one.type != "Consolidatable")
    return (*others, Condition(type="Consolidatable", status="True"))


def _protection(cluster: Cluster, terms: Terms) -> tuple[Cluster, Terms]:
    keys = (DO_NOT_DISRUPT, DO_NOT_CONSOLIDATE, DO_NOT_EVICT)
    pods = tuple(replace(one, meta=_without(one.meta, *keys)) for one in cluster.pods)
    nodes = tuple(replace(one, meta=_without(one.meta, *keys)) for one in cluster.nodes)
    return replace(cluster, pods=pods, nodes=nodes, budgets=()), terms


def _policies(cluster: Cluster, terms: Terms) -> tuple[Cluster, Terms]:
    def eager(one: NodePool) -> NodePool:
        meta = _without(one.meta, MINIMUM_SAVINGS_USD, MINIMUM_SAVINGS_PERCENT)
        return replace(one, consolidation_policy="WhenEmptyOrUnderutilized", consolidate_after=timedelta(), meta=meta)

    return _pools(cluster, eager), replace(terms, spot_to_spot=True)


def _limits(cluster: Cluster, terms: Terms) -> tuple[Cluster, Terms]:
    return _pools(cluster, lambda one: replace(one, limits=None)), terms


_LIFTED: Final[dict[str, tuple[str, Lift]]] = {
    "pauses": ("paused by people: `joiner resume` goes on", _as_is),
    "budgets": ("budgets and windows of NodePools and of the deployment: closed ones open by themselves", _budgets),
    "consolidateAfter": ("nodes are not quiet for long enough yet: it comes by itself", _quiet),
    "protection": ("do-not-disrupt on nodes and pods, and PodDisruptionBudgets", _protection),
    "policies": ("consolidationPolicy, consolidateAfter Never, minimum savings, spot for spot", _policies),
}
_ANEW: Final[dict[str, tuple[str, Lift]]] = {
    "steps": ("no exchange of nodes is worth it by itself, though all of them together would be", _as_is),
    "limits": ("limits of NodePools", _limits),
}
