"""Static capacity: NodePools with spec.replicas keep that number of nodes, whether pods need them or not.

The name of a NodeClaim is derived from its slot, so a second run on the same or an older snapshot creates the same
NodeClaims and no more. A NodeClaim that cannot be decoded counts as existing.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import sha256
from itertools import count, islice
from typing import Final

import msgspec

from shared.decide.common.requeue_delays import LIFECYCLE_REQUEUE_DELAY
from shared.decide.scheduling.templates.node_claim_builder import build_node_claim
from shared.decide.scheduling.templates.template_builder import build_template_requirements
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import INSTANCE_TYPE, MIN_VALUES_RELAXED, NODEPOOL, NOMINATED_PODS
from shared.model.core.metadata import is_condition_true
from shared.model.core.resources import NODES
from shared.model.decisions.action import Action, CreateNodeClaim, DeleteObject, FollowUp
from shared.model.decisions.placement import CheapestOffering, NewNodeClaim
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.eviction_cost import compute_eviction_cost
from shared.model.kubernetes.pod_classes import is_disruptable
from shared.state.cluster_state import ClusterState
from shared.state.pauses import count_allowed_claims, find_launch_pause_message
from shared.state.state_node import StateNode

MAX_NODE_CLAIMS_PER_RUN: Final = 100
"""Limit of the NodeClaims that are created for one NodePool in one run."""
_NO_OFFERING: Final = CheapestOffering(instance_type="", zone="", capacity_type="", price_usd_per_hour=0.0)


class StaticReplicas(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a static NodePool that are not being removed."""

    pool: NodePool
    running: tuple[StateNode, ...]
    disrupted: int
    """Number of nodes that are being disrupted: each has, or will have, a replacement among the running nodes."""
    unreadable: int
    """Number of NodeClaims that cannot be decoded."""

    @property
    def missing(self) -> int:
        """Number of nodes to create; the limit of nodes is never exceeded."""
        node_count = len(self.running) + self.disrupted + self.unreadable
        deficit = (self.pool.replicas or 0) - node_count
        limits = dict(self.pool.limits.amounts) if self.pool.limits is not None else {}
        return max(0, min(deficit, limits.get(NODES, deficit + node_count) - node_count))

    @property
    def surplus(self) -> int:
        """Number of nodes to delete."""
        return max(0, len(self.running) + self.unreadable - (self.pool.replicas or 0))


def count_static_replicas(cluster_state: ClusterState) -> tuple[StaticReplicas, ...]:
    """Return the replicas of each static NodePool, sorted by name; () if NodeClaims could not be listed."""
    cluster = cluster_state.snapshot
    if cluster.is_unserved("nodeclaims.karpenter.sh"):
        return ()
    states = [state for state in cluster_state.nodes if state.claim is not None and not state.is_marked_for_deletion()]
    pools = (pool for pool in cluster.node_pools if pool.replicas is not None and pool.meta.deleted_at is None)
    return tuple(_count_replicas(pool, states, cluster) for pool in sorted(pools, key=lambda pool: pool.name))


def _count_replicas(pool: NodePool, states: Iterable[StateNode], cluster: ClusterSnapshot) -> StaticReplicas:
    pool_states = [
        state for state in states if state.claim is not None and state.claim.meta.get_label(NODEPOOL) == pool.name
    ]
    running = tuple(state for state in pool_states if not _is_replaced(state))
    unreadable_count = sum(
        problem.kind == "NodeClaim" and problem.name.startswith(f"{pool.name}-") for problem in cluster.problems
    )
    return StaticReplicas(
        pool=pool, running=running, disrupted=len(pool_states) - len(running), unreadable=unreadable_count
    )


def _is_replaced(state: StateNode) -> bool:
    return state.claim is not None and is_condition_true(state.claim.conditions, "DisruptionReason")


def explain_static_change(cluster_state: ClusterState) -> str:
    """Return which static NodePool has too few or too many nodes; "" if none."""
    for replicas in count_static_replicas(cluster_state):
        if replicas.missing or replicas.surplus:
            return f"NodePool {replicas.pool.name} has spec.replicas {replicas.pool.replicas}"
    return ""


def decide_static_capacity(cluster_state: ClusterState) -> tuple[Action, ...]:
    """Return the actions that create missing NodeClaims and delete surplus ones.

    The nodes of deleted NodeClaims are drained as usual.
    """
    cluster, actions = cluster_state.snapshot, list[Action]()
    for replicas in count_static_replicas(cluster_state):
        if replicas.missing and is_node_pool_usable(replicas.pool, cluster):
            actions.extend(_create_node_claims(replicas, cluster))
        actions.extend(_delete_node_claims(replicas, cluster))
    if actions:
        actions.append(
            FollowUp(function="lifecycle", after=LIFECYCLE_REQUEUE_DELAY, message="static NodePools are scaling")
        )
    return tuple(actions)


def is_node_pool_usable(pool: NodePool, cluster: ClusterSnapshot) -> bool:
    """Return whether *pool* is valid, its node class is ready, and its launches are not paused."""
    node_class = next(
        (ec2_node_class for ec2_node_class in cluster.node_classes if ec2_node_class.name == pool.node_class.name), None
    )
    has_failed_condition = any(
        pool_condition.type in ("Ready", "ValidationSucceeded")
        and pool_condition.status == "False"
        and pool_condition.observed_generation >= pool.meta.generation
        for pool_condition in pool.conditions
    )
    is_launchable = (
        pool.node_class.is_supported() and not has_failed_condition and not find_launch_pause_message(pool, cluster)
    )
    return is_launchable and node_class is not None and node_class.meta.deleted_at is None and node_class.is_ready()


def _create_node_claims(replicas: StaticReplicas, cluster: ClusterSnapshot) -> Iterator[Action]:
    used_names = {claim.name for claim in cluster.node_claims} | {bad.name for bad in cluster.problems}
    names = (name for slot in count() if (name := build_slot_name(replicas.pool, slot)) not in used_names)
    reason = f"NodePool {replicas.pool.name} has {len(replicas.running)} of {replicas.pool.replicas} nodes"
    allowed_count = count_allowed_claims(replicas.pool.node_class.name, cluster)
    missing_count = replicas.missing if allowed_count is None else min(replicas.missing, allowed_count)
    for name in islice(names, min(missing_count, MAX_NODE_CLAIMS_PER_RUN)):
        yield CreateNodeClaim(claim=build_static_node_claim(replicas.pool, name, cluster), message=reason)


def build_slot_name(pool: NodePool, slot: int) -> str:
    """Return the name of the NodeClaim for *slot*."""
    return f"{pool.name}-{sha256(f'{pool.meta.uid}/{slot}'.encode()).hexdigest()[:10]}"


def build_static_node_claim(pool: NodePool, name: str, cluster: ClusterSnapshot) -> NodeClaim:
    """Return the NodeClaim as it is created: the requirements of the NodePool, no selection of types, no pods."""
    node = NewNodeClaim(
        name=name, node_pool=pool.name, requirements=build_template_requirements(pool), cheapest=_NO_OFFERING
    )
    claim = build_node_claim(node, pool, cluster)
    claim_requirements = claim.requirements.without((INSTANCE_TYPE,))
    type_requirements = tuple(item for item in pool.requirements if item.key == INSTANCE_TYPE)
    annotations = tuple(pair for pair in claim.meta.annotations if pair[0] not in (MIN_VALUES_RELAXED, NOMINATED_PODS))
    return msgspec.structs.replace(
        claim,
        meta=msgspec.structs.replace(claim.meta, annotations=annotations),
        requirements=msgspec.structs.replace(
            claim_requirements,
            items=tuple(sorted((*claim_requirements, *type_requirements), key=lambda item: item.key)),
        ),
    )


def _delete_node_claims(replicas: StaticReplicas, cluster: ClusterSnapshot) -> Iterator[Action]:
    nodes_with_problems = frozenset(bad.node for bad in cluster.problems if bad.kind == "Pod" and bad.node)
    ordered_states = sorted(
        replicas.running, key=lambda state: _get_deletion_key(state, cluster.taken_at, nodes_with_problems)
    )
    reason = f"NodePool {replicas.pool.name} has {len(replicas.running)} nodes and needs {replicas.pool.replicas}"
    for state in ordered_states[: replicas.surplus]:
        if state.claim is not None:
            yield DeleteObject(kind="NodeClaim", name=state.claim.name, uid=state.claim.meta.uid, message=reason)


def _get_deletion_key(state: StateNode, now: datetime, unread: frozenset[str]) -> tuple[int, bool, float, str]:
    """Return a sort key that puts the nodes with the lowest disruption cost first."""
    claim = state.claim
    if claim is None or not claim.provider_id:
        return 0, False, 0.0, state.name
    pods = [pod for pod in state.pods if not pod.is_terminal() and not pod.is_mirror()]
    is_protected = any(not is_disruptable(pod, now) for pod in pods) or claim.node_name in unread
    if not is_protected and all(pod.is_daemon() for pod in pods):
        return 1, False, 0.0, state.name
    cost = sum(compute_eviction_cost(pod) for pod in pods if not pod.is_daemon())
    return 2, is_protected, cost * _compute_lifetime_ratio(claim, now), state.name


def _compute_lifetime_ratio(claim: NodeClaim, now: datetime) -> float:
    if not claim.expire_after or claim.meta.created_at is None:
        return 1.0
    lifetime_ratio = (claim.expire_after - (now - claim.meta.created_at)) / claim.expire_after
    return min(max(lifetime_ratio, 0.0), 1.0)
