"""What a sweep finds wrong with what it was given: each with the object, the field, what follows and the remedy.

Nothing of it stops the rest: a budget that cannot be read holds its own NodePool, a machine without a price is not
replaced, and what is from the future waits until its time has come.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from shared.disruption.budgets import unreadable
from shared.disruption.prices import PriceList
from shared.lifecycle.guards import guards_of
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, ZONE
from shared.model.nodes import NodeClaim
from shared.model.objects import Problem
from shared.model.pods import Pod
from shared.model.selectors import EVERYTHING
from shared.model.state import StateNode
from shared.model.units import instant_text

AHEAD: Final = timedelta(seconds=30)
"""So far clocks may differ before it is said."""
MOST: Final = 30
"""Pods that are named in one look."""


def complaints(cluster: Cluster, states: Iterable[StateNode]) -> tuple[Problem, ...]:
    """Answer what is to be mended; sorted."""
    some = [one for one in states if one.claim is not None and one.node is not None]
    found = (*_budgets(cluster), *_guards(cluster, some), *_prices(cluster, some), *_clocks(cluster), *_pods(some))
    return tuple(sorted(found))


def _budgets(cluster: Cluster) -> Iterator[Problem]:
    for pool in cluster.node_pools:
        if problem := unreadable(pool, cluster.taken_at):
            message = f"{problem}; none of its nodes is disrupted by choice until it is mended"
            yield Problem(kind="NodePool", name=pool.name, message=message)


def _guards(cluster: Cluster, states: Iterable[StateNode]) -> Iterator[Problem]:
    """Name PodDisruptionBudgets that select a whole namespace and hold pods of ours there."""
    broad = [one for one in cluster.budgets if one.selector == EVERYTHING]
    if not broad:
        return
    guards, spaces = guards_of(cluster.budgets), {one.meta.namespace for one in broad}
    pods = (pod for state in states for pod in state.pods if pod.meta.namespace in spaces)
    held = Counter(pod.meta.namespace for pod in pods if guards.refusal(pod, cluster.taken_at))
    for one in broad:
        if count := held[one.meta.namespace]:
            message = (
                f"spec.selector is empty, so it selects every pod of namespace {one.meta.namespace}: {count} pods may "
                f"not be evicted at present, and their nodes stay; write matchLabels of one workload"
            )
            yield Problem(kind="PodDisruptionBudget", name=one.name, message=message)


def _pods(states: Iterable[StateNode]) -> Iterator[Problem]:
    for pod in islice(misprotected(states), MOST):
        message = (
            f"metadata.annotations[{DO_NOT_DISRUPT}]: {pod.misprotected()!r} protects nothing: write 'true', or a "
            f"duration like 2h"
        )
        yield Problem(kind="Pod", name=pod.name, message=message)


def misprotected(states: Iterable[StateNode]) -> Iterator[Pod]:
    """Iterate over the pods on nodes of ours that ask not to be disrupted in words that nobody understands."""
    return (
        pod
        for state in states
        if state.claim is not None
        for pod in state.pods
        if pod.is_active() and pod.misprotected()
    )


def _prices(cluster: Cluster, states: Iterable[StateNode]) -> Iterator[Problem]:
    if cluster.catalogue is None:
        return
    prices, unpriced = PriceList(cluster.catalogue), dict[tuple[str, str, str], list[str]]()
    for state in states:
        claim, meta = state.claim, state.meta
        if claim is not None and state.is_initialized() and not prices.price(meta, claim.node_class.name):
            labels = (meta.label(INSTANCE_TYPE), meta.label(CAPACITY_TYPE), meta.label(ZONE))
            unpriced.setdefault(labels, []).append(state.name)
    for (kind, capacity_type, zone), names in unpriced.items():
        message = (
            f"has no price as {capacity_type or 'no capacity type'} in {zone or 'no zone'}: {_some(names)} may be "
            f"deleted and not replaced; mend the labels, or give prices by joiner:price-list"
        )
        yield Problem(kind="InstanceType", name=kind or "none", message=message)


def _clocks(cluster: Cluster) -> Iterator[Problem]:
    """Name the claim whose status is furthest ahead of our clock."""
    ahead = [
        (at - cluster.taken_at, one.name, what)
        for one in cluster.node_claims
        for what, at in _instants(one)
        if at - cluster.taken_at > AHEAD
    ]
    if ahead:
        lead, name, what = max(ahead)
        message = (
            f"{what} is {instant_text(cluster.taken_at + lead)}, {lead.total_seconds():.0f} s ahead of our clock "
            f"({instant_text(cluster.taken_at)}), as of {len({one for _, one, _ in ahead})} NodeClaims: until then "
            f"nothing is concluded from it; see which clock is wrong"
        )
        yield Problem(kind="NodeClaim", name=name, message=message)


def _instants(claim: NodeClaim) -> Iterator[tuple[str, datetime]]:
    if claim.last_pod_event_at is not None:
        yield "status.lastPodEventTime", claim.last_pod_event_at
    for one in claim.conditions:
        if one.since is not None:
            yield f"status.conditions[{one.type}].lastTransitionTime", one.since


def _some(names: list[str]) -> str:
    return f"node {names[0]}" if len(names) == 1 else f"{len(names)} nodes ({min(names)} among them)"
