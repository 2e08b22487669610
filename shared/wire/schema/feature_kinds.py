"""The JSON shapes of kinds that are read only if a feature needs them, with only the fields that are read."""

import msgspec
from msgspec import field

from shared.wire.schema.core import (
    ConditionJson,
    LabelSelectorJson,
    ObjectMetaJson,
    Quantities,
    SelectorExpressionJson,
    TemplateMetaJson,
)
from shared.wire.schema.pods import PodSpecJson


class NodeOverlaySpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a NodeOverlay; prices can be written as numbers."""

    requirements: tuple[SelectorExpressionJson, ...] = ()
    price: str | int | float | None = None
    price_adjustment: str | int | float | None = None
    capacity: Quantities = {}
    weight: int | None = None


class StatusJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A status of which only the conditions are read."""

    conditions: tuple[ConditionJson, ...] = ()


class NodeOverlayJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.sh/v1alpha1 NodeOverlay."""

    metadata: ObjectMetaJson
    spec: NodeOverlaySpecJson = NodeOverlaySpecJson()
    status: StatusJson = StatusJson()


class NameReferenceJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A reference by name."""

    name: str = ""


class ScalableRefJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.scalableRef."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class CapacityBufferSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a CapacityBuffer."""

    provisioning_strategy: str = "buffer.x-k8s.io/active-capacity"
    pod_template_ref: NameReferenceJson | None = None
    scalable_ref: ScalableRefJson | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Quantities = {}


class CapacityBufferStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a CapacityBuffer."""

    pod_template_ref: NameReferenceJson | None = None
    replicas: int | None = None
    pod_template_generation: int | None = None
    provisioning_strategy: str = ""
    conditions: tuple[ConditionJson, ...] = ()


class CapacityBufferJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """autoscaling.x-k8s.io/v1beta1 CapacityBuffer."""

    metadata: ObjectMetaJson
    spec: CapacityBufferSpecJson = CapacityBufferSpecJson()
    status: CapacityBufferStatusJson = CapacityBufferStatusJson()


class PodTemplateSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod template with the labels of its pods."""

    metadata: TemplateMetaJson = TemplateMetaJson()
    spec: PodSpecJson = PodSpecJson()


class PodTemplateObjectJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 PodTemplate."""

    metadata: ObjectMetaJson
    template: PodTemplateSpecJson = PodTemplateSpecJson()


class RollingUpdateJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.strategy.rollingUpdate of a Deployment."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategyJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.strategy of a Deployment."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdateJson | None = None


class WorkloadSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a Deployment, ReplicaSet or StatefulSet; the last three fields are those of a Deployment."""

    replicas: int = 1
    selector: LabelSelectorJson | None = None
    template: PodTemplateSpecJson = PodTemplateSpecJson()
    strategy: DeploymentStrategyJson = DeploymentStrategyJson()
    paused: bool = False
    progress_deadline_seconds: int | None = None


class WorkloadStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a Deployment, ReplicaSet or StatefulSet."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class WorkloadJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """apps/v1 Deployment, ReplicaSet or StatefulSet."""

    metadata: ObjectMetaJson
    spec: WorkloadSpecJson = WorkloadSpecJson()
    status: WorkloadStatusJson = WorkloadStatusJson()


class ReplicationControllerSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a ReplicationController; its selector is a map."""

    selector: dict[str, str] = {}


class ReplicationControllerJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 ReplicationController."""

    metadata: ObjectMetaJson
    spec: ReplicationControllerSpecJson = ReplicationControllerSpecJson()


class ServiceSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a Service; without a selector, it selects nothing."""

    selector: dict[str, str] = field(default_factory=dict)


class ServiceJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Service."""

    metadata: ObjectMetaJson
    spec: ServiceSpecJson = ServiceSpecJson()


class PodSetJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An entry of spec.podSets of a ProvisioningRequest."""

    pod_template_ref: NameReferenceJson
    count: int


class ProvisioningRequestSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a ProvisioningRequest."""

    provisioning_class_name: str
    pod_sets: tuple[PodSetJson, ...]
    parameters: dict[str, str] = {}


class ProvisioningRequestJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """autoscaling.x-k8s.io/v1 ProvisioningRequest."""

    metadata: ObjectMetaJson
    spec: ProvisioningRequestSpecJson
    status: StatusJson = StatusJson()


class PodGroupSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PodGroup."""

    min_member: int = 1


class PodGroupJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    metadata: ObjectMetaJson
    spec: PodGroupSpecJson = PodGroupSpecJson()
