"""What a live cluster says of one thing now."""

from collections.abc import Iterator

from cli.paused import paused_words
from cli.text import age, count
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, condition
from shared.model.pods import Pod


def now_of(live: Cluster | None, kind: str, name: str) -> Iterator[str]:
    """Iterate over sentences on *name*; nothing if nobody looked."""
    if live is None or not name:
        return
    match kind:
        case "pod":
            pod = next((one for one in live.pods if one.name == name), None)
            yield from _pod(pod) if pod is not None else ("it is not in the cluster, or it has ended",)
        case "node":
            node = next((one for one in live.nodes if one.name == name), None)
            yield from _node(node, live) if node is not None else ("the Node is not in the cluster",)
        case "nodeclaim":
            claim = next((one for one in live.node_claims if one.name == name), None)
            yield from _claim(claim, live) if claim is not None else ("the NodeClaim is not in the cluster",)
        case _:
            pool = next((one for one in live.node_pools if one.name == name), None)
            yield from _pool(pool, live) if pool is not None else ("the NodePool is not in the cluster",)


def _pod(pod: Pod) -> Iterator[str]:
    if pod.node_name:
        yield f"on node {pod.node_name}"
        return
    scheduled = condition(pod.conditions, "PodScheduled")
    why = (scheduled.reason, scheduled.message) if scheduled is not None else ()
    yield ": ".join(filter(None, ("pending", *why)))
    if pod.nominated_node_name:
        yield f"nominated for node {pod.nominated_node_name}"
    yield f"`joiner plan --context --pod {pod.name}` plans for it as it is now"


def _node(node: Node, live: Cluster) -> Iterator[str]:
    pods = sum(pod.node_name == node.name for pod in live.pods)
    said = ["ready" if node.is_ready() else "not ready"]
    said += [label for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE) if (label := node.meta.label(key))]
    said.append(f"with {count(pods, 'pod')}")
    if node.meta.created_at is not None:
        said.append(f"{age(live.taken_at - node.meta.created_at)} old")
    yield f"the Node is {', '.join(said)}"
    yield from paused_words(live, node.meta.label(NODEPOOL))
    if node.taints:
        yield f"tainted: {', '.join(f'{one.key}:{one.effect}' for one in node.taints)}"


def _claim(claim: NodeClaim, live: Cluster) -> Iterator[str]:
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
    yield from _unmet(claim.conditions)
    if claim.expire_after is not None and claim.meta.created_at is not None:
        left = claim.meta.created_at + claim.expire_after - live.taken_at
        yield f"expires in {age(left)}" if left.total_seconds() > 0 else "its expireAfter has passed"


def _unmet(conditions: tuple[Condition, ...]) -> Iterator[str]:
    for one in conditions:
        if one.status != "True" and one.message and one.type != "Ready":
            yield f"{one.type} is {one.status}: {one.message}"


def _pool(pool: NodePool, live: Cluster) -> Iterator[str]:
    nodes = sum(node.meta.label(NODEPOOL) == pool.name for node in live.nodes)
    claims = sum(claim.meta.label(NODEPOOL) == pool.name for claim in live.node_claims)
    yield f"{count(nodes, 'node')}, {count(claims, 'claim')}, node class {pool.node_class.name}"
    yield from paused_words(live, pool.name)
    yield from _unmet(pool.conditions)
