"""Whether what is saved is worth what it disturbs: thresholds of NodePools, and Karpenter's policy `Balanced`.

Balanced: the part of its pool's cost that a command saves is at least half the part of the pool's disruption that it
causes. Only pools with that policy are asked; the one whose nodes take the pods in is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from math import inf
from typing import Final

import msgspec

from shared.disruption.candidates import Candidate, Field, reschedule_cost
from shared.disruption.exchange import Refused
from shared.disruption.knobs import Knobs, knobs_of
from shared.disruption.payback import too_soon
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.state import StateNode

BALANCED: Final = "Balanced"
THRESHOLD: Final = 0.5
"""One over k, where k is 2."""


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """What all of a pool costs, per hour and to disrupt."""

    price_usd_per_hour: float
    disruption: float


class Worthwhile:
    """Judges what is saved."""

    def __init__(self, field: Field, candidates: Mapping[str, Candidate], overlap: timedelta = timedelta()) -> None:
        """Sum the pools up; *candidates*: by name, whether a method wants them or not.

        New nodes run beside those in whose place they come for as long as *overlap*.
        """
        self._now, self._overlap = field.now, overlap
        pools = {one.pool.name: one.pool for one in candidates.values()}
        self._knobs = {name: knobs_of(pool) for name, pool in pools.items()}
        balanced = {name for name, pool in pools.items() if pool.consolidation_policy == BALANCED}
        self._totals = {name: _total(name, field, candidates) for name in sorted(balanced)}

    def refusal(self, targets: Sequence[Candidate], saved: float) -> Refused | None:
        """Say why *targets* should rather stay, though so much would be *saved*; None if they may go."""
        price = sum(one.price_usd_per_hour for one in targets)
        for name in sorted({one.pool.name for one in targets}):
            refused = _below(self._knobs[name], saved, price)
            if refused is None and name in self._totals:
                refused = self._unbalanced(name, targets, saved, price)
            if refused is not None:
                return refused
        early = too_soon(targets, saved, price, self._now, self._overlap)
        return Refused(reason="NotEarned", message=early) if early else None

    def score(self, pool: str, targets: Iterable[Candidate], saved: float, price: float) -> float:
        """Answer how much of its cost *pool* saves for each part of its disruption."""
        mine = [one for one in targets if one.pool.name == pool]
        own = sum(one.price_usd_per_hour for one in mine)
        share = saved * own / price if price > 0 else saved
        total = self._totals[pool]
        if total.price_usd_per_hour <= 0 or total.disruption <= 0:
            return 0.0
        saving = share / total.price_usd_per_hour
        disruption = sum(one.reschedule_cost for one in mine) / total.disruption
        if saving <= 0:
            return 0.0
        return saving / disruption if disruption else inf

    def _unbalanced(self, pool: str, targets: Sequence[Candidate], saved: float, price: float) -> Refused | None:
        score = self.score(pool, targets, saved, price)
        if score >= THRESHOLD:
            return None
        message = f"would save ${saved:.4f} per hour at a score of {score:.2f}, policy Balanced asks for {THRESHOLD}"
        return Refused(reason="NotBalanced", message=message)


def _below(knobs: Knobs, saved: float, price: float) -> Refused | None:
    least = knobs.minimum_usd_per_hour
    if saved < least:
        message = f"would save ${saved:.4f} per hour, threshold ${least:g}"
        return Refused(reason="BelowThreshold", message=message)
    percent = 100 * saved / price if price > 0 else 0.0
    if percent < knobs.minimum_percent:
        message = f"would save {percent:.0f} %, threshold {knobs.minimum_percent:g} %"
        return Refused(reason="BelowThreshold", message=message)
    return None


def _total(pool: str, field: Field, candidates: Mapping[str, Candidate]) -> Total:
    price, disruption = 0.0, 0.0
    for state in field.states:
        if state.claim is not None and _is_named(state, pool):
            price += field.prices.price(state.claim.meta, state.claim.node_class.name)
        if state.pool == pool:
            one = candidates.get(state.name)
            disruption += one.reschedule_cost if one is not None else reschedule_cost(state.pods)
    if price <= 0:
        price = sum(one.price_usd_per_hour for one in candidates.values() if one.pool.name == pool)
    return Total(price_usd_per_hour=price, disruption=disruption)


def _is_named(state: StateNode, pool: str) -> bool:
    claim = state.claim
    if claim is None or claim.meta.label(NODEPOOL) != pool:
        return False
    return all(claim.meta.label(key) for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
