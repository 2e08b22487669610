"""The changes of pod deletion costs: on nodes that a scale-down can empty, and on nodes for which this has ended.

Pods on newer nodes have lower deletion costs, so a scale-down empties the newest nodes instead of all nodes evenly.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from shared.decide.disruption.scale_down_order.emptiable_nodes import compute_deletion_cost, find_emptiable_nodes
from shared.decide.disruption.scale_down_order.replicaset_pods import ReplicaSetPods
from shared.model.decisions.action import SetDeletionCost
from shared.model.kubernetes.deletion_cost import get_own_deletion_cost
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked

MAX_CHANGES_PER_RUN: Final = 50
"""Each change is a write to the API server; the next run continues."""


def plan_deletion_costs(
    cluster_state: ClusterState, *, command_nodes: Collection[str] = (), paused_reasons: Collection[str] = ()
) -> tuple[SetDeletionCost, ...]:
    """Return at most `MAX_CHANGES_PER_RUN` changes, those on the newest nodes first.

    Pods on *command_nodes*, the nodes of running commands, and on leaving nodes stay as they are: they are evicted
    anyway. A pod that already has the right deletion cost is not changed. A deletion cost that a user has set is never
    changed.
    """
    replica_set_pods = ReplicaSetPods(cluster_state.snapshot.pods)
    emptiable_nodes = find_emptiable_nodes(cluster_state, replica_set_pods, paused_reasons)
    costs = {state.name: compute_deletion_cost(state) for state in emptiable_nodes}
    other_names = sorted(
        state.name for state in cluster_state.nodes if state.name not in costs and not is_deleting_or_marked(state)
    )
    changes = (
        change
        for name in (*sorted(costs, key=lambda name: (costs[name], name)), *other_names)
        if name not in command_nodes
        for change in _list_changes(name, costs.get(name), cluster_state, replica_set_pods)
    )
    return tuple(islice(changes, MAX_CHANGES_PER_RUN))


def _list_changes(
    node: str, cost: int | None, cluster_state: ClusterState, replica_set_pods: ReplicaSetPods
) -> Iterator[SetDeletionCost]:
    state = cluster_state.node_by_name[node]
    for pod in state.pods:
        pod_cost = cost if replica_set_pods.includes(pod) else None
        if pod.is_active() and pod_cost != get_own_deletion_cost(pod):
            message = (
                "a scale-down should not empty its node"
                if pod_cost is None
                else f"a scale-down should empty the newest nodes first: {node} is of {_format_creation_time(state)}"
            )
            yield _build_change(pod, pod_cost, message)


def _format_creation_time(state: StateNode) -> str:
    created_at = state.meta.created_at
    return f"{created_at:%Y-%m-%d %H:%M} UTC" if created_at is not None else "an unknown time"


def _build_change(pod: Pod, cost: int | None, message: str) -> SetDeletionCost:
    return SetDeletionCost(
        namespace=pod.meta.namespace,
        name=pod.meta.name,
        uid=pod.meta.uid,
        resource_version=pod.meta.resource_version,
        node=pod.node_name,
        cost=cost,
        message=message,
    )
