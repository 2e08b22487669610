"""The fleet as lines of the log: how many nodes and dollars by NodePool, type, capacity type and label, and budgets.

A metric for each would cost $0.30 a month; a line costs nothing, and Logs Insights sums them when somebody looks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from shared.disruption.budgets import REASONS, UNLIMITED, Tally, allowance, tallies
from shared.disruption.prices import PriceList
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.nodepools import NodePool
from shared.model.state import StateNode, state_nodes
from shared.ports import World

EVERY_MINUTES: Final = 5
ALL: Final = "all"
POOL: Final = "pool"
TYPE: Final = "instanceType"
CAPACITY: Final = "capacityType"
LABEL: Final = "label"


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Some machines: all of them, or those that have something in common."""

    fleet: str
    """What they have in common: one of the five above."""
    name: str
    """Of the NodePool, the type, …; of all of them the cluster's."""
    nodes: int
    usd_per_hour: float
    """Machines without a known price count nothing."""
    disrupting: int | None = None
    """Of a NodePool: nodes that are on their way out or broken, as its budgets count them."""
    allowed: int | None = None
    """How many may be at once, for the reason that allows most; None: any number."""


def is_due(function: str, trigger: str, cluster: Cluster) -> bool:
    """Whether this cycle is the one of five minutes that tells the fleet."""
    return (function, trigger) == ("disrupt", "schedule") and cluster.taken_at.minute % EVERY_MINUTES == 0


def tell(cluster: Cluster, world: World) -> None:
    """Write a line for each part."""
    for one in parts(cluster, world.settings.cluster_name, world.settings.cost_label):
        line = {"service": "joiner", "at": cluster.taken_at, **msgspec.to_builtins(one)}
        world.emit(msgspec.json.encode(line).decode())


def parts(cluster: Cluster, name: str, label: str = "") -> Iterator[Part]:
    """Iterate over the parts of the fleet of the cluster called *name*; by *label* too if it is not "".

    Every NodePool is one, without a node too; sorted by what they have in common, then by name.
    """
    prices = PriceList(cluster.catalogue)
    ours = [
        (one, prices.price(one.meta, one.claim.node_class.name))
        for one in state_nodes(cluster)
        if one.claim is not None
    ]
    yield Part(fleet=ALL, name=name, nodes=len(ours), usd_per_hour=_sum(ours))
    shared = {CAPACITY: CAPACITY_TYPE, TYPE: INSTANCE_TYPE} | ({LABEL: label} if label else {})
    for fleet, key in sorted(shared.items()):
        for value, some in sorted(_by(key, ours).items()):
            yield Part(fleet=fleet, name=value, nodes=len(some), usd_per_hour=_sum(some))
    yield from _pools(cluster, ours)


def _pools(cluster: Cluster, ours: Iterable[tuple[StateNode, float]]) -> Iterator[Part]:
    by_pool: dict[str, list[tuple[StateNode, float]]] = defaultdict(list)
    for one, price in ours:
        by_pool[one.pool].append((one, price))
    counted = tallies(one for one, _ in ours)
    pools = {one.name: one for one in cluster.node_pools}
    for name in sorted({*by_pool, *pools}):
        some, tally = by_pool[name], counted.get(name, Tally())
        yield Part(
            fleet=POOL,
            name=name,
            nodes=len(some),
            usd_per_hour=_sum(some),
            disrupting=tally.disrupting,
            allowed=_allowed(pools[name], tally, cluster) if name in pools else None,
        )


def _allowed(pool: NodePool, tally: Tally, cluster: Cluster) -> int | None:
    most = max(allowance(pool, reason, tally.total, cluster.taken_at).count for reason in REASONS)
    return None if most >= UNLIMITED else most


def _by(key: str, ours: Iterable[tuple[StateNode, float]]) -> Mapping[str, list[tuple[StateNode, float]]]:
    found: dict[str, list[tuple[StateNode, float]]] = defaultdict(list)
    for one, price in ours:
        found[one.meta.label(key) or "-"].append((one, price))
    return found


def _sum(some: Iterable[tuple[StateNode, float]]) -> float:
    return round(sum(price for _, price in some), 6)
