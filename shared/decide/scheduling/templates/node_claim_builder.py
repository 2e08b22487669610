"""NodeClaims for new nodes: the Kubernetes objects that request an instance."""

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from shared.decide.scheduling.templates.expiration_jitter import compute_expire_after
from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.decide.scheduling.templates.template_builder import build_template_labels
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
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
    PLANNED_GANGS,
    TERMINATION_FINALIZER,
    WELL_KNOWN,
)
from shared.model.core.metadata import ObjectMeta, OwnerReference, build_pairs
from shared.model.core.requirements import Requirement, Requirements, list_requirement_entries
from shared.model.decisions.placement import NewNodeClaim, Placement
from shared.model.karpenter.node_claim import KARPENTER_API_VERSION, NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod
from shared.state.gangs.gang_claims import format_gangs_of_pods
from shared.state.gangs.gangs import find_gangs, map_gangs_to_pods
from shared.state.nominations import compute_pod_digest, format_nominated_pods


def build_node_claims(placement: Placement, cluster: ClusterSnapshot) -> tuple[NodeClaim, ...]:
    """Return a NodeClaim for each new node of *placement*, in the same order."""
    pools = {pool.name: pool for pool in cluster.node_pools}
    claims = tuple(build_node_claim(node, pools[node.node_pool], cluster) for node in placement.new_nodes)
    return _record_gangs(claims, placement, cluster) if cluster.has_gangs and claims else claims


def _record_gangs(claims: Iterable[NodeClaim], placement: Placement, cluster: ClusterSnapshot) -> tuple[NodeClaim, ...]:
    """Return *claims* with the gangs that they are created for."""
    gang_by_pod = map_gangs_to_pods(find_gangs(cluster).values())
    texts = (format_gangs_of_pods(node.pods, gang_by_pod) for node in placement.new_nodes)
    return tuple(
        replace(
            claim, meta=replace(claim.meta, annotations=build_pairs((*claim.meta.annotations, (PLANNED_GANGS, text))))
        )
        if text
        else claim
        for claim, text in zip(claims, texts, strict=True)
    )


def build_node_claim(new_node: NewNodeClaim, pool: NodePool, cluster: ClusterSnapshot) -> NodeClaim:
    """Return the NodeClaim for *new_node* as it is created: without a status and without a uid."""
    instance_type_requirement = Requirement(key=INSTANCE_TYPE, values=frozenset(new_node.instance_types))
    owner = OwnerReference(api_version=KARPENTER_API_VERSION, kind="NodePool", name=pool.name, uid=pool.meta.uid)
    return NodeClaim(
        meta=ObjectMeta(
            name=new_node.name,
            labels=build_pairs(_build_labels(new_node, pool)),
            annotations=build_pairs(_build_annotations(new_node, pool, cluster)),
            finalizers=(TERMINATION_FINALIZER,),
            owners=(owner,),
        ),
        node_class=pool.node_class,
        requirements=new_node.requirements & Requirements(items=(instance_type_requirement,)),
        requests=new_node.requests,
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        expire_after=compute_expire_after(pool, new_node.name),
        termination_grace_period=pool.termination_grace_period,
    )


def derive_node_claim_name(pool: str, pods: Iterable[Pod], requirements_json: bytes, used_names: frozenset[str]) -> str:
    """Return a name that depends only on the decision, so that the same decision has the same name.

    *requirements_json* is the result of `encode_requirements`; *used_names* are names that must not be used again.
    """
    pod_identities = sorted([(pod.meta.uid, pod.name) for pod in pods])
    content = msgspec.json.encode([pool, pod_identities, msgspec.Raw(requirements_json)])
    salt = 0
    while (name := f"{pool}-{sha256(content + b'%d' % salt).hexdigest()[:10]}") in used_names:
        salt += 1
    return name


def encode_requirements(requirements: Requirements) -> bytes:
    """Return *requirements* as JSON; equal requirements have equal JSON."""
    return msgspec.json.encode(list_requirement_entries(requirements), order="sorted")


def _build_labels(new_node: NewNodeClaim, pool: NodePool) -> dict[str, str]:
    """Return the labels of the template, and a value for each custom key that the node must have."""
    custom = {
        item.key: item.choose_value()
        for item in new_node.requirements
        if item.key not in WELL_KNOWN and item.key != HOSTNAME and item.operator != "DoesNotExist"
    }
    return custom | build_template_labels(pool)


def _build_annotations(new_node: NewNodeClaim, pool: NodePool, cluster: ClusterSnapshot) -> dict[str, str]:
    node_class = next(
        (ec2_node_class for ec2_node_class in cluster.node_classes if ec2_node_class.name == pool.node_class.name), None
    )
    node_class_hashes = {}
    if node_class is not None:
        node_class_hashes = {NODECLASS_HASH: node_class.spec_hash, NODECLASS_HASH_VERSION: NODECLASS_HASH_VERSION_VALUE}
    return (
        dict(pool.annotations)
        | {NODEPOOL_HASH: compute_node_pool_hash(pool), NODEPOOL_HASH_VERSION: HASH_VERSION}
        | node_class_hashes
        | {
            MIN_VALUES_RELAXED: "true" if new_node.min_values_relaxed else "false",
            NOMINATED_PODS: format_nominated_pods(compute_pod_digest(name) for name in new_node.pods),
        }
    )
