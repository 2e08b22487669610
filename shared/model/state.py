"""State nodes: a Node and its NodeClaim as one thing, with the pods on it.

Until the Node is registered its claim speaks for it (labels, taints, name); afterwards the Node does. Until it is
initialized, startup taints and those that go by themselves are no obstacle, and what its kubelet has not reported yet
is taken from the claim. A claim without an instance is an in-flight node too: nothing is launched twice for its pods.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import (
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    HOSTNAME,
    INITIALIZED,
    NODEPOOL,
    NOMINATED_UNTIL,
    REGISTERED,
)
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Meta, is_true
from shared.model.pods import Pod
from shared.model.resources import PODS, Resources, resources, total
from shared.model.taints import Taint, is_ephemeral
from shared.model.units import parse_instant


class StateNode(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, as far as it is known; at least one of *node* and *claim* is there."""

    node: Node | None = None
    claim: NodeClaim | None = None
    pods: tuple[Pod, ...] = ()
    """Bound to the node, terminal ones included, sorted by name."""

    @property
    def name(self) -> str:
        """The Node's name once it is registered, else the claim's."""
        if self.claim is not None and not self.is_registered():
            return self.claim.name
        return self.node.name if self.node is not None else ""

    @property
    def meta(self) -> Meta:
        """Metadata of whoever speaks for it."""
        if self.node is not None and (self.claim is None or self.is_registered()):
            return self.node.meta
        if self.claim is not None:
            return self.claim.meta
        return Meta(name="")

    @property
    def provider_id(self) -> str:
        """``aws:///zone/i-…``, "" before launch."""
        if self.claim is not None and self.claim.provider_id:
            return self.claim.provider_id
        return self.node.provider_id if self.node is not None else ""

    @property
    def pool(self) -> str:
        """The NodePool's name, "" for a node that is not ours."""
        return self.meta.label(NODEPOOL)

    def is_managed(self) -> bool:
        """Whether it has a claim."""
        return self.claim is not None

    def is_registered(self) -> bool:
        """Whether the Node speaks for itself; a node that is not ours always does."""
        return self.claim is None or (self.node is not None and self.node.meta.label(REGISTERED) == "true")

    def is_initialized(self) -> bool:
        """Whether it is fit for use; a node that is not ours always is."""
        return self.claim is None or (self.node is not None and self.node.meta.label(INITIALIZED) == "true")

    def is_marked(self) -> bool:
        """Whether it is going: its claim is deleting or its instance ending, or it is a deleted Node without claim."""
        if self.claim is not None:
            return self.claim.is_deleting() or is_true(self.claim.conditions, "InstanceTerminating")
        return self.node is not None and self.node.meta.deleted_at is not None

    def nominated_until(self) -> datetime | None:
        """Answer until when pods are, or were, expected on it; None: they never were."""
        found: list[datetime] = []
        for owner in (self.node, self.claim):
            text = owner.meta.annotation(NOMINATED_UNTIL) if owner is not None else ""
            with suppress(ValueError):
                found += [parse_instant(text)] if text else []
        return max(found, default=None)

    def is_nominated(self, now: datetime) -> bool:
        """Whether pods are expected on it."""
        until = self.nominated_until()
        return until is not None and until > now

    def is_protected(self) -> bool:
        """Whether its do-not-disrupt annotation, or the older do-not-consolidate, is exactly ``true``."""
        return "true" in (self.meta.annotation(DO_NOT_DISRUPT), self.meta.annotation(DO_NOT_CONSOLIDATE))

    def labels(self) -> dict[str, str]:
        """Answer its labels, the hostname included."""
        labels = dict(self.meta.labels)
        labels.setdefault(HOSTNAME, self.name)
        return labels

    def taints(self) -> tuple[Taint, ...]:
        """Answer the taints that are an obstacle to a pod."""
        if self.claim is None:
            return self.node.taints if self.node is not None else ()
        current = self.node.taints if self.node is not None and self.is_registered() else self.claim.taints
        if self.is_initialized():
            return current
        startup = self.claim.startup_taints
        return tuple(
            taint for taint in current if not is_ephemeral(taint) and not any(taint.is_same(one) for one in startup)
        )

    def capacity(self) -> Resources:
        """Answer what it has in all."""
        return self._filled("capacity")

    def allocatable(self) -> Resources:
        """Answer what pods may have of it; a claim before launch has just what it was asked for."""
        if self.node is None and self.claim is not None and not self.claim.allocatable.amounts:
            return self.claim.requests
        return self._filled("allocatable")

    def used(self) -> Resources:
        """Answer what its pods request; those that terminate still count, those that ended do not."""
        return total(pod.spec.requests for pod in self.pods if not pod.is_terminal())

    def available(self) -> Resources:
        """Answer what is left."""
        return self.allocatable() - self.used()

    def _filled(self, field: str) -> Resources:
        own: Resources = getattr(self.node, field) if self.node is not None else Resources()
        if self.claim is None or self.is_initialized():
            return own
        expected: Resources = getattr(self.claim, field)
        return resources(dict(expected.amounts) | dict(own.amounts))


def state_nodes(cluster: Cluster) -> tuple[StateNode, ...]:
    """Join Nodes and NodeClaims by provider id, with their pods; sorted by name, claims without Node among them."""
    on_node = pods_by_node(cluster.pods)
    claims = {claim.provider_id: claim for claim in cluster.node_claims if claim.provider_id}
    by_name = {claim.node_name: claim for claim in cluster.node_claims if claim.node_name}
    joined: list[StateNode] = []
    met: set[str] = set()
    for node in cluster.nodes:
        claim = claims.get(node.provider_id) if node.provider_id else by_name.get(node.name)
        if claim is not None:
            met.add(claim.name)
        joined.append(StateNode(node=node, claim=claim, pods=on_node.get(node.name, ())))
    joined.extend(StateNode(claim=claim) for claim in cluster.node_claims if claim.name not in met)
    return tuple(sorted(joined, key=lambda state: (state.name, state.provider_id)))


def pods_by_node(pods: Iterable[Pod]) -> Mapping[str, tuple[Pod, ...]]:
    """Answer the bound pods by their node's name, in the given order."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name:
            found.setdefault(pod.node_name, []).append(pod)
    return {name: tuple(some) for name, some in found.items()}


def pod_digest(pods: Iterable[Pod]) -> str:
    """Answer what changes when a pod comes, ends or begins to go: daemons do not count, order neither."""
    lines = sorted(
        f"{pod.meta.uid} {pod.is_terminal():d}{pod.is_terminating():d}" for pod in pods if not pod.is_daemon()
    )
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def pool_usage(states: Iterable[StateNode], pool: str) -> Resources:
    """Answer the raw capacity of the pool's machines that are not going, with `nodes`; what limits are held against."""
    mine = [state for state in states if state.pool == pool and not state.is_marked()]
    return total(resources(dict(_raw(state).amounts) | {"nodes": 1}) for state in mine)


def _raw(state: StateNode) -> Resources:
    capacity = state.capacity()
    if capacity.amounts or state.claim is None:
        return capacity
    return resources({name: amount for name, amount in state.claim.requests.amounts if name != PODS})
