"""Predict the cluster after proposed commands are completed and nothing else has changed.

Used to simulate several disruption steps ahead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.scheduling.templates.node_claim_builder import build_node_claim
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    POD_DIGEST,
    REGISTERED,
    ZONE,
    ZONE_ID,
)
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.decisions.placement import NewNodeClaim
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState

MAX_RUNS_AHEAD: Final = 10
"""Number of further runs in which a result is continued."""
CLAIM_CONDITION_TYPES = ("Consolidatable", "Initialized", "Launched", "Ready", "Registered")


def predict_cluster_after(cluster: ClusterSnapshot, proposed_commands: Iterable[ProposedCommand]) -> ClusterSnapshot:
    """Return *cluster* after *proposed_commands*: each new node is its cheapest offering and is initialized.

    Moved pods are on their planned nodes. Pods of removed nodes that were not moved become pending if a controller
    recreates them; the other pods are gone.
    """
    commands = list(proposed_commands)
    removed_nodes = {target.name for draft in commands for target in draft.targets}
    removed_claims = {target.claim.name for draft in commands for target in draft.targets}
    node_by_pod = {pod: home for draft in commands for pod, home in draft.moves}
    new_pairs = [_build_initialized_node(node, cluster) for draft in commands for node in draft.new_nodes]
    new_pairs += [
        _build_static_replacement(node.node, claim)
        for draft in commands
        for node, claim in zip(draft.targets, draft.static_claims, strict=False)
    ]
    nodes = [target for target in cluster.nodes if target.name not in removed_nodes] + [node for node, _ in new_pairs]
    node_claims = [_without_pod_digest(claim) for claim in cluster.node_claims if claim.name not in removed_claims] + [
        claim for _, claim in new_pairs
    ]
    pods = (_reassign_pod(pod, node_by_pod, removed_nodes) for pod in cluster.pods)
    return replace(
        cluster,
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        node_claims=tuple(sorted(node_claims, key=lambda claim: claim.name)),
        pods=tuple(pod for pod in pods if pod is not None),
    )


def find_end(
    cluster_state: ClusterState,
    proposed_commands: Iterable[ProposedCommand],
    decide: Callable[[ClusterState], Sequence[ProposedCommand]],
    is_over: Callable[[], bool],
) -> list[ProposedCommand] | None:
    """Return *proposed_commands* and those that *decide* returns in further runs, until there are none.

    Nothing else changes in the cluster. The result is None if the time is over before.
    """
    all_commands, next_commands = list[ProposedCommand](), list(proposed_commands)
    for _ in range(MAX_RUNS_AHEAD):
        all_commands += next_commands
        cluster_state = ClusterState(predict_cluster_after(cluster_state.snapshot, next_commands))
        next_commands = list(decide(cluster_state))
        if is_over():
            return None
        if not next_commands:
            break
    return all_commands


def _reassign_pod(pod: Pod, node_by_pod: Mapping[str, str], removed_nodes: set[str]) -> Pod | None:
    if pod.node_name not in removed_nodes:
        return pod
    if pod.name in node_by_pod:
        return replace(pod, node_name=node_by_pod[pod.name])
    if not is_reschedulable(pod):
        return None
    conditions = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
    return replace(pod, node_name="", phase="Pending", conditions=conditions)


def _without_pod_digest(claim: NodeClaim) -> NodeClaim:
    """Return *claim* without its pod digest annotation, as if the node's pods had not changed for a long time."""
    annotations = tuple(pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST)
    return (
        claim
        if annotations == claim.meta.annotations
        else replace(claim, meta=replace(claim.meta, annotations=annotations))
    )


def _build_initialized_node(new_node: NewNodeClaim, cluster: ClusterSnapshot) -> tuple[Node, NodeClaim]:
    pool = next(node_pool for node_pool in cluster.node_pools if node_pool.name == new_node.node_pool)
    claim = build_node_claim(new_node, pool, cluster)
    types = cluster.catalog.get_instance_types(pool.node_class.name, pool.name) if cluster.catalog is not None else ()
    instance_type = next(
        candidate_type for candidate_type in types if candidate_type.name == new_node.cheapest.instance_type
    )
    labels = (
        dict(claim.meta.labels)
        | _build_labels(instance_type, new_node)
        | {HOSTNAME: new_node.name, REGISTERED: "true", INITIALIZED: "true"}
    )
    provider_id = f"aws:///{new_node.cheapest.zone}/i-{sha256(new_node.name.encode()).hexdigest()[:17]}"
    conditions = tuple(
        Condition(type=condition_type, status="True", reason="Expected", since=cluster.taken_at)
        for condition_type in CLAIM_CONDITION_TYPES
    )
    meta = ObjectMeta(name=new_node.name, uid=new_node.name, created_at=cluster.taken_at, labels=build_pairs(labels))
    node = Node(
        meta=meta,
        provider_id=provider_id,
        taints=pool.taints,
        capacity=instance_type.capacity,
        allocatable=instance_type.allocatable,
        conditions=(Condition(type="Ready", status="True"),),
    )
    annotations = tuple(pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST)
    node_claim = replace(
        claim,
        meta=replace(
            claim.meta,
            uid=new_node.name,
            created_at=cluster.taken_at,
            labels=build_pairs(labels),
            annotations=annotations,
        ),
        node_name=new_node.name,
        provider_id=provider_id,
        capacity=instance_type.capacity,
        allocatable=instance_type.allocatable,
        conditions=conditions,
    )
    return node, node_claim


def _build_labels(instance_type: InstanceType, new_node: NewNodeClaim) -> dict[str, str]:
    """Return the labels of a node of *instance_type* that is launched as the cheapest offering of *new_node*."""
    labels = {
        item.key: next(iter(item.values))
        for item in instance_type.requirements
        if not item.complement and len(item.values) == 1
    }
    labels |= {
        item.key: next(iter(item.values))
        for item in new_node.requirements
        if not item.complement and len(item.values) == 1 and item.key != HOSTNAME
    }
    zone_id = next(
        (
            offering.zone_id
            for offering in instance_type.offerings
            if offering.zone == new_node.cheapest.zone and offering.zone_id
        ),
        "",
    )
    well_known_labels = {
        INSTANCE_TYPE: instance_type.name,
        ZONE: new_node.cheapest.zone,
        CAPACITY_TYPE: new_node.cheapest.capacity_type,
    }
    return labels | well_known_labels | ({ZONE_ID: zone_id} if zone_id else {})


def _build_static_replacement(old_node: Node, claim: NodeClaim) -> tuple[Node, NodeClaim]:
    """Return the node and the initialized *claim* of a static pool, on an instance like that of *old_node*."""
    labels = build_pairs(dict(old_node.meta.labels) | dict(claim.meta.labels) | {HOSTNAME: claim.name})
    provider_id = f"{old_node.provider_id.rpartition('/')[0]}/i-{sha256(claim.name.encode()).hexdigest()[:17]}"
    node = replace(
        old_node, meta=replace(old_node.meta, name=claim.name, uid=claim.name, labels=labels), provider_id=provider_id
    )
    conditions = tuple(
        Condition(type=condition_type, status="True", reason="Expected") for condition_type in CLAIM_CONDITION_TYPES
    )
    node_claim = replace(
        claim,
        meta=replace(claim.meta, uid=claim.name, labels=labels),
        node_name=claim.name,
        provider_id=provider_id,
        capacity=old_node.capacity,
        allocatable=old_node.allocatable,
        conditions=conditions,
    )
    return node, node_claim
