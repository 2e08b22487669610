"""NodeClaim states: each NodeClaim with its Nodes, their pods and its instance."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODECLASS, REGISTERED, TERMINATION_FINALIZER
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod

_get_pod_key: Final = attrgetter("meta.namespace", "meta.name", "meta.uid")
"""Faster than a function: all pods of the cluster are sorted in each run."""


class NodeClaimState(msgspec.Struct, frozen=True, kw_only=True):
    """One NodeClaim with its Nodes and pods, both sorted by name."""

    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()

    def list_held_nodes(self) -> tuple[Node, ...]:
        """Return the Nodes that our finalizer holds."""
        return tuple(node for node in self.nodes if is_held(node))

    def has_registered(self) -> bool:
        """Return whether a Node of the NodeClaim was ever registered, so that we must drain it."""
        is_marked = any(is_held(node) or node.meta.get_label(REGISTERED) == "true" for node in self.nodes)
        return is_marked or self.claim.is_registered()

    def get_launch_time(self, now: datetime) -> datetime:
        """Return when the NodeClaim's instance was launched, as far as its conditions say."""
        launched = find_condition(self.claim.conditions, "Launched")
        return (launched.since if launched is not None else None) or self.claim.meta.created_at or now


def is_held(node: Node) -> bool:
    """Return whether our finalizer holds the Node."""
    return TERMINATION_FINALIZER in node.meta.finalizers


def is_ours(node: Node) -> bool:
    """Return whether the Node has the label of an EC2NodeClass."""
    return any(key == NODECLASS for key, _ in node.meta.labels)


def build_claim_states(
    cluster: ClusterSnapshot, pods_by_node: Mapping[str, tuple[Pod, ...]]
) -> tuple[NodeClaimState, ...]:
    """Join the NodeClaims of supported node classes with their Nodes, by provider id; sorted by name."""
    nodes_by_provider_id: dict[str, list[Node]] = {}
    node_by_name: dict[str, Node] = {}
    for node in sorted(cluster.nodes, key=lambda node: node.name):
        if node.provider_id:
            nodes_by_provider_id.setdefault(node.provider_id, []).append(node)
        else:
            node_by_name[node.name] = node
    claims = sorted(cluster.node_claims, key=lambda claim: claim.name)
    nodes_by_claim = (
        (claim, _find_nodes(claim, nodes_by_provider_id, node_by_name))
        for claim in claims
        if claim.node_class.is_supported()
    )
    return tuple(
        NodeClaimState(
            claim=claim,
            nodes=nodes,
            pods=tuple(pod for node in nodes for pod in sort_pods(pods_by_node.get(node.name, ()))),
        )
        for claim, nodes in nodes_by_claim
    )


def map_nodes_to_claims(cluster: ClusterSnapshot) -> dict[str, str]:
    """Return the name of the NodeClaim of each Node that has one, by the Node's name."""
    claims = sorted(cluster.node_claims, key=lambda claim: claim.name, reverse=True)  # the first name counts
    claim_by_provider_id = {claim.provider_id: claim.name for claim in claims if claim.provider_id}
    claim_by_node_name = {claim.node_name: claim.name for claim in claims if claim.node_name}
    return {
        node.name: claim
        for node in cluster.nodes
        if (claim := claim_by_provider_id.get(node.provider_id) or claim_by_node_name.get(node.name))
    }


def sort_pods(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return *pods*, sorted by namespace and name."""
    return tuple(sorted(pods, key=_get_pod_key))


def _find_nodes(
    claim: NodeClaim, nodes_by_provider_id: Mapping[str, list[Node]], node_by_name: Mapping[str, Node]
) -> tuple[Node, ...]:
    if claim.provider_id in nodes_by_provider_id:
        return tuple(nodes_by_provider_id[claim.provider_id])
    return (node_by_name[claim.node_name],) if claim.node_name in node_by_name else ()


def compute_consolidatable_time(claim: NodeClaim, pool: NodePool) -> datetime | None:
    """Return when the NodeClaim has had no pod event for consolidateAfter; None: never, or not initialized."""
    initialized = find_condition(claim.conditions, "Initialized")
    if pool.consolidate_after is None or initialized is None or not is_condition_true(claim.conditions, "Initialized"):
        return None
    start = claim.last_pod_event_at or initialized.since or claim.meta.created_at
    return start + pool.consolidate_after if start is not None else None
