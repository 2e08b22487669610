"""Machines: each NodeClaim with its Nodes, their pods and its instance; and the snapshot as the steps look at it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from shared.lifecycle.guards import Guards, guards_of
from shared.model.action import Action, NominatePod
from shared.model.cluster import Cluster
from shared.model.ec2 import Instance
from shared.model.labels import NODECLASS, NODEPOOL, REGISTERED, TERMINATION_FINALIZER
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import condition, is_true
from shared.model.pods import Pod
from shared.model.state import pods_by_node

SETTLED: Final = timedelta(seconds=60)
"""How old a launch must be before it says something that EC2 does not list it, or no claim has it: lists lag."""
ENDING: Final = ("shutting-down", "terminated")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One NodeClaim and what belongs to it; Nodes and pods sorted by name."""

    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()

    def held_nodes(self) -> tuple[Node, ...]:
        """Answer the Nodes that our finalizer holds."""
        return tuple(node for node in self.nodes if is_held(node))

    def has_joined(self) -> bool:
        """Whether a Node of it was ever ours to drain."""
        marked = any(is_held(node) or node.meta.label(REGISTERED) == "true" for node in self.nodes)
        return marked or self.claim.is_registered()

    def launched_at(self, now: datetime) -> datetime:
        """Answer when its instance was started, to our knowledge."""
        launched = condition(self.claim.conditions, "Launched")
        return (launched.since if launched is not None else None) or self.claim.meta.created_at or now


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot, indexed once for all steps."""

    cluster: Cluster
    cluster_name: str = ""
    instances: Mapping[str, Instance] | None
    """By id; None: not seen, or not to be believed."""
    pools: Mapping[str, NodePool]
    guards: Guards
    closed: frozenset[str] = frozenset()
    """Names of Nodes that are not to be opened yet."""
    places: Mapping[str, tuple[NominatePod, ...]] = MappingProxyType({})
    """By Node: what its pods are to be told before it is opened."""
    awaited: Mapping[str, str] = MappingProxyType({})
    """By pod, as ``shop/cart``: the claim whose node was made for it and is not fit for use yet."""

    @property
    def now(self) -> datetime:
        """When the snapshot was taken."""
        return self.cluster.taken_at

    def is_gone(self, instance_id: str, launched_at: datetime) -> bool:
        """Whether EC2 was seen to have it no more."""
        if self.instances is None:
            return False
        instance = self.instances.get(instance_id)
        if instance is None:
            return self.now - launched_at > SETTLED
        return instance.state == "terminated"

    def is_ending(self, instance_id: str) -> bool:
        """Whether EC2 was seen to end it already."""
        instance = (self.instances or {}).get(instance_id)
        return instance is not None and instance.state in ENDING

    def unread(self, kind: str) -> frozenset[str]:
        """Answer the names of those of *kind* that are there but cannot be read: they are not gone."""
        return frozenset(one.name for one in self.cluster.problems if one.kind == kind)

    def unread_pods(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        """Answer the pods on *nodes* that cannot be read, sorted."""
        names = {node.name for node in nodes}
        return tuple(sorted(one.name for one in self.cluster.problems if one.kind == "Pod" and one.node in names))

    def may_hide_a_node(self, claim: NodeClaim) -> bool:
        """Whether a Node that cannot be read is, or may be, that of *claim*."""
        unread = self.unread("Node")
        instance = (self.instances or {}).get(claim.instance_id)
        if not unread or (instance is None and not claim.node_name):
            return bool(unread)
        names = {claim.node_name, claim.instance_id, instance.private_dns_name if instance is not None else ""}
        return bool(names & unread)

    def pool_of(self, claim: NodeClaim) -> NodePool | None:
        """Answer the claim's NodePool, if it has one that is there."""
        return self.pools.get(claim.meta.label(NODEPOOL))


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a step comes to: the claim as its status is to be, and what is done before and after that is written."""

    claim: NodeClaim
    before: tuple[Action, ...] = ()
    after: tuple[Action, ...] = ()
    waits: bool = False
    """Whether the steps behind this one have to wait for another call."""


Step: TypeAlias = Callable[[Machine, View], Change]


def follow(steps: Iterable[Step], machine: Machine, view: View) -> Change:
    """Take *steps* one after the other, each on the claim as the one before left it, until one waits."""
    before: list[Action] = []
    after: list[Action] = []
    for step in steps:
        change = step(machine, view)
        machine = msgspec.structs.replace(machine, claim=change.claim)
        before.extend(change.before)
        after.extend(change.after)
        if change.waits:
            break
    return Change(claim=machine.claim, before=tuple(before), after=tuple(after))


def is_held(node: Node) -> bool:
    """Whether our finalizer holds the Node."""
    return TERMINATION_FINALIZER in node.meta.finalizers


def is_ours(node: Node) -> bool:
    """Whether the Node carries the label of a node class that we run."""
    return any(key == NODECLASS for key, _ in node.meta.labels)


def view_of(
    cluster: Cluster,
    cluster_name: str = "",
    closed: frozenset[str] = frozenset(),
    places: Mapping[str, tuple[NominatePod, ...]] = MappingProxyType({}),
    awaited: Mapping[str, str] = MappingProxyType({}),
) -> View:
    """Index the snapshot; the Nodes *closed* are not to be opened yet, the others with *places* for their pods.

    Pods that run have a new node on its way where it is *awaited*.
    """
    instances = None if cluster.instances is None or is_suspicious(cluster) else cluster.instances
    return View(
        cluster=cluster,
        cluster_name=cluster_name,
        instances=None if instances is None else {one.instance_id: one for one in instances},
        pools={pool.name: pool for pool in cluster.node_pools if pool.node_class.is_supported()},
        guards=guards_of(cluster.budgets),
        closed=closed,
        places=places,
        awaited=awaited,
    )


def is_suspicious(cluster: Cluster) -> bool:
    """Whether EC2 says that we have nothing, while Nodes of ours are Ready that nobody has ended, or cannot be read."""
    if cluster.instances != ():
        return False
    hidden = any(problem.kind in ("Node", "NodeClaim") for problem in cluster.problems)
    return hidden or any(_is_alive(machine) for machine in machines_of(cluster))


def _is_alive(machine: Machine) -> bool:
    ended = is_true(machine.claim.conditions, "InstanceTerminating")
    return not ended and machine.has_joined() and any(node.is_ready() for node in machine.nodes)


def machines_of(cluster: Cluster) -> tuple[Machine, ...]:
    """Join the NodeClaims of node classes that we run with their Nodes, by provider id; sorted by name."""
    by_provider: dict[str, list[Node]] = {}
    by_name: dict[str, Node] = {}
    for node in sorted(cluster.nodes, key=lambda node: node.name):
        if node.provider_id:
            by_provider.setdefault(node.provider_id, []).append(node)
        else:
            by_name[node.name] = node
    pods = pods_by_node(sorted(cluster.pods, key=lambda pod: (pod.name, pod.meta.uid)))
    claims = sorted(cluster.node_claims, key=lambda claim: claim.name)
    joined = ((claim, _nodes_of(claim, by_provider, by_name)) for claim in claims if claim.node_class.is_supported())
    return tuple(
        Machine(claim=claim, nodes=nodes, pods=tuple(pod for node in nodes for pod in pods.get(node.name, ())))
        for claim, nodes in joined
    )


def _nodes_of(claim: NodeClaim, by_provider: Mapping[str, list[Node]], by_name: Mapping[str, Node]) -> tuple[Node, ...]:
    if claim.provider_id in by_provider:
        return tuple(by_provider[claim.provider_id])
    return (by_name[claim.node_name],) if claim.node_name in by_name else ()
