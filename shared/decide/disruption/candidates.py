"""Which nodes are disruption candidates, and for each other node the first reason that blocks its disruption."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions.disruption_verdict import BlockedVerdict
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.do_not_disrupt import find_protecting_annotation, is_node_protected
from shared.model.kubernetes.eviction_cost import compute_eviction_cost
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_disruptable, is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.pdb_limits import PdbLimits
from shared.state.state_node import StateNode, is_deleting_or_marked
from shared.state.surge_drain import DeploymentRestart, Surge, SurgeDrains

DisruptionClass: TypeAlias = Literal["graceful", "eventual"]
"""Eventual disruption (drift) ignores blocking pods if the NodeClaim has a termination grace period."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may be disrupted."""

    state: StateNode
    node: Node
    claim: NodeClaim
    pool: NodePool
    reschedulable_pods: tuple[Pod, ...]
    """The pods that need another node."""
    price_usd_per_hour: float
    """What the node adds to the bill; 0 if the price is unknown, or if commitments pay all of it."""
    is_committed: bool = False
    """Whether commitments pay all of it."""
    restarts: tuple[DeploymentRestart, ...] = ()
    """The rollouts that a surge drain of the node starts."""

    @property
    def name(self) -> str:
        """The Node's name."""
        return self.node.name

    @property
    def reschedule_cost(self) -> float:
        """The cost of moving the candidate's pods."""
        return compute_reschedule_cost(self.reschedulable_pods)

    @property
    def savings_ratio(self) -> float:
        """USD per hour for each unit of reschedule cost."""
        return self.price_usd_per_hour / self.reschedule_cost

    @property
    def capacity_type(self) -> str:
        """The capacity type label."""
        return self.node.meta.get_label(CAPACITY_TYPE)

    @property
    def instance_type(self) -> str:
        """The instance type label."""
        return self.node.meta.get_label(INSTANCE_TYPE)

    def is_empty(self) -> bool:
        """Return whether no pod of the node has a reschedule cost."""
        return self.reschedule_cost <= 1.0


def evaluate_candidate(
    state: StateNode,
    cluster_state: ClusterState,
    nominated_nodes: frozenset[str] = frozenset(),
    disruption_class: DisruptionClass = "graceful",
) -> Candidate | BlockedVerdict:
    """Return *state* as a candidate, or as a blocked verdict with the first reason in Karpenter's order.

    *nominated_nodes*: names of state nodes that pending pods are expected on.
    """
    node, claim, pool = state.node, state.claim, cluster_state.node_pools.get(state.meta.get_label(NODEPOOL))
    for check in _CHECKS:
        if objection := check(state, cluster_state.taken_at, nominated_nodes):
            return BlockedVerdict(node=state.name, reason=objection[0], message=objection[1])
    objection = _check_zonal_shift(state, cluster_state, disruption_class)
    if objection:
        return BlockedVerdict(node=state.name, reason=objection[0], message=objection[1])
    if node is None or claim is None or pool is None:
        name = state.meta.get_label(NODEPOOL)
        return BlockedVerdict(
            node=state.name, reason="NodePoolNotFound", message=f"NodePool not found (NodePool={name})"
        )
    if node.name in cluster_state.unreadable_pod_by_node:
        message = f"pod {cluster_state.unreadable_pod_by_node[node.name]} cannot be read"
        return BlockedVerdict(node=state.name, reason="PodUnreadable", message=message)
    objection = find_blocking_pod(
        state.pods, cluster_state.pdb_limits, cluster_state.taken_at, cluster_state.surge_drains
    )
    if objection and not (disruption_class == "eventual" and claim.termination_grace_period is not None):
        return BlockedVerdict(node=state.name, reason=objection[0], message=objection[1])
    return Candidate(
        state=state,
        node=node,
        claim=claim,
        pool=pool,
        reschedulable_pods=tuple(pod for pod in state.pods if is_reschedulable(pod)),
        price_usd_per_hour=cluster_state.get_marginal_price(state, pool.node_class.name),
        is_committed=cluster_state.covered_parts.get(state.name, 0.0) >= 1,
        restarts=cluster_state.surge_drains.list_restarts(state.pods),
    )


def compute_reschedule_cost(pods: Iterable[Pod]) -> float:
    """Return 1 for the node plus the eviction cost of each of *pods* that needs another node."""
    return 1.0 + sum(max(0.0, compute_eviction_cost(pod)) for pod in pods if is_reschedulable(pod))


def find_blocking_pod(
    pods: Iterable[Pod], pdb_limits: PdbLimits, now: datetime, surge_drains: SurgeDrains | None = None
) -> tuple[str, str] | None:
    """Return reason and message for the first pod that is protected from disruption or currently not evictable.

    A pod that one of *surge_drains* replaces need not be evictable.
    """
    sorted_pods = sorted(pods, key=lambda pod: (pod.name, pod.meta.uid))
    for pod in sorted_pods:
        if not is_disruptable(pod, now):
            annotation = find_protecting_annotation(pod, now)
            return "PodBlocksEviction", f"pod {pod.name} has the annotation {annotation}"
    for pod in sorted_pods:
        surge = surge_drains.find_surge(pod) if surge_drains is not None else None
        refusal = pdb_limits.find_refusal(pod, now) if surge is None else explain_surge_block(surge)
        if refusal:
            return "PodBlocksEviction", refusal
    return None


def explain_surge_block(surge: Surge) -> str:
    """Return why a pod for which surge drain is requested keeps its node; "" if it does not."""
    if not surge.refusal:
        return ""
    if surge.is_temporary:
        return f"surge drain of pod {surge.pod.name} waits: {surge.refusal}"
    return f"{surge.pdb_refusal}; surge drain does not apply: {surge.refusal}" if surge.pdb_refusal else ""


_Objection: TypeAlias = tuple[str, str] | None


def _check_managed(state: StateNode, *_: object) -> _Objection:
    return ("NotManaged", "node is not managed by Joiner") if state.claim is None else None


def _check_node(state: StateNode, *_: object) -> _Objection:
    return ("NoNode", "nodeclaim does not have an associated node") if state.node is None else None


def _check_initialized(state: StateNode, *_: object) -> _Objection:
    return None if state.is_initialized() else ("NotInitialized", "node is not initialized")


def _check_deleting(state: StateNode, *_: object) -> _Objection:
    return ("Deleting", "node is deleting or marked for deletion") if is_deleting_or_marked(state) else None


def _check_nominated(state: StateNode, now: datetime, nominated_nodes: frozenset[str]) -> _Objection:
    is_nominated = state.name in nominated_nodes or state.is_nominated(now)
    return ("Nominated", "node is nominated for a pending pod") if is_nominated else None


def _check_do_not_disrupt(state: StateNode, *_: object) -> _Objection:
    message = "disruption is blocked through the karpenter.sh/do-not-disrupt annotation"
    return ("DoNotDisrupt", message) if is_node_protected(state.meta) else None


def _check_node_pool_label(state: StateNode, *_: object) -> _Objection:
    return None if state.pool else ("NoNodePool", f"node has no label {NODEPOOL}")


def _check_zonal_shift(state: StateNode, cluster_state: ClusterState, disruption_class: DisruptionClass) -> _Objection:
    """Hold voluntary disruption in a shifted zone, except drift if its nodes are to be replaced."""
    shift, shifts = cluster_state.find_zonal_shift(state.meta), cluster_state.snapshot.zonal_shifts
    if shift is None or shifts is None or (shifts.drains_zones and disruption_class == "eventual"):
        return None
    zone_text = f"zone {state.meta.get_label(ZONE)} ({shift.zone_id}) has a zonal shift {shift.describe_end()}"
    return "ZonalShift", f"{zone_text}: voluntary disruption is held"


_CHECKS: Final[tuple[Callable[[StateNode, datetime, frozenset[str]], _Objection], ...]] = (
    _check_managed,
    _check_node,
    _check_initialized,
    _check_deleting,
    _check_nominated,
    _check_do_not_disrupt,
    _check_node_pool_label,
)
