"""Node repair: a node that has been unhealthy for longer than its toleration is terminated at once.

Disruption budgets, PodDisruptionBudgets, do-not-disrupt and grace periods do not delay it: the NodeClaim is deleted
with a termination deadline in the past, and its pods are planned like those of any deleting node. If many Nodes are
unhealthy at the same time, the cause is probably external and new nodes would fail as well; then no node is repaired.

Known difference: Karpenter checks every five minutes, Joiner in each disruption run; pauses by people stop repair.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.common.events import build_claim_events
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_elapsed
from shared.model.core.labels import NODEPOOL, TERMINATION_TIMESTAMP
from shared.model.core.metadata import Condition
from shared.model.core.units import compute_percentage, format_instant, parse_instant
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PatchMetadata
from shared.model.decisions.command import DisruptionPauses
from shared.model.decisions.disruption_verdict import BlockedVerdict, DisruptedVerdict, KeptVerdict, Verdict
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import NodeClaimState, is_ours

UNHEALTHY_REASON: Final = "Unhealthy"
MAX_UNHEALTHY_PERCENT: Final = 20
"""Percentage of the Nodes, rounded up: if more are unhealthy at once, none is repaired."""


class RepairPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A Node condition that means unhealthy, and how long it is tolerated."""

    type: str
    status: str
    toleration: timedelta


_DEFAULT_TOLERATION_PERIOD: Final = timedelta(minutes=30)
REPAIR_POLICIES: Final = (
    RepairPolicy(type="Ready", status="False", toleration=_DEFAULT_TOLERATION_PERIOD),
    RepairPolicy(type="Ready", status="Unknown", toleration=_DEFAULT_TOLERATION_PERIOD),
    RepairPolicy(type="AcceleratedHardwareReady", status="False", toleration=timedelta(minutes=10)),
    RepairPolicy(type="StorageReady", status="False", toleration=_DEFAULT_TOLERATION_PERIOD),
    RepairPolicy(type="NetworkingReady", status="False", toleration=_DEFAULT_TOLERATION_PERIOD),
    RepairPolicy(type="KernelReady", status="False", toleration=_DEFAULT_TOLERATION_PERIOD),
    RepairPolicy(type="ContainerRuntimeReady", status="False", toleration=_DEFAULT_TOLERATION_PERIOD),
)
"""The policies of EKS: conditions set by the kubelet and by the node monitoring agent."""


class UnhealthyCondition(msgspec.Struct, frozen=True, kw_only=True):
    """An unhealthy condition of a Node, and since when it has been true."""

    policy: RepairPolicy
    since: datetime

    @property
    def due(self) -> datetime:
        """When the toleration ends."""
        return self.since + self.policy.toleration

    def format_message(self) -> str:
        """Return the message; it does not change while the condition lasts."""
        condition_text = (
            f"condition {self.policy.type} has been {self.policy.status} since {format_instant(self.since)}"
        )
        return f"{condition_text}, longer than {format_elapsed(self.policy.toleration)}"


class NodeRepairDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What node repair decided in one run."""

    nodes: frozenset[str] = frozenset()
    """Names of the nodes to terminate; no other disruption method decides about them."""
    actions: tuple[Action, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """Of the repaired Nodes, and of those that are unhealthy and stay; sorted by name."""

    def count_metrics(self) -> dict[str, float]:
        """Return the metrics of the decision; empty if no node needs repair."""
        if not self.verdicts:
            return {}
        deleted_nodes = sum(isinstance(action, DeleteObject) for action in self.actions)
        held_nodes = sum(not isinstance(verdict, DisruptedVerdict) for verdict in self.verdicts)
        return {"RepairedNodes": float(deleted_nodes), "BlockedRepairs": float(held_nodes)}

    def with_verdicts(self, other_verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Return one verdict for each node: these, and *other_verdicts* of nodes without a repair verdict."""
        repaired_nodes = {verdict.node for verdict in self.verdicts}
        all_verdicts = (*self.verdicts, *(verdict for verdict in other_verdicts if verdict.node not in repaired_nodes))
        return tuple(sorted(all_verdicts, key=lambda verdict: verdict.node))


def decide_node_repair(cluster_state: ClusterState, pauses: DisruptionPauses) -> NodeRepairDecision:
    """Delete the nodes that have been unhealthy for too long, unless repair is paused or too many are unhealthy."""
    cluster, now = cluster_state.snapshot, cluster_state.taken_at
    actions, verdicts = list[Action](), list[Verdict]()
    claims_by_provider_id = Counter(claim.provider_id for claim in cluster.node_claims)
    for node_claim_state in cluster_state.claim_states:
        node = (
            node_claim_state.nodes[0]
            if len(node_claim_state.nodes) == claims_by_provider_id[node_claim_state.claim.provider_id] == 1
            else None
        )
        unhealthy_condition = find_unhealthy_condition(node) if node is not None and is_ours(node) else None
        if node is None or unhealthy_condition is None or unhealthy_condition.due > now:
            continue
        verdict = _decide_verdict(node_claim_state.claim, node, unhealthy_condition, cluster, pauses)
        verdicts.append(verdict)
        if isinstance(verdict, DisruptedVerdict):
            actions.extend(_terminate_node(node_claim_state, verdict, now))
    nodes = frozenset(
        repair_verdict.node for repair_verdict in verdicts if isinstance(repair_verdict, DisruptedVerdict)
    )
    return NodeRepairDecision(
        nodes=nodes, actions=tuple(actions), verdicts=tuple(sorted(verdicts, key=lambda verdict: verdict.node))
    )


def find_unhealthy_condition(node: Node) -> UnhealthyCondition | None:
    """Return the unhealthy condition of *node* that is due first; None if there is none with a transition time."""
    unhealthy_conditions = [
        UnhealthyCondition(policy=policy, since=condition.since)
        for condition, policy in _match_conditions(node)
        if condition.since is not None
    ]
    return min(unhealthy_conditions, key=lambda condition: (condition.due, condition.policy.type), default=None)


def is_unhealthy(node: Node) -> bool:
    """Return whether *node* has an unhealthy condition, for however short a time."""
    return any(True for _ in _match_conditions(node))


def _match_conditions(node: Node) -> Iterator[tuple[Condition, RepairPolicy]]:
    return (
        (condition, policy)
        for condition in node.conditions
        for policy in REPAIR_POLICIES
        if (condition.type, condition.status) == (policy.type, policy.status)
    )


def _decide_verdict(
    claim: NodeClaim,
    node: Node,
    unhealthy_condition: UnhealthyCondition,
    cluster: ClusterSnapshot,
    pauses: DisruptionPauses,
) -> Verdict:
    pool = claim.meta.get_label(NODEPOOL)
    if message := pauses.find_pause_message(pool, UNHEALTHY_REASON):
        return KeptVerdict(
            node=node.name,
            reason="Paused",
            message=f"{unhealthy_condition.format_message()}; repair is paused: {message}",
        )
    if message := _explain_too_many_unhealthy(pool, cluster):
        return BlockedVerdict(
            node=node.name, reason=UNHEALTHY_REASON, message=f"{unhealthy_condition.format_message()}; {message}"
        )
    return DisruptedVerdict(node=node.name, reason=UNHEALTHY_REASON, message=unhealthy_condition.format_message())


def _explain_too_many_unhealthy(pool: str, cluster: ClusterSnapshot) -> str:
    """Return that more Nodes of *pool* (or of the cluster) are unhealthy than allowed; "" if they are not."""
    pool_nodes = [node for node in cluster.nodes if not pool or node.meta.get_label(NODEPOOL) == pool]
    unhealthy_count = sum(is_unhealthy(node) for node in pool_nodes)
    if unhealthy_count <= compute_percentage(len(pool_nodes), MAX_UNHEALTHY_PERCENT):
        return ""
    scope_text = f"NodePool {pool}" if pool else "the cluster"
    return (
        f"{unhealthy_count} of {len(pool_nodes)} nodes of {scope_text} are unhealthy, "
        f"more than {MAX_UNHEALTHY_PERCENT}%: no node is repaired"
    )


def _terminate_node(node_claim_state: NodeClaimState, verdict: DisruptedVerdict, now: datetime) -> Iterator[Action]:
    """Yield the actions that terminate the node with an expired grace period, so that the drain waits for nothing."""
    claim = node_claim_state.claim
    if _is_deadline_over(claim, now) and claim.is_deleting():
        return
    deadline_annotation = ((TERMINATION_TIMESTAMP, format_instant(now)),)
    if not _is_deadline_over(claim, now):
        yield PatchMetadata(kind="NodeClaim", name=claim.name, annotations=deadline_annotation, message=verdict.message)
    if not claim.is_deleting():
        yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=UNHEALTHY_REASON.lower())
    message = f"Deleting {claim.name}: {verdict.message}"
    yield from build_claim_events(claim, node_claim_state.nodes, "DisruptionTerminating", message, now, type_="Warning")
    yield FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{claim.name} is repaired")


def _is_deadline_over(claim: NodeClaim, now: datetime) -> bool:
    """Return whether the NodeClaim's termination deadline is in the past."""
    try:
        return parse_instant(claim.meta.get_annotation(TERMINATION_TIMESTAMP)) <= now
    except ValueError:
        return False
