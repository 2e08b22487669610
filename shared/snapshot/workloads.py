"""What makes and selects pods, and the room that is kept for them: wire -> model."""

from functools import partial
from typing import Final

from shared.model.objects import pairs
from shared.model.pods import PodSpec
from shared.model.selectors import selector
from shared.model.workloads import CapacityBuffer, ScalableRef, Service, Workload, WorkloadKind
from shared.snapshot import wire_optional as wire
from shared.snapshot import wire_pods
from shared.snapshot.core import conditions_from_wire, meta_from_wire, selector_from_wire
from shared.snapshot.fields import amounts
from shared.snapshot.pods import template_from_wire

_NO_STATUS: Final = wire_pods.PodStatus()


def workload_from_wire(kind: WorkloadKind, some: wire.Workload) -> Workload:
    """Read a Deployment, ReplicaSet or StatefulSet.

    Raises:
        ValueError: its template or its selector cannot be read; the message names the field.
    """
    return Workload(
        kind=kind,
        meta=meta_from_wire(some.metadata),
        replicas=max(0, some.spec.replicas),
        selector=selector_from_wire("spec.selector", some.spec.selector),
        labels=pairs(some.spec.template.metadata.labels),
        spec=_spec("spec.template", some.spec.template),
    )


deployment_from_wire = partial(workload_from_wire, "Deployment")
replica_set_from_wire = partial(workload_from_wire, "ReplicaSet")
stateful_set_from_wire = partial(workload_from_wire, "StatefulSet")


def controller_from_wire(some: wire.ReplicationController) -> Workload:
    """Read a ReplicationController: only its selector counts."""
    chosen = selector(some.spec.selector) if some.spec.selector else None
    return Workload(kind="ReplicationController", meta=meta_from_wire(some.metadata), selector=chosen)


def pod_template_from_wire(some: wire.PodTemplate) -> Workload:
    """Read a PodTemplate.

    Raises:
        ValueError: a part of it cannot be read; the message names the field.
    """
    return Workload(
        kind="PodTemplate",
        meta=meta_from_wire(some.metadata),
        labels=pairs(some.template.metadata.labels),
        spec=_spec("template", some.template),
    )


def service_from_wire(some: wire.Service) -> Service:
    """Read a Service."""
    return Service(meta=meta_from_wire(some.metadata), selector=pairs(some.spec.selector))


def buffer_from_wire(some: wire.CapacityBuffer) -> CapacityBuffer:
    """Read a CapacityBuffer.

    Raises:
        ValueError: its size is below zero, or it does not say of what it is room for.
    """
    spec, status = some.spec, some.status
    if (spec.pod_template_ref is None) == (spec.scalable_ref is None):
        raise ValueError("spec: write podTemplateRef or scalableRef, one of them")
    if spec.pod_template_ref is not None and spec.replicas is None and not spec.limits:
        raise ValueError("spec.replicas: a buffer of a PodTemplate needs replicas or limits; write one of them")
    for name, value in (("replicas", spec.replicas), ("percentage", spec.percentage)):
        if value is not None and value < 0:
            raise ValueError(f"spec.{name}: {value} is below zero; write zero or more")
    ref = spec.scalable_ref
    return CapacityBuffer(
        meta=meta_from_wire(some.metadata),
        strategy=spec.provisioning_strategy,
        template=spec.pod_template_ref.name if spec.pod_template_ref is not None else "",
        scalable=None if ref is None else ScalableRef(kind=ref.kind, name=ref.name, api_group=ref.api_group),
        replicas=spec.replicas,
        percentage=spec.percentage,
        limits=amounts("spec.limits", spec.limits),
        told_replicas=status.replicas,
        told_template=status.pod_template_ref.name if status.pod_template_ref is not None else "",
        told_generation=status.pod_template_generation,
        told_strategy=status.provisioning_strategy,
        conditions=conditions_from_wire(status.conditions),
    )


def _spec(path: str, template: wire.Template) -> PodSpec:
    try:
        return template_from_wire(template.spec, _NO_STATUS, "").spec
    except ValueError as error:
        raise ValueError(f"{path}.{error}") from None
