"""The scheduling problem: which pods are to be placed, on which nodes, and from which NodePools new nodes come.

The scheduler, the simulation of disruption and the lower bound all start from it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from shared.decide.launch.money.limit_prices import LimitPrices, apply_group, find_limit_prices
from shared.decide.scheduling.constraints.pod_validation import validate_pod
from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.constraints.topology_constraint import NodeDomains
from shared.decide.scheduling.constraints.volume_topology import VolumeTopology, build_volume_topology
from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.type_prices import TypePrices
from shared.decide.scheduling.nodes.commitment_manager import CommittedCapacity
from shared.decide.scheduling.nodes.existing_node import ExistingNode, build_existing_nodes, build_node_domains
from shared.decide.scheduling.nodes.node_pool_limits import compute_remaining_limits
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.pods.equivalence_class import (
    PodEquivalenceClass,
    PodShape,
    build_stages_by_spec,
    group_equivalence_classes,
    group_pod_shapes,
)
from shared.decide.scheduling.pods.queue_order import sort_queue
from shared.decide.scheduling.pods.workload_shares import restrict_to_shares
from shared.decide.scheduling.templates.device_supply import DeviceSupply, assign_template_devices
from shared.decide.scheduling.templates.node_claim_template import ExcludedNodePool, NodeClaimTemplate
from shared.decide.scheduling.templates.template_builder import (
    build_template_requirements,
    build_templates,
    find_type_index,
)
from shared.decide.scheduling.topology.topology import Topology
from shared.decide.scheduling.topology.topology_builder import build_topology
from shared.model.cluster import ClusterSnapshot
from shared.model.core.resources import Axes, build_axes
from shared.model.decisions.placement import SchedulingOptions, Unschedulable
from shared.model.karpenter.spot_share import ShareUsage
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.dynamic_resources.pod_claims import PodClaims
from shared.state.spot_shares.node_pool_shares import compute_share_usages, find_spot_shares
from shared.state.state_node import StateNode


class SchedulingProblem:
    """The input of a packing; its parts are computed when they are read for the first time."""

    def __init__(
        self,
        cluster_state: ClusterState,
        queue: Sequence[Pod],
        staying_nodes: Sequence[StateNode],
        waiting_pods: Collection[str] | None,
        options: SchedulingOptions,
        *,
        by_priority: bool = False,
    ) -> None:
        """Use `build_problem` instead."""
        self.cluster: ClusterSnapshot = cluster_state.planning_snapshot
        restricted_queue = restrict_to_shares(queue, staying_nodes, self.cluster)
        self.queue, self.staying_nodes = restricted_queue.pods, staying_nodes
        self.share_note_by_pod = restricted_queue.note_by_pod
        money = apply_group(options.money, cluster_state.snapshot)
        self.options = options if money is options.money else replace(options, money=money)
        self.volumes: VolumeTopology = build_volume_topology(self.cluster)
        self._claims = PodClaims(self.cluster, self.queue)
        self.pod_shapes, self.errors_by_pod = _split_by_validity(
            self.queue, self.volumes, self._claims, by_priority=by_priority
        )
        self.axes: Axes = _build_axes(self.cluster, self.pod_shapes)
        self._cluster_state, self._waiting_pods = cluster_state, waiting_pods

    @property
    def templates(self) -> tuple[NodeClaimTemplate, ...]:
        """The NodePools that can launch nodes, by weight."""
        templates = self._templates[0]
        if self._device_supply is not None and templates and templates[0].devices is None:
            assign_template_devices(templates, self._device_supply)
        return templates

    @property
    def excluded_pools(self) -> tuple[ExcludedNodePool, ...]:
        """The other NodePools, by weight."""
        return self._templates[1]

    @cached_property
    def stages_by_spec(self) -> Mapping[int, tuple[RelaxationStage, ...]]:
        """The relaxation stages by the placement number of the pod shapes."""
        return build_stages_by_spec(
            self.pod_shapes,
            self.options,
            (*self.cluster.pods, *self.queue),
            discouraged=_has_prefer_no_schedule_taints(self.cluster),
        )

    @cached_property
    def topology(self) -> Topology:
        """The topology groups, in which the pods are counted that run on their nodes."""
        waiting_pods = self._waiting_pods
        if waiting_pods is None:
            waiting_pods = {pod.name for pod in self.queue if pod.name not in self.errors_by_pod}
        return build_topology(
            self.cluster,
            ((shape.representative, self.stages_by_spec[shape.placement_number][0]) for shape in self.pod_shapes),
            waiting_pods,
            self.domains_by_node,
            self._cluster_state.nodes,
            frozenset(state.name for state in self.staying_nodes),
            self.templates,
        )

    @cached_property
    def domains_by_node(self) -> Mapping[str, NodeDomains]:
        """The domains of all nodes, by name."""
        return {state.name: build_node_domains(state) for state in self._cluster_state.nodes}

    @cached_property
    def pod_classes(self) -> list[PodEquivalenceClass]:
        """The pods without errors by equivalence class, in the order of the queue."""
        return group_equivalence_classes(
            self.queue, self.pod_shapes, self.stages_by_spec, self.topology, self.volumes, self.axes, self._claims
        )

    def build_existing_nodes(self) -> list[ExistingNode]:
        """Return the staying nodes that are not overcommitted: initialized nodes first, then by name."""
        existing_nodes = build_existing_nodes(
            self.staying_nodes, self.domains_by_node, self.cluster, self.axes, self._type_indexes, self.volumes
        )
        if self._device_supply is not None:
            state_by_name = {state.name: state for state in self.staying_nodes}
            for node in existing_nodes:
                node.devices = self._device_supply.build_node_devices(state_by_name[node.name], node.mask)
        return existing_nodes

    @cached_property
    def _device_supply(self) -> DeviceSupply | None:
        """The devices of nodes; None if no pod has ResourceClaims."""
        return DeviceSupply(self.cluster, self._claims, self._type_indexes) if self._claims.has_demand else None

    def compute_remaining_limits(self) -> dict[str, dict[str, int]]:
        """Return what remains of the limits of each NodePool next to the staying nodes."""
        return compute_remaining_limits(
            self.cluster.node_pools,
            self.staying_nodes,
            self._type_indexes,
            self._templates[3],
            self._limit_prices,
            self.options.money.effective_limit,
        )

    def compute_share_usages(self) -> dict[str, ShareUsage]:
        """Return the usage of the Spot shares, by NodePool, of the staying nodes."""
        return compute_share_usages(find_spot_shares(self.cluster), self.staying_nodes, self.cluster)

    def start_packing(
        self, existing_nodes: list[ExistingNode] | None = None, is_over: Callable[[], bool] | None = None
    ) -> FirstFitPacking:
        """Return a packing in which no pod is placed; *existing_nodes* are filled in this order."""
        share_usages = self.compute_share_usages()
        return FirstFitPacking(
            existing_nodes=self.build_existing_nodes() if existing_nodes is None else existing_nodes,
            templates=self.templates,
            remaining_limits=self.compute_remaining_limits(),
            share_usages=dict(share_usages),
            share_usages_before=share_usages,
            topology=self.topology,
            options=self.options,
            is_over=is_over,
            committed_capacity=self._committed_capacity,
        )

    @cached_property
    def _committed_capacity(self) -> CommittedCapacity | None:
        """What is left of commitments next to the staying nodes; None if there are none."""
        ledger = self._cluster_state.commitment_ledger
        remaining = ledger.compute_remaining(self.staying_nodes) if ledger is not None else None
        return CommittedCapacity(remaining) if remaining is not None and remaining.has_rest() else None

    @property
    def _type_indexes(self) -> Mapping[str, InstanceTypeIndex]:
        return self._templates[2]

    @cached_property
    def _templates(
        self,
    ) -> tuple[
        tuple[NodeClaimTemplate, ...],
        tuple[ExcludedNodePool, ...],
        dict[str, InstanceTypeIndex],
        dict[str, TypePrices],
    ]:
        templates, excluded_pools, type_indexes = build_templates(self.cluster, self.axes, self.options)
        type_prices = self._build_type_prices(type_indexes)
        for template in templates:
            template.type_prices = type_prices.get(template.pool.name)
        return templates, excluded_pools, type_indexes, type_prices

    def _build_type_prices(self, type_indexes: Mapping[str, InstanceTypeIndex]) -> dict[str, TypePrices]:
        """Return the prices of instance types by NodePool, if there are limits in USD per hour."""
        type_prices: dict[str, TypePrices] = {}
        for pool in self.cluster.node_pools if self._limit_prices is not None else ():
            type_index = find_type_index(type_indexes, pool.node_class.name, pool.name)
            if type_index is not None and self._limit_prices is not None:
                type_prices[pool.name] = TypePrices(
                    type_index, self._limit_prices, pool.node_class.name, build_template_requirements(pool)
                )
        return type_prices

    @cached_property
    def _limit_prices(self) -> LimitPrices | None:
        """The prices of nodes for limits in USD per hour; None if there are no such limits."""
        return find_limit_prices(self._cluster_state, self.options.money)


def build_problem(
    cluster_state: ClusterState,
    *,
    pods: Iterable[Pod],
    staying_nodes: Sequence[StateNode],
    waiting_pods: Collection[str] | None = None,
    options: SchedulingOptions,
    by_priority: bool = False,
) -> SchedulingProblem:
    """Return the problem to place *pods* on *staying_nodes* and on new nodes.

    *waiting_pods*: names of pods that are counted nowhere until they are placed, by default all *pods* without errors;
    topology constraints count the others on the nodes where they run. *by_priority*: pods of higher priority are placed
    first.
    """
    queue = sort_queue(pods, cluster_state.taken_at, by_priority=by_priority)
    return SchedulingProblem(cluster_state, queue, staying_nodes, waiting_pods, options, by_priority=by_priority)


def _split_by_validity(
    queue: Sequence[Pod], volumes: VolumeTopology, claims: PodClaims, *, by_priority: bool
) -> tuple[list[PodShape], dict[str, Unschedulable]]:
    """Split *queue* into the shapes of valid pods and errors by pod name."""
    valid_shapes, errors_by_pod = [], dict[str, Unschedulable]()
    for shape in group_pod_shapes(queue, by_priority=by_priority):
        error = validate_pod(shape.representative, volumes, claims)
        if error is None:
            valid_shapes.append(shape)
            continue
        for position in shape.queue_indexes:
            name = queue[position].name
            errors_by_pod[name] = replace(error, pod=name)
    return valid_shapes, errors_by_pod


def _build_axes(cluster: ClusterSnapshot, shapes: Iterable[PodShape]) -> Axes:
    daemon_requests = (daemon_set.spec.requests for daemon_set in cluster.daemon_sets)
    return build_axes((*(shape.representative.spec.requests for shape in shapes), *daemon_requests))


def _has_prefer_no_schedule_taints(cluster: ClusterSnapshot) -> bool:
    """Return whether some NodePool or node has a taint with the effect PreferNoSchedule."""
    taints = [taint for pool in cluster.node_pools for taint in pool.taints]
    taints += [taint for node in cluster.nodes for taint in node.taints]
    taints += [taint for claim in cluster.node_claims for taint in claim.taints]
    return any(taint.effect == "PreferNoSchedule" for taint in taints)
