"""Compiled relaxation stages of a pod class, with numbers for values that are expensive to compare."""

from collections.abc import Hashable

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.templates.node_claim_template import NodeConstraints
from shared.decide.scheduling.topology.topology import Topology
from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import Requirements
from shared.model.core.resources import Vector
from shared.model.kubernetes.host_ports import HostPort
from shared.state.dynamic_resources.pod_claims import DeviceDemand


class TopologyBinding(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A topology group whose constraint applies to a pod class."""

    group: int
    key: str
    self_count: int
    """1 if the pods match the selector of the group themselves, else 0."""
    is_counted: bool
    """Whether a pod that is placed raises the counts of the group."""


class TopologyBindings(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """All topology groups that apply to a pod class at one relaxation stage."""

    hostname_bindings: tuple[TopologyBinding, ...]
    """Bindings to groups over the hostname."""
    domain_bindings: tuple[TopologyBinding, ...]
    """Bindings to groups over other labels."""
    single_domain_binding: TopologyBinding | None
    """The only binding over a label other than the hostname, if it is a spread or an affinity; else None."""
    watched_groups: tuple[int, ...]
    """Groups whose counts affect more than which nodes are full."""
    is_one_pod_per_node: bool
    """Whether no node takes more than one pod of the class."""
    changes_domains: bool
    """Whether placing a pod changes the domains that are open to the next pod."""
    can_recover: bool
    """Whether a node or domain that was rejected may become possible later."""


class CompiledStage(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A relaxation stage of a pod class in compiled form."""

    stage: RelaxationStage
    node_constraints: NodeConstraints
    shape_number: int
    """Number of the combination of node constraints, requested resources and host ports."""
    topology_bindings: TopologyBindings


class StageCompiler:
    """Compiler of relaxation stages that gives equal node constraints and equal shapes the same number."""

    def __init__(self, topology: Topology) -> None:
        """Create a compiler without any interned constraints."""
        self._topology = topology
        self._constraints_by_value: dict[Hashable, NodeConstraints] = {}
        self._constraints_by_stage: dict[tuple[int, tuple[Requirements, ...]], NodeConstraints] = {}
        self._shape_numbers: dict[tuple[int, Vector, tuple[HostPort, ...], DeviceDemand | None], int] = {}
        self._bindings_by_groups: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], TopologyBindings] = {}

    def compile_stage(
        self,
        stage: RelaxationStage,
        binding_groups: tuple[int, ...],
        groups: tuple[tuple[int, ...], tuple[int, ...]],
        pod_demand: tuple[Vector, tuple[HostPort, ...], tuple[Requirements, ...], DeviceDemand | None],
    ) -> CompiledStage:
        """Return *stage* in compiled form.

        *groups*: the topology groups that select the pods, and those in which the pods count. *pod_demand*: the request
        vector of a pod, its host ports, the alternative requirements of its volumes, and its claims.
        """
        request_vector, ports, volume_alternatives, device_demand = pod_demand
        node_constraints = self._intern_constraints(stage, volume_alternatives)
        shape_number = self._shape_numbers.setdefault(
            (node_constraints.number, request_vector, ports, device_demand), len(self._shape_numbers)
        )
        key = (binding_groups, *groups)
        if key not in self._bindings_by_groups:
            self._bindings_by_groups[key] = self._build_bindings(binding_groups, *groups)
        return CompiledStage(
            stage=stage,
            node_constraints=node_constraints,
            shape_number=shape_number,
            topology_bindings=self._bindings_by_groups[key],
        )

    def _intern_constraints(
        self, stage: RelaxationStage, volume_alternatives: tuple[Requirements, ...]
    ) -> NodeConstraints:
        stage_key = (stage.number, volume_alternatives)
        if stage_key not in self._constraints_by_stage:
            value_key = (stage.requirements, stage.tolerations, volume_alternatives)
            new_constraints = NodeConstraints(
                number=len(self._constraints_by_value),
                requirements=stage.requirements,
                tolerations=stage.tolerations,
                volume_alternatives=volume_alternatives,
            )
            self._constraints_by_stage[stage_key] = self._constraints_by_value.setdefault(value_key, new_constraints)
        return self._constraints_by_stage[stage_key]

    def _build_bindings(
        self, binding_groups: tuple[int, ...], selecting_groups: tuple[int, ...], counting_groups: tuple[int, ...]
    ) -> TopologyBindings:
        hostname_bindings: list[TopologyBinding] = []
        domain_bindings: list[TopologyBinding] = []
        for group_number in binding_groups:
            key = self._topology.groups[group_number].rule.key
            topology_binding = TopologyBinding(
                group=group_number,
                key=key,
                self_count=int(group_number in selecting_groups),
                is_counted=group_number in counting_groups,
            )
            (hostname_bindings if key == HOSTNAME else domain_bindings).append(topology_binding)
        affinity_bindings = [
            binding for binding in (*hostname_bindings, *domain_bindings) if self._get_kind(binding) == "affinity"
        ]
        watched_groups = {binding.group for binding in (*domain_bindings, *affinity_bindings)}
        return TopologyBindings(
            hostname_bindings=tuple(hostname_bindings),
            domain_bindings=tuple(domain_bindings),
            single_domain_binding=domain_bindings[0]
            if [self._get_kind(binding) for binding in domain_bindings] in (["spread"], ["affinity"])
            else None,
            watched_groups=tuple(sorted(watched_groups)),
            is_one_pod_per_node=any(
                binding.is_counted and self._is_exclusive(binding) for binding in hostname_bindings
            ),
            changes_domains=any(
                binding.is_counted and self._get_kind(binding) != "affinity" for binding in domain_bindings
            ),
            can_recover=bool(affinity_bindings)
            or any(self._get_kind(binding) == "spread" for binding in domain_bindings),
        )

    def _is_exclusive(self, binding: TopologyBinding) -> bool:
        rule = self._topology.groups[binding.group].rule
        return rule.kind in ("apart", "inverse") or (
            rule.kind == "spread" and binding.self_count > 0 and rule.max_skew == 1
        )

    def _get_kind(self, binding: TopologyBinding) -> str:
        return self._topology.groups[binding.group].rule.kind
