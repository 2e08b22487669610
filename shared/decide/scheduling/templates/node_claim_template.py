"""NodeClaim templates: NodePools that can launch nodes, and how placed pods narrow the requirements of a new node."""

from collections.abc import Iterator, Mapping
from operator import add
from typing import Final

import msgspec

from shared.decide.scheduling.constraints.topology_constraint import NodeDomains
from shared.decide.scheduling.devices.occupied_devices import OccupiedDevices
from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.instance_types.type_prices import TypePrices
from shared.decide.scheduling.templates.daemon_overhead import DaemonOverheadGroup
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.core.labels import HOSTNAME, WELL_KNOWN
from shared.model.core.requirements import Requirement, Requirements
from shared.model.core.resources import Vector
from shared.model.core.taints import Toleration, find_untolerated_taint
from shared.model.decisions.placement import UnschedulableReason
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.spot_share import SpotShare
from shared.model.kubernetes.host_ports import HostPort, has_port_conflict
from shared.state.zones.zonal_shifts import NO_SHIFTED_ZONES

MAX_CACHED_FITS: Final = 20_000
"""Limit of the cached results per template."""


class TemplateRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a NodePool cannot launch a node, with the fix."""

    reason: UnschedulableReason
    message: str


class ExcludedNodePool(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool that is not used for scheduling."""

    pool: NodePool
    refusal: TemplateRefusal


class NodeConstraints(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The constraints of a pod on its node, apart from resources and topology; equal constraints have equal numbers."""

    number: int
    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    volume_alternatives: tuple[Requirements, ...]
    """Additional requirements of the volumes; any one of them is enough."""

    @property
    def has_hostname(self) -> bool:
        """Whether the constraints include the hostname."""
        return any(HOSTNAME in requirements for requirements in (self.requirements, *self.volume_alternatives))


class NarrowedTemplate(msgspec.Struct, kw_only=True, eq=False):
    """The state of a new node: its requirements, and the instance types with offerings that satisfy them."""

    requirements: Requirements
    mask: Mask
    min_value_requirements: tuple[Requirement, ...]
    by_requirements: "dict[Requirements, NarrowedTemplate | None]" = msgspec.field(default_factory=dict)
    by_constraints: "dict[int, tuple[NarrowedTemplate, ...]]" = msgspec.field(default_factory=dict)
    node_domains: NodeDomains | None = None
    known_labels: dict[str, str] | None = None
    """Labels with a single known value."""
    by_domains: "dict[tuple[str, tuple[str, ...]], tuple[NarrowedTemplate, ...]]" = msgspec.field(default_factory=dict)
    launch_masks: dict[tuple[Vector, tuple[HostPort, ...]], Mask] = msgspec.field(default_factory=dict)
    """By used resources and host ports: the instance types that the node may be launched as."""


class NodeClaimTemplate(msgspec.Struct, kw_only=True, eq=False):
    """A NodePool that can launch nodes."""

    pool: NodePool
    type_index: InstanceTypeIndex
    daemon_overheads: tuple[DaemonOverheadGroup, ...]
    initial_state: NarrowedTemplate
    interned_states: dict[Requirements, NarrowedTemplate]
    type_prices: TypePrices | None = None
    """For limits in USD per hour; None if there are none."""
    shifted_zones: Mapping[str, ZonalShift] = NO_SHIFTED_ZONES
    """The active zonal shifts by zone, for the reasons of unschedulable pods."""
    spot_share: SpotShare | None = None
    """How much of its nodes may be Spot; None: any."""
    devices: OccupiedDevices | None = None
    """The devices that its nodes are expected to publish, by instance type; None: no pod of the plan has claims."""
    fitting_types: dict[Vector, Mask] = msgspec.field(default_factory=dict)
    """By request vector: the instance types that hold it together with their daemon overhead."""

    def narrow(self, state: NarrowedTemplate, requirements: Requirements) -> NarrowedTemplate | None:
        """Return *state* narrowed to *requirements*; None if they conflict or no available instance type remains."""
        if not requirements.items:
            return state
        if requirements not in state.by_requirements:
            state.by_requirements[requirements] = self._compute_narrowed_state(state, requirements)
        return state.by_requirements[requirements]

    def narrow_to_constraints(
        self, state: NarrowedTemplate, node_constraints: NodeConstraints
    ) -> tuple[NarrowedTemplate, ...]:
        """Return *state* narrowed to *node_constraints*, one for each volume alternative; () if they conflict."""
        narrowed_states = state.by_constraints.get(node_constraints.number)
        if narrowed_states is None:
            narrowed_states = state.by_constraints[node_constraints.number] = tuple(
                self._narrow_to_alternatives(state, node_constraints)
            )
        return narrowed_states

    def narrow_to_domains(
        self, state: NarrowedTemplate, key: str, domains: tuple[str, ...]
    ) -> tuple[NarrowedTemplate, ...]:
        """Return *state* narrowed to each of *domains* of the label *key* that is possible."""
        narrowed_states = state.by_domains.get((key, domains))
        if narrowed_states is None:
            domain_requirements = (Requirement(key=key, values=frozenset((domain,))) for domain in domains)
            candidate_states = (self.narrow(state, Requirements(items=(item,))) for item in domain_requirements)
            narrowed_states = state.by_domains[key, domains] = tuple(
                narrowed_state for narrowed_state in candidate_states if narrowed_state is not None
            )
        return narrowed_states

    def get_node_domains(self, state: NarrowedTemplate) -> NodeDomains:
        """Return what topology constraints may know about a node in *state*, except its hostname."""
        if state.node_domains is None:
            by_key = {item.key: item for item in state.requirements}
            defined = frozenset(item.key for item in self.initial_state.requirements)
            state.node_domains = NodeDomains(by_key=by_key, taints=self.pool.taints, is_fixed=False, defined=defined)
        return state.node_domains

    def get_known_labels(self, state: NarrowedTemplate) -> dict[str, str]:
        """Return the labels with a single known value of a node in *state*."""
        if state.known_labels is None:
            state.known_labels = self.get_node_domains(state).get_known_labels()
        return state.known_labels

    def filter_fitting_types(self, mask: Mask, request_vector: Vector, ports: tuple[HostPort, ...] = ()) -> Mask:
        """Return the types in *mask* that hold *request_vector* and their daemons, if no daemon uses *ports*."""
        if ports and any(has_port_conflict(group.ports, ports) for group in self.daemon_overheads):
            mask &= sum(group.mask for group in self.daemon_overheads if not has_port_conflict(group.ports, ports))
        fitting_mask = self.fitting_types.get(request_vector)
        if fitting_mask is None:
            if len(self.fitting_types) >= MAX_CACHED_FITS:
                self.fitting_types.clear()
            fitting_mask = self.fitting_types[request_vector] = self._compute_fitting_types(request_vector)
        return mask & fitting_mask

    def _compute_fitting_types(self, request_vector: Vector) -> Mask:
        find_fitting, fitting_mask = self.type_index.filter_fitting, 0
        for group in self.daemon_overheads:
            fitting_mask |= find_fitting(group.mask, tuple(map(add, request_vector, group.request_vector)))
        return fitting_mask

    def _narrow_to_alternatives(
        self, state: NarrowedTemplate, node_constraints: NodeConstraints
    ) -> Iterator[NarrowedTemplate]:
        if find_untolerated_taint(self.pool.taints, node_constraints.tolerations) is not None:
            return
        constrained_state = self.narrow(state, node_constraints.requirements)
        for alternative in node_constraints.volume_alternatives if constrained_state is not None else ():
            narrowed_state = None if constrained_state is None else self.narrow(constrained_state, alternative)
            if narrowed_state is not None:
                yield narrowed_state

    def find_conflict(self, state: NarrowedTemplate, requirements: Requirements) -> str:
        """Return the first key on which *requirements* conflict, or "".

        Only the NodePool itself defines custom keys.
        """
        return self.initial_state.requirements.find_undefined_key(
            requirements, WELL_KNOWN
        ) or state.requirements.find_conflict(requirements)

    def _compute_narrowed_state(self, state: NarrowedTemplate, requirements: Requirements) -> NarrowedTemplate | None:
        if self.find_conflict(state, requirements):
            return None
        narrowed_state = self.intern_state(state.requirements & requirements)
        return narrowed_state if narrowed_state.mask else None

    def intern_state(self, requirements: Requirements) -> NarrowedTemplate:
        """Return the state for *requirements*, the same object for equal requirements."""
        if requirements not in self.interned_states:
            self.interned_states[requirements] = build_narrowed_template(requirements, self.type_index)
        return self.interned_states[requirements]


def build_narrowed_template(requirements: Requirements, type_index: InstanceTypeIndex) -> NarrowedTemplate:
    """Return the state for *requirements*: the instance types with offerings that satisfy them."""
    min_value_requirements = tuple(item for item in requirements if item.min_values is not None)
    mask = type_index.find_compatible(requirements) & type_index.find_offered(requirements)
    return NarrowedTemplate(requirements=requirements, mask=mask, min_value_requirements=min_value_requirements)
