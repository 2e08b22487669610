"""Scheduling demand: which pods need a node, which of them cannot be scheduled at all, and which are equivalent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from operator import add
from typing import Final

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import (
    RelaxationStage,
    build_relaxation_stages,
    without_impossible_affinity,
)
from shared.decide.scheduling.constraints.volume_topology import VolumeTopology
from shared.decide.scheduling.pods.stage_compiler import CompiledStage, StageCompiler
from shared.decide.scheduling.topology.topology import Topology
from shared.model.core.metadata import Pairs
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.resources import NONE, Axes, Vector
from shared.model.core.selectors import LabelSelector
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.state.dynamic_resources.pod_claims import DeviceDemand, PodClaims

ANYWHERE: Final = (ANYTHING,)
"""Volume alternatives of a pod without volumes: no restriction."""


class PodEquivalenceClass(msgspec.Struct, kw_only=True, eq=False):
    """Equivalent pods, in the order of the queue."""

    spec: PodSpec
    stages: tuple[RelaxationStage, ...]
    binding_groups: tuple[tuple[int, ...], ...]
    """For each stage: the topology groups whose constraints apply to the class."""
    counting_groups: tuple[int, ...]
    """The topology groups in which its pods count."""
    selecting_groups: tuple[int, ...]
    request_vector: Vector
    volume_alternatives: tuple[Requirements, ...]
    """Alternative requirements of its volumes and of its allocated claims; any one of them is enough."""
    volumes_by_driver: tuple[tuple[str, frozenset[str]], ...] = ()
    """Volumes that count against an attach limit, by CSI driver. A class with such volumes has only one pod."""
    compiled_stages: tuple[CompiledStage, ...]
    """The compiled form of each stage."""
    pods: list[Pod]
    priority: int = 0
    """Priority of the pods if they are planned by priority, else 0."""
    device_demand: DeviceDemand | None = None
    """The ResourceClaims of each pod that are to be allocated."""

    @property
    def has_shared_claims(self) -> bool:
        """Whether the pods use a claim that pods of other classes on the same node may have allocated."""
        return self.device_demand is not None and bool(self.device_demand.shared)

    @property
    def ports(self) -> tuple[HostPort, ...]:
        """Host ports that each pod uses."""
        return self.spec.host_ports

    def sum_requests(self, count: int, base_requests: Vector) -> Vector:
        """Return the requests of *count* pods plus *base_requests*."""
        if count == 1:
            return tuple(map(add, base_requests, self.request_vector))
        return tuple(map(add, base_requests, (count * amount for amount in self.request_vector)))


class PodShape(msgspec.Struct, kw_only=True, eq=False):
    """Pods that differ only in their names and ages."""

    representative: Pod
    """The first pod, which represents all of them."""
    placement_spec: PodSpec
    """The part of the spec that restricts the node, without resource requests."""
    placement_number: int
    """Number of the placement spec; equal placement specs have equal numbers."""
    priority: int
    """Priority of the pods if they are planned by priority, else 0."""
    queue_indexes: list[int]
    """Positions of the pods in the queue."""


def group_pod_shapes(queue: Iterable[Pod], *, by_priority: bool = False) -> list[PodShape]:
    """Group the *queue* by pod shape, and *by_priority*, in the order of the first pods."""
    number_by_spec: dict[PodSpec, int] = {}
    shape_by_key: dict[tuple[int, Pairs, str, str, bool, int, Pairs], PodShape] = {}
    number_by_placement_spec: dict[PodSpec, int] = {}
    for queue_index, pod in enumerate(queue):
        spec, meta = pod.spec, pod.meta
        number = number_by_spec.setdefault(spec, len(number_by_spec))
        priority = pod.priority if by_priority else 0
        key = (number, meta.labels, meta.namespace, pod.node_name, pod.is_buffer_pod(), priority, pod.claim_names)
        pod_shape = shape_by_key.get(key)
        if pod_shape is None:
            placement_spec = msgspec.structs.replace(spec, requests=NONE)
            shape_by_key[key] = PodShape(
                representative=pod,
                placement_spec=placement_spec,
                placement_number=number_by_placement_spec.setdefault(placement_spec, len(number_by_placement_spec)),
                priority=priority,
                queue_indexes=[queue_index],
            )
        else:
            pod_shape.queue_indexes.append(queue_index)
    return list(shape_by_key.values())


def build_stages_by_spec(
    pod_shapes: Iterable[PodShape], options: SchedulingOptions, pods: Iterable[Pod], *, discouraged: bool
) -> dict[int, tuple[RelaxationStage, ...]]:
    """Return the relaxation stages of each pod shape, by the number of its placement spec.

    *pods* are all pods of the cluster. The stages are numbered.
    """
    stages_by_spec: dict[int, tuple[RelaxationStage, ...]] = {}
    stage_numbers = count(1)
    has_matching_pod = _build_pod_matcher(pods)
    for pod_shape in pod_shapes:
        if pod_shape.placement_number not in stages_by_spec:
            possible_spec = without_impossible_affinity(pod_shape.placement_spec, has_matching_pod)
            stages_by_spec[pod_shape.placement_number] = tuple(
                msgspec.structs.replace(stage, number=next(stage_numbers))
                for stage in build_relaxation_stages(possible_spec, options.preference_policy, discouraged=discouraged)
            )
    return stages_by_spec


def _build_pod_matcher(pods: Iterable[Pod]) -> Callable[[LabelSelector], bool]:
    """Return a function that tells whether a selector matches any of *pods*. The labels are read at the first call."""
    label_sets: list[dict[str, str]] = []
    result_by_selector: dict[LabelSelector, bool] = {}

    def has_matching_pod(selector: LabelSelector) -> bool:
        if not label_sets:
            label_sets.extend(dict(label_pairs) for label_pairs in {pod.meta.labels for pod in pods})
        if selector not in result_by_selector:
            result_by_selector[selector] = any(selector.is_match(label_set) for label_set in label_sets)
        return result_by_selector[selector]

    return has_matching_pod


def group_equivalence_classes(
    queue: Sequence[Pod],
    pod_shapes: Iterable[PodShape],
    stages_by_spec: Mapping[int, tuple[RelaxationStage, ...]],
    topology: Topology,
    volumes: VolumeTopology,
    axes: Axes,
    claims: PodClaims,
) -> list[PodEquivalenceClass]:
    """Group equivalent pods, in the order of the *queue*. *pod_shapes* are the shapes of the pods in the queue."""
    class_by_key: dict[tuple[object, ...], PodEquivalenceClass] = {}
    indexes_by_key: dict[tuple[object, ...], list[int]] = {}
    stage_compiler, number_by_spec = StageCompiler(topology), dict[PodSpec, int]()
    for pod_shape in pod_shapes:
        shape_stages, spec = stages_by_spec[pod_shape.placement_number], pod_shape.representative.spec
        spec_number = number_by_spec.setdefault(spec, len(number_by_spec))
        is_single = bool(spec.volume_claims and volumes.group_claims_by_driver((pod_shape.representative,)))
        for indexes in [[place] for place in pod_shape.queue_indexes] if is_single else [pod_shape.queue_indexes]:
            pod = queue[indexes[0]]
            groups = _find_groups(pod, shape_stages[0], topology)
            key: tuple[object, ...] = (
                spec_number,
                pod_shape.priority,
                *_build_likeness_key(pod, is_single=is_single),
                *groups,
            )
            if spec.resource_claims:
                key = (*key, claims.build_demand(pod), claims.restrict_alternatives(pod, ANYWHERE))
            if key not in class_by_key:
                class_by_key[key] = _build_class(
                    pod, shape_stages, topology, groups, (volumes, axes, stage_compiler, claims)
                )
                class_by_key[key].priority = pod_shape.priority
            indexes_by_key.setdefault(key, []).extend(indexes)
    for key, pod_class in class_by_key.items():
        pod_class.pods = [queue[place] for place in sorted(indexes_by_key[key])]
    return list(class_by_key.values())


def _build_likeness_key(pod: Pod, *, is_single: bool) -> tuple[object, ...]:
    namespace = pod.meta.namespace if pod.spec.volume_claims else ""
    return (pod.is_buffer_pod(), namespace, pod.name if is_single else "")


def _find_groups(pod: Pod, stage: RelaxationStage, topology: Topology) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the groups that apply to *pod* at its first stage, and the groups in which it counts."""
    return (
        (topology.find_binding_groups(pod, stage), topology.find_counting_groups(pod)) if topology.groups else ((), ())
    )


def _build_class(
    pod: Pod,
    pod_stages: tuple[RelaxationStage, ...],
    topology: Topology,
    groups: tuple[tuple[int, ...], tuple[int, ...]],
    tools: tuple[VolumeTopology, Axes, StageCompiler, PodClaims],
) -> PodEquivalenceClass:
    volumes, axes, stage_compiler, claims = tools
    first_groups, counting_groups = groups
    claims_by_driver = volumes.group_claims_by_driver((pod,)) if pod.spec.volume_claims else {}
    later_groups = (topology.find_binding_groups(pod, stage) if topology.groups else () for stage in pod_stages[1:])
    binding_groups = (first_groups, *later_groups)
    selecting_groups = topology.find_selecting_groups(pod) if topology.groups else ()
    request_vector = axes.build_vector(pod.spec.requests)
    volume_alternatives = volumes.find_alternatives(pod) if pod.spec.volume_claims else ANYWHERE
    device_demand = None
    if pod.spec.resource_claims:
        volume_alternatives = claims.restrict_alternatives(pod, volume_alternatives)
        device_demand = claims.build_demand(pod)
    pod_demand = (request_vector, pod.spec.host_ports, volume_alternatives, device_demand)
    return PodEquivalenceClass(
        spec=pod.spec,
        stages=pod_stages,
        binding_groups=binding_groups,
        counting_groups=counting_groups,
        selecting_groups=selecting_groups,
        request_vector=request_vector,
        volume_alternatives=volume_alternatives,
        volumes_by_driver=tuple((driver, frozenset(keys)) for driver, keys in sorted(claims_by_driver.items())),
        compiled_stages=tuple(
            stage_compiler.compile_stage(stage, numbers, (selecting_groups, counting_groups), pod_demand)
            for stage, numbers in zip(pod_stages, binding_groups, strict=True)
        ),
        pods=[],
        device_demand=device_demand,
    )
