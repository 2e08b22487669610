"""Pods, and what they require of their nodes."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.devices import PodClaim
from shared.model.core.labels import FAKE_POD
from shared.model.core.metadata import Condition, ObjectMeta, Pairs, find_condition
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.core.resources import NONE, Resources
from shared.model.core.selectors import LabelSelector
from shared.model.core.taints import DISRUPTED, Toleration
from shared.model.kubernetes.host_ports import HostPort

MIN_PRIORITY: Final = -(2**31)
"""The lowest possible priority."""


class PreferredTerm(msgspec.Struct, frozen=True, kw_only=True):
    """One preferred node affinity term."""

    weight: int
    requirements: Requirements


class AffinityTerm(msgspec.Struct, frozen=True, kw_only=True):
    """One pod affinity or anti-affinity term; *weight* 0 means required."""

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    weight: int = 0


class SpreadConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """One topologySpreadConstraint."""

    topology_key: str
    max_skew: int
    when_unsatisfiable: str = "DoNotSchedule"
    selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What a pod requires of its node: equal specs are scheduled alike.

    All values are canonical, so that a spec is hashable and comparable.
    """

    requests: Resources = NONE
    """Of the whole pod by KEP-753: containers, sidecars, init containers, overhead, resize; `pods` is 1."""
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Pairs = ()
    required_terms: tuple[Requirements, ...] = ()
    """Required node affinity: any of these terms; no term is no constraint."""
    preferred_terms: tuple[PreferredTerm, ...] = ()
    """Heaviest first, stable."""
    pod_affinity: tuple[AffinityTerm, ...] = ()
    pod_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_pod_affinity: tuple[AffinityTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volume_claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims in the pod's namespace, including generic ephemeral volumes."""
    has_match_fields: bool = False
    """Whether a required term uses matchFields, which no new node can satisfy."""
    has_resource_claims: bool = False
    resource_claims: tuple[PodClaim, ...] = ()
    """In the order of the spec."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """v1 Pod."""

    meta: ObjectMeta
    spec: PodSpec
    node_name: str = ""
    nominated_node_name: str = ""
    phase: str = "Pending"
    priority: int = 0
    priority_class: str = ""
    grace_period: timedelta = timedelta(seconds=30)
    started_at: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    restarts: int = 0
    """Number of restarts of its containers."""
    restart_policy: str = "Always"
    active_deadline: timedelta | None = None
    """activeDeadlineSeconds: how long after its start the kubelet stops it; None: never."""
    claim_names: Pairs = ()
    """Names of the ResourceClaims that were created for it, by the name in the spec (status.resourceClaimStatuses)."""

    @property
    def name(self) -> str:
        """Namespace and name: ``shop/cart``."""
        return f"{self.meta.namespace}/{self.meta.name}"

    def is_terminal(self) -> bool:
        """Return whether the pod has ended."""
        return self.phase in ("Succeeded", "Failed")

    def is_terminating(self) -> bool:
        """Return whether the pod is deleted and has not ended yet."""
        return self.meta.deleted_at is not None

    def is_active(self) -> bool:
        """Return whether the pod runs or will run."""
        return not self.is_terminal() and not self.is_terminating()

    def is_finite(self) -> bool:
        """Return whether the pod ends by itself: its containers are not restarted when they complete."""
        return self.restart_policy != "Always" or self.meta.is_owned_by("batch/v1", "Job")

    def is_daemon(self) -> bool:
        """Return whether a DaemonSet owns the pod."""
        return self.meta.is_owned_by("apps/v1", "DaemonSet")

    def is_buffer_pod(self) -> bool:
        """Return whether it is a virtual pod that stands for the capacity of a CapacityBuffer."""
        return self.priority == MIN_PRIORITY and self.meta.get_annotation(FAKE_POD) == "true"

    def is_mirror(self) -> bool:
        """Return whether its node owns the pod: a static pod."""
        return self.meta.is_owned_by("v1", "Node")

    def is_unschedulable(self) -> bool:
        """Return whether kube-scheduler has tried to schedule the pod and failed."""
        scheduled = find_condition(self.conditions, "PodScheduled")
        return scheduled is not None and scheduled.reason == "Unschedulable"

    def can_tolerate_disruption(self) -> bool:
        """Return whether the pod tolerates the disrupted taint, and so stays until the instance is terminated."""
        return any(toleration.can_tolerate(DISRUPTED) for toleration in self.spec.tolerations)


def build_strict_requirements(spec: PodSpec, term: int = 0) -> Requirements:
    """Return the requirements of nodeSelector and of required term number *term*; preferences are ignored."""
    selector_requirements = build_label_requirements(spec.node_selector)
    return selector_requirements & spec.required_terms[term] if spec.required_terms else selector_requirements
