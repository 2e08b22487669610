"""State nodes: a Node and its NodeClaim as one value, with the pods on it.

Until the Node is registered, labels, taints and name are those of its NodeClaim; afterwards those of the Node. Until it
is initialized, startup taints and ephemeral taints are ignored, and resources that its kubelet has not reported yet are
those of the NodeClaim. A NodeClaim without an instance is an in-flight node too: nothing is launched twice for its
pods.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    HOSTNAME,
    INITIALIZED,
    NODEPOOL,
    NOMINATED_UNTIL,
    REGISTERED,
)
from shared.model.core.metadata import ObjectMeta, is_condition_true
from shared.model.core.resources import PODS, Resources, build_resources, sum_resources
from shared.model.core.taints import Taint, is_ephemeral
from shared.model.core.units import parse_instant
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.other_providers import is_of_other_provider
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod


class StateNode(msgspec.Struct, frozen=True, kw_only=True):
    """A Node, its NodeClaim, or both joined; at least one of *node* and *claim* is present."""

    node: Node | None = None
    claim: NodeClaim | None = None
    pods: tuple[Pod, ...] = ()
    """Bound to the node, terminal pods included, sorted by name."""

    @property
    def name(self) -> str:
        """The Node's name once it is registered, else the NodeClaim's."""
        if self.claim is not None and not self.is_registered():
            return self.claim.name
        return self.node.name if self.node is not None else ""

    @property
    def meta(self) -> ObjectMeta:
        """The metadata of the Node once it is registered, else of the NodeClaim."""
        if self.node is not None and (self.claim is None or self.is_registered()):
            return self.node.meta
        if self.claim is not None:
            return self.claim.meta
        return ObjectMeta(name="")

    @property
    def provider_id(self) -> str:
        """``aws:///zone/i-…``, "" before launch."""
        if self.claim is not None and self.claim.provider_id:
            return self.claim.provider_id
        return self.node.provider_id if self.node is not None else ""

    @property
    def pool(self) -> str:
        """The NodePool's name, "" for a node that Joiner does not manage."""
        return "" if self.claim is None and is_of_other_provider(self.meta) else self.meta.get_label(NODEPOOL)

    def is_registered(self) -> bool:
        """Return whether the Node is registered; a node that Joiner does not manage always is."""
        return self.claim is None or (self.node is not None and self.node.meta.get_label(REGISTERED) == "true")

    def is_initialized(self) -> bool:
        """Return whether the node is initialized; a node that Joiner does not manage always is."""
        return self.claim is None or (self.node is not None and self.node.meta.get_label(INITIALIZED) == "true")

    def is_marked_for_deletion(self) -> bool:
        """Return whether it is terminating.

        Its NodeClaim is deleting, its instance is terminating, or it is a deleted Node without NodeClaim.
        """
        if self.claim is not None:
            return self.claim.is_deleting() or is_condition_true(self.claim.conditions, "InstanceTerminating")
        return self.node is not None and self.node.meta.deleted_at is not None

    def get_nominated_until(self) -> datetime | None:
        """Return when the nomination of pods ends, or ended; None if there was none."""
        nomination_ends: list[datetime] = []
        for owner in (self.node, self.claim):
            text = owner.meta.get_annotation(NOMINATED_UNTIL) if owner is not None else ""
            with suppress(ValueError):
                nomination_ends += [parse_instant(text)] if text else []
        return max(nomination_ends, default=None)

    def is_nominated(self, now: datetime) -> bool:
        """Return whether pods are nominated on it."""
        until = self.get_nominated_until()
        return until is not None and until > now

    def build_labels(self) -> dict[str, str]:
        """Return its labels, including the hostname."""
        labels = dict(self.meta.labels)
        labels.setdefault(HOSTNAME, self.name)
        return labels

    def list_taints(self) -> tuple[Taint, ...]:
        """Return the taints that a pod must tolerate."""
        if self.claim is None:
            return self.node.taints if self.node is not None else ()
        current = self.node.taints if self.node is not None and self.is_registered() else self.claim.taints
        if self.is_initialized():
            return current
        startup_taints = self.claim.startup_taints
        return tuple(
            taint
            for taint in current
            if not is_ephemeral(taint) and not any(taint.is_same(startup_taint) for startup_taint in startup_taints)
        )

    def compute_capacity(self) -> Resources:
        """Return the node's total resources."""
        return self._merge_resources("capacity")

    def compute_allocatable(self) -> Resources:
        """Return the resources for pods; for a NodeClaim before launch, the resources it requests."""
        if self.node is None and self.claim is not None and not self.claim.allocatable.amounts:
            return self.claim.requests
        return self._merge_resources("allocatable")

    def sum_pod_requests(self) -> Resources:
        """Return the sum of its pods' requests; terminating pods count, ended pods do not."""
        return sum_resources(pod.spec.requests for pod in self.pods if not pod.is_terminal())

    def compute_available(self) -> Resources:
        """Return the allocatable resources minus the pods' requests."""
        return self.compute_allocatable() - self.sum_pod_requests()

    def _merge_resources(self, field: str) -> Resources:
        own_resources: Resources = getattr(self.node, field) if self.node is not None else Resources()
        if self.claim is None or self.is_initialized():
            return own_resources
        expected: Resources = getattr(self.claim, field)
        return build_resources(dict(expected.amounts) | dict(own_resources.amounts))


def build_state_nodes(cluster: ClusterSnapshot, pods_by_node: Mapping[str, tuple[Pod, ...]]) -> tuple[StateNode, ...]:
    """Join Nodes and NodeClaims by provider id, with their pods; sorted by name, NodeClaims without Node included."""
    claim_by_provider_id = {claim.provider_id: claim for claim in cluster.node_claims if claim.provider_id}
    claim_by_node_name = {claim.node_name: claim for claim in cluster.node_claims if claim.node_name}
    state_node_list: list[StateNode] = []
    joined_claims: set[str] = set()
    for node in cluster.nodes:
        claim = claim_by_provider_id.get(node.provider_id) if node.provider_id else claim_by_node_name.get(node.name)
        if claim is not None:
            joined_claims.add(claim.name)
        state_node_list.append(StateNode(node=node, claim=claim, pods=pods_by_node.get(node.name, ())))
    state_node_list.extend(StateNode(claim=claim) for claim in cluster.node_claims if claim.name not in joined_claims)
    return tuple(sorted(state_node_list, key=lambda state: (state.name, state.provider_id)))


def group_pods_by_node(pods: Iterable[Pod]) -> Mapping[str, tuple[Pod, ...]]:
    """Return the bound pods by the name of their node, in the given order."""
    pods_by_name: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name:
            pods_by_name.setdefault(pod.node_name, []).append(pod)
    return {name: tuple(node_pods) for name, node_pods in pods_by_name.items()}


def compute_pod_digest(pods: Iterable[Pod]) -> str:
    """Return a digest that changes when a pod is bound, ends or begins to terminate.

    DaemonSet pods and the order of the pods are ignored.
    """
    lines = sorted(
        pod.meta.uid + (" 00" if pod.is_active() else f" {pod.is_terminal():d}{pod.is_terminating():d}")
        for pod in pods
        if not pod.is_daemon()
    )
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def compute_pool_usage(states: Iterable[StateNode], pool: str) -> Resources:
    """Return the capacity of the NodePool's nodes that are not terminating, with `nodes`.

    Limits are compared with it.
    """
    pool_nodes = [state for state in states if state.pool == pool and not state.is_marked_for_deletion()]
    return sum_resources(build_resources(dict(_get_raw_capacity(state).amounts) | {"nodes": 1}) for state in pool_nodes)


def _get_raw_capacity(state: StateNode) -> Resources:
    capacity = state.compute_capacity()
    if capacity.amounts or state.claim is None:
        return capacity
    return build_resources({name: amount for name, amount in state.claim.requests.amounts if name != PODS})


def is_deleting_or_marked(state: StateNode) -> bool:
    """Return whether the node is deleting or marked for deletion, or its Node object is deleting.

    In the last case its NodeClaim is about to be deleted as well.
    """
    return state.is_marked_for_deletion() or (state.node is not None and state.node.meta.deleted_at is not None)
