"""Kubernetes events for nodes, NodePools and pods about a disruption run, for `kubectl describe`."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from shared.decide.common.events import build_claim_events, build_event
from shared.decide.disruption.budgets.budget import (
    BUDGET_REASONS,
    compute_allowed_disruptions,
    find_budget_problem,
    is_counted_by_budgets,
)
from shared.decide.disruption.input_problems import find_invalid_do_not_disrupt_pods
from shared.decide.disruption.node_repair import UNHEALTHY_REASON
from shared.decide.disruption.plan_mode import PLANNED_REASON
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.decisions.action import Action
from shared.model.decisions.disruption_verdict import (
    MAX_NODES_WITH_EVENTS,
    SILENT_REASONS,
    BlockedVerdict,
    DisruptedVerdict,
    KeptVerdict,
    Verdict,
)
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.do_not_disrupt import find_ineffective_protection
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

_EVENT_REASONS: Final = {
    (True, False): ("DisruptionBlocked", "Cannot disrupt"),
    (True, True): ("NodeRepairBlocked", "Cannot repair"),
    (False, False): ("Unconsolidatable", "Kept"),
}
"""By whether the node is blocked, and whether its repair is blocked."""


def describe_verdicts(
    new_verdicts: Iterable[Verdict], all_verdicts: Iterable[Verdict], cluster_state: ClusterState
) -> tuple[Action, ...]:
    """Emit events for nodes with *new_verdicts*, and for NodePools with budgets that block any of *all_verdicts*.

    Pods without a controller on disrupted nodes get an event because they will not be recreated.
    """
    state_by_name, verdicts = cluster_state.node_by_name, tuple(new_verdicts)
    reported_verdicts = [
        verdict
        for verdict in verdicts
        if not isinstance(verdict, DisruptedVerdict) and verdict.reason not in SILENT_REASONS
    ]
    node_events = (
        event
        for verdict in islice(reported_verdicts, MAX_NODES_WITH_EVENTS)
        for event in _describe_node(verdict, state_by_name.get(verdict.node), cluster_state)
    )
    disrupted_nodes = (
        state_by_name[verdict.node]
        for verdict in verdicts
        if isinstance(verdict, DisruptedVerdict) and verdict.node in state_by_name
    )
    pod_events = (
        event
        for state in disrupted_nodes
        for event in (*_describe_unowned_pods(state, cluster_state), *_describe_evicted_pods(state, cluster_state))
    )
    return (
        *node_events,
        *islice(pod_events, MAX_NODES_WITH_EVENTS),
        *_describe_invalid_annotations(cluster_state),
        *_describe_node_pools(all_verdicts, state_by_name, cluster_state),
    )


def _describe_node(
    verdict: BlockedVerdict | KeptVerdict, state: StateNode | None, cluster_state: ClusterState
) -> tuple[Action, ...]:
    if state is None or state.claim is None:
        return ()
    reason, prefix = _EVENT_REASONS[isinstance(verdict, BlockedVerdict), verdict.reason == UNHEALTHY_REASON]
    reason = "DisruptionPlanned" if verdict.reason == PLANNED_REASON else reason
    nodes = () if state.node is None else (state.node,)
    return build_claim_events(state.claim, nodes, reason, f"{prefix}: {verdict.message}", cluster_state.taken_at)


def _describe_unowned_pods(state: StateNode, cluster_state: ClusterState) -> Iterator[Action]:
    message = (
        f"Node {state.name} is disrupted, and no controller recreates this pod (metadata.ownerReferences is empty); "
        f"to keep the node, annotate the pod with {DO_NOT_DISRUPT}"
    )
    for pod in state.pods:
        if is_reschedulable(pod) and not pod.meta.owners:
            yield build_event("Pod", pod.meta, "WillNotComeBack", message, cluster_state.taken_at, type_="Warning")


def _describe_evicted_pods(state: StateNode, cluster_state: ClusterState) -> Iterator[Action]:
    """Yield an event for each pod that is evicted although surge drain is requested for it."""
    for pod in state.pods:
        surge = cluster_state.surge_drains.find_surge(pod)
        if surge is not None and surge.refusal and not surge.is_temporary:
            message = f"Node {state.name} is disrupted, and the pod is evicted without a new pod: {surge.refusal}"
            yield build_event(
                "Pod", pod.meta, "SurgeDrainNotPossible", message, cluster_state.taken_at, type_="Warning"
            )


def _describe_invalid_annotations(cluster_state: ClusterState) -> Iterator[Action]:
    for pod in islice(find_invalid_do_not_disrupt_pods(cluster_state.nodes), MAX_NODES_WITH_EVENTS):
        annotation_value = find_ineffective_protection(pod)
        message = f"{DO_NOT_DISRUPT} is {annotation_value!r} and protects nothing: write 'true', or a duration like 2h"
        yield build_event(
            "Pod", pod.meta, "InvalidDoNotDisruptAnnotation", message, cluster_state.taken_at, type_="Warning"
        )


def _describe_node_pools(
    all_verdicts: Iterable[Verdict], states: Mapping[str, StateNode], cluster_state: ClusterState
) -> Iterator[Action]:
    pools_over_budget = {
        states[verdict.node].pool for verdict in all_verdicts if verdict.reason == "Budget" and verdict.node in states
    }
    for pool in sorted(cluster_state.snapshot.node_pools, key=lambda pool: pool.name):
        if pool.name in pools_over_budget or find_budget_problem(pool, cluster_state.taken_at):
            total = sum(is_counted_by_budgets(state) for state in cluster_state.nodes if state.pool == pool.name)
            yield from _describe_budgets(pool, total, cluster_state)


def _describe_budgets(pool: NodePool, total: int, cluster_state: ClusterState) -> Iterator[Action]:
    for reason in BUDGET_REASONS:
        allowed = compute_allowed_disruptions(pool, reason, total, cluster_state.taken_at)
        if allowed.problem:
            message = f"No disruption is allowed: {allowed.problem}"
            yield build_event(
                "NodePool", pool.meta, "DisruptionBlocked", message, cluster_state.taken_at, type_="Warning"
            )
            return
        if total and allowed.count == 0:
            message = f"No allowed disruptions for disruption reason {reason} due to blocking budget"
            yield build_event("NodePool", pool.meta, "DisruptionBlocked", message, cluster_state.taken_at)
