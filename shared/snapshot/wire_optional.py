"""The JSON of kinds that are read only where a feature wants them, only the fields that are read."""

import msgspec
from msgspec import field

from shared.snapshot.wire_core import Condition, Expression, LabelSelector, Meta, Quantities, TemplateMeta
from shared.snapshot.wire_pods import PodSpec


class OverlaySpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a NodeOverlay; prices may be written as numbers."""

    requirements: tuple[Expression, ...] = ()
    price: str | int | float | None = None
    price_adjustment: str | int | float | None = None
    capacity: Quantities = {}
    weight: int | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A status of which only the conditions count."""

    conditions: tuple[Condition, ...] = ()


class NodeOverlay(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.sh/v1alpha1 NodeOverlay."""

    metadata: Meta
    spec: OverlaySpec = OverlaySpec()
    status: Status = Status()


class Named(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A reference by name."""

    name: str = ""


class Scalable(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.scalableRef."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class BufferSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a CapacityBuffer."""

    provisioning_strategy: str = "buffer.x-k8s.io/active-capacity"
    pod_template_ref: Named | None = None
    scalable_ref: Scalable | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Quantities = {}


class BufferStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a CapacityBuffer."""

    pod_template_ref: Named | None = None
    replicas: int | None = None
    pod_template_generation: int | None = None
    provisioning_strategy: str = ""
    conditions: tuple[Condition, ...] = ()


class CapacityBuffer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """autoscaling.x-k8s.io/v1beta1 CapacityBuffer."""

    metadata: Meta
    spec: BufferSpec = BufferSpec()
    status: BufferStatus = BufferStatus()


class Template(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod template, with the labels of its pods."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 PodTemplate."""

    metadata: Meta
    template: Template = Template()


class WorkloadSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a Deployment, ReplicaSet or StatefulSet."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: Template = Template()


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """apps/v1 Deployment, ReplicaSet or StatefulSet."""

    metadata: Meta
    spec: WorkloadSpec = WorkloadSpec()


class ControllerSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a ReplicationController: its selector is a map."""

    selector: dict[str, str] = {}


class ReplicationController(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 ReplicationController."""

    metadata: Meta
    spec: ControllerSpec = ControllerSpec()


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a Service; without selector it selects nothing."""

    selector: dict[str, str] = field(default_factory=dict)


class Service(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Service."""

    metadata: Meta
    spec: ServiceSpec = ServiceSpec()
