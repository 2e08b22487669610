"""ProvisioningRequests: capacity for pods that do not exist yet, all of them or none.

The pods of a request are planned like the buffer pods of a CapacityBuffer and like a gang: after all pods of the
cluster, and on no new node unless all of them fit. See docs/adr/0031.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.conditions import encode_conditions, has_equal_conditions, with_condition
from shared.model.core.formatting import format_count
from shared.model.core.labels import FAKE_POD
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.decisions.action import PatchStatus
from shared.model.decisions.placement import Placement
from shared.model.kubernetes.gangs.provisioning_request import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CONSUMED_REQUEST,
    FAILED,
    PROVISIONED,
    ProvisioningRequest,
)
from shared.model.kubernetes.pod import MIN_PRIORITY, Pod
from shared.model.kubernetes.workloads import Workload
from shared.state.cluster_state import ClusterState

MAX_PODS_PER_REQUEST: Final = 2000
"""Larger requests fail, so that a plan is ready in time."""
_UNSCHEDULABLE_CONDITIONS: Final = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)

_Change: TypeAlias = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""


class ResolvedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A ProvisioningRequest with the pods whose capacity is still kept, or the error that prevents it."""

    request: ProvisioningRequest
    pods: tuple[Pod, ...] = ()
    error: str = ""
    is_used: bool = False
    """Whether it is provisioned and pods of the cluster use its whole capacity."""
    waiting_count: int = 0
    """Number of pods of the cluster that are to use its capacity and have no node yet."""


def resolve_requests(cluster: ClusterSnapshot) -> tuple[ResolvedRequest, ...]:
    """Return the open requests with their pods, sorted by name; those that have just ended have no pods.

    Each pod that uses the capacity of its request replaces one of the pods. When pods use the whole capacity, a
    provisioned request ends: completed pods are not read, and must not bring it back.
    """
    if not cluster.provisioning_requests:
        return ()
    templates = {(item.meta.namespace, item.meta.name): item for item in cluster.pod_templates}
    consumers_by_request: dict[str, list[Pod]] = {}
    for pod in cluster.pods:
        name = pod.meta.get_annotation(CONSUMED_REQUEST) if pod.is_active() else ""
        if name:
            consumers_by_request.setdefault(f"{pod.meta.namespace}/{name}", []).append(pod)
    requests = sorted((item for item in cluster.provisioning_requests if item.is_open()), key=lambda item: item.name)
    return tuple(
        _resolve_request(item, templates, consumers_by_request.get(item.name, []), cluster) for item in requests
    )


def _resolve_request(
    request: ProvisioningRequest,
    templates: dict[tuple[str, str], Workload],
    consumers: Sequence[Pod],
    cluster: ClusterSnapshot,
) -> ResolvedRequest:
    if request.is_booking_over(cluster.taken_at) or request.is_expired(cluster.taken_at):
        return ResolvedRequest(request=request)
    pod_count = sum(pod_set.count for pod_set in request.pod_sets)
    if pod_count > MAX_PODS_PER_REQUEST:
        message = f"spec.podSets: {pod_count:,} pods: write at most {MAX_PODS_PER_REQUEST:,} in one request"
        return ResolvedRequest(request=request, error=message)
    pod_sets: list[list[Pod]] = []
    for number, pod_set in enumerate(request.pod_sets):
        template = templates.get((request.meta.namespace, pod_set.template))
        if template is None:
            name = f"{request.meta.namespace}/{pod_set.template}"
            message = f"PodTemplate {name} does not exist or is invalid: create it, then create the request again"
            return ResolvedRequest(request=request, error=message)
        pod_sets.append([_build_pod(request, template, f"{number}-{index}") for index in range(pod_set.count)])
    unused_pods = _without_used_pods(pod_sets, consumers)
    is_used = bool(consumers) and not unused_pods and request.is_provisioned()
    waiting_count = sum(not pod.node_name for pod in consumers)
    return ResolvedRequest(request=request, pods=unused_pods, is_used=is_used, waiting_count=waiting_count)


def _without_used_pods(pod_sets: Sequence[Sequence[Pod]], consumers: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods of *pod_sets* without those that *consumers* replace.

    A consumer replaces an equal pod, else a similar one, else any.
    """
    unused_counts = [len(pods) for pods in pod_sets]
    unmatched_consumers = sorted(consumers, key=lambda pod: pod.name)
    for is_match in (_is_equal, _has_equal_requests, _has_labels_of, _is_any):
        remaining_consumers, unmatched_consumers = unmatched_consumers, []
        for consumer in remaining_consumers:
            matches = (number for number, pods in enumerate(pod_sets) if pods and is_match(pods[0], consumer))
            number = next((number for number in matches if unused_counts[number]), None)
            if number is None:
                unmatched_consumers.append(consumer)
            else:
                unused_counts[number] -= 1
    return tuple(pod for pods, count in zip(pod_sets, unused_counts, strict=True) for pod in pods[len(pods) - count :])


def _is_equal(pod: Pod, consumer: Pod) -> bool:
    return _has_equal_requests(pod, consumer) and _has_labels_of(pod, consumer)


def _has_equal_requests(pod: Pod, consumer: Pod) -> bool:
    return pod.spec.requests == consumer.spec.requests


def _has_labels_of(pod: Pod, consumer: Pod) -> bool:
    """Return whether *consumer* has all labels of *pod*, which are those of its PodTemplate."""
    return set(pod.meta.labels) <= set(consumer.meta.labels)


def _is_any(pod: Pod, consumer: Pod) -> bool:
    return pod.meta.namespace == consumer.meta.namespace


def _build_pod(request: ProvisioningRequest, template: Workload, suffix: str) -> Pod:
    return Pod(
        meta=ObjectMeta(
            name=f"provisioning-request-{request.meta.name}-{suffix}",
            namespace=request.meta.namespace,
            uid=f"{request.meta.uid}-{suffix}",
            created_at=request.meta.created_at,
            labels=template.labels,
            annotations=build_pairs({FAKE_POD: "true"}),
        ),
        spec=replace(template.spec, volume_claims=()),
        phase="",
        priority=MIN_PRIORITY,
        conditions=_UNSCHEDULABLE_CONDITIONS,
    )


def describe_requests(
    resolved_requests: Iterable[ResolvedRequest], placement: Placement, cluster_state: ClusterState
) -> tuple[PatchStatus, ...]:
    """Return a patch for each request whose conditions change."""
    return tuple(
        patch
        for resolved in resolved_requests
        for patch in _build_patch(resolved, _build_conditions(resolved, placement, cluster_state))
    )


def _build_patch(resolved: ResolvedRequest, conditions: tuple[Condition, ...]) -> Iterator[PatchStatus]:
    request = resolved.request
    if has_equal_conditions(conditions, request.conditions):
        return
    yield PatchStatus(
        kind="ProvisioningRequest",
        name=request.meta.name,
        namespace=request.meta.namespace,
        resource_version=request.meta.resource_version,
        status=msgspec.json.encode({"conditions": encode_conditions(conditions)}).decode(),
        message=f"capacity for {format_count(sum(item.count for item in request.pod_sets), 'pod')}",
    )


def _build_conditions(
    resolved: ResolvedRequest, placement: Placement, cluster_state: ClusterState
) -> tuple[Condition, ...]:
    request, now, generation = resolved.request, cluster_state.taken_at, resolved.request.meta.generation
    conditions = request.conditions
    if not request.is_provisioned():
        conditions = with_condition(
            conditions, ACCEPTED, "True", ACCEPTED, "Joiner provides the capacity", now, generation
        )
    change = _find_error(resolved, cluster_state) or _describe_capacity(resolved, placement, cluster_state)
    return with_condition(conditions, *change, now, generation) if change is not None else conditions


def _find_error(resolved: ResolvedRequest, cluster_state: ClusterState) -> _Change | None:
    """Return the condition that ends the request without a look at the placement; None if nothing ends it."""
    request, now = resolved.request, cluster_state.taken_at
    if request.is_booking_over(now):
        return BOOKING_EXPIRED, "True", BOOKING_EXPIRED, "the capacity is no longer kept"
    if resolved.is_used:
        return BOOKING_EXPIRED, "True", BOOKING_EXPIRED, "pods use the whole capacity"
    if resolved.error:
        return FAILED, "True", "FailedToCreatePods", resolved.error
    if request.is_expired(now):
        return FAILED, "True", "Expired", "the capacity was not available in time"
    return None


def _describe_capacity(resolved: ResolvedRequest, placement: Placement, cluster_state: ClusterState) -> _Change | None:
    """Return the condition that says whether there is capacity; None if it does not change."""
    request, names = resolved.request, {pod.name for pod in resolved.pods}
    failures = [item for item in placement.unschedulable if item.pod in names]
    if request.is_provisioned() or any(item.reason == "NotReached" for item in failures):
        return None
    if failures:
        type_, status = (PROVISIONED, "False") if request.can_retry else (FAILED, "True")
        return type_, status, "CapacityIsNotFound", failures[0].message
    ready_names = {
        name for fit in placement.existing if cluster_state.node_by_name[fit.node].is_initialized() for name in fit.pods
    }
    if resolved.waiting_count:
        message = f"{format_count(resolved.waiting_count, 'pod')} that use the capacity have no node yet"
        return PROVISIONED, "False", "NodesAreLaunched", message
    if names <= ready_names:
        reason = "CapacityIsProvisioned" if request.launches_nodes else "CapacityIsFound"
        return PROVISIONED, "True", reason, "all pods fit initialized nodes"
    message = f"nodes for {format_count(len(names - ready_names), 'pod')} are not initialized yet"
    return PROVISIONED, "False", "NodesAreLaunched", message
