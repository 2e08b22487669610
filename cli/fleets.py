"""What a fleet is and costs: counted, priced, and what it might cost at best."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.disruption.candidates import Blocked
from shared.disruption.prices import PriceList
from shared.disruption.sweep import sweep
from shared.disruption.terms import EVERYTHING, Terms
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.state import StateNode, state_nodes
from shared.scheduling.headroom import plan
from shared.scheduling.placement import Options, Placement

Kind = tuple[str, str, str]
"""NodePool, instance type, capacity type; "" for what the labels do not say."""


FIXED: Final = frozenset(("StaticPool", "ConsolidationDisabled", "PolicyWhenEmpty"))
"""For these reasons a node stays as long as its NodePool is as it is."""


ROUNDS: Final = 4
"""So often nodes are left where they are whose pods find no other place."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is paid for; USD per hour, 0 where the catalogue has no price."""

    name: str
    kind: Kind
    price_usd_per_hour: float


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that are there, are not going yet, and belong to NodePools; sorted by name."""

    machines: tuple[Machine, ...]

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self.machines)

    @property
    def price_usd_per_hour(self) -> float:
        """What they cost together."""
        return sum(one.price_usd_per_hour for one in self.machines)

    def kinds(self) -> dict[Kind, tuple[int, float]]:
        """Answer, by kind, how many there are and what they cost together."""
        found: dict[Kind, tuple[int, float]] = {}
        for one in self.machines:
            number, price = found.get(one.kind, (0, 0.0))
            found[one.kind] = (number + 1, price + one.price_usd_per_hour)
        return found

    def unpriced(self) -> dict[str, list[str]]:
        """Answer the names of nodes without price, by instance type."""
        found: dict[str, list[str]] = {}
        for one in self.machines:
            if not one.price_usd_per_hour and one.kind[2] != "reserved":
                found.setdefault(one.kind[1], []).append(one.name)
        return found


def owned(cluster: Cluster) -> Iterator[StateNode]:
    """Iterate over the nodes that are there and that NodePools own, sorted by name."""
    for state in state_nodes(cluster):
        if state.node is not None and (state.pool or state.claim is not None) and not state.is_marked():
            yield state


def fleet_of(cluster: Cluster) -> Fleet:
    """Answer what there is."""
    prices = PriceList(cluster.catalogue)
    classes = {pool.name: pool.node_class.name for pool in cluster.node_pools}
    return Fleet(
        machines=tuple(
            Machine(
                name=called(one),
                kind=(one.pool, one.meta.label(INSTANCE_TYPE), one.meta.label(CAPACITY_TYPE)),
                price_usd_per_hour=prices.price(one.meta, classes.get(one.pool, "")),
            )
            for one in owned(cluster)
        )
    )


def called(state: StateNode) -> str:
    """Answer the Node's name, or its claim's while there is no Node: what a reader of documents knows it by."""
    return state.node.name if state.node is not None else state.name


def ideal(cluster: Cluster, options: Options, terms: Terms) -> float:
    """Answer what the fleet would cost if all that may be moved were placed anew by our own solver, USD per hour.

    Nodes that must not be touched stay, those that their NodePool keeps, and those with a pod that would find no other
    place, for limits say. Pods that wait for a node, or whose node is going already, do not count: they cost the same
    with or without consolidation.
    """
    settled = _settled(cluster)
    found = sweep(settled, options=options, paused=(EVERYTHING,), terms=terms)
    fixed = {one.node for one in found.verdicts if isinstance(one, Blocked) or one.reason in FIXED}
    names = {one.name: called(one) for one in owned(cluster)}
    movable = frozenset(names) - fixed
    placement = Placement()
    for _ in range(ROUNDS):
        placement = plan(settled, excluded=movable, options=options).placement
        homeless = {one.pod for one in placement.unschedulable}
        held = {pod.node_name for pod in settled.pods if pod.name in homeless}
        stay = frozenset(name for name in movable if names[name] in held)
        if not stay:
            break
        movable -= stay
    gone = {names[name] for name in movable}
    stays = sum(one.price_usd_per_hour for one in fleet_of(cluster).machines if one.name not in gone)
    return stays + placement.price_usd_per_hour


def _settled(cluster: Cluster) -> Cluster:
    """Answer *cluster* without pods that wait for a node, or whose node is going."""
    going = {called(one) for one in state_nodes(cluster) if one.is_marked()}
    pods = (pod for pod in cluster.pods if pod.node_name and pod.node_name not in going)
    return replace(cluster, pods=tuple(pods))
