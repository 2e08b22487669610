"""Workloads and Services, which create and select pods, and CapacityBuffers: wire JSON -> model."""

from datetime import timedelta
from functools import partial
from typing import Final

from shared.model.core.labels import SURGE_DRAIN_RESTART
from shared.model.core.metadata import build_pairs
from shared.model.core.selectors import build_label_selector
from shared.model.karpenter.capacity_buffer import CapacityBuffer, ScalableRef
from shared.model.karpenter.schedules.schedule_checks import parse_buffer_schedule
from shared.model.kubernetes.gangs.gang import PodGroup
from shared.model.kubernetes.gangs.provisioning_request import ProvisioningRequest, RequestedPods
from shared.model.kubernetes.pod import PodSpec
from shared.model.kubernetes.workloads import DEFAULT_PROGRESS_DEADLINE, Rollout, Service, Workload, WorkloadKind
from shared.wire.decode.core import parse_conditions, parse_label_selector_json, parse_object_meta
from shared.wire.decode.field_errors import parse_resource_list
from shared.wire.decode.pods import parse_pod_template_spec
from shared.wire.schema import feature_kinds as wire
from shared.wire.schema import pods

_EMPTY_STATUS: Final = pods.PodStatusJson()
_DEFAULT_ROLLOUT_LIMIT: Final = "25%"
"""The default of maxSurge and maxUnavailable."""
_PERCENT: Final = 100


def parse_workload(kind: WorkloadKind, workload: wire.WorkloadJson) -> Workload:
    """Parse a Deployment, ReplicaSet or StatefulSet.

    Raises:
        ValueError: its template or its selector cannot be parsed; the message names the field.
    """
    return Workload(
        kind=kind,
        meta=parse_object_meta(workload.metadata),
        replicas=max(0, workload.spec.replicas),
        selector=parse_label_selector_json("spec.selector", workload.spec.selector),
        labels=build_pairs(workload.spec.template.metadata.labels),
        spec=_parse_template_spec("spec.template", workload.spec.template),
        rollout=_parse_rollout(workload) if kind == "Deployment" else None,
    )


parse_deployment = partial(parse_workload, "Deployment")
parse_replica_set = partial(parse_workload, "ReplicaSet")
parse_stateful_set = partial(parse_workload, "StatefulSet")


def parse_replication_controller(controller: wire.ReplicationControllerJson) -> Workload:
    """Parse a ReplicationController; only its selector is used."""
    label_selector = build_label_selector(controller.spec.selector) if controller.spec.selector else None
    return Workload(kind="ReplicationController", meta=parse_object_meta(controller.metadata), selector=label_selector)


def parse_pod_template(pod_template: wire.PodTemplateObjectJson) -> Workload:
    """Parse a PodTemplate.

    Raises:
        ValueError: a part of it cannot be parsed; the message names the field.
    """
    return Workload(
        kind="PodTemplate",
        meta=parse_object_meta(pod_template.metadata),
        labels=build_pairs(pod_template.template.metadata.labels),
        spec=_parse_template_spec("template", pod_template.template),
    )


def parse_service(service: wire.ServiceJson) -> Service:
    """Parse a Service."""
    return Service(meta=parse_object_meta(service.metadata), selector=build_pairs(service.spec.selector))


def parse_pod_group(pod_group: wire.PodGroupJson) -> PodGroup:
    """Parse a PodGroup of scheduler-plugins."""
    return PodGroup(meta=parse_object_meta(pod_group.metadata), min_member=pod_group.spec.min_member)


def parse_provisioning_request(request: wire.ProvisioningRequestJson) -> ProvisioningRequest:
    """Parse a ProvisioningRequest.

    Raises:
        ValueError: a number of pods is below one.
    """
    for number, pod_set in enumerate(request.spec.pod_sets):
        if pod_set.count < 1:
            raise ValueError(f"spec.podSets[{number}].count: {pod_set.count} is below one; write one or more")
    return ProvisioningRequest(
        meta=parse_object_meta(request.metadata),
        class_name=request.spec.provisioning_class_name,
        pod_sets=tuple(
            RequestedPods(template=pod_set.pod_template_ref.name, count=pod_set.count)
            for pod_set in request.spec.pod_sets
        ),
        parameters=build_pairs(request.spec.parameters),
        conditions=parse_conditions(request.status.conditions),
    )


def parse_capacity_buffer(buffer: wire.CapacityBufferJson) -> CapacityBuffer:
    """Parse a CapacityBuffer.

    Raises:
        ValueError: its size is negative, it does not reference exactly one PodTemplate or scalable object, or its
            schedule is invalid.
    """
    spec, status = buffer.spec, buffer.status
    if (spec.pod_template_ref is None) == (spec.scalable_ref is None):
        raise ValueError("spec: write either podTemplateRef or scalableRef")
    if spec.pod_template_ref is not None and spec.replicas is None and not spec.limits:
        raise ValueError("spec.replicas: a buffer of a PodTemplate needs replicas or limits; write one of them")
    for name, value in (("replicas", spec.replicas), ("percentage", spec.percentage)):
        if value is not None and value < 0:
            raise ValueError(f"spec.{name}: {value} is below zero; write zero or more")
    scalable_ref = spec.scalable_ref
    meta = parse_object_meta(buffer.metadata)
    return CapacityBuffer(
        meta=meta,
        strategy=spec.provisioning_strategy,
        template=spec.pod_template_ref.name if spec.pod_template_ref is not None else "",
        scalable=None
        if scalable_ref is None
        else ScalableRef(kind=scalable_ref.kind, name=scalable_ref.name, api_group=scalable_ref.api_group),
        replicas=spec.replicas,
        percentage=spec.percentage,
        limits=parse_resource_list("spec.limits", spec.limits),
        status_replicas=status.replicas,
        status_template=status.pod_template_ref.name if status.pod_template_ref is not None else "",
        status_generation=status.pod_template_generation,
        status_strategy=status.provisioning_strategy,
        conditions=parse_conditions(status.conditions),
        schedule=parse_buffer_schedule(meta, is_scalable=scalable_ref is not None),
    )


def _parse_rollout(deployment: wire.WorkloadJson) -> Rollout:
    """Parse how a Deployment replaces its pods; the rules for its limits are those of the Deployment controller.

    Raises:
        ValueError: maxSurge or maxUnavailable is neither a number nor a percentage.
    """
    spec, status, replicas = deployment.spec, deployment.status, max(0, deployment.spec.replicas)
    limits = spec.strategy.rolling_update or wire.RollingUpdateJson()
    max_surge = _scale_rollout_limit("maxSurge", limits.max_surge, replicas, round_up=True)
    max_unavailable = _scale_rollout_limit("maxUnavailable", limits.max_unavailable, replicas, round_up=False)
    deadline_seconds = spec.progress_deadline_seconds
    return Rollout(
        is_rolling_update=spec.strategy.type == "RollingUpdate",
        max_surge=max_surge,
        max_unavailable=max_unavailable if max_surge or max_unavailable else 1,
        is_paused=spec.paused,
        progress_deadline=DEFAULT_PROGRESS_DEADLINE
        if deadline_seconds is None
        else timedelta(seconds=deadline_seconds),
        surge_drain=spec.template.metadata.annotations.get(SURGE_DRAIN_RESTART, ""),
        is_observed=status.observed_generation >= deployment.metadata.generation,
        pods=status.replicas,
        updated_pods=status.updated_replicas,
        available_pods=status.available_replicas,
    )


def _scale_rollout_limit(field: str, limit: int | str | None, replicas: int, *, round_up: bool) -> int:
    """Return *limit*, a number or a percentage of *replicas*, as a number of pods."""
    text = str(_DEFAULT_ROLLOUT_LIMIT if limit is None else limit)
    try:
        if not text.endswith("%"):
            return max(0, int(text))
        share = replicas * int(text.removesuffix("%"))
    except ValueError:
        raise ValueError(f"spec.strategy.rollingUpdate.{field}: {text!r} is no number and no percentage") from None
    return max(0, -(-share // _PERCENT) if round_up else share // _PERCENT)


def _parse_template_spec(path: str, template: wire.PodTemplateSpecJson) -> PodSpec:
    try:
        return parse_pod_template_spec(template.spec, _EMPTY_STATUS, "").spec
    except ValueError as error:
        raise ValueError(f"{path}.{error}") from None
