"""What a cluster would be once drafts are done and nothing else has changed: for looking several steps ahead."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from msgspec.structs import replace

from shared.disruption.drafts import Draft
from shared.model.catalogue import InstanceType
from shared.model.cluster import Cluster
from shared.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    POD_DIGEST,
    REGISTERED,
    ZONE,
    ZONE_ID,
)
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, Meta, pairs
from shared.model.pods import Pod
from shared.scheduling.claims import claim_for
from shared.scheduling.placement import NewNode

STATES = ("Consolidatable", "Initialized", "Launched", "Ready", "Registered")


def after(cluster: Cluster, drafts: Iterable[Draft]) -> Cluster:
    """Answer *cluster* after *drafts*: new nodes are those that cost least, in use; moved pods are where they go.

    Pods of nodes that are gone and were not moved wait if somebody makes them anew, and are gone else.
    """
    some = list(drafts)
    gone = {one.name for draft in some for one in draft.targets}
    claims = {one.claim.name for draft in some for one in draft.targets}
    homes = {pod: home for draft in some for pod, home in draft.moves}
    made = [_joined(node, cluster) for draft in some for node in draft.new_nodes]
    made += [_like(one.node, claim) for draft in some for one, claim in zip(draft.targets, draft.claims, strict=False)]
    nodes = [one for one in cluster.nodes if one.name not in gone] + [node for node, _ in made]
    left = [_quiet(one) for one in cluster.node_claims if one.name not in claims] + [claim for _, claim in made]
    pods = (_moved(pod, homes, gone) for pod in cluster.pods)
    return replace(
        cluster,
        nodes=tuple(sorted(nodes, key=lambda one: one.name)),
        node_claims=tuple(sorted(left, key=lambda one: one.name)),
        pods=tuple(pod for pod in pods if pod is not None),
    )


def _moved(pod: Pod, homes: Mapping[str, str], gone: set[str]) -> Pod | None:
    if pod.node_name not in gone:
        return pod
    if pod.name in homes:
        return replace(pod, node_name=homes[pod.name])
    if not pod.is_reschedulable():
        return None
    waits = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
    return replace(pod, node_name="", phase="Pending", conditions=waits)


def _quiet(claim: NodeClaim) -> NodeClaim:
    """Answer *claim* as time has passed: whoever came has been there for long."""
    notes = tuple(pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST)
    return claim if notes == claim.meta.annotations else replace(claim, meta=replace(claim.meta, annotations=notes))


def _joined(new: NewNode, cluster: Cluster) -> tuple[Node, NodeClaim]:
    pool = next(one for one in cluster.node_pools if one.name == new.node_pool)
    claim = claim_for(new, pool, cluster)
    types = cluster.catalogue.types_for(pool.node_class.name, pool.name) if cluster.catalogue is not None else ()
    kind = next(one for one in types if one.name == new.cheapest.instance_type)
    labels = (
        dict(claim.meta.labels) | _labels(kind, new) | {HOSTNAME: new.name, REGISTERED: "true", INITIALIZED: "true"}
    )
    provider_id = f"aws:///{new.cheapest.zone}/i-{sha256(new.name.encode()).hexdigest()[:17]}"
    conditions = tuple(Condition(type=one, status="True", reason="Expected", since=cluster.taken_at) for one in STATES)
    meta = Meta(name=new.name, uid=new.name, created_at=cluster.taken_at, labels=pairs(labels))
    node = Node(
        meta=meta,
        provider_id=provider_id,
        taints=pool.taints,
        capacity=kind.capacity,
        allocatable=kind.allocatable,
        conditions=(Condition(type="Ready", status="True"),),
    )
    notes = tuple(pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST)
    joined = replace(
        claim,
        meta=replace(claim.meta, uid=new.name, created_at=cluster.taken_at, labels=pairs(labels), annotations=notes),
        node_name=new.name,
        provider_id=provider_id,
        capacity=kind.capacity,
        allocatable=kind.allocatable,
        conditions=conditions,
    )
    return node, joined


def _labels(kind: InstanceType, new: NewNode) -> dict[str, str]:
    """Answer what a node has for labels that is *kind*, bought the cheapest way."""
    labels = {
        item.key: next(iter(item.values)) for item in kind.requirements if not item.complement and len(item.values) == 1
    }
    labels |= {
        item.key: next(iter(item.values))
        for item in new.requirements
        if not item.complement and len(item.values) == 1 and item.key != HOSTNAME
    }
    zone_id = next((one.zone_id for one in kind.offerings if one.zone == new.cheapest.zone and one.zone_id), "")
    known = {INSTANCE_TYPE: kind.name, ZONE: new.cheapest.zone, CAPACITY_TYPE: new.cheapest.capacity_type}
    return labels | known | ({ZONE_ID: zone_id} if zone_id else {})


def _like(old: Node, claim: NodeClaim) -> tuple[Node, NodeClaim]:
    """Answer the static pool's *claim* in use, as a machine like the *old* one."""
    labels = pairs(dict(old.meta.labels) | dict(claim.meta.labels) | {HOSTNAME: claim.name})
    provider_id = f"{old.provider_id.rpartition('/')[0]}/i-{sha256(claim.name.encode()).hexdigest()[:17]}"
    node = replace(old, meta=replace(old.meta, name=claim.name, uid=claim.name, labels=labels), provider_id=provider_id)
    conditions = tuple(Condition(type=one, status="True", reason="Expected") for one in STATES)
    joined = replace(
        claim,
        meta=replace(claim.meta, uid=claim.name, labels=labels),
        node_name=claim.name,
        provider_id=provider_id,
        capacity=old.capacity,
        allocatable=old.allocatable,
        conditions=conditions,
    )
    return node, joined
