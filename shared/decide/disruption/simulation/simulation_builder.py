"""Build the scheduling simulation for disruption from a cluster snapshot."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import msgspec

from shared.decide.disruption.simulation.preferred_anti_affinity import index_kept_constraints
from shared.decide.disruption.simulation.simulation import SchedulingSimulation
from shared.decide.scheduling.constraints.topology_constraint import TopologyConstraint
from shared.decide.scheduling.nodes.existing_node import ExistingNode
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.pods.pending_pods import is_fully_blocked
from shared.decide.scheduling.scheduling_problem import SchedulingProblem, build_problem
from shared.decide.scheduling.topology.topology import Topology
from shared.model.cluster import ClusterSnapshot
from shared.model.core.resources import Axes
from shared.model.decisions.placement import SchedulingOptions, Unschedulable
from shared.model.kubernetes.pod import AffinityTerm, Pod
from shared.model.kubernetes.pod_classes import is_disruptable, is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode


class SimulationSetup(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The simulation, and the pods that cannot be part of it."""

    simulation: SchedulingSimulation
    axes: Axes
    unplannable_pods: Mapping[str, Unschedulable]
    """Movable pods that cannot be planned, by name."""
    cluster: ClusterSnapshot
    kept_anti_affinity: Mapping[str, tuple[AffinityTerm, ...]] = MappingProxyType({})
    """Preferred anti-affinity that holds and must be kept, by pod."""

    def find_kept_term_owner(self, pod: Pod) -> str:
        """Return the pod whose kept anti-affinity restricts *pod*: *pod* itself or another; "" if there is none."""
        if not self.kept_anti_affinity:
            return ""
        if pod.name in self.kept_anti_affinity:
            return pod.name
        namespace, labels = pod.meta.namespace, dict(pod.meta.labels)
        owners = (
            owner
            for constraint, owner in self._owner_by_kept_constraint.items()
            if constraint.is_selecting(namespace, labels)
        )
        return min(owners, default="")

    @cached_property
    def _owner_by_kept_constraint(self) -> Mapping[TopologyConstraint, str]:
        return index_kept_constraints(self.kept_anti_affinity, self.cluster)


def build_simulation_setup(
    cluster_state: ClusterState,
    states: Sequence[StateNode],
    removed_nodes: Collection[str],
    node_by_pod: Mapping[str, str],
    options: SchedulingOptions,
) -> SimulationSetup:
    """Return the simulation of *states*; nodes are filled in this order.

    *removed_nodes*: names of nodes that are certain to be removed. Their pods, and other displaced pods, are on the
    node that *node_by_pod* names for them, or else wherever they fit. Displaced pods that fit nowhere are ignored.
    """
    staying_nodes = [
        state for state in states if state.name not in removed_nodes and not state.is_marked_for_deletion()
    ]
    movable_pods = _find_movable_pods(staying_nodes, cluster_state)
    displaced_pods = _find_movable_pods([state for state in states if state.name in removed_nodes], cluster_state)
    displaced_pods = {
        name: pod for name, pod in displaced_pods.items() if not cluster_state.surge_drains.has_successor(pod)
    }
    if node_by_pod:
        displaced_pods |= {
            pod.name: pod
            for pod in cluster_state.snapshot.pods
            if pod.name in node_by_pod and not cluster_state.surge_drains.has_successor(pod)
        }
    problem = build_problem(
        cluster_state,
        pods=(*movable_pods.values(), *displaced_pods.values()),
        staying_nodes=staying_nodes,
        waiting_pods=displaced_pods.keys(),
        options=options,
    )
    existing_node_by_name = {node.name: node for node in problem.build_existing_nodes()}
    existing_nodes = [
        existing_node_by_name.get(state.name) or _build_full_node(state, problem) for state in staying_nodes
    ]
    unplannable_pods = problem.errors_by_pod
    packing = problem.start_packing(existing_nodes)
    packing.max_new_nodes = 0
    simulation = SchedulingSimulation(
        packing=packing,
        node_numbers={node.name: number for number, node in enumerate(existing_nodes)},
        movable_pods={
            name: pod for name, pod in (movable_pods | displaced_pods).items() if name not in unplannable_pods
        },
    )
    _add_residents(simulation, staying_nodes, movable_pods, problem.pod_classes)
    _place_displaced_pods(simulation, displaced_pods, node_by_pod)
    return SimulationSetup(
        simulation=simulation, axes=problem.axes, unplannable_pods=unplannable_pods, cluster=cluster_state.snapshot
    )


def _find_movable_pods(states: Iterable[StateNode], cluster_state: ClusterState) -> dict[str, Pod]:
    """Return, by name, the pods on *states* that need another node if these nodes are removed."""
    pdb_limits, now = cluster_state.pdb_limits, cluster_state.taken_at
    return {
        pod.name: pod
        for state in states
        for pod in state.pods
        if is_reschedulable(pod)
        and is_disruptable(pod, now)
        and (not is_fully_blocked(pod, pdb_limits.list_budgets(pod), now) or cluster_state.surge_drains.can_surge(pod))
    }


def _build_full_node(state: StateNode, problem: SchedulingProblem) -> ExistingNode:
    """Return an existing node with overcommitted resources: it accepts no pods."""
    return ExistingNode(
        name=state.name,
        node_domains=problem.domains_by_node[state.name],
        free=(0,) * len(problem.axes.names),
        ports=[],
        attached={},
        limits={},
    )


def _add_residents(
    simulation: SchedulingSimulation,
    staying_nodes: Iterable[StateNode],
    movable_pods: Mapping[str, Pod],
    all_classes: Iterable[PodEquivalenceClass],
) -> None:
    for number, pod_class in enumerate(all_classes):
        for pod in pod_class.pods:
            simulation.queued_class_by_pod[pod.name] = (number, pod_class)
    for number, state in enumerate(staying_nodes):
        simulation.resident_pods[number] = {pod.name: pod for pod in state.pods if pod.name in movable_pods}
        simulation.fixed_groups_by_node[number] = list(
            _list_fixed_groups(state, movable_pods, simulation.packing.topology)
        )


def _list_fixed_groups(
    state: StateNode, movable_pods: Mapping[str, Pod], topology_groups: Topology
) -> Iterable[tuple[int, ...]]:
    if topology_groups.groups:
        for pod in state.pods:
            if (
                pod.is_active()
                and pod.name not in movable_pods
                and (group_numbers := topology_groups.find_counting_groups(pod))
            ):
                yield group_numbers


def _place_displaced_pods(
    simulation: SchedulingSimulation, displaced_pods: Mapping[str, Pod], node_by_pod: Mapping[str, str]
) -> None:
    """Place displaced pods on their expected nodes, as far as they fit."""
    plannable_pods = [pod for name, pod in displaced_pods.items() if name in simulation.queued_class_by_pod]
    node_number_by_pod = {
        pod: simulation.node_numbers[node] for pod, node in node_by_pod.items() if node in simulation.node_numbers
    }
    simulation.place_pods_at(
        [pod for pod in plannable_pods if pod.name not in node_by_pod or pod.name in node_number_by_pod],
        node_number_by_pod,
    )
