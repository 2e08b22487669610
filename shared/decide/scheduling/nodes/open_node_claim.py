"""Open NodeClaims: nodes opened in this run, whose set of possible instance types narrows with every pod."""

import msgspec

from shared.decide.scheduling.devices.occupied_devices import OccupiedDevices
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.labels import INSTANCE_TYPE
from shared.model.core.requirements import Requirement, Requirements
from shared.model.core.resources import Vector
from shared.model.kubernetes.host_ports import HostPort, has_port_conflict
from shared.state.dynamic_resources.pod_claims import DeviceDemand


class OpenNodeClaim(msgspec.Struct, kw_only=True, eq=False):
    """A node opened in this run, and the pods placed on it."""

    number: int
    host: str
    template: NodeClaimTemplate
    state: NarrowedTemplate
    mask: Mask
    """Instance types that hold all its pods."""
    used: Vector
    ports: list[HostPort] = msgspec.field(default_factory=list)
    pods: list[str] = msgspec.field(default_factory=list)
    uncounted_pods: list[tuple[int, str]] = msgspec.field(default_factory=list)
    """Pairs of a topology group and a pod that the group could not count yet, because the node's domain is
    undecided.
    """
    is_relaxed: bool = False
    devices: OccupiedDevices | None = None
    """None: none of its pods has claims."""
    counts_in_share: bool = True
    """Whether it counts in the Spot share of its NodePool; an empty node that gets no pods does not."""

    def compute_free(self) -> tuple[int, int]:
        """Return the maximum free cpu and memory over the possible instance types."""
        get_max_allocatable, used = self.template.type_index.get_max_allocatable, self.used
        return get_max_allocatable(self.mask, 0) - used[0], get_max_allocatable(self.mask, 1) - used[1]


class Fit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many pods a node takes, and its state with these pods."""

    count: int
    state: NarrowedTemplate
    mask: Mask
    used: Vector
    devices: OccupiedDevices | None = None
    """The devices with these pods, if they have claims."""


def find_fit(
    node: OpenNodeClaim,
    pods: PodEquivalenceClass,
    count: int,
    states: tuple[NarrowedTemplate, ...],
    *,
    any_variety: bool = False,
) -> Fit | None:
    """Return the fit of up to *count* pods on *node*, in the first of *states* that takes any; else None.

    With *any_variety*, minValues are ignored.
    """
    ports = pods.spec.host_ports
    if ports:
        if has_port_conflict(node.ports, ports):
            return None
        count = 1
    if pods.device_demand is not None:
        return _find_device_fit(node, pods, pods.device_demand, count, states, any_variety=any_variety)
    used_with_one = pods.sum_requests(1, node.used)
    filter_holding = node.template.filter_fitting_types
    for state in states:
        type_mask = node.mask & state.mask
        ignores_minima = any_variety or not state.min_value_requirements
        mask = filter_holding(type_mask, used_with_one, ports)
        if not mask or not (ignores_minima or has_min_values(node.template, state, mask)):
            continue
        if count == 1:
            return Fit(count=1, state=state, mask=mask, used=used_with_one)
        return _find_largest_fit(node, pods, count, state, ignores_minima=ignores_minima)
    return None


def _find_device_fit(
    node: OpenNodeClaim,
    pods: PodEquivalenceClass,
    demand: DeviceDemand,
    count: int,
    states: tuple[NarrowedTemplate, ...],
    *,
    any_variety: bool,
) -> Fit | None:
    """Return the largest fit of up to *count* pods with claims; the state excludes types without the devices."""
    template, devices = node.template, node.devices or node.template.devices
    max_count = 0 if devices is None else devices.compute_max_count(demand, count)
    for state in states:
        for pod_count in range(max_count, 0, -1):
            narrowed_state = (
                None
                if devices is None
                else _narrow_to_types(template, state, devices.find_fitting_types(demand, pod_count))
            )
            if devices is None or narrowed_state is None:
                continue
            used = pods.sum_requests(pod_count, node.used)
            mask = template.filter_fitting_types(node.mask & narrowed_state.mask, used, pods.spec.host_ports)
            ignores_minima = any_variety or not narrowed_state.min_value_requirements
            if mask and (ignores_minima or has_min_values(template, narrowed_state, mask)):
                return Fit(
                    count=pod_count,
                    state=narrowed_state,
                    mask=mask,
                    used=used,
                    devices=devices.add_pods(demand, pod_count),
                )
    return None


def _narrow_to_types(template: NodeClaimTemplate, state: NarrowedTemplate, types: Mask) -> NarrowedTemplate | None:
    """Return *state* narrowed to the instance types in *types*; None if none is left."""
    remaining_types = state.mask & types
    if remaining_types in (0, state.mask):
        return state if remaining_types else None
    names = frozenset(
        instance_type.name
        for number, instance_type in enumerate(template.type_index.types)
        if remaining_types >> number & 1
    )
    return template.narrow(state, Requirements(items=(Requirement(key=INSTANCE_TYPE, values=names),)))


def _find_largest_fit(
    node: OpenNodeClaim, pods: PodEquivalenceClass, count: int, state: NarrowedTemplate, *, ignores_minima: bool
) -> Fit:
    """Return the largest fit, from one pod up to *count*, that an instance type holds.

    The search doubles the number of pods, then bisects.
    """
    template, ports, type_mask = node.template, pods.spec.host_ports, node.mask & state.mask

    def compute_mask_for(pod_count: int) -> Mask:
        mask = template.filter_fitting_types(type_mask, pods.sum_requests(pod_count, node.used), ports)
        return mask if ignores_minima or has_min_values(template, state, mask) else 0

    best, mask, high = 1, compute_mask_for(1), 2
    while high <= count and (larger_mask := compute_mask_for(high)):
        best, mask, high = high, larger_mask, high * 2
    high = min(high, count + 1)
    while high - best > 1:
        middle = (best + high) // 2
        larger_mask = compute_mask_for(middle)
        best, mask, high = (middle, larger_mask, high) if larger_mask else (best, mask, middle)
    return Fit(count=best, state=state, mask=mask, used=pods.sum_requests(best, node.used))
