"""Simulation of a plan without nominated node names: which pods kube-scheduler would leave pending, at which cost."""

from collections.abc import Iterable, Iterator, Mapping

from shared.decide.scheduling.kube_scheduler.queue import build_scheduling_queue
from shared.decide.scheduling.kube_scheduler.simulation import SimulatedNode, simulate_scheduling
from shared.decide.scheduling.templates.template_builder import build_template_labels
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.requirements import Requirements
from shared.model.core.resources import CPU, MEMORY, Resources, sum_resources
from shared.model.decisions.placement import NewNodeClaim, Placement
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod


def find_pods_left_pending(placement: Placement, cluster: ClusterSnapshot, pods: Mapping[str, Pod]) -> tuple[str, ...]:
    """Return the pods of the new nodes of *placement* that would not be scheduled there, sorted.

    Nodes may become ready all at once or one after the other; the result is the worse case. *pods*: by name; pods that
    are not in it are ignored.
    """
    simulated_nodes = [
        simulated_node
        for node in placement.new_nodes
        if (simulated_node := _build_simulated_node(node, cluster, pods)) is not None
    ]
    planned_pods = [pods[name] for node in placement.new_nodes for name in node.pods if name in pods]
    if len(simulated_nodes) < 2 or len({pod.spec for pod in planned_pods}) < 2:  # noqa: PLR2004 - no pod can take the place of another
        return ()
    queue = build_scheduling_queue(planned_pods, cluster.namespaces)
    left_together, left_in_turn = (
        simulate_scheduling((simulated_nodes,), queue),
        simulate_scheduling([(room,) for room in simulated_nodes], queue),
    )
    return tuple(sorted(left_together if len(left_together) >= len(left_in_turn) else left_in_turn))


def estimate_relaunch_cost(pending_pods: Iterable[str], placement: Placement, pods: Mapping[str, Pod]) -> float:
    """Return the hourly cost of nodes for *pending_pods*: their share of the nodes that were planned for them."""
    pending_names = frozenset(pending_pods)
    return sum(_compute_share(pending_names, node, pods) for node in placement.new_nodes)


def _compute_share(pending_pods: frozenset[str], node: NewNodeClaim, pods: Mapping[str, Pod]) -> float:
    pending_requests = sum_resources(pods[name].spec.requests for name in node.pods if name in pending_pods)
    shares = [pending_requests[name] / node.requests[name] for name in (CPU, MEMORY) if node.requests[name]]
    return node.cheapest.price_usd_per_hour * max(shares, default=0.0)


def _build_simulated_node(
    node: NewNodeClaim, cluster: ClusterSnapshot, pods: Mapping[str, Pod]
) -> SimulatedNode | None:
    """Return the node as it is with its cheapest instance type; None if that type is no longer known."""
    pool = next((node_pool for node_pool in cluster.node_pools if node_pool.name == node.node_pool), None)
    if pool is None or cluster.catalog is None:
        return None
    types = cluster.catalog.get_instance_types(pool.node_class.name, pool.name)
    cheapest_type = next(
        (instance_type for instance_type in types if instance_type.name == node.cheapest.instance_type), None
    )
    if cheapest_type is None:
        return None
    daemon_requests: Resources = node.requests - sum_resources(
        pods[name].spec.requests for name in node.pods if name in pods
    )
    return SimulatedNode(
        name=node.name,
        labels=dict(_list_labels(node, pool, cheapest_type.requirements)),
        taints=pool.taints,
        allocatable=cheapest_type.allocatable,
        used=daemon_requests,
    )


def _list_labels(node: NewNodeClaim, pool: NodePool, type_requirements: Requirements) -> Iterator[tuple[str, str]]:
    for item in (*type_requirements, *node.requirements):
        if item.values and not item.complement:
            yield item.key, item.choose_value()
    yield from build_template_labels(pool).items()
    yield NODEPOOL, pool.name
    yield INSTANCE_TYPE, node.cheapest.instance_type
    yield ZONE, node.cheapest.zone
    yield CAPACITY_TYPE, node.cheapest.capacity_type
