"""The nodes that scale-downs can empty, and their order: the newest first.

Nodes are launched for a peak and should end with it. The creation time of a node never changes, so the order is stable:
old nodes stay full, and each pod is patched once.
"""

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final
from zlib import crc32

from shared.decide.disruption.budgets.cluster_settings import EVERYTHING
from shared.decide.disruption.scale_down_order.replicaset_pods import ReplicaSetPods
from shared.model.kubernetes.do_not_disrupt import is_node_protected, is_scale_down_disabled
from shared.model.kubernetes.pod_classes import is_disruptable, is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked

_EMPTY_REASON: Final = "Empty"
_REFERENCE_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ORDER_PERIOD: Final = timedelta(minutes=10)
"""Nodes that were created in the same period are in the order of a hash of their names."""
_NODES_PER_PERIOD: Final = 64
"""Values of the hash. With these constants, costs stay above -2^27 until 2064: at -2^27, Karpenter, after a migration
back to it, would ignore the pods when it looks for empty nodes."""


def find_emptiable_nodes(
    cluster_state: ClusterState, replica_set_pods: ReplicaSetPods, paused_reasons: Collection[str] = ()
) -> list[StateNode]:
    """Return the nodes that a scale-down can empty, and Joiner then removes, of NodePools with at least two of them."""
    emptiable_nodes = [
        state for state in cluster_state.nodes if _is_emptiable(state, cluster_state, replica_set_pods, paused_reasons)
    ]
    count_by_pool = Counter(state.pool for state in emptiable_nodes)
    return [state for state in emptiable_nodes if count_by_pool[state.pool] > 1]


def compute_deletion_cost(state: StateNode) -> int:
    """Return the deletion cost of the pods on *state*: a negative number, lower for newer nodes.

    Nodes that were created together have different costs too, so that scale-downs do not empty them evenly. Without a
    creation time, the node counts as old.
    """
    created_at = state.meta.created_at or _REFERENCE_TIME
    periods = max(0, (created_at - _REFERENCE_TIME) // _ORDER_PERIOD)
    return -_NODES_PER_PERIOD * periods - crc32(state.name.encode()) % _NODES_PER_PERIOD - 1


def _is_emptiable(
    state: StateNode, cluster_state: ClusterState, replica_set_pods: ReplicaSetPods, paused_reasons: Collection[str]
) -> bool:
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
