"""Pods that need a node: selection and queue order."""

from collections.abc import Iterable
from datetime import datetime

from shared.model.core.metadata import find_condition
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_disruptable, is_evictable, is_provisionable, is_reschedulable
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from shared.state.cluster_state import ClusterState
from shared.state.nominations import find_nominated_node_names


def select_pods_to_schedule(cluster_state: ClusterState, excluded: frozenset[str]) -> tuple[Pod, ...]:
    """Return the pending pods, and the reschedulable pods of nodes that are being removed."""
    cluster = cluster_state.snapshot
    nominated_node_names = find_nominated_node_names(cluster_state)
    pending_pods = [pod for pod in cluster.pods if is_provisionable(pod) or nominated_node_names.has_pod(pod)]
    reschedulable_pods = [
        pod
        for state in cluster_state.nodes
        if state.is_marked_for_deletion() or state.name in excluded
        for pod in state.pods
        if is_currently_reschedulable(pod, cluster_state) and not cluster_state.surge_drains.has_successor(pod)
    ]
    return (*pending_pods, *reschedulable_pods)


def is_currently_reschedulable(pod: Pod, cluster_state: ClusterState) -> bool:
    """Return whether the pod needs another node now: it can be moved, and no PDB blocks its eviction permanently."""
    cluster, now = cluster_state.snapshot, cluster_state.taken_at
    if not is_reschedulable(pod) or not is_disruptable(pod, now):
        return False
    return not is_fully_blocked(pod, cluster.budgets, now) or cluster_state.surge_drains.can_surge(pod)


def is_fully_blocked(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> bool:
    """Return whether no eviction of *pod* can ever succeed."""
    if not is_evictable(pod, now):
        return False
    matching_budgets = [budget for budget in budgets if budget.is_match(pod)]
    ready = find_condition(pod.conditions, "Ready")
    unhealthy = ready is not None and ready.status == "False"
    return len(matching_budgets) > 1 or any(
        budget.is_fully_blocking() and not (budget.always_allows_unhealthy and unhealthy) for budget in matching_budgets
    )
