"""Which nodes should become empty first when workloads are scaled down, and the deletion cost of the pods there.

The emptier a node is, the fewer pods still have to leave it. So the pods of a node have a deletion cost that follows
its utilization, in steps: workloads empty the emptiest node first instead of all nodes evenly. Each node has its cost
independently of the other nodes, so that pods are patched again only when the pods of their own node change.
"""

from collections import Counter
from collections.abc import Collection
from math import floor
from typing import Final

from shared.decide.disruption.budgets.cluster_settings import EVERYTHING
from shared.decide.disruption.budgets.utilization import compute_utilization
from shared.decide.disruption.consolidation_policy import is_within_consolidate_after
from shared.decide.disruption.deletion_cost.replicaset_pods import ReplicaSetPods
from shared.model.kubernetes.deletion_cost import get_own_deletion_cost
from shared.model.kubernetes.do_not_disrupt import is_node_protected, is_scale_down_disabled
from shared.model.kubernetes.pod_classes import is_disruptable, is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked

UTILIZATION_STEP_PERCENT: Final = 10
"""Nodes whose utilization is in the same step have the same deletion cost."""
LOWEST_DELETION_COST: Final = -100
"""The deletion cost of the pods on a node whose utilization is below one step; it rises by the steps above."""
_EMPTY_REASON: Final = "Empty"


def compute_deletion_costs(
    cluster_state: ClusterState, replica_set_pods: ReplicaSetPods, paused_reasons: Collection[str] = ()
) -> dict[str, int]:
    """Return the deletion cost of the pods of each node that a scale-down can empty, by name, lowest cost first.

    A node that is full has none, and neither has the only node of its NodePool. A node within its consolidateAfter gets
    none yet: its pods are still changing.
    """
    qualifying_states = [
        state
        for state in cluster_state.nodes
        if _can_become_empty(state, cluster_state, replica_set_pods, paused_reasons)
    ]
    count_by_pool = Counter(state.pool for state in qualifying_states)
    cost_by_node = {
        state.name: cost
        for state in qualifying_states
        if count_by_pool[state.pool] > 1
        and (_has_own_cost(state) or not is_within_consolidate_after(state, cluster_state))
        and (cost := compute_deletion_cost(compute_utilization(state).percent)) < 0
    }
    return dict(sorted(cost_by_node.items(), key=lambda item: (item[1], item[0])))


def compute_deletion_cost(utilization_percent: float) -> int:
    """Return the deletion cost of the pods on a node with this utilization, from `LOWEST_DELETION_COST` to 0.

    >>> [compute_deletion_cost(percent) for percent in (0, 9.9, 10, 55, 99, 100)]
    [-100, -100, -90, -50, -10, 0]
    """
    full_steps = floor(utilization_percent / UTILIZATION_STEP_PERCENT)
    return min(LOWEST_DELETION_COST + full_steps * UTILIZATION_STEP_PERCENT, 0)


def _has_own_cost(state: StateNode) -> bool:
    return any(get_own_deletion_cost(pod) is not None for pod in state.pods)


def _can_become_empty(
    state: StateNode, cluster_state: ClusterState, replica_set_pods: ReplicaSetPods, paused_reasons: Collection[str]
) -> bool:
    """Return whether a scale-down can empty *state*, and Joiner then removes it."""
    pool = cluster_state.node_pools.get(state.pool)
    if (
        pool is None
        or pool.replicas is not None
        or pool.consolidate_after is None
        or state.claim is None
        or state.node is None
        or not state.is_initialized()
        or is_deleting_or_marked(state)
        or is_node_protected(state.meta)
        or is_scale_down_disabled(state.meta)
        or not {EVERYTHING, _EMPTY_REASON, f"{pool.name}/{_EMPTY_REASON}"}.isdisjoint(paused_reasons)
    ):
        return False
    moving_pods = [pod for pod in state.pods if is_reschedulable(pod)]
    return any(replica_set_pods.includes(pod) for pod in moving_pods) and all(
        replica_set_pods.includes(pod) or is_disruptable(pod, cluster_state.taken_at) for pod in moving_pods
    )
