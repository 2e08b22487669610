"""The current state of one object in a live cluster, as text."""

from collections.abc import Iterator

from cli.pause.text import describe_pool_pauses
from cli.terminal.text import format_age
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import Condition, find_condition
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod


def describe_live_state(live_cluster: ClusterSnapshot | None, kind: str, name: str) -> Iterator[str]:
    """Yield sentences about the current state of *name*; none without a live cluster."""
    if live_cluster is None or not name:
        return
    match kind:
        case "pod":
            pod = next((live_pod for live_pod in live_cluster.pods if live_pod.name == name), None)
            yield from _describe_pod(pod) if pod is not None else ("it is not in the cluster, or it has ended",)
        case "node":
            node = next((live_node for live_node in live_cluster.nodes if live_node.name == name), None)
            yield from _describe_node(node, live_cluster) if node is not None else ("the Node is not in the cluster",)
        case "nodeclaim":
            claim = next((live_claim for live_claim in live_cluster.node_claims if live_claim.name == name), None)
            yield from (
                _describe_node_claim(claim, live_cluster)
                if claim is not None
                else ("the NodeClaim is not in the cluster",)
            )
        case _:
            pool = next((live_pool for live_pool in live_cluster.node_pools if live_pool.name == name), None)
            yield from (
                _describe_node_pool(pool, live_cluster) if pool is not None else ("the NodePool is not in the cluster",)
            )


def _describe_pod(pod: Pod) -> Iterator[str]:
    if pod.node_name:
        yield f"on node {pod.node_name}"
        return
    scheduled = find_condition(pod.conditions, "PodScheduled")
    reason_parts = (scheduled.reason, scheduled.message) if scheduled is not None else ()
    yield ": ".join(filter(None, ("pending", *reason_parts)))
    if pod.nominated_node_name:
        yield f"nominated for node {pod.nominated_node_name}"
    yield f"`joiner plan --context --pod {pod.name}` plans for it as it is now"


def _describe_node(node: Node, live_cluster: ClusterSnapshot) -> Iterator[str]:
    pods = sum(pod.node_name == node.name for pod in live_cluster.pods)
    properties = ["ready" if node.is_ready() else "not ready"]
    properties += [label for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE) if (label := node.meta.get_label(key))]
    properties.append(f"with {format_count(pods, 'pod')}")
    if node.meta.created_at is not None:
        properties.append(f"{format_age(live_cluster.taken_at - node.meta.created_at)} old")
    yield f"the Node is {', '.join(properties)}"
    yield from describe_pool_pauses(live_cluster, node.meta.get_label(NODEPOOL))
    if node.taints:
        yield f"tainted: {', '.join(f'{taint.key}:{taint.effect}' for taint in node.taints)}"


def _describe_node_claim(claim: NodeClaim, live_cluster: ClusterSnapshot) -> Iterator[str]:
    steps = [
        word
        for word, is_so in (
            ("launched", claim.is_launched()),
            ("registered", claim.is_registered()),
            ("initialized", claim.is_initialized()),
            ("leaving", claim.is_deleting()),
        )
        if is_so
    ]
    yield f"the NodeClaim is {', '.join(steps) or 'not launched yet'}"
    yield from _describe_unmet_conditions(claim.conditions)
    if claim.expire_after is not None and claim.meta.created_at is not None:
        time_left = claim.meta.created_at + claim.expire_after - live_cluster.taken_at
        yield f"expires in {format_age(time_left)}" if time_left.total_seconds() > 0 else "its expireAfter has passed"


def _describe_unmet_conditions(conditions: tuple[Condition, ...]) -> Iterator[str]:
    for status_condition in conditions:
        if status_condition.status != "True" and status_condition.message and status_condition.type != "Ready":
            yield f"{status_condition.type} is {status_condition.status}: {status_condition.message}"


def _describe_node_pool(pool: NodePool, live_cluster: ClusterSnapshot) -> Iterator[str]:
    nodes = sum(node.meta.get_label(NODEPOOL) == pool.name for node in live_cluster.nodes)
    claims = sum(claim.meta.get_label(NODEPOOL) == pool.name for claim in live_cluster.node_claims)
    yield f"{format_count(nodes, 'node')}, {format_count(claims, 'claim')}, node class {pool.node_class.name}"
    yield from describe_pool_pauses(live_cluster, pool.name)
    yield from _describe_unmet_conditions(pool.conditions)
