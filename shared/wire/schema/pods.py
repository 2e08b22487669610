"""The JSON shapes of Pods, DaemonSets and PodDisruptionBudgets, with only the fields that are read.

Parts of a pod spec omit their defaults when they are encoded, because a `PodSpecKey` is encoded as a cache key.
"""

import msgspec
from msgspec import field

from shared.wire.schema.core import (
    ConditionJson,
    LabelSelectorJson,
    NodeSelectorJson,
    ObjectMetaJson,
    PresenceJson,
    Quantities,
    SelectorExpressionJson,
    Timestamp,
)

Expressions = tuple[SelectorExpressionJson, ...]


class ResourceRequirementsJson(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """resources of a container or a pod."""

    requests: Quantities = {}
    limits: Quantities = {}


class ContainerPortJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """An element of ports of a container."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""


class ContainerJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A container or init container; an init container with restartPolicy Always is a sidecar."""

    name: str = ""
    resources: ResourceRequirementsJson = ResourceRequirementsJson()
    ports: tuple[ContainerPortJson, ...] = ()
    restart_policy: str = ""


class ContainerStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """The restarts of a container, and its allocated resources during or after an in-place resize."""

    name: str = ""
    restart_count: int = 0
    resources: ResourceRequirementsJson = ResourceRequirementsJson()
    allocated_resources: Quantities = {}


class TolerationJson(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A toleration; tolerationSeconds is not read."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PreferredNodeTermJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A weighted node selector term."""

    class PreferenceJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
        """The term; matchFields are not read."""

        match_expressions: Expressions = ()

    weight: int = 1
    preference: PreferenceJson = PreferenceJson()


class PodAffinityTermJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A term of pod affinity."""

    topology_key: str
    label_selector: LabelSelectorJson | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelectorJson | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTermJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A preferred term of pod affinity."""

    weight: int = 1
    pod_affinity_term: PodAffinityTermJson


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinityJson(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """affinity.nodeAffinity."""

    required: NodeSelectorJson | None = field(name=REQUIRED, default=None)
    preferred: tuple[PreferredNodeTermJson, ...] = field(name=PREFERRED, default=())


class PodAffinityJson(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """affinity.podAffinity and affinity.podAntiAffinity."""

    required: tuple[PodAffinityTermJson, ...] = field(name=REQUIRED, default=())
    preferred: tuple[WeightedPodAffinityTermJson, ...] = field(name=PREFERRED, default=())


class AffinityJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """spec.affinity."""

    node_affinity: NodeAffinityJson = NodeAffinityJson()
    pod_affinity: PodAffinityJson = PodAffinityJson()
    pod_anti_affinity: PodAffinityJson = PodAffinityJson()


class TopologySpreadConstraintJson(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True
):
    """An element of spec.topologySpreadConstraints."""

    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelectorJson | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class VolumeClaimSourceJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """volumes[].persistentVolumeClaim."""

    claim_name: str = ""


class VolumeJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of spec.volumes, with only its reference to a PersistentVolumeClaim."""

    name: str = ""
    persistent_volume_claim: VolumeClaimSourceJson | None = None
    ephemeral: PresenceJson | None = None


class PodClaimJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """An element of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodClaimStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of status.resourceClaimStatuses."""

    name: str = ""
    resource_claim_name: str = ""


class PodSpecKey(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The inputs of the model's PodSpec, which pods of one ReplicaSet share."""

    containers: tuple[ContainerJson, ...] = ()
    init_containers: tuple[ContainerJson, ...] = ()
    statuses: tuple[ContainerStatusJson, ...] = ()
    overhead: Quantities = {}
    resources: ResourceRequirementsJson = ResourceRequirementsJson()
    tolerations: tuple[TolerationJson, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: AffinityJson = AffinityJson()
    spread: tuple[TopologySpreadConstraintJson, ...] = ()
    claims: tuple[str, ...] = ()
    host_network: bool = False
    resource_claims: tuple[PodClaimJson, ...] = ()


class PodSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a Pod."""

    node_name: str = ""
    containers: tuple[ContainerJson, ...] = ()
    init_containers: tuple[ContainerJson, ...] = ()
    overhead: Quantities = {}
    resources: ResourceRequirementsJson = ResourceRequirementsJson()
    tolerations: tuple[TolerationJson, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: AffinityJson = AffinityJson()
    topology_spread_constraints: tuple[TopologySpreadConstraintJson, ...] = ()
    volumes: tuple[VolumeJson, ...] = ()
    resource_claims: tuple[PodClaimJson, ...] = ()
    host_network: bool = False
    priority: int = 0
    priority_class_name: str = ""
    termination_grace_period_seconds: int = 30
    restart_policy: str = ""
    active_deadline_seconds: int | None = None


class PodStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a Pod."""

    phase: str = "Pending"
    nominated_node_name: str = ""
    start_time: Timestamp | None = None
    conditions: tuple[ConditionJson, ...] = ()
    container_statuses: tuple[ContainerStatusJson, ...] = ()
    init_container_statuses: tuple[ContainerStatusJson, ...] = ()
    resource_claim_statuses: tuple[PodClaimStatusJson, ...] = ()


class PodJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Pod."""

    metadata: ObjectMetaJson
    spec: PodSpecJson
    status: PodStatusJson = PodStatusJson()


class DaemonSetTemplateJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.template of a DaemonSet."""

    spec: PodSpecJson


class DaemonSetSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a DaemonSet."""

    template: DaemonSetTemplateJson


class DaemonSetJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """apps/v1 DaemonSet."""

    metadata: ObjectMetaJson
    spec: DaemonSetSpecJson


class PodDisruptionBudgetSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PodDisruptionBudget; a limit is a number or a percentage."""

    selector: LabelSelectorJson | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a PodDisruptionBudget."""

    disruptions_allowed: int = 0


class PodDisruptionBudgetJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """policy/v1 PodDisruptionBudget."""

    metadata: ObjectMetaJson
    spec: PodDisruptionBudgetSpecJson = PodDisruptionBudgetSpecJson()
    status: PodDisruptionBudgetStatusJson = PodDisruptionBudgetStatusJson()
