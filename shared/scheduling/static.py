"""Static NodePools: as many nodes as spec.replicas says, whether pods need them or not.

A claim is named after its slot, so whoever decides on the same or an older look makes the same claims and no more.
A claim that cannot be read is there all the same.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import count, islice
from typing import Final

import msgspec

from shared.model.action import Action, CreateNodeClaim, DeleteObject, FollowUp
from shared.model.cluster import Cluster
from shared.model.holds import launches_held
from shared.model.labels import INSTANCE_TYPE, MIN_VALUES_RELAXED, NODEPOOL, NOMINATED_PODS
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import is_true
from shared.model.resources import NODES
from shared.model.state import StateNode, state_nodes
from shared.scheduling.claims import claim_for
from shared.scheduling.placement import Choice, NewNode
from shared.scheduling.templates import described

MOST: Final = 100
"""So many claims of a pool are made in one cycle."""
SOON: Final = timedelta(seconds=5)
_NOTHING: Final = Choice(instance_type="", zone="", capacity_type="", price_usd_per_hour=0.0)


class Staff(msgspec.Struct, frozen=True, kw_only=True):
    """The machines of a static pool that are not going."""

    pool: NodePool
    running: tuple[StateNode, ...]
    replaced: int
    """How many are being disrupted: each has, or will have, a replacement among those that run."""
    unread: int
    """Claims that cannot be read."""

    @property
    def missing(self) -> int:
        """How many are to be made; the limit of nodes is never exceeded."""
        there = len(self.running) + self.replaced + self.unread
        wanted = (self.pool.replicas or 0) - there
        limits = dict(self.pool.limits.amounts) if self.pool.limits is not None else {}
        return max(0, min(wanted, limits.get(NODES, wanted + there) - there))

    @property
    def surplus(self) -> int:
        """How many are to go."""
        return max(0, len(self.running) + self.unread - (self.pool.replicas or 0))


def staffs(cluster: Cluster) -> tuple[Staff, ...]:
    """Answer what each static pool has, sorted by name; none if claims cannot be seen."""
    if cluster.lacks("nodeclaims.karpenter.sh"):
        return ()
    states = [state for state in state_nodes(cluster) if state.claim is not None and not state.is_marked()]
    pools = (pool for pool in cluster.node_pools if pool.replicas is not None and pool.meta.deleted_at is None)
    return tuple(_staff(pool, states, cluster) for pool in sorted(pools, key=lambda pool: pool.name))


def _staff(pool: NodePool, states: Iterable[StateNode], cluster: Cluster) -> Staff:
    mine = [state for state in states if state.claim is not None and state.claim.meta.label(NODEPOOL) == pool.name]
    running = tuple(state for state in mine if not _is_replaced(state))
    unread = sum(one.kind == "NodeClaim" and one.name.startswith(f"{pool.name}-") for one in cluster.problems)
    return Staff(pool=pool, running=running, replaced=len(mine) - len(running), unread=unread)


def _is_replaced(state: StateNode) -> bool:
    return state.claim is not None and is_true(state.claim.conditions, "DisruptionReason")


def wants_change(cluster: Cluster) -> str:
    """Answer which static pool has not what it should have, "" if none."""
    for one in staffs(cluster):
        if one.missing or one.surplus:
            return f"NodePool {one.pool.name} is to have {one.pool.replicas} nodes"
    return ""


def decide_static(cluster: Cluster) -> tuple[Action, ...]:
    """Answer the claims that are made and those that go: directly, their nodes are drained as any other."""
    actions: list[Action] = []
    for one in staffs(cluster):
        if one.missing and is_usable(one.pool, cluster):
            actions.extend(_made(one, cluster))
        actions.extend(_gone(one, cluster))
    if actions:
        actions.append(FollowUp(function="lifecycle", after=SOON, why="static pools change"))
    return tuple(actions)


def is_usable(pool: NodePool, cluster: Cluster) -> bool:
    """Whether *pool* is valid, its node class ready, and nobody holds its launches back."""
    node_class = next((one for one in cluster.node_classes if one.name == pool.node_class.name), None)
    refused = any(
        one.type in ("Ready", "ValidationSucceeded")
        and one.status == "False"
        and one.observed_generation >= pool.meta.generation
        for one in pool.conditions
    )
    supported = pool.node_class.is_supported() and not refused and not launches_held(pool, cluster)
    return supported and node_class is not None and node_class.meta.deleted_at is None and node_class.is_ready()


def _made(one: Staff, cluster: Cluster) -> Iterator[Action]:
    taken = {claim.name for claim in cluster.node_claims} | {bad.name for bad in cluster.problems}
    names = (name for slot in count() if (name := slot_name(one.pool, slot)) not in taken)
    why = f"NodePool {one.pool.name} has {len(one.running)} of {one.pool.replicas} nodes"
    for name in islice(names, min(one.missing, MOST)):
        yield CreateNodeClaim(claim=static_claim(one.pool, name, cluster), why=why)


def slot_name(pool: NodePool, slot: int) -> str:
    """Answer the name of the claim that fills *slot*."""
    return f"{pool.name}-{sha256(f'{pool.meta.uid}/{slot}'.encode()).hexdigest()[:10]}"


def static_claim(pool: NodePool, name: str, cluster: Cluster) -> NodeClaim:
    """Answer the claim as it is created: what the pool says, no choice of types, no pods."""
    node = NewNode(name=name, node_pool=pool.name, requirements=described(pool), cheapest=_NOTHING)
    claim = claim_for(node, pool, cluster)
    asked = claim.requirements.without((INSTANCE_TYPE,))
    own = tuple(item for item in pool.requirements if item.key == INSTANCE_TYPE)
    notes = tuple(pair for pair in claim.meta.annotations if pair[0] not in (MIN_VALUES_RELAXED, NOMINATED_PODS))
    return msgspec.structs.replace(
        claim,
        meta=msgspec.structs.replace(claim.meta, annotations=notes),
        requirements=msgspec.structs.replace(asked, items=tuple(sorted((*asked, *own), key=lambda item: item.key))),
    )


def _gone(one: Staff, cluster: Cluster) -> Iterator[Action]:
    unread = frozenset(bad.node for bad in cluster.problems if bad.kind == "Pod" and bad.node)
    ordered = sorted(one.running, key=lambda state: _reluctance(state, cluster.taken_at, unread))
    why = f"NodePool {one.pool.name} has {len(one.running)} nodes and is to have {one.pool.replicas}"
    for state in ordered[: one.surplus]:
        if state.claim is not None:
            yield DeleteObject(kind="NodeClaim", name=state.claim.name, uid=state.claim.meta.uid, why=why)


def _reluctance(state: StateNode, now: datetime, unread: frozenset[str]) -> tuple[int, bool, float, str]:
    """Answer a key that sorts what is missed least first."""
    claim = state.claim
    if claim is None or not claim.provider_id:
        return 0, False, 0.0, state.name
    pods = [pod for pod in state.pods if not pod.is_terminal() and not pod.is_mirror()]
    is_protected = any(not pod.is_disruptable(now) for pod in pods) or claim.node_name in unread
    if not is_protected and all(pod.is_daemon() for pod in pods):
        return 1, False, 0.0, state.name
    cost = sum(pod.eviction_cost() for pod in pods if not pod.is_daemon())
    return 2, is_protected, cost * _lifetime_left(claim, now), state.name


def _lifetime_left(claim: NodeClaim, now: datetime) -> float:
    if not claim.expire_after or claim.meta.created_at is None:
        return 1.0
    left = (claim.expire_after - (now - claim.meta.created_at)) / claim.expire_after
    return min(max(left, 0.0), 1.0)
