"""New nodes as NodeClaims: the objects that ask for them."""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import (
    HASH_VERSION,
    HOSTNAME,
    INSTANCE_TYPE,
    MIN_VALUES_RELAXED,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    NOMINATED_PODS,
    TERMINATION_FINALIZER,
    WELL_KNOWN,
)
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import Meta, Owner, pairs
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements, written
from shared.scheduling.hashes import node_pool_hash
from shared.scheduling.homes import marks_of, marks_text, pod_mark
from shared.scheduling.lifetimes import expire_after
from shared.scheduling.placement import NewNode, Placement
from shared.scheduling.templates import template_labels

__all__ = ["claim_for", "claim_name", "claims", "marks_of", "pod_mark"]


def claims(placement: Placement, cluster: Cluster) -> tuple[NodeClaim, ...]:
    """Answer a claim for each new node, in the same order."""
    pools = {pool.name: pool for pool in cluster.node_pools}
    return tuple(claim_for(node, pools[node.node_pool], cluster) for node in placement.new_nodes)


def claim_for(new_node: NewNode, pool: NodePool, cluster: Cluster) -> NodeClaim:
    """Answer the NodeClaim of *new_node*, as it is created: no status, no uid yet."""
    types = Requirement(key=INSTANCE_TYPE, values=frozenset(new_node.instance_types))
    owner = Owner(api_version="karpenter.sh/v1", kind="NodePool", name=pool.name, uid=pool.meta.uid)
    return NodeClaim(
        meta=Meta(
            name=new_node.name,
            labels=pairs(_labels(new_node, pool)),
            annotations=pairs(_annotations(new_node, pool, cluster)),
            finalizers=(TERMINATION_FINALIZER,),
            owners=(owner,),
        ),
        node_class=pool.node_class,
        requirements=new_node.requirements & Requirements(items=(types,)),
        requests=new_node.requests,
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        expire_after=expire_after(pool, new_node.name),
        termination_grace_period=pool.termination_grace_period,
    )


def claim_name(pool: str, pods: Iterable[Pod], wanted: bytes, taken: frozenset[str]) -> str:
    """Derive a name from the decision; *wanted* is `written_down`, *taken* are names that must not be used again."""
    who = sorted([(pod.meta.uid, pod.name) for pod in pods])
    content = msgspec.json.encode([pool, who, msgspec.Raw(wanted)])
    salt = 0
    while (name := f"{pool}-{sha256(content + b'%d' % salt).hexdigest()[:10]}") in taken:
        salt += 1
    return name


def written_down(wanted: Requirements) -> bytes:
    """Answer *wanted* as JSON: the same for equal requirements."""
    return msgspec.json.encode(written(wanted), order="sorted")


def _labels(new_node: NewNode, pool: NodePool) -> dict[str, str]:
    """Answer the template's labels, and a value for each custom key that must be there."""
    custom = {
        item.key: item.any_value()
        for item in new_node.requirements
        if item.key not in WELL_KNOWN and item.key != HOSTNAME and item.operator != "DoesNotExist"
    }
    return custom | template_labels(pool)


def _annotations(new_node: NewNode, pool: NodePool, cluster: Cluster) -> dict[str, str]:
    node_class = next((one for one in cluster.node_classes if one.name == pool.node_class.name), None)
    hashed = {}
    if node_class is not None:
        hashed = {NODECLASS_HASH: node_class.hashed, NODECLASS_HASH_VERSION: NODECLASS_HASH_VERSION_VALUE}
    return (
        dict(pool.annotations)
        | {NODEPOOL_HASH: node_pool_hash(pool), NODEPOOL_HASH_VERSION: HASH_VERSION}
        | hashed
        | {
            MIN_VALUES_RELAXED: "true" if new_node.min_values_relaxed else "false",
            NOMINATED_PODS: marks_text(pod_mark(name) for name in new_node.pods),
        }
    )
