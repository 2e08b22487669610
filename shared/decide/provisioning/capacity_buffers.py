"""Capacity buffers: capacity that is kept free with buffer pods.

Buffer pods have the lowest priority and are never bound. They are scheduled like pending pods, after all of them. A
node on which a buffer pod fits is not empty; if a buffer pod fits on no node, a node is created. Buffer pods never take
a place from a pod of the cluster.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.decide.provisioning.provisioning_requests import ResolvedRequest, resolve_requests
from shared.decide.scheduling.pods.pending_pods import select_pods_to_schedule
from shared.decide.scheduling.scheduler import DEFAULT_OPTIONS, solve
from shared.model.cluster import ClusterSnapshot
from shared.model.core.conditions import encode_conditions, has_equal_conditions, with_condition
from shared.model.core.formatting import format_count
from shared.model.core.labels import BUFFER, BUFFER_NAMESPACE, FAKE_POD
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.core.units import compute_percentage
from shared.model.decisions.action import Action, PatchStatus
from shared.model.decisions.placement import Placement, SchedulingOptions, Unschedulable
from shared.model.karpenter.capacity_buffer import CapacityBuffer
from shared.model.kubernetes.pod import MIN_PRIORITY, Pod
from shared.model.kubernetes.workloads import Workload
from shared.state.cluster_state import ClusterState

ACTIVE_CAPACITY_STRATEGY: Final = "buffer.x-k8s.io/active-capacity"
MAX_PODS_PER_BUFFER: Final = 2000
"""Limit of the pods that are scheduled for one buffer, so that a plan is ready in time for any buffer size."""
_UNSCHEDULABLE_CONDITIONS: Final = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
_READY_CONDITION: Final = "ReadyForProvisioning"
_PROVISIONING_CONDITION: Final = "Provisioning"
_WorkloadKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
ResolutionError: TypeAlias = tuple[Literal["", "ScalableRefNotFound", "PodTemplateNotFound", "ResolutionFailed"], str]


class ResolvedBuffer(msgspec.Struct, frozen=True, kw_only=True):
    """A capacity buffer with its workload, its buffer pods, or the error that prevented its resolution."""

    buffer: CapacityBuffer
    workload: Workload | None = None
    error: ResolutionError = ("", "")
    pods: tuple[Pod, ...] = ()


class BufferedPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A placement of pods and buffer pods."""

    placement: Placement = Placement()
    resolved_buffers: tuple[ResolvedBuffer, ...] = ()
    resolved_requests: tuple[ResolvedRequest, ...] = ()

    @property
    def buffer_pod_names(self) -> frozenset[str]:
        """Names of the buffer pods, and of the pods of ProvisioningRequests."""
        return frozenset(pod.name for pod in _list_virtual_pods(self.resolved_buffers, self.resolved_requests))

    def without_buffer_pods(self) -> Placement:
        """Return the placement without buffer pods, which get no events and no nominations."""
        fits = (replace(fit, pods=self._filter_real_pods(fit.pods)) for fit in self.placement.existing)
        return replace(
            self.placement,
            existing=tuple(fit for fit in fits if fit.pods),
            unschedulable=tuple(
                unschedulable_pod
                for unschedulable_pod in self.placement.unschedulable
                if unschedulable_pod.pod not in self.buffer_pod_names
            ),
            approximations=tuple(
                approximation
                for approximation in self.placement.approximations
                if approximation.pod not in self.buffer_pod_names
            ),
        )

    def list_buffer_nodes(self) -> frozenset[str]:
        """Return the names of the nodes that have room for a buffer pod."""
        return frozenset(fit.node for fit in self.placement.existing if self.buffer_pod_names.intersection(fit.pods))

    def _filter_real_pods(self, pods: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in pods if name not in self.buffer_pod_names)


def _list_virtual_pods(buffers: Iterable[ResolvedBuffer], requests: Iterable[ResolvedRequest]) -> Iterator[Pod]:
    for buffer in buffers:
        yield from buffer.pods
    for request in requests:
        yield from request.pods


def plan_with_buffers(
    cluster_state: ClusterState,
    *,
    excluded: frozenset[str] = frozenset(),
    withheld: frozenset[str] = frozenset(),
    options: SchedulingOptions = DEFAULT_OPTIONS,
    is_over: Callable[[], bool] | None = None,
) -> BufferedPlacement:
    """Return the placement of pods and buffer pods. Without buffers the result is that of `solve`.

    *withheld*: names of pods and buffer pods that are not placed.
    """
    resolved_buffers = resolve_buffers(cluster_state.snapshot)
    resolved_requests = resolve_requests(cluster_state.snapshot)
    virtual_pods = _list_virtual_pods(resolved_buffers, resolved_requests)
    buffer_pods = tuple(pod for pod in virtual_pods if pod.name not in withheld)
    if not buffer_pods and not withheld:
        return BufferedPlacement(
            placement=solve(cluster_state, excluded=excluded, options=options, is_over=is_over),
            resolved_buffers=resolved_buffers,
            resolved_requests=resolved_requests,
        )
    pods = tuple(pod for pod in select_pods_to_schedule(cluster_state, excluded) if pod.name not in withheld)
    combined_placement = solve(
        cluster_state, pods=(*pods, *buffer_pods), excluded=excluded, options=options, is_over=is_over
    )
    buffered_placement = BufferedPlacement(
        placement=combined_placement, resolved_buffers=resolved_buffers, resolved_requests=resolved_requests
    )
    unscheduled_pods = buffered_placement.without_buffer_pods().unschedulable
    if unscheduled_pods and not combined_placement.next_pod:
        pods_only_placement = solve(cluster_state, pods=pods, excluded=excluded, options=options, is_over=is_over)
        if len(pods_only_placement.unschedulable) < len(unscheduled_pods):
            rejected_buffer_pods = [
                Unschedulable(pod=pod.name, reason="LimitExceeded", message="pending pods use the headroom")
                for pod in buffer_pods
            ]
            unschedulable_pods = tuple(
                sorted(
                    (*pods_only_placement.unschedulable, *rejected_buffer_pods),
                    key=lambda unschedulable: unschedulable.pod,
                )
            )
            return BufferedPlacement(
                placement=replace(pods_only_placement, unschedulable=unschedulable_pods),
                resolved_buffers=resolved_buffers,
                resolved_requests=resolved_requests,
            )
    return buffered_placement


def resolve_buffers(cluster: ClusterSnapshot) -> tuple[ResolvedBuffer, ...]:
    """Return all capacity buffers in resolved form, sorted by name."""
    pod_names = frozenset(pod.name for pod in cluster.pods)
    workloads: dict[_WorkloadKey, Workload] = {
        (workload.kind, workload.meta.namespace, workload.meta.name): workload
        for workload in (*cluster.pod_templates, *cluster.deployments, *cluster.replica_sets, *cluster.stateful_sets)
    }
    active_buffers = (buffer for buffer in cluster.capacity_buffers if buffer.meta.deleted_at is None)
    return tuple(
        _resolve_buffer(buffer, workloads, pod_names)
        for buffer in sorted(active_buffers, key=lambda buffer: buffer.name)
    )


def _resolve_buffer(
    buffer: CapacityBuffer, workloads: Mapping[_WorkloadKey, Workload], pod_names: frozenset[str]
) -> ResolvedBuffer:
    error, workload = _find_workload(buffer, workloads)
    if workload is None:
        return ResolvedBuffer(buffer=buffer, error=error)
    pods = (
        _build_buffer_pod(buffer, workload, number)
        for number in range(1, min(count_buffer_pods(buffer, workload), MAX_PODS_PER_BUFFER) + 1)
    )
    return ResolvedBuffer(
        buffer=buffer, workload=workload, pods=tuple(pod for pod in pods if pod.name not in pod_names)
    )


def _find_workload(
    buffer: CapacityBuffer, workloads: Mapping[_WorkloadKey, Workload]
) -> tuple[ResolutionError, Workload | None]:
    namespace, ref = buffer.meta.namespace, buffer.scalable
    if buffer.strategy != ACTIVE_CAPACITY_STRATEGY:
        return (
            "ResolutionFailed",
            f"spec.provisioningStrategy: {buffer.strategy} is not supported; write {ACTIVE_CAPACITY_STRATEGY}",
        ), None
    if ref is None:
        workload = workloads.get(("PodTemplate", namespace, buffer.template))
        missing_message = (
            f"PodTemplate {namespace}/{buffer.template} does not exist: create it or correct spec.podTemplateRef"
        )
        return (("", ""), workload) if workload is not None else (("PodTemplateNotFound", missing_message), None)
    if ref.api_group not in ("", "apps"):
        return ("ResolutionFailed", f"spec.scalableRef.apiGroup: {ref.api_group} is not supported; write apps"), None
    workload = workloads.get((ref.kind, namespace, ref.name)) if ref.kind != "PodTemplate" else None
    missing_message = f"{ref.kind} {namespace}/{ref.name} does not exist: create it or correct spec.scalableRef"
    return (("", ""), workload) if workload is not None else (("ScalableRefNotFound", missing_message), None)


def count_buffer_pods(buffer: CapacityBuffer, workload: Workload) -> int:
    """Return the number of buffer pods: the larger of the two sizes, within the limits."""
    requested_sizes = [] if buffer.replicas is None else [buffer.replicas]
    if buffer.scalable is not None and buffer.percentage is not None and workload.replicas:
        requested_sizes.append(compute_percentage(workload.replicas, buffer.percentage))
    requests = dict(workload.spec.requests.amounts)
    limit_sizes = [amount // requests[name] for name, amount in buffer.limits.amounts if requests.get(name)]
    if not requested_sizes:
        return max(0, min(limit_sizes, default=0))
    return max(0, min((max(requested_sizes), *limit_sizes)))


def _build_buffer_pod(buffer: CapacityBuffer, workload: Workload, number: int) -> Pod:
    namespace, name = buffer.meta.namespace, buffer.meta.name
    return Pod(
        meta=ObjectMeta(
            name=f"capacity-buffer-{name}-{number}",
            namespace=namespace,
            uid=f"{buffer.meta.uid}-{number}",
            created_at=buffer.meta.created_at,
            labels=workload.labels,
            annotations=build_pairs({FAKE_POD: "true", BUFFER: name, BUFFER_NAMESPACE: namespace}),
        ),
        spec=replace(workload.spec, volume_claims=()),
        phase="",
        priority=MIN_PRIORITY,
        conditions=_UNSCHEDULABLE_CONDITIONS,
    )


def describe_buffers(buffered_placement: BufferedPlacement, cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Return patches for the buffers whose status changed."""
    placed_pods = {name for fit in buffered_placement.placement.existing for name in fit.pods}
    return tuple(
        action
        for room in buffered_placement.resolved_buffers
        for action in _build_status_patch(room, placed_pods, cluster)
    )


def _build_status_patch(
    resolved_buffer: ResolvedBuffer, placed_pods: set[str], cluster: ClusterSnapshot
) -> Iterator[Action]:
    buffer, workload = resolved_buffer.buffer, resolved_buffer.workload
    generation = None if workload is None or buffer.scalable is not None else workload.meta.generation
    conditions = build_buffer_conditions(resolved_buffer, placed_pods, cluster)
    reported_status = (buffer.status_replicas, buffer.status_template, buffer.status_generation, buffer.status_strategy)
    if reported_status == (
        len(resolved_buffer.pods),
        buffer.template,
        generation,
        buffer.strategy,
    ) and has_equal_conditions(conditions, buffer.conditions):
        return
    status = {
        "replicas": len(resolved_buffer.pods),
        "podTemplateRef": {"name": buffer.template} if buffer.template else None,
        "podTemplateGeneration": generation,
        "provisioningStrategy": buffer.strategy,
        "conditions": encode_conditions(conditions),
    }
    yield PatchStatus(
        kind="CapacityBuffer",
        name=buffer.meta.name,
        namespace=buffer.meta.namespace,
        resource_version=buffer.meta.resource_version,
        status=msgspec.json.encode(status).decode(),
        message=f"headroom for {format_count(len(resolved_buffer.pods), 'pod')}",
    )


def build_buffer_conditions(
    resolved_buffer: ResolvedBuffer, placed_pods: set[str], cluster: ClusterSnapshot
) -> tuple[Condition, ...]:
    """Return the new conditions of the buffer. *placed_pods*: names of the pods that fit on existing nodes."""
    now, generation = cluster.taken_at, resolved_buffer.buffer.meta.generation
    reason, message = resolved_buffer.error
    ready = ("False", reason, message) if reason else ("True", "Resolved", "")
    updated_conditions = with_condition(resolved_buffer.buffer.conditions, _READY_CONDITION, *ready, now, generation)
    return with_condition(
        updated_conditions,
        _PROVISIONING_CONDITION,
        *_describe_provisioning(resolved_buffer, placed_pods),
        now,
        generation,
    )


def _describe_provisioning(resolved_buffer: ResolvedBuffer, placed_pods: set[str]) -> tuple[str, str, str]:
    if resolved_buffer.error[0]:
        return "False", "NotReadyForProvisioning", resolved_buffer.error[1]
    if not resolved_buffer.pods:
        return "False", "BufferEmpty", "the buffer has no pods"
    missing_count = sum(pod.name not in placed_pods for pod in resolved_buffer.pods)
    if missing_count:
        return (
            "False",
            "RequiresNewCapacity",
            f"{missing_count} of {len(resolved_buffer.pods)} pods do not fit existing nodes",
        )
    return "True", "FitsExistingCapacity", ""
