"""Existing and in-flight nodes with their free resources.

A node counts with its labels, strictly. A NodeClaim without an instance does not have the labels of an instance yet: it
admits a pod only if each instance type that it may become satisfies the pod, and its free resources are its own
requests.
"""

from collections.abc import Iterable, Mapping
from operator import sub
from typing import Final

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.constraints.topology_constraint import NodeDomains
from shared.decide.scheduling.constraints.volume_topology import VolumeTopology
from shared.decide.scheduling.devices.occupied_devices import OccupiedDevices
from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.daemon_overhead import compute_missing_daemons, group_daemon_overhead
from shared.decide.scheduling.templates.node_claim_template import NodeConstraints
from shared.decide.scheduling.templates.template_builder import build_template_requirements, find_type_index
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME, INSTANCE_TYPE, NODEPOOL
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements
from shared.model.core.resources import NONE, Axes, Resources, Vector, compute_min_resources
from shared.model.core.taints import Taint, find_untolerated_taint
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.host_ports import HostPort, has_port_conflict
from shared.state.state_node import StateNode

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class ExistingNode(msgspec.Struct, kw_only=True, eq=False):
    """An existing or in-flight node and its remaining resources."""

    name: str
    node_domains: NodeDomains
    """From its labels, including the hostname; for an unlaunched NodeClaim, from its requirements."""
    free: Vector
    ports: list[HostPort]
    attached: dict[str, set[str]]
    limits: dict[str, int]
    type_index: InstanceTypeIndex | None = None
    """For an unlaunched NodeClaim: the index of the instance types that it may become."""
    mask: Mask = 0
    pods: list[str] = msgspec.field(default_factory=list)
    devices: OccupiedDevices | None = None
    """None: no pod of the plan has claims."""

    @property
    def host(self) -> str:
        """Hostname of the node."""
        return min(self.node_domains.get_requirement(HOSTNAME).values, default=self.name)

    def can_admit(self, stage: RelaxationStage) -> bool:
        """Return whether taints and labels admit a pod, regardless of free resources."""
        tolerated = find_untolerated_taint(self.node_domains.taints, stage.tolerations) is None
        return tolerated and self.can_satisfy(stage.requirements)

    def can_satisfy(self, requirements: Requirements) -> bool:
        """Return whether the node, with each instance type that it may become, satisfies *requirements*."""
        return all(self._is_satisfied(item) for item in requirements)

    def can_satisfy_constraints(self, node_constraints: NodeConstraints) -> bool:
        """Return whether the node satisfies *node_constraints*, with any one of the volume alternatives."""
        return self.can_satisfy(node_constraints.requirements) and any(
            self.can_satisfy(requirements) for requirements in node_constraints.volume_alternatives
        )

    def count_fitting_pods(self, pod_class: PodEquivalenceClass, count: int) -> int:
        """Return how many of *count* pods of *pod_class* fit."""
        for free_amount, requested_amount in zip(self.free, pod_class.request_vector, strict=True):
            if requested_amount > 0:
                if free_amount < requested_amount:
                    return 0
                count = min(count, free_amount // requested_amount)
        if pod_class.ports:
            count = 0 if has_port_conflict(self.ports, pod_class.ports) else 1
        if pod_class.device_demand is not None:
            count = self.devices.count_fitting_pods(pod_class.device_demand, count) if self.devices is not None else 0
        return count if not pod_class.volumes_by_driver or self._can_attach_volumes(pod_class) else 0

    def add_pods(self, pod_class: PodEquivalenceClass, names: list[str]) -> None:
        """Add the pods *names* of *pod_class* to the node."""
        self.free = tuple(map(sub, self.free, pod_class.sum_requests(len(names), (0,) * len(self.free))))
        self.ports.extend(pod_class.ports)
        for driver, keys in pod_class.volumes_by_driver:
            self.attached.setdefault(driver, set()).update(keys)
        self.pods.extend(names)
        if self.devices is not None and pod_class.device_demand is not None:
            self.devices = self.devices.add_pods(pod_class.device_demand, len(names))

    def _can_attach_volumes(self, pod_class: PodEquivalenceClass) -> bool:
        return all(
            len(self.attached.get(driver, set()) | keys) <= self.limits[driver]
            for driver, keys in pod_class.volumes_by_driver
            if driver in self.limits
        )

    def _is_satisfied(self, item: Requirement) -> bool:
        node_requirement = self.node_domains.by_key.get(item.key)
        if node_requirement is not None and _is_within(node_requirement, item):
            return True
        if self.type_index is not None and self.type_index.has_label(item.key):
            return self.type_index.is_satisfied_by_all(item, self.mask)
        return node_requirement is None and item.is_tolerant()


def build_node_domains(state: StateNode) -> NodeDomains:
    """Return the known label requirements and taints of the node *state*."""
    if is_unlaunched(state) and state.claim is not None:
        labels = build_label_requirements(dict(state.claim.meta.labels) | {HOSTNAME: state.name})
        claim_requirements = state.claim.requirements.without((HOSTNAME,)) & labels
        return NodeDomains(
            by_key={item.key: item for item in claim_requirements}, taints=state.claim.taints, is_fixed=False
        )
    label_requirements = build_label_requirements(state.build_labels())
    return NodeDomains(
        by_key={item.key: item for item in label_requirements}, taints=_list_taints(state), is_fixed=True
    )


def is_unlaunched(state: StateNode) -> bool:
    """Return whether the state is a NodeClaim without an instance."""
    return state.node is None and state.claim is not None and not state.claim.is_launched()


def build_existing_nodes(
    states: Iterable[StateNode],
    domains_by_node: Mapping[str, NodeDomains],
    cluster: ClusterSnapshot,
    axes: Axes,
    type_indexes: Mapping[str, InstanceTypeIndex],
    volumes: VolumeTopology,
) -> list[ExistingNode]:
    """Return the nodes of *states* without negative free resources: initialized nodes first, then by name."""
    existing_nodes = []
    for state in sorted(states, key=lambda state: (not state.is_initialized(), state.name)):
        if state.claim is not None and is_unlaunched(state):
            existing_node = _build_unlaunched_node(
                state.claim, domains_by_node[state.name], cluster, axes, type_indexes
            )
        else:
            existing_node = _build_existing_node(state, domains_by_node[state.name], cluster, axes, volumes)
        if existing_node is not None:
            existing_nodes.append(existing_node)
    return existing_nodes


def _build_existing_node(
    state: StateNode, node_domains: NodeDomains, cluster: ClusterSnapshot, axes: Axes, volumes: VolumeTopology
) -> ExistingNode | None:
    labels = Requirements(items=tuple(node_domains.by_key.values()))
    daemons, ports = compute_missing_daemons(state, labels, cluster.daemon_sets)
    free = state.compute_available() - daemons
    if any(amount < 0 for _, amount in free.amounts):
        return None
    active_pods = [pod for pod in state.pods if not pod.is_terminal()]
    running_ports = {port for pod in active_pods for port in pod.spec.host_ports}
    return ExistingNode(
        name=state.name,
        node_domains=node_domains,
        free=axes.build_vector(free),
        ports=sorted(running_ports | ports),
        attached=volumes.group_claims_by_driver(active_pods),
        limits=volumes.limits.get(state.node.name, {}) if state.node is not None else {},
    )


def _build_unlaunched_node(
    claim: NodeClaim,
    node_domains: NodeDomains,
    cluster: ClusterSnapshot,
    axes: Axes,
    type_indexes: Mapping[str, InstanceTypeIndex],
) -> ExistingNode | None:
    type_index = find_type_index(type_indexes, claim.node_class.name, claim.meta.get_label(NODEPOOL))
    mask = 0 if type_index is None else select_claim_types(claim, type_index)
    daemons, ports = _find_smallest_overhead(claim, type_index, mask, cluster, axes)
    free = claim.requests - daemons
    if any(amount < 0 for _, amount in free.amounts):
        return None
    return ExistingNode(
        name=claim.name,
        node_domains=node_domains,
        free=axes.build_vector(free),
        ports=list(ports),
        attached={},
        limits={},
        type_index=type_index if mask else None,
        mask=mask,
    )


def select_claim_types(claim: NodeClaim, type_index: InstanceTypeIndex) -> Mask:
    """Return the instance types that a NodeClaim without an instance may become, whether they have offerings or not."""
    return type_index.find_by_name(claim.requirements[INSTANCE_TYPE])


def _find_smallest_overhead(
    claim: NodeClaim, type_index: InstanceTypeIndex | None, mask: Mask, cluster: ClusterSnapshot, axes: Axes
) -> tuple[Resources, tuple[HostPort, ...]]:
    """Return the daemon overhead that is part of the requests of *claim* since its creation, and the host ports."""
    pool = next(
        (node_pool for node_pool in cluster.node_pools if node_pool.name == claim.meta.get_label(NODEPOOL)), None
    )
    if type_index is None or pool is None:
        return NONE, ()
    overhead_groups = group_daemon_overhead(
        claim.taints, build_template_requirements(pool), type_index, cluster.daemon_sets, axes
    )
    groups = [group for group in overhead_groups if group.mask & mask]
    ports = tuple(sorted({port for group in groups for port in group.ports}))
    return compute_min_resources(group.requests for group in groups), ports


def _list_taints(state: StateNode) -> tuple[Taint, ...]:
    taints = state.list_taints()
    cordoned = state.node is not None and state.node.unschedulable
    return (*taints, UNSCHEDULABLE_TAINT) if cordoned and UNSCHEDULABLE_TAINT not in taints else taints


def _is_within(node_requirement: Requirement, item: Requirement) -> bool:
    """Return whether each value that *node_requirement* allows satisfies *item*."""
    if node_requirement.complement:
        intersection = node_requirement & item
        return msgspec.structs.replace(intersection, min_values=node_requirement.min_values) == node_requirement
    return all(item.has(value) for value in node_requirement.values) if node_requirement.values else item.is_tolerant()
