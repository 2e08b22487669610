"""Scheduling queue: pending pods in the order of kube-scheduler, with equal pods grouped."""

from collections.abc import Iterable, Sequence

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import build_relaxation_stages
from shared.decide.scheduling.constraints.topology_constraint import (
    TopologyConstraint,
    build_inverse_constraints,
    build_topology_constraints,
)
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.core.resources import CPU, MEMORY, Axes, Vector, build_axes
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.workloads import Namespace


class SchedulingPodGroup(msgspec.Struct, kw_only=True, eq=False):
    """Equivalent pods of the queue."""

    number: int
    spec: PodSpec
    request_vector: Vector
    requested: tuple[int, int]
    """CPU and memory."""
    terms: tuple[Requirements, ...]
    hard_constraints: tuple[TopologyConstraint, ...]
    soft_constraints: tuple[TopologyConstraint, ...]
    counting_constraints: tuple[TopologyConstraint, ...]
    self_selecting: frozenset[TopologyConstraint]

    @property
    def is_plain(self) -> bool:
        """Whether the pods have no topology constraints."""
        return not self.hard_constraints and not self.soft_constraints


PodRuns = tuple[tuple[SchedulingPodGroup, tuple[str, ...]], ...]
"""Pod names by group; consecutive pods of the same group form one run."""


class SchedulingQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Pending pods, in scheduling order."""

    axes: Axes
    runs: PodRuns


def build_scheduling_queue(pods: Iterable[Pod], namespaces: Iterable[Namespace] = ()) -> SchedulingQueue:
    """Return *pods* in the order in which kube-scheduler schedules them: by priority, then by age.

    Among pods of the same age, the smallest come first, which is the worst case.
    """
    ordered = sorted(pods, key=_get_queue_key)
    axes = build_axes(spec.requests for spec in {pod.spec: None for pod in ordered})
    number_by_key: dict[tuple[object, ...], int] = {}
    number_by_spec: dict[PodSpec, int] = {}
    first_pods: list[Pod] = []
    runs: list[tuple[int, list[str]]] = []
    for pod in ordered:
        spec_number = number_by_spec.setdefault(pod.spec, len(number_by_spec))
        group_number = number_by_key.setdefault((spec_number, pod.meta.labels, pod.meta.namespace), len(number_by_key))
        if group_number == len(first_pods):
            first_pods.append(pod)
        if not runs or runs[-1][0] != group_number:
            runs.append((group_number, []))
        runs[-1][1].append(pod.name)
    pod_groups = _build_pod_groups(first_pods, axes, tuple(namespaces))
    return SchedulingQueue(axes=axes, runs=tuple((pod_groups[number], tuple(names)) for number, names in runs))


def _get_queue_key(pod: Pod) -> tuple[int, float, int, int, str]:
    created = pod.meta.created_at.timestamp() if pod.meta.created_at is not None else 0.0
    requests = pod.spec.requests
    return -pod.priority, created, requests[MEMORY], requests[CPU], pod.name


def _build_pod_groups(
    first_pods: Sequence[Pod], axes: Axes, namespaces: tuple[Namespace, ...]
) -> list[SchedulingPodGroup]:
    """Return the groups of *first_pods*, the first pods of each group, with all constraints that select them."""
    stages_by_pod = [build_relaxation_stages(pod.spec, "Respect", discouraged=False) for pod in first_pods]
    hard_by_pod = [
        tuple(build_topology_constraints(pod, pod_stages[-1], namespaces))
        for pod, pod_stages in zip(first_pods, stages_by_pod, strict=True)
    ]
    preferred_by_pod = [
        tuple(build_topology_constraints(pod, pod_stages[0], namespaces))
        for pod, pod_stages in zip(first_pods, stages_by_pod, strict=True)
    ]
    inverse_by_pod = [tuple(build_inverse_constraints(pod, namespaces)) for pod in first_pods]
    counting_constraints = dict.fromkeys(
        rule for constraints in (*hard_by_pod, *preferred_by_pod) for rule in constraints
    )
    inverse_constraints = dict.fromkeys(rule for constraints in inverse_by_pod for rule in constraints)
    pod_groups = []
    for number, pod in enumerate(first_pods):
        labels = dict(pod.meta.labels)
        matching_constraints = tuple(
            rule for rule in counting_constraints if rule.is_selecting(pod.meta.namespace, labels)
        )
        excluding_constraints = (rule for rule in inverse_constraints if rule.is_selecting(pod.meta.namespace, labels))
        pod_groups.append(
            SchedulingPodGroup(
                number=number,
                spec=pod.spec,
                request_vector=axes.build_vector(pod.spec.requests),
                requested=(pod.spec.requests[CPU], pod.spec.requests[MEMORY]),
                terms=_build_terms(pod.spec),
                hard_constraints=(*hard_by_pod[number], *excluding_constraints),
                soft_constraints=tuple(rule for rule in preferred_by_pod[number] if rule not in hard_by_pod[number]),
                counting_constraints=(*matching_constraints, *inverse_by_pod[number]),
                self_selecting=frozenset(matching_constraints),
            )
        )
    return pod_groups


def _build_terms(spec: PodSpec) -> tuple[Requirements, ...]:
    selector_requirements = build_label_requirements(spec.node_selector)
    return tuple(selector_requirements & term for term in spec.required_terms) or (selector_requirements,)
