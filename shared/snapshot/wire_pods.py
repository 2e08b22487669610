"""The JSON of pods and of what makes and guards them, only the fields that are read.

Parts of a pod's spec leave out their defaults when they are written: `PodShape` is written to be a key.
"""

import msgspec
from msgspec import field

from shared.snapshot.wire_core import (
    Condition,
    Expression,
    Instant,
    LabelSelector,
    Meta,
    NodeSelector,
    Quantities,
    Unread,
)

Expressions = tuple[Expression, ...]


class Amounts(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """resources of a container or of a pod."""

    requests: Quantities = {}
    limits: Quantities = {}


class Port(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """One of a container's ports."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""


class Container(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """One container of any sort; an init container with restartPolicy Always is a sidecar."""

    name: str = ""
    resources: Amounts = Amounts()
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""


class ContainerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """What a container has, while or after it is resized in place."""

    name: str = ""
    resources: Amounts = Amounts()
    allocated_resources: Quantities = {}


class Toleration(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A toleration; how long it lasts is not read."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PreferredNodeTerm(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A weighted term."""

    class Preference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
        """The term; matchFields do not count."""

        match_expressions: Expressions = ()

    weight: int = 1
    preference: Preference = Preference()


class PodTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A term of pod affinity."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A preferred term of pod affinity."""

    weight: int = 1
    pod_affinity_term: PodTerm


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinity(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """affinity.nodeAffinity."""

    required: NodeSelector | None = field(name=_REQUIRED, default=None)
    preferred: tuple[PreferredNodeTerm, ...] = field(name=_PREFERRED, default=())


class PodAffinity(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """affinity.podAffinity and affinity.podAntiAffinity."""

    required: tuple[PodTerm, ...] = field(name=_REQUIRED, default=())
    preferred: tuple[WeightedPodTerm, ...] = field(name=_PREFERRED, default=())


class Affinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """spec.affinity."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class Spread(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """One of spec.topologySpreadConstraints."""

    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class ClaimSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """volumes[].persistentVolumeClaim."""

    claim_name: str = ""


class Volume(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of spec.volumes, as far as claims are concerned."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Unread | None = None


class PodShape(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What the model's PodSpec is made of: pods of one ReplicaSet share it."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    statuses: tuple[ContainerStatus, ...] = ()
    overhead: Quantities = {}
    resources: Amounts = Amounts()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    spread: tuple[Spread, ...] = ()
    claims: tuple[str, ...] = ()
    host_network: bool = False
    has_resource_claims: bool = False


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a Pod."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = {}
    resources: Amounts = Amounts()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    topology_spread_constraints: tuple[Spread, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[Unread, ...] = ()
    host_network: bool = False
    priority: int = 0
    priority_class_name: str = ""
    termination_grace_period_seconds: int = 30


class PodStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a Pod."""

    phase: str = "Pending"
    nominated_node_name: str = ""
    start_time: Instant | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Pod."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus = PodStatus()


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.template of a DaemonSet."""

    spec: PodSpec


class DaemonSetSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a DaemonSet."""

    template: PodTemplate


class DaemonSet(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """apps/v1 DaemonSet."""

    metadata: Meta
    spec: DaemonSetSpec


class BudgetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PodDisruptionBudget; a bound is a number or a percentage."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a PodDisruptionBudget."""

    disruptions_allowed: int = 0


class Budget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """policy/v1 PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
