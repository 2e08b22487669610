"""Problems that a disruption run finds in its input: the object, the field, the consequence, and how to fix it.

A problem does not stop the rest of the run: an invalid budget blocks its own NodePool, a node without a price is not
replaced, and timestamps in the future are ignored until that time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from shared.decide.disruption.budgets.budget import find_budget_problem
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import Problem
from shared.model.core.selectors import EVERYTHING
from shared.model.core.units import format_instant
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.do_not_disrupt import find_ineffective_protection
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

MIN_REPORTED_CLOCK_SKEW: Final = timedelta(seconds=30)
"""Clock skew up to this limit is not reported."""
MAX_REPORTED_PODS: Final = 30
"""Number of pods reported in one run."""


def find_disruption_problems(cluster_state: ClusterState) -> tuple[Problem, ...]:
    """Return the problems to report, sorted."""
    cluster = cluster_state.snapshot
    managed_nodes = [state for state in cluster_state.nodes if state.claim is not None and state.node is not None]
    problems = (
        *_find_budget_problems(cluster),
        *_find_pdb_problems(cluster_state, managed_nodes),
        *_find_price_problems(cluster_state, managed_nodes),
        *_find_clock_problems(cluster),
        *_find_annotation_problems(managed_nodes),
        *cluster_state.surge_drains.list_problems(),
    )
    return tuple(sorted(problems))


def _find_budget_problems(cluster: ClusterSnapshot) -> Iterator[Problem]:
    for pool in cluster.node_pools:
        if problem := find_budget_problem(pool, cluster.taken_at):
            message = f"{problem}; voluntary disruption of its nodes stops until the field is corrected"
            yield Problem(kind="NodePool", name=pool.name, message=message)


def _find_pdb_problems(cluster_state: ClusterState, states: Iterable[StateNode]) -> Iterator[Problem]:
    """Report PodDisruptionBudgets that select a whole namespace and block evictions from managed nodes there."""
    broad_pdbs = [
        candidate_pdb for candidate_pdb in cluster_state.snapshot.budgets if candidate_pdb.selector == EVERYTHING
    ]
    if not broad_pdbs:
        return
    pdb_limits, namespaces = cluster_state.pdb_limits, {broad_pdb.meta.namespace for broad_pdb in broad_pdbs}
    pods = (pod for state in states for pod in state.pods if pod.meta.namespace in namespaces)
    blocked_pods_by_namespace = Counter(
        pod.meta.namespace for pod in pods if pdb_limits.find_refusal(pod, cluster_state.taken_at)
    )
    for pdb in broad_pdbs:
        if count := blocked_pods_by_namespace[pdb.meta.namespace]:
            message = (
                f"spec.selector is empty, so it selects every pod of namespace {pdb.meta.namespace}: "
                f"{format_count(count, 'pod')} cannot "
                f"be evicted now, which keeps their nodes; to fix: set matchLabels of one workload"
            )
            yield Problem(kind="PodDisruptionBudget", name=pdb.name, message=message)


def _find_annotation_problems(states: Iterable[StateNode]) -> Iterator[Problem]:
    for pod in islice(find_invalid_do_not_disrupt_pods(states), MAX_REPORTED_PODS):
        annotation_value = find_ineffective_protection(pod)
        message = (
            f"metadata.annotations[{DO_NOT_DISRUPT}]: {annotation_value!r} protects nothing: write 'true', or a "
            f"duration like 2h"
        )
        yield Problem(kind="Pod", name=pod.name, message=message)


def find_invalid_do_not_disrupt_pods(states: Iterable[StateNode]) -> Iterator[Pod]:
    """Yield the pods on managed nodes with an invalid do-not-disrupt annotation."""
    return (
        pod
        for state in states
        if state.claim is not None
        for pod in state.pods
        if pod.is_active() and find_ineffective_protection(pod)
    )


def _find_price_problems(cluster_state: ClusterState, states: Iterable[StateNode]) -> Iterator[Problem]:
    if cluster_state.snapshot.catalog is None:
        return
    prices, unpriced_nodes = cluster_state.price_list, dict[tuple[str, str, str], list[str]]()
    for state in states:
        claim, meta = state.claim, state.meta
        if claim is not None and state.is_initialized() and not prices.get_price(meta, claim.node_class.name):
            labels = (meta.get_label(INSTANCE_TYPE), meta.get_label(CAPACITY_TYPE), meta.get_label(ZONE))
            unpriced_nodes.setdefault(labels, []).append(state.name)
    for (instance_type, capacity_type, zone), names in unpriced_nodes.items():
        message = (
            f"has no price as {capacity_type or 'no capacity type'} in {zone or 'no zone'}: "
            f"{format_count(len(names), 'node')} ({join_names(sorted(names), 3)}) can be deleted but not replaced; "
            "to fix: correct the labels, or use the setting price-list"
        )
        yield Problem(kind="InstanceType", name=instance_type or "none", message=message)


def _find_clock_problems(cluster: ClusterSnapshot) -> Iterator[Problem]:
    """Report the NodeClaim whose status is furthest ahead of the local clock."""
    future_times = [
        (at - cluster.taken_at, claim.name, status_field)
        for claim in cluster.node_claims
        for status_field, at in _iterate_status_times(claim)
        if at - cluster.taken_at > MIN_REPORTED_CLOCK_SKEW
    ]
    if future_times:
        lead, name, field_name = max(future_times)
        status_time = format_instant(cluster.taken_at + lead)
        claim_count = len({claim_name for _, claim_name, _ in future_times})
        message = (
            f"{field_name} is {status_time}, {lead.total_seconds():.0f} s ahead of our clock "
            f"({format_instant(cluster.taken_at)}), in {format_count(claim_count, 'NodeClaim')}: the time is ignored "
            "until then; to fix: check the clocks of the API server and of the function"
        )
        yield Problem(kind="NodeClaim", name=name, message=message)


def _iterate_status_times(claim: NodeClaim) -> Iterator[tuple[str, datetime]]:
    if claim.last_pod_event_at is not None:
        yield "status.lastPodEventTime", claim.last_pod_event_at
    for condition in claim.conditions:
        if condition.since is not None:
            yield f"status.conditions[{condition.type}].lastTransitionTime", condition.since
