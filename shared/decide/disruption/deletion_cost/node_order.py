"""Which nodes should become empty first when workloads are scaled down, and the deletion cost of the pods there.

In each NodePool, a part of the nodes is preferred: those whose removal saves most per evicted pod. A node keeps its
place and its deletion cost while it qualifies, so that pods are not patched again whenever the order changes. The pods
of one node have the same deletion cost, and nodes that are preferred later have a higher one: workloads empty one node
after the other instead of all of them evenly.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from shared.decide.disruption.budgets.cluster_settings import EVERYTHING
from shared.decide.disruption.candidates import compute_reschedule_cost
from shared.decide.disruption.consolidation_policy import is_within_consolidate_after
from shared.decide.disruption.deletion_cost.replicaset_pods import ReplicaSetPods
from shared.model.kubernetes.deletion_cost import get_own_deletion_cost
from shared.model.kubernetes.do_not_disrupt import is_node_protected, is_scale_down_disabled
from shared.model.kubernetes.pod_classes import is_disruptable, is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked

PREFERRED_NODES_PERCENT: Final = 50
"""Percentage of the qualifying nodes of a NodePool, rounded down: at least one node stays without a deletion cost."""
LOWEST_DELETION_COST: Final = -1_000_000
"""The deletion cost of the first preferred node; the next preferred node has the next higher one."""
_EMPTY_REASON: Final = "Empty"


def select_preferred_nodes(
    cluster_state: ClusterState, replica_set_pods: ReplicaSetPods, paused_reasons: Collection[str] = ()
) -> dict[str, int]:
    """Return the preferred nodes by name, with the deletion cost of their pods, most preferred first."""
    qualifying_states = [
        state
        for state in cluster_state.nodes
        if _can_become_empty(state, cluster_state, replica_set_pods, paused_reasons)
    ]
    current_costs = _read_current_costs(qualifying_states)
    preferred_names: list[str] = []
    for pool in sorted({state.pool for state in qualifying_states}):
        pool_states = [state for state in qualifying_states if state.pool == pool]
        count = len(pool_states) * PREFERRED_NODES_PERCENT // 100
        preferred_names += _select_in_pool(pool_states, count, current_costs, cluster_state)
    return _assign_costs(preferred_names, current_costs)


def _select_in_pool(
    states: Iterable[StateNode], count: int, current_costs: Mapping[str, int], cluster_state: ClusterState
) -> list[str]:
    """Return *count* names: nodes that are preferred already first, then those with the highest savings per pod."""
    ranked_states = sorted(states, key=lambda state: (-_compute_savings_ratio(state, cluster_state), state.name))
    kept_names = [state.name for state in ranked_states if state.name in current_costs]
    kept_names.sort(key=lambda name: (current_costs[name], name))
    added_names = [
        state.name
        for state in ranked_states
        if state.name not in current_costs and not is_within_consolidate_after(state, cluster_state)
    ]
    return [*kept_names, *added_names][:count]


def _assign_costs(names: Iterable[str], current_costs: Mapping[str, int]) -> dict[str, int]:
    """Return the deletion cost of each of *names*: its current one, or the next one above all current ones."""
    kept_costs = {name: current_costs[name] for name in names if name in current_costs}
    next_cost = max(kept_costs.values(), default=LOWEST_DELETION_COST - 1) + 1
    costs = dict(kept_costs)
    for name in names:
        if name not in costs:
            costs[name] = min(next_cost, -1)
            next_cost += 1
    return dict(sorted(costs.items(), key=lambda item: (item[1], item[0])))


def _read_current_costs(states: Iterable[StateNode]) -> dict[str, int]:
    """Return the nodes with pods that have a deletion cost of Joiner; if they differ, the lowest one counts."""
    costs_by_node = {
        state.name: [cost for pod in state.pods if (cost := get_own_deletion_cost(pod)) is not None] for state in states
    }
    return {name: min(costs) for name, costs in costs_by_node.items() if costs}


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


def _compute_savings_ratio(state: StateNode, cluster_state: ClusterState) -> float:
    """Return the price of *state* in USD per hour for each unit of its reschedule cost."""
    node_class = cluster_state.node_pools[state.pool].node_class.name
    return cluster_state.price_list.get_price(state.meta, node_class) / compute_reschedule_cost(state.pods)
