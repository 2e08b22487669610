"""Provisioning decisions: the actions (NodeClaims, nominations, events, requeues) that follow from a placement."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from shared.decide.common.requeue_delays import LIFECYCLE_REQUEUE_DELAY
from shared.decide.provisioning.pod_nominations import get_nominated_digests, nominate_pods, remove_stale_nominations
from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.core.metadata import find_condition
from shared.model.decisions.action import Action, CreateNodeClaim, FollowUp, PublishEvent
from shared.model.decisions.offering_text import format_offering
from shared.model.decisions.placement import ExistingNodePlacement, NewNodeClaim, Placement
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.nominations import (
    build_nominations,
    compute_pod_digest,
    match_successor_pods,
)
from shared.state.state_node import StateNode

SETTLING_PERIOD: Final = timedelta(seconds=20)
"""Time after the registration of its node in which a pod that does not fit there is not scheduled again.

kube-scheduler may bind the pods to each other's nodes.
"""
BURST_SETTLING_PERIOD: Final = timedelta(seconds=60)
"""The settling period while other nodes have joined but are not registered yet."""
PROVISION_REQUEUE_DELAY: Final = timedelta(seconds=10)
MAX_EVENTS_PER_RUN: Final = 60
"""Limit per run: each event takes one to three API calls, and thousands of pods may be pending for the same reason.

The journal has all of them.
"""


def build_placement_actions(cluster_state: ClusterState, placement: Placement) -> tuple[Action, ...]:
    """Return the actions: NodeClaims first, then nominations and pod events, then requeues."""
    cluster, states_by_name = cluster_state.snapshot, cluster_state.node_by_name
    pods_by_name = {pod.name: pod for pod in cluster.pods}
    nominations = build_nominations(cluster_state.nodes, cluster.taken_at)
    predecessors = match_successor_pods(nominations, cluster.pods)
    node_by_digest = nominations | {mark: nominations[late] for mark, late in predecessors.items()}
    settling_period = BURST_SETTLING_PERIOD if any(map(_is_unregistered, states_by_name.values())) else SETTLING_PERIOD
    settling_start = cluster.taken_at - settling_period
    settling_pods = frozenset(
        name for name, pod in pods_by_name.items() if _is_settling(pod, node_by_digest, settling_start)
    )
    placement, has_early_nodes = _without_early_nodes(placement, settling_pods)
    node_claims = build_node_claims(placement, cluster)
    new_nodes = {node.name: node for node in placement.new_nodes}
    actions: list[Action] = []
    for claim in node_claims:
        node = new_nodes[claim.name]
        actions.append(CreateNodeClaim(claim=claim, pods=node.pods, message=_explain_new_node(node)))
    for node_placement in placement.existing:
        actions.extend(nominate_pods(states_by_name[node_placement.node], node_placement, cluster, predecessors))
    actions.extend(remove_stale_nominations(placement, states_by_name, node_by_digest, predecessors))
    actions.extend(islice(_build_events(cluster, placement, pods_by_name, states_by_name), MAX_EVENTS_PER_RUN))
    actions.extend(_requeue_catalog(cluster))
    if placement.next_pod:
        reason = f"time limit reached: the next run continues with pod {placement.next_pod}"
        actions.append(FollowUp(function="provision", after=timedelta(), message=reason))
    if node_claims or placement.existing or has_early_nodes:
        actions.append(
            FollowUp(
                function="provision",
                after=PROVISION_REQUEUE_DELAY,
                message="nominated pods are not bound to their nodes yet",
            )
        )
    if node_claims:
        actions.append(FollowUp(function="lifecycle", after=LIFECYCLE_REQUEUE_DELAY, message="nodes are in flight"))
    return tuple(actions)


def _is_settling(pod: Pod, node_by_digest: Mapping[str, StateNode], settling_start: datetime) -> bool:
    """Return whether *pod* is pending and its nominated node was registered after *settling_start*.

    Other pods may not be bound to their final nodes yet.
    """
    nominated_node = node_by_digest.get(compute_pod_digest(pod.name)) if not pod.node_name else None
    if nominated_node is None or nominated_node.claim is None or not nominated_node.is_registered():
        return False
    registered = find_condition(nominated_node.claim.conditions, "Registered")
    return registered is None or registered.since is None or registered.since > settling_start


def _is_unregistered(state: StateNode) -> bool:
    return state.node is not None and not state.is_registered() and not state.is_marked_for_deletion()


def _without_early_nodes(placement: Placement, settling_pods: frozenset[str]) -> tuple[Placement, bool]:
    """Return *placement* without new nodes for settling pods only, and whether any node was removed."""
    nodes = tuple(node for node in placement.new_nodes if not settling_pods.issuperset(node.pods))
    return msgspec.structs.replace(placement, new_nodes=nodes), len(nodes) < len(placement.new_nodes)


def _requeue_catalog(cluster: ClusterSnapshot) -> Iterator[Action]:
    """Requeue the catalog function if data that a launch needs is missing."""
    unresolved = [
        node_class.name
        for node_class in cluster.node_classes
        if not node_class.is_current() and node_class.meta.deleted_at is None
    ]
    if unresolved:
        yield FollowUp(function="catalog", after=timedelta(), message=f"not resolved yet: {', '.join(unresolved)}")
    elif cluster.catalog is None and cluster.node_classes:
        yield FollowUp(function="catalog", after=timedelta(), message="the catalog is missing or cannot be read")


def _explain_new_node(node: NewNodeClaim) -> str:
    pod_count, type_count = len(node.pods), len(node.instance_types)
    subject = f"{format_count(pod_count, 'pod')} {'does' if pod_count == 1 else 'do'} not fit existing nodes"
    selection = (
        f"cheapest of {type_count:,} matching instance types" if type_count > 1 else "the only matching instance type"
    )
    return f"{subject}; {selection}: {format_offering(node.cheapest)}"


def _build_events(
    cluster: ClusterSnapshot, placement: Placement, pods: Mapping[str, Pod], states: Mapping[str, StateNode]
) -> Iterator[Action]:
    """Yield events for NodePools without instance types, for unschedulable pods, and for nominated pods.

    Pods whose node is in flight got their event when the node was requested. NodePool events come first.
    """
    pools = {pool.name: pool for pool in cluster.node_pools}
    for pool_without_types in placement.without_types:
        if pool_without_types.node_pool in pools:
            yield _build_node_pool_event(pools[pool_without_types.node_pool], pool_without_types.message, cluster)
    node_names = frozenset(node.name for node in cluster.nodes)
    for unschedulable_pod in placement.unschedulable:
        pod = pods.get(unschedulable_pod.pod)
        if pod is not None and unschedulable_pod.reason != "NotReached":
            message = f"Failed to schedule pod, {unschedulable_pod.message}"
            yield _build_pod_event(pod, "Warning", "FailedScheduling", message, cluster)
    for node in placement.new_nodes:
        yield from (
            _build_nominated_event(pods[name], f"nodeclaim/{node.name}", cluster) for name in node.pods if name in pods
        )
    for node_placement in placement.existing:
        target, nominated_digests = (
            _format_target(node_placement, node_names),
            get_nominated_digests(states[node_placement.node]),
        )
        new_pods = (
            name for name in node_placement.pods if name in pods and compute_pod_digest(name) not in nominated_digests
        )
        yield from (_build_nominated_event(pods[name], target, cluster) for name in new_pods)


def _format_target(node_placement: ExistingNodePlacement, node_names: frozenset[str]) -> str:
    return f"{'node' if node_placement.node in node_names else 'nodeclaim'}/{node_placement.node}"


def _build_nominated_event(pod: Pod, target: str, cluster: ClusterSnapshot) -> PublishEvent:
    return _build_pod_event(pod, "Normal", "Nominated", f"Pod should schedule on: {target}", cluster)


def _build_node_pool_event(pool: NodePool, message: str, cluster: ClusterSnapshot) -> PublishEvent:
    return PublishEvent(
        kind="NodePool",
        name=pool.name,
        uid=pool.meta.uid,
        type="Warning",
        reason="NoCompatibleInstanceTypes",
        message=message,
        at=cluster.taken_at,
    )


def _build_pod_event(pod: Pod, kind: str, reason: str, message: str, cluster: ClusterSnapshot) -> PublishEvent:
    return PublishEvent(
        kind="Pod",
        name=pod.meta.name,
        namespace=pod.meta.namespace,
        uid=pod.meta.uid,
        type="Warning" if kind == "Warning" else "Normal",
        reason=reason,
        message=message,
        at=cluster.taken_at,
    )
