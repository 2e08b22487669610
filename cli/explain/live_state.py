"""The current state of one object in a live cluster, as text."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cli.pause.text import describe_pool_pauses
from shared.decide.node_class.canary_status import list_canaries
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_elapsed
from shared.model.core.labels import CAPACITY_TYPE, GRACEFUL_EXPIRATION, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import Condition, find_condition
from shared.model.karpenter.expiration import compute_expiration_deadline, compute_expiration_time
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod


def describe_live_state(live_cluster: ClusterSnapshot | None, kind: str, name: str) -> Iterator[str]:
    """Yield sentences about the current state of *name*; none without a live cluster."""
    if live_cluster is None or not name:
        return
    field, describe, absence_text = _DESCRIBERS[kind]
    live_object = next((candidate for candidate in getattr(live_cluster, field) if candidate.name == name), None)
    yield from describe(live_object, live_cluster) if live_object is not None else (absence_text,)


def _describe_pod(pod: Pod, _: ClusterSnapshot) -> Iterator[str]:
    if pod.node_name:
        yield f"on node {pod.node_name}"
        return
    scheduled = find_condition(pod.conditions, "PodScheduled")
    reason_parts = (scheduled.reason, scheduled.message) if scheduled is not None else ()
    yield ": ".join(filter(None, ("pending", *reason_parts)))
    if pod.nominated_node_name:
        yield f"nominated for node {pod.nominated_node_name}"
    yield f"`joiner plan --pod {pod.name}` shows where Joiner would schedule it now"


def _describe_node(node: Node, live_cluster: ClusterSnapshot) -> Iterator[str]:
    pods = sum(pod.node_name == node.name for pod in live_cluster.pods)
    properties = ["ready" if node.is_ready() else "not ready"]
    properties += [label for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE) if (label := node.meta.get_label(key))]
    properties.append(format_count(pods, "pod"))
    if node.meta.created_at is not None:
        properties.append(f"{format_elapsed(live_cluster.taken_at - node.meta.created_at)} old")
    yield f"Node: {', '.join(properties)}"
    yield from describe_pool_pauses(live_cluster, node.meta.get_label(NODEPOOL))
    if node.taints:
        yield f"tainted: {', '.join(f'{taint.key}:{taint.effect}' for taint in node.taints)}"


def _describe_node_claim(claim: NodeClaim, live_cluster: ClusterSnapshot) -> Iterator[str]:
    conditions = {
        "launched": claim.is_launched(),
        "registered": claim.is_registered(),
        "initialized": claim.is_initialized(),
        "deleting": claim.is_deleting(),
    }
    steps = [word for word, is_met in conditions.items() if is_met]
    yield f"NodeClaim: {', '.join(steps) or 'not launched yet'}"
    yield from _describe_unmet_conditions(claim.conditions)
    yield from _describe_expiration(claim, live_cluster)


def _describe_expiration(claim: NodeClaim, live_cluster: ClusterSnapshot) -> Iterator[str]:
    expires_at = compute_expiration_time(claim)
    if expires_at is None:
        return
    if expires_at > live_cluster.taken_at:
        yield f"expires in {format_elapsed(expires_at - live_cluster.taken_at)}"
        return
    pool_name = claim.meta.get_label(NODEPOOL)
    annotations = (pool.meta.annotations for pool in live_cluster.node_pools if pool.name == pool_name)
    try:
        deadline = compute_expiration_deadline(claim, next(annotations, ()))
    except ValueError as error:
        yield f"its expireAfter has passed; it is kept until the NodePool's {GRACEFUL_EXPIRATION} is corrected: {error}"
        return
    if deadline is None or deadline == expires_at:
        yield "its expireAfter has passed"
    elif deadline > live_cluster.taken_at:
        yield (
            "its expireAfter has passed: it is replaced as drifted, within the budgets, and deleted in "
            f"{format_elapsed(deadline - live_cluster.taken_at)} at the latest ({GRACEFUL_EXPIRATION})"
        )
    else:
        yield f"its expireAfter and its {GRACEFUL_EXPIRATION} have passed: it is deleted"


def _describe_unmet_conditions(conditions: tuple[Condition, ...]) -> Iterator[str]:
    for status_condition in conditions:
        if status_condition.status != "True" and status_condition.message and status_condition.type != "Ready":
            yield f"{status_condition.type} is {status_condition.status}: {status_condition.message}"


def _describe_node_pool(pool: NodePool, live_cluster: ClusterSnapshot) -> Iterator[str]:
    nodes = sum(node.meta.get_label(NODEPOOL) == pool.name for node in live_cluster.nodes)
    claims = sum(claim.meta.get_label(NODEPOOL) == pool.name for claim in live_cluster.node_claims)
    counts = f"{format_count(nodes, 'Node')}, {format_count(claims, 'NodeClaim')}"
    yield f"NodePool: {counts}, EC2NodeClass {pool.node_class.name}"
    yield from (
        canary.describe()
        for canary in list_canaries(live_cluster)
        if canary.node_class == pool.node_class.name and canary.message
    )
    yield from describe_pool_pauses(live_cluster, pool.name)
    yield from _describe_unmet_conditions(pool.conditions)


_DESCRIBERS: Final[Mapping[str, tuple[str, Callable[[Any, ClusterSnapshot], Iterator[str]], str]]] = {
    "pod": ("pods", _describe_pod, "not in the cluster, or completed"),
    "node": ("nodes", _describe_node, "Node: not in the cluster"),
    "nodeclaim": ("node_claims", _describe_node_claim, "NodeClaim: not in the cluster"),
    "nodepool": ("node_pools", _describe_node_pool, "NodePool: not in the cluster"),
}
"""By kind: the list of the cluster, the description of an object, and the text if there is none of that name."""
