"""Pods as a scheduler and a drain see them."""

import math
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.labels import DO_NOT_DISRUPT, DO_NOT_EVICT, FAKE_POD, POD_DELETION_COST
from shared.model.objects import Condition, Meta, Pairs, condition
from shared.model.requirements import Requirements, requirements_from_labels
from shared.model.resources import NONE, Resources
from shared.model.selectors import LabelSelector
from shared.model.taints import DISRUPTED, Toleration
from shared.model.units import parse_duration

STUCK_AFTER: Final = timedelta(minutes=1)
_MOST_PRIORITY: Final = 2**31
LEAST: Final = -(2**31)
"""The lowest priority there is."""
CRITICAL: Final = ("system-cluster-critical", "system-node-critical")


class PreferredTerm(msgspec.Struct, frozen=True, kw_only=True):
    """One preferred node affinity term."""

    weight: int
    requirements: Requirements


class AffinityTerm(msgspec.Struct, frozen=True, kw_only=True):
    """One pod (anti-)affinity term; *weight* 0 says that it is required."""

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


class HostPort(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A port of the node that the pod takes."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address

    def conflicts(self, other: "HostPort") -> bool:
        """Whether both cannot be on one node."""
        anywhere = ("0.0.0.0", "::")  # noqa: S104
        same = self.port == other.port and self.protocol == other.protocol
        return same and (self.ip == other.ip or self.ip in anywhere or other.ip in anywhere)


class PodSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks for: equal specs place alike. Everything is canonical, so it is hashable and comparable."""

    requests: Resources = NONE
    """Of the whole pod by KEP-753: containers, sidecars, init containers, overhead, resize; `pods` is 1."""
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Pairs = ()
    required_terms: tuple[Requirements, ...] = ()
    """Required node affinity: any one of these; none at all is no constraint."""
    preferred_terms: tuple[PreferredTerm, ...] = ()
    """Heaviest first, stable."""
    pod_affinity: tuple[AffinityTerm, ...] = ()
    pod_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_pod_affinity: tuple[AffinityTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volume_claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims, generic ephemeral ones included, in the pod's namespace."""
    has_match_fields: bool = False
    """A required term uses matchFields, which no new node can satisfy."""
    has_resource_claims: bool = False


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod."""

    meta: Meta
    spec: PodSpec
    node_name: str = ""
    nominated_node_name: str = ""
    phase: str = "Pending"
    priority: int = 0
    priority_class: str = ""
    grace_period: timedelta = timedelta(seconds=30)
    started_at: datetime | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """As people write it: ``shop/cart``."""
        return f"{self.meta.namespace}/{self.meta.name}"

    def is_terminal(self) -> bool:
        """Whether it has run its course."""
        return self.phase in ("Succeeded", "Failed")

    def is_terminating(self) -> bool:
        """Whether somebody has deleted it."""
        return self.meta.deleted_at is not None

    def is_active(self) -> bool:
        """Whether it runs or will run."""
        return not self.is_terminal() and not self.is_terminating()

    def is_daemon(self) -> bool:
        """Whether a DaemonSet owns it."""
        return self.meta.is_owned_by("apps/v1", "DaemonSet")

    def is_headroom(self) -> bool:
        """Whether it is no pod, but room that a CapacityBuffer keeps."""
        return self.priority == LEAST and self.meta.annotation(FAKE_POD) == "true"

    def is_mirror(self) -> bool:
        """Whether its node owns it: a static pod."""
        return self.meta.is_owned_by("v1", "Node")

    def is_unschedulable(self) -> bool:
        """Whether kube-scheduler has tried and given up."""
        scheduled = condition(self.conditions, "PodScheduled")
        return scheduled is not None and scheduled.reason == "Unschedulable"

    def is_provisionable(self) -> bool:
        """Whether it waits for a node that we may make."""
        if self.node_name or self.nominated_node_name or not self.is_unschedulable():
            return False
        return not self.meta.owners or not (self.is_daemon() or self.is_mirror())

    def is_reschedulable(self) -> bool:
        """Whether it would need another place if its node went."""
        comes_back = self.is_active() or (self.is_terminating() and self.meta.is_owned_by("apps/v1", "StatefulSet"))
        return comes_back and not self.is_daemon() and not self.is_mirror()

    def tolerates_disruption(self) -> bool:
        """Whether it tolerates the disrupted taint, and so stays until the instance goes."""
        return any(toleration.tolerates(DISRUPTED) for toleration in self.spec.tolerations)

    def is_protected(self, now: datetime) -> bool:
        """Whether `karpenter.sh/do-not-disrupt` is in force: ``true``, or a duration since the pod started.

        Its older spelling, do-not-evict, holds too if it is ``true``.
        """
        value = self.meta.annotation(DO_NOT_DISRUPT)
        if value == "true" or self.meta.annotation(DO_NOT_EVICT) == "true":
            return True
        try:
            lasts = parse_duration(value)
        except ValueError:
            return False
        return lasts > timedelta() and (self.started_at is None or now - self.started_at < lasts)

    def misprotected(self) -> str:
        """Answer what its do-not-disrupt annotation says, if that protects nothing at any time; "" if there is none."""
        value = self.meta.annotation(DO_NOT_DISRUPT)
        try:
            return value if value != "true" and parse_duration(value) <= timedelta() else ""
        except ValueError:
            return value

    def is_disruptable(self, now: datetime) -> bool:
        """Whether a voluntary disruption of its node may begin, as far as this pod says."""
        return not self.is_active() or not self.is_protected(now)

    def is_evictable(self, now: datetime) -> bool:
        """Whether the eviction API may be asked."""
        return (
            self.is_active() and not self.tolerates_disruption() and not self.is_mirror() and not self.is_protected(now)
        )

    def is_stuck(self, now: datetime) -> bool:
        """Whether it should have been gone a minute ago."""
        return self.meta.deleted_at is not None and now - self.meta.deleted_at > STUCK_AFTER

    def is_waiting_eviction(self, now: datetime) -> bool:
        """Whether a drain waits for it."""
        drainable = not self.tolerates_disruption() and not self.is_stuck(now) and not self.is_mirror()
        return not self.is_terminal() and drainable

    def is_critical(self) -> bool:
        """Whether a drain leaves it for last."""
        return self.priority_class in CRITICAL

    def eviction_cost(self) -> float:
        """How much it hurts to move it: 1 normally, between -10 and 10."""
        try:
            deletion = float(self.meta.annotation(POD_DELETION_COST) or 0)
        except ValueError:
            deletion = 0.0
        if math.isnan(deletion):
            deletion = 0.0
        priority = min(max(self.priority, -_MOST_PRIORITY), _MOST_PRIORITY)
        return min(max(1 + deletion / 2**27 + priority / 2**25, -10.0), 10.0)


class PodDisruptionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """policy/v1."""

    meta: Meta
    selector: LabelSelector | None
    disruptions_allowed: int
    min_available: str = ""
    max_unavailable: str = ""
    always_allows_unhealthy: bool = False

    @property
    def name(self) -> str:
        """As people write it: ``shop/cart``."""
        return f"{self.meta.namespace}/{self.meta.name}"

    def selects(self, pod: Pod) -> bool:
        """Whether it guards *pod*."""
        same = self.meta.namespace == pod.meta.namespace
        return same and self.selector is not None and self.selector.matches(dict(pod.meta.labels))

    def is_fully_blocking(self) -> bool:
        """Whether it can never allow a disruption."""
        return self.max_unavailable in ("0", "0%") or self.min_available == "100%"


class DaemonSet(msgspec.Struct, frozen=True, kw_only=True):
    """apps/v1: *spec* is that of a pod it would make today, without preferences."""

    meta: Meta
    spec: PodSpec


def strict_requirements(spec: PodSpec, term: int = 0) -> Requirements:
    """Answer nodeSelector and required term number *term*; preferences do not count."""
    own = requirements_from_labels(spec.node_selector)
    return own & spec.required_terms[term] if spec.required_terms else own
