"""The fleet and its cost: node counts, prices, and the lowest cost that a new plan would reach."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.disruption.budgets.cluster_settings import EVERYTHING, DisruptionSettings
from shared.decide.disruption.disruption_controller import decide_node_disruption
from shared.decide.provisioning.gang_planning import plan_pods
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.decisions.disruption_verdict import BlockedVerdict
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

NodeKind = tuple[str, str, str]
"""NodePool, instance type, capacity type; "" for a missing label."""
FIXED_REASONS: Final = frozenset(("StaticPool", "ConsolidationDisabled", "PolicyWhenEmpty", "ScaleDownDisabled"))
"""Reasons that keep a node as long as its NodePool and its annotations do not change."""
MAX_REPLANNING_ROUNDS: Final = 4
"""After this number of rounds, nodes are no longer kept because their pods fit nowhere else."""


class FleetNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node and what it adds to the bill, which is 0 if the catalog has no price, or if commitments pay all of it."""

    name: str
    kind: NodeKind
    price_usd_per_hour: float
    is_committed: bool = False
    """Whether commitments pay all of it."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The existing nodes of NodePools that are not being deleted, sorted by name."""

    fleet_nodes: tuple[FleetNode, ...]

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.fleet_nodes)

    @property
    def price_usd_per_hour(self) -> float:
        """Total price of the nodes."""
        return sum(node.price_usd_per_hour for node in self.fleet_nodes)

    def sum_by_kind(self) -> dict[NodeKind, tuple[int, float]]:
        """Return the number of nodes and their total price, by kind."""
        totals_by_kind: dict[NodeKind, tuple[int, float]] = {}
        for node in self.fleet_nodes:
            number, price = totals_by_kind.get(node.kind, (0, 0.0))
            totals_by_kind[node.kind] = (number + 1, price + node.price_usd_per_hour)
        return totals_by_kind

    def group_unpriced_nodes(self) -> dict[str, list[str]]:
        """Return the names of the nodes without a price, by instance type."""
        names_by_type: dict[str, list[str]] = {}
        for node in self.fleet_nodes:
            if not (node.price_usd_per_hour or node.is_committed) and node.kind[2] != "reserved":
                names_by_type.setdefault(node.kind[1], []).append(node.name)
        return names_by_type


def list_owned_nodes(cluster_state: ClusterState) -> Iterator[StateNode]:
    """Yield the existing nodes that belong to NodePools and are not being deleted, sorted by name."""
    for state in cluster_state.nodes:
        if state.node is not None and (state.pool or state.claim is not None) and not state.is_marked_for_deletion():
            yield state


def build_fleet(cluster_state: ClusterState) -> Fleet:
    """Return the fleet of the cluster."""
    classes = {pool.name: pool.node_class.name for pool in cluster_state.snapshot.node_pools}
    return Fleet(
        fleet_nodes=tuple(
            FleetNode(
                name=get_node_name(state),
                kind=(state.pool, state.meta.get_label(INSTANCE_TYPE), state.meta.get_label(CAPACITY_TYPE)),
                price_usd_per_hour=cluster_state.get_marginal_price(state, classes.get(state.pool, "")),
                is_committed=cluster_state.covered_parts.get(state.name, 0.0) >= 1,
            )
            for state in list_owned_nodes(cluster_state)
        )
    )


def get_node_name(state: StateNode) -> str:
    """Return the Node's name, or the NodeClaim's name while there is no Node: the name that documents use."""
    return state.node.name if state.node is not None else state.name


@pause_garbage_collection()
def estimate_ideal_cost(cluster_state: ClusterState, options: SchedulingOptions, settings: DisruptionSettings) -> float:
    """Return the cost of the fleet, in USD per hour, if all movable pods were rescheduled at once.

    Some nodes stay: blocked nodes, nodes that their NodePool keeps, and nodes with a pod that fits nowhere else, for
    example because of limits. Pending pods and pods on nodes that are being deleted do not count: they cost the same
    with and without consolidation.
    """
    settled_cluster = _drop_pending_pods(cluster_state)
    settled_state = ClusterState(settled_cluster)
    decision = decide_node_disruption(settled_state, options=options, paused_reasons=(EVERYTHING,), settings=settings)
    fixed_nodes = {
        verdict.node
        for verdict in decision.verdicts
        if isinstance(verdict, BlockedVerdict) or verdict.reason in FIXED_REASONS
    }
    node_name_by_state = {state.name: get_node_name(state) for state in list_owned_nodes(cluster_state)}
    movable_nodes = frozenset(node_name_by_state) - fixed_nodes
    placement = Placement()
    for _ in range(MAX_REPLANNING_ROUNDS):
        placement = plan_pods(settled_state, excluded=movable_nodes, options=options).placement
        unplaced_pods = {failure.pod for failure in placement.unschedulable}
        required_nodes = {pod.node_name for pod in settled_cluster.pods if pod.name in unplaced_pods}
        nodes_to_keep = frozenset(name for name in movable_nodes if node_name_by_state[name] in required_nodes)
        if not nodes_to_keep:
            break
        movable_nodes -= nodes_to_keep
    removed_nodes = {node_name_by_state[name] for name in movable_nodes}
    remaining_nodes = (node for node in build_fleet(cluster_state).fleet_nodes if node.name not in removed_nodes)
    return sum(node.price_usd_per_hour for node in remaining_nodes) + placement.price_usd_per_hour


def _drop_pending_pods(cluster_state: ClusterState) -> ClusterSnapshot:
    """Return the snapshot without pending pods and without pods on nodes that are being deleted."""
    cluster = cluster_state.snapshot
    marked_nodes = {get_node_name(state) for state in cluster_state.nodes if state.is_marked_for_deletion()}
    pods = (pod for pod in cluster.pods if pod.node_name and pod.node_name not in marked_nodes)
    return replace(cluster, pods=tuple(pods))
