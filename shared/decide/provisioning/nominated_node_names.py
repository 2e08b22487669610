"""Nominated node names: hints to kube-scheduler, so that pods are bound to the nodes that were created for them.

kube-scheduler alone binds pods, and it prefers the emptiest nodes: other pending pods would use the resources that a
node was created with. kube-scheduler counts a pod with a nominated node name on that node for all pods but those of a
higher priority, and tries that node first for the pod itself. It clears the name if it fails to schedule the pod, and
it retries all pending pods when any node joins or becomes schedulable. Nominated node names are therefore set while a
node still has its `unregistered` taint, immediately before the taint is removed, and when no other temporary taint is
left.

Each nominated node name costs one request. None is set where it makes no difference: when all pending pods are
equivalent, or when all of them belong to the same node.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import UNREGISTERED_TAINT
from shared.model.core.resources import CPU, MEMORY, sum_resources
from shared.model.core.taints import is_ephemeral
from shared.model.decisions.action import NominatePod
from shared.model.kubernetes.gangs.gang import find_gang_membership
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.state.nominations import (
    NominatedNodeNames,
    build_nominations,
    compute_pod_digest,
    find_nominated_node_names,
)
from shared.state.state_node import StateNode

MAX_NOMINATED_PODS_PER_RUN: Final = 1000
"""Limit of the pods whose nodes are registered in one run, unless one node has more; one request takes about 10 ms."""
UNREADY_TIMEOUT: Final = timedelta(seconds=45)
"""Maximum time after joining in which Joiner keeps its taint on a node that is not ready or has other temporary taints.

A pod that the node needs may be excluded by our taint.
"""
NOMINATION_TIMEOUT: Final = timedelta(minutes=2)
"""The same limit for a node that only waits for the nominated node names of its pods."""


class NodeReservations(msgspec.Struct, frozen=True, kw_only=True):
    """Pods to nominate, smallest pods of a node first, and nodes that must not be registered yet."""

    nominations: tuple[NominatePod, ...] = ()
    """For nodes that are registered already."""
    nominations_by_node: Mapping[str, tuple[NominatePod, ...]] = MappingProxyType({})
    """By the name of a Node that is still tainted and is registered now: the nominations that must be written first."""
    closed_nodes: frozenset[str] = frozenset()
    """Names of Nodes that stay unregistered for now."""


def plan_nominations(cluster_state: ClusterState, max_pods: int = MAX_NOMINATED_PODS_PER_RUN) -> NodeReservations:
    """Return the missing nominations for nodes that are registered or about to be; at most *max_pods* pods per run."""
    cluster, states = cluster_state.snapshot, cluster_state.nodes
    nominated_node_names = find_nominated_node_names(cluster_state)
    pending_pods = [pod for pod in cluster.pods if is_provisionable(pod) or nominated_node_names.has_pod(pod)]
    pods_by_node = _group_pods_by_node(pending_pods, build_nominations(states, cluster.taken_at, cluster.pods))
    if len(pods_by_node) <= 1 or _has_equivalent_pods(pending_pods, cluster):
        return NodeReservations()
    nominations: list[NominatePod] = []
    nominations_by_node: dict[str, tuple[NominatePod, ...]] = {}
    closed_nodes, pod_count = set[str](), 0
    for state, node in _list_joined_nodes(states):
        pods, is_usable = pods_by_node.get(state.name, []), _is_usable(state, node)
        is_late = pod_count > 0 and pod_count + len(pods) > max_pods
        if state.is_registered():
            nominations += (
                _build_pod_nominations(
                    node.name, _select_unnominated_pods(state, node.name, pods, nominated_node_names)
                )
                if is_usable
                else ()
            )
        elif pods and (is_late or not is_usable) and _can_wait(state, node, cluster.taken_at):
            closed_nodes.add(node.name)
        elif pods and is_usable:
            pod_count += len(pods)
            nominations_by_node[node.name] = _build_pod_nominations(node.name, pods)
    return NodeReservations(
        nominations=tuple(nominations), nominations_by_node=nominations_by_node, closed_nodes=frozenset(closed_nodes)
    )


def _list_joined_nodes(states: Iterable[StateNode]) -> Iterator[tuple[StateNode, Node]]:
    for state in sorted(states, key=lambda state: state.name):
        if state.node is not None and state.node.meta.deleted_at is None:
            yield state, state.node


def _group_pods_by_node(pending_pods: list[Pod], node_by_digest: Mapping[str, StateNode]) -> dict[str, list[Pod]]:
    """Return the pods by the name of their nominated node; "" for pods without one."""
    pods_by_node: dict[str, list[Pod]] = {}
    for pod in pending_pods:
        nominated_node = node_by_digest.get(compute_pod_digest(pod.name))
        pods_by_node.setdefault("" if nominated_node is None else nominated_node.name, []).append(pod)
    return pods_by_node


def _has_equivalent_pods(pending_pods: list[Pod], cluster: ClusterSnapshot) -> bool:
    """Return whether all *pending_pods* are interchangeable.

    Pods of a gang that waits for nodes must not take the place of other pods.
    """
    return (
        len({pod.spec for pod in pending_pods}) <= 1
        and not any(_has_topology_constraints(pod.spec) for pod in pending_pods)
        and not (cluster.has_gangs and len({find_gang_membership(pod) for pod in pending_pods}) > 1)
    )


def _has_topology_constraints(spec: PodSpec) -> bool:
    return bool(spec.spread or spec.pod_affinity or spec.pod_anti_affinity)


def _is_usable(state: StateNode, node: Node) -> bool:
    """Return whether *node* is Ready and has no temporary taint except Joiner's.

    Otherwise kube-scheduler drops nominations.
    """
    startup_taints = state.claim.startup_taints if state.claim is not None else ()
    other_taints = (taint for taint in node.taints if taint.key != UNREGISTERED_TAINT)
    return node.is_ready() and not any(
        is_ephemeral(taint) or any(taint.is_same(own) for own in startup_taints) for taint in other_taints
    )


def _can_wait(state: StateNode, node: Node, now: datetime) -> bool:
    """Return whether the unregistered *node* may still be kept unregistered.

    A node with startup taints is never kept: the taints are written at registration, and the component that removes
    them does so only once.
    """
    created_at, timeout = node.meta.created_at, NOMINATION_TIMEOUT if _is_usable(state, node) else UNREADY_TIMEOUT
    has_startup_taints = state.claim is not None and state.claim.startup_taints
    return not has_startup_taints and created_at is not None and now - created_at < timeout


def _select_unnominated_pods(
    state: StateNode, name: str, pods: list[Pod], nominated_node_names: NominatedNodeNames
) -> Iterator[Pod]:
    """Yield those of *pods* that are not nominated for their registered node and still fit there, largest first."""
    nominated_pods = [pod for pod in pods if nominated_node_names.node_by_pod.get(pod.name) == name]
    free_resources = state.compute_available() - sum_resources(pod.spec.requests for pod in nominated_pods)
    for pod in sorted(
        (candidate_pod for candidate_pod in pods if nominated_node_names.node_by_pod.get(candidate_pod.name) != name),
        key=_get_size_key,
        reverse=True,
    ):
        if pod.spec.requests.can_fit(free_resources):
            free_resources -= pod.spec.requests
            yield pod


def _build_pod_nominations(node: str, pods: Iterable[Pod]) -> tuple[NominatePod, ...]:
    return tuple(
        NominatePod(
            namespace=pod.meta.namespace,
            name=pod.meta.name,
            uid=pod.meta.uid,
            node=node,
            message="the node was launched for it",
        )
        for pod in sorted(pods, key=_get_size_key)
    )


def _get_size_key(pod: Pod) -> tuple[int, int, str]:
    return pod.spec.requests[MEMORY], pod.spec.requests[CPU], pod.name
