"""A plan, played through without hints: which pods kube-scheduler would leave, and what that would cost."""

from collections.abc import Iterable, Iterator, Mapping

from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodepools import NodePool
from shared.model.pods import Pod
from shared.model.requirements import Requirements
from shared.model.resources import CPU, MEMORY, Resources, total
from shared.scheduling.placement import NewNode, Placement
from shared.scheduling.replay import Room, realise
from shared.scheduling.templates import template_labels
from shared.scheduling.turns import queue_of


def left_by_scheduler(placement: Placement, cluster: Cluster, pods: Mapping[str, Pod]) -> tuple[str, ...]:
    """Answer the pods of the new nodes of *placement* that would find no place there, sorted.

    Nodes may open all at once or one after the other; this is the worse of the two. *pods*: by name; who is not among
    them takes part in nothing.
    """
    rooms = [room for node in placement.new_nodes if (room := _room(node, cluster, pods)) is not None]
    waiting = [pods[name] for node in placement.new_nodes for name in node.pods if name in pods]
    if len(rooms) < 2 or len({id(pod.spec): pod.spec for pod in waiting}) < 2:  # noqa: PLR2004 - nobody has anybody else's place
        return ()
    queue = queue_of(waiting, cluster.namespaces)
    together, in_turn = realise((rooms,), queue), realise([(room,) for room in rooms], queue)
    return tuple(sorted(together if len(together) >= len(in_turn) else in_turn))


def price_again(left: Iterable[str], placement: Placement, pods: Mapping[str, Pod]) -> float:
    """Answer what nodes for the pods in *left* would cost per hour: their share of the nodes meant for them."""
    found = frozenset(left)
    return sum(_shares(found, node, pods) for node in placement.new_nodes)


def _shares(left: frozenset[str], node: NewNode, pods: Mapping[str, Pod]) -> float:
    mine = total(pods[name].spec.requests for name in node.pods if name in left)
    parts = [mine[name] / node.requests[name] for name in (CPU, MEMORY) if node.requests[name]]
    return node.cheapest.price_usd_per_hour * max(parts, default=0.0)


def _room(node: NewNode, cluster: Cluster, pods: Mapping[str, Pod]) -> Room | None:
    """Answer the node as it will be if it is of its cheapest type; None if that is not known any more."""
    pool = next((one for one in cluster.node_pools if one.name == node.node_pool), None)
    if pool is None or cluster.catalogue is None:
        return None
    types = cluster.catalogue.types_for(pool.node_class.name, pool.name)
    kind = next((one for one in types if one.name == node.cheapest.instance_type), None)
    if kind is None:
        return None
    daemons: Resources = node.requests - total(pods[name].spec.requests for name in node.pods if name in pods)
    return Room(
        name=node.name,
        labels=dict(_labels(node, pool, kind.requirements)),
        taints=pool.taints,
        allocatable=kind.allocatable,
        used=daemons,
    )


def _labels(node: NewNode, pool: NodePool, kind: Requirements) -> Iterator[tuple[str, str]]:
    for item in (*kind, *node.requirements):
        if item.values and not item.complement:
            yield item.key, item.any_value()
    yield from template_labels(pool).items()
    yield NODEPOOL, pool.name
    yield INSTANCE_TYPE, node.cheapest.instance_type
    yield ZONE, node.cheapest.zone
    yield CAPACITY_TYPE, node.cheapest.capacity_type
