"""Which nodes may be disrupted by choice at all, and for each of the others the first thing that forbids it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from shared.disruption.budgets import is_going
from shared.disruption.prices import PriceList
from shared.lifecycle.guards import Guards, guards_of
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim
from shared.model.pods import Pod
from shared.model.state import StateNode, state_nodes

Class: TypeAlias = Literal["graceful", "eventual"]
"""Eventual disruption (drift) lets pods be in the way if the claim has a termination grace period."""


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A node that no method may touch."""

    node: str
    reason: str
    message: str

    @property
    def verdict(self) -> Literal["blocked"]:
        """In one word."""
        return "blocked"

    @property
    def why(self) -> str:
        """Reason and message."""
        return f"{self.reason}: {self.message}"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may be disrupted."""

    state: StateNode
    node: Node
    claim: NodeClaim
    pool: NodePool
    reschedulable: tuple[Pod, ...]
    """The pods that would need another place."""
    price_usd_per_hour: float
    """0 where it is not known."""

    @property
    def name(self) -> str:
        """The Node's name."""
        return self.node.name

    @property
    def reschedule_cost(self) -> float:
        """What it costs to move its pods."""
        return reschedule_cost(self.reschedulable)

    @property
    def savings_ratio(self) -> float:
        """USD per hour for each unit of disruption."""
        return self.price_usd_per_hour / self.reschedule_cost

    @property
    def capacity_type(self) -> str:
        """As its label says."""
        return self.node.meta.label(CAPACITY_TYPE)

    @property
    def instance_type(self) -> str:
        """As its label says."""
        return self.node.meta.label(INSTANCE_TYPE)

    def is_empty(self) -> bool:
        """Whether there is no pod that it costs anything to move."""
        return self.reschedule_cost <= 1.0


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot, indexed for the methods; *states* sorted by name."""

    cluster: Cluster
    states: tuple[StateNode, ...]
    pools: Mapping[str, NodePool]
    guards: Guards
    nominated: frozenset[str]
    prices: PriceList
    unread: Mapping[str, str]
    """By Node, a pod there that cannot be read."""

    @property
    def now(self) -> datetime:
        """When the snapshot was taken."""
        return self.cluster.taken_at


def field_of(cluster: Cluster, nominated: frozenset[str] = frozenset()) -> Field:
    """Index the snapshot; *nominated* are names of state nodes that pending pods are planned on."""
    return Field(
        cluster=cluster,
        states=state_nodes(cluster),
        pools={pool.name: pool for pool in cluster.node_pools if pool.node_class.is_supported()},
        guards=guards_of(cluster.budgets),
        nominated=nominated,
        prices=PriceList(cluster.catalogue),
        unread=_unread(cluster),
    )


def _unread(cluster: Cluster) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in sorted(cluster.problems):
        if one.kind == "Pod" and one.node:
            found.setdefault(one.node, one.name)
    return found


def assess(state: StateNode, field: Field, class_: Class = "graceful") -> Candidate | Blocked:
    """Answer the candidate that *state* is, or the first objection in Karpenter's order."""
    node, claim, pool = state.node, state.claim, field.pools.get(state.meta.label(NODEPOOL))
    for check in _CHECKS:
        if objection := check(state, field):
            return Blocked(node=state.name, reason=objection[0], message=objection[1])
    if node is None or claim is None or pool is None:
        name = state.meta.label(NODEPOOL)
        return Blocked(node=state.name, reason="NodePoolNotFound", message=f"NodePool not found (NodePool={name})")
    if node.name in field.unread:
        message = f"pod {field.unread[node.name]} cannot be read"
        return Blocked(node=state.name, reason="PodUnreadable", message=message)
    objection = pods_in_the_way(state.pods, field.guards, field.now)
    if objection and not (class_ == "eventual" and claim.termination_grace_period is not None):
        return Blocked(node=state.name, reason=objection[0], message=objection[1])
    return Candidate(
        state=state,
        node=node,
        claim=claim,
        pool=pool,
        reschedulable=tuple(pod for pod in state.pods if pod.is_reschedulable()),
        price_usd_per_hour=field.prices.price(state.meta, pool.node_class.name),
    )


def reschedule_cost(pods: Iterable[Pod]) -> float:
    """Answer 1 for the node, and what hurts about each of *pods* that would need another place."""
    return 1.0 + sum(max(0.0, pod.eviction_cost()) for pod in pods if pod.is_reschedulable())


def pods_in_the_way(pods: Iterable[Pod], guards: Guards, now: datetime) -> tuple[str, str] | None:
    """Answer reason and message of the first pod that must not be disturbed, or may not be evicted at present."""
    some = sorted(pods, key=lambda pod: (pod.name, pod.meta.uid))
    for pod in some:
        if not pod.is_disruptable(now):
            return "PodBlocksEviction", f"pod {pod.name} has the annotation karpenter.sh/do-not-disrupt"
    for pod in some:
        if refusal := guards.refusal(pod, now):
            return "PodBlocksEviction", refusal
    return None


_Objection: TypeAlias = tuple[str, str] | None


def _unmanaged(state: StateNode, _: Field) -> _Objection:
    return ("NotManaged", "node isn't managed by karpenter") if state.claim is None else None


def _without_node(state: StateNode, _: Field) -> _Objection:
    return ("NoNode", "nodeclaim does not have an associated node") if state.node is None else None


def _uninitialized(state: StateNode, _: Field) -> _Objection:
    return None if state.is_initialized() else ("NotInitialized", "node isn't initialized")


def _marked(state: StateNode, _: Field) -> _Objection:
    return ("Deleting", "node is deleting or marked for deletion") if is_going(state) else None


def _nominated(state: StateNode, field: Field) -> _Objection:
    expected = state.name in field.nominated or state.is_nominated(field.now)
    return ("Nominated", "node is nominated for a pending pod") if expected else None


def _protected(state: StateNode, _: Field) -> _Objection:
    message = "disruption is blocked through the karpenter.sh/do-not-disrupt annotation"
    return ("DoNotDisrupt", message) if state.is_protected() else None


def _poolless(state: StateNode, _: Field) -> _Objection:
    return None if state.pool else ("NoNodePool", f"node has no label {NODEPOOL}")


_CHECKS: Final[tuple[Callable[[StateNode, Field], _Objection], ...]] = (
    _unmanaged,
    _without_node,
    _uninitialized,
    _marked,
    _nominated,
    _protected,
    _poolless,
)
