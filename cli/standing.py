"""How a fleet stands: counted by NodePool, with what waits and what is wrong."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.disruption.prices import PriceList
from shared.model.cluster import Cluster
from shared.model.holds import Held, held_in
from shared.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from shared.model.objects import Condition, condition, is_true
from shared.model.pods import Pod
from shared.model.resources import Resources, total
from shared.model.state import StateNode, state_nodes

EXPECTED: Final = ("Launched", "Registered", "Initialized")
"""Conditions of a NodeClaim that become True one after the other."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a whole cluster stands."""

    at: datetime
    pools: tuple["Pool", ...]
    """Sorted by name; those too of which only nodes are left."""
    others: int
    """Nodes that no NodePool owns."""
    running: int
    """Pods with a node that have not ended."""
    waiting: tuple[tuple[str, str], ...]
    """Pods that no node has room for, and what kube-scheduler says; sorted."""
    trouble: tuple["Trouble", ...]
    held: tuple[Held, ...]
    """What people have paused."""
    usd_per_hour: float | None
    """None: no prices are known."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a NodePool."""

    name: str
    ready: int = 0
    coming: int = 0
    going: int = 0
    by_capacity: tuple[tuple[str, int], ...] = ()
    requested: Resources
    allocatable: Resources
    usd_per_hour: float
    limits: tuple[tuple[str, int, int], ...] = ()
    """Resource, how much of it there is, how much there may be."""
    is_ready: bool = True
    """Whether the NodePool is fit to be used."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Something that a person should look at."""

    kind: str
    name: str
    what: str
    why: str


def standing_of(cluster: Cluster) -> Standing:
    """Answer how *cluster* stands."""
    by_pool: dict[str, list[StateNode]] = defaultdict(list)
    states = state_nodes(cluster)
    for one in states:
        by_pool[one.pool if one.pool or one.claim is None else "-"].append(one)
    others = by_pool.pop("", [])
    prices = PriceList(cluster.catalogue)
    names = sorted({*by_pool, *(pool.name for pool in cluster.node_pools)})
    pools = tuple(_pool(name, by_pool[name], cluster, prices) for name in names)
    has_prices = cluster.catalogue is not None
    return Standing(
        at=cluster.taken_at,
        pools=pools,
        others=len(others),
        running=sum(bool(pod.node_name) and not pod.is_terminal() for pod in cluster.pods),
        waiting=tuple(sorted((pod.name, _why(pod)) for pod in cluster.pods if pod.is_provisionable())),
        trouble=tuple(sorted(_trouble(cluster))),
        held=held_in(cluster)[0],
        usd_per_hour=sum(one.usd_per_hour for one in pools) if has_prices else None,
    )


def _pool(name: str, states: list[StateNode], cluster: Cluster, prices: PriceList) -> Pool:
    pool = next((one for one in cluster.node_pools if one.name == name), None)
    going = [one for one in states if one.is_marked()]
    there = [one for one in states if not one.is_marked()]
    ready = [one for one in there if one.is_initialized() and _is_ready(one)]
    kinds = {kind: sum(one.meta.label(CAPACITY_TYPE) == kind for one in there) for kind in (ON_DEMAND, RESERVED, SPOT)}
    has = total(one.capacity() for one in states)
    limits = pool.limits.amounts if pool is not None and pool.limits is not None else ()
    return Pool(
        name=name,
        ready=len(ready),
        coming=len(there) - len(ready),
        going=len(going),
        by_capacity=tuple((kind, number) for kind, number in kinds.items() if number),
        requested=total(one.used() for one in there),
        allocatable=total(one.allocatable() for one in there),
        usd_per_hour=sum(prices.price(one.meta, _class_of(one)) for one in states),
        limits=tuple((key, len(states) if key == "nodes" else has[key], most) for key, most in sorted(limits)),
        is_ready=pool is not None and is_true(pool.conditions, "Ready"),
    )


def _class_of(state: StateNode) -> str:
    return state.claim.node_class.name if state.claim is not None else ""


def _is_ready(state: StateNode) -> bool:
    return state.node is not None and is_true(state.node.conditions, "Ready")


def _why(pod: Pod) -> str:
    said = condition(pod.conditions, "PodScheduled")
    return said.message if said is not None else ""


def _trouble(cluster: Cluster) -> Iterator[Trouble]:
    for pool in cluster.node_pools:
        yield from _false("NodePool", pool.name, pool.conditions)
    for some in cluster.node_classes:
        yield from _false("EC2NodeClass", some.meta.name, some.conditions)
    for claim in cluster.node_claims:
        if claim.is_deleting():
            continue
        said = (condition(claim.conditions, type_) for type_ in EXPECTED)
        first = next((one for one in said if one is not None and one.status != "True" and one.message), None)
        if first is not None:
            yield Trouble(kind="NodeClaim", name=claim.name, what=f"not {first.type}", why=_words(first))
    for state in state_nodes(cluster):
        if state.node is not None and state.is_initialized() and not state.is_marked() and not _is_ready(state):
            said_so = condition(state.node.conditions, "Ready")
            yield Trouble(kind="Node", name=state.name, what="not Ready", why=_words(said_so) if said_so else "")


def _false(kind: str, name: str, conditions: Iterable[Condition]) -> Iterator[Trouble]:
    """What is False for a reason of its own: that the whole is not ready says nothing more."""
    wrong = [one for one in conditions if one.status == "False"]
    for one in wrong:
        if one.type != "Ready" or len(wrong) == 1:
            yield Trouble(kind=kind, name=name, what=f"{one.type} is False", why=_words(one))


def _words(one: Condition) -> str:
    return ": ".join(dict.fromkeys(word for word in (one.reason, one.message) if word))
