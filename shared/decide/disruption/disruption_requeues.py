"""When disruption has to run again without an external trigger."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY, keep_earliest_requeues, requeue_at
from shared.decide.disruption.candidates import compute_reschedule_cost
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import POD_DIGEST
from shared.model.decisions.action import Action, FollowUp
from shared.model.karpenter.node_pool import NodePool
from shared.state.node_claim_state import compute_consolidatable_time
from shared.state.state_node import StateNode, compute_pod_digest

REQUEUE_DELAY_PER_NODE: Final = timedelta(milliseconds=10)
"""Runs take longer with more nodes, so they are requeued less often."""


CONTINUATION_DELAY: Final = timedelta(seconds=10)
"""Delay of the continuation of a run: provision, which tries to get the lease every five seconds, comes first."""


def plan_continuation(cursor: str, next_cursor: str) -> tuple[FollowUp, ...]:
    """Requeue disrupt if the time limit ended a run that started at *cursor*, and the next one starts elsewhere.

    A run that did not advance is not continued before the next schedule.
    """
    if not next_cursor or next_cursor == cursor:
        return ()
    message = f"the time limit was reached: evaluation continues at {next_cursor.split(maxsplit=1)[0]}"
    return (FollowUp(function="disrupt", after=CONTINUATION_DELAY, message=message),)


def plan_disruption_requeues(states: Sequence[StateNode], cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Return at most one follow-up per function, for the node that is the first to become consolidatable.

    If pods have changed since the NodeClaim recorded them, the lifecycle runs first to record that.
    """
    pools = {pool.name: pool for pool in cluster.node_pools}
    earliest_run = cluster.taken_at + REQUEUE_DELAY_PER_NODE * len(states)
    follow_ups: list[Action] = []
    for state in states:
        pool = pools.get(state.pool)
        if (
            pool is not None
            and pool.replicas is None
            and not state.is_marked_for_deletion()
            and _can_be_consolidated(state, pool)
        ):
            follow_ups.extend(_build_follow_ups(state, pool, cluster.taken_at, earliest_run))
    return keep_earliest_requeues(follow_ups)


def _can_be_consolidated(state: StateNode, pool: NodePool) -> bool:
    return pool.consolidation_policy != "WhenEmpty" or compute_reschedule_cost(state.pods) <= 1.0


def _build_follow_ups(state: StateNode, pool: NodePool, now: datetime, earliest_run: datetime) -> tuple[FollowUp, ...]:
    claim = state.claim
    consolidatable_time = compute_consolidatable_time(claim, pool) if claim is not None else None
    if claim is None or consolidatable_time is None or pool.consolidate_after is None:
        return ()
    consolidatable_time = max(consolidatable_time, state.get_nominated_until() or consolidatable_time)
    recorded_digest, message = claim.meta.get_annotation(POD_DIGEST), f"{state.name} may be disrupted"
    if not recorded_digest or recorded_digest == compute_pod_digest(state.pods):
        return (
            requeue_at(max(consolidatable_time, earliest_run), now, message, "disrupt")
            if consolidatable_time > now
            else ()
        )
    lifecycle_follow_up = FollowUp(
        function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"pods of {state.name} changed"
    )
    consolidatable_time = now + max(pool.consolidate_after, 2 * MIN_REQUEUE_DELAY)
    return (lifecycle_follow_up, *requeue_at(max(consolidatable_time, earliest_run), now, message, "disrupt"))
