"""When disruption has to look again, though nobody tells it to."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.candidates import reschedule_cost
from shared.lifecycle.followups import SOONEST, look_at, soonest
from shared.lifecycle.podevents import consolidatable_at
from shared.model.action import Action, FollowUp
from shared.model.cluster import Cluster
from shared.model.labels import POD_DIGEST
from shared.model.nodepools import NodePool
from shared.model.state import StateNode, pod_digest

FOR_EACH_NODE: Final = timedelta(milliseconds=10)
"""A look takes longer the more nodes there are, so it is not taken as soon."""


def wakes(states: Sequence[StateNode], cluster: Cluster) -> tuple[Action, ...]:
    """Answer at most one follow-up a function: for the node that will have been quiet for long enough first.

    Where pods have come or gone that its claim does not know of, the lifecycle is to note that before.
    """
    pools = {pool.name: pool for pool in cluster.node_pools}
    earliest = cluster.taken_at + FOR_EACH_NODE * len(states)
    found: list[Action] = []
    for state in states:
        pool = pools.get(state.pool)
        if pool is not None and pool.replicas is None and not state.is_marked() and _may_go(state, pool):
            found.extend(_of(state, pool, cluster.taken_at, earliest))
    return soonest(found)


def _may_go(state: StateNode, pool: NodePool) -> bool:
    return pool.consolidation_policy != "WhenEmpty" or reschedule_cost(state.pods) <= 1.0


def _of(state: StateNode, pool: NodePool, now: datetime, earliest: datetime) -> tuple[FollowUp, ...]:
    claim = state.claim
    due = consolidatable_at(claim, pool) if claim is not None else None
    if claim is None or due is None or pool.consolidate_after is None:
        return ()
    due = max(due, state.nominated_until() or due)
    known, why = claim.meta.annotation(POD_DIGEST), f"{state.name} may be disrupted"
    if not known or known == pod_digest(state.pods):
        return look_at(max(due, earliest), now, why, "disrupt") if due > now else ()
    note = FollowUp(function="lifecycle", after=SOONEST, why=f"pods of {state.name} changed")
    due = now + max(pool.consolidate_after, 2 * SOONEST)
    return (note, *look_at(max(due, earliest), now, why, "disrupt"))
