"""Pods, PodDisruptionBudgets and DaemonSets, as scheduling and draining see them."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.labels import DO_NOT_DISRUPT, DO_NOT_EVICT, FAKE_POD, POD_DELETION_COST
from shared.model.core.metadata import Condition, ObjectMeta, Pairs, find_condition
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.core.resources import NONE, Resources
from shared.model.core.selectors import LabelSelector
from shared.model.core.taints import DISRUPTED, Toleration
from shared.model.core.units import parse_duration

STUCK_TERMINATION_TIMEOUT: Final = timedelta(minutes=1)
_MAX_PRIORITY_MAGNITUDE: Final = 2**31
MIN_PRIORITY: Final = -(2**31)
"""The lowest possible priority."""
CRITICAL_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")


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


class HostPort(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A host port of a pod."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address

    def has_conflict(self, host_port: "HostPort") -> bool:
        """Return whether both ports cannot be used on one node."""
        wildcard_ips = ("0.0.0.0", "::")  # noqa: S104
        is_same_port = self.port == host_port.port and self.protocol == host_port.protocol
        return is_same_port and (self.ip == host_port.ip or self.ip in wildcard_ips or host_port.ip in wildcard_ips)


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

    def is_provisionable(self) -> bool:
        """Return whether the pod waits for a node that Joiner may launch."""
        if self.node_name or self.nominated_node_name or not self.is_unschedulable():
            return False
        return not self.meta.owners or not (self.is_daemon() or self.is_mirror())

    def is_reschedulable(self) -> bool:
        """Return whether the pod would need another node if its node was terminated."""
        is_recreated = self.is_active() or (self.is_terminating() and self.meta.is_owned_by("apps/v1", "StatefulSet"))
        return is_recreated and not self.is_daemon() and not self.is_mirror()

    def can_tolerate_disruption(self) -> bool:
        """Return whether the pod tolerates the disrupted taint, and so stays until the instance is terminated."""
        return any(toleration.can_tolerate(DISRUPTED) for toleration in self.spec.tolerations)

    def is_protected(self, now: datetime) -> bool:
        """Return whether `karpenter.sh/do-not-disrupt` is in force: ``true``, or a duration since the pod started.

        Its older spelling do-not-evict is respected too if it is ``true``.
        """
        value = self.meta.get_annotation(DO_NOT_DISRUPT)
        if value == "true" or self.meta.get_annotation(DO_NOT_EVICT) == "true":
            return True
        try:
            protection_duration = parse_duration(value)
        except ValueError:
            return False
        return protection_duration > timedelta() and (
            self.started_at is None or now - self.started_at < protection_duration
        )

    def find_ineffective_protection(self) -> str:
        """Return the do-not-disrupt annotation if its value can never protect the pod; "" otherwise."""
        value = self.meta.get_annotation(DO_NOT_DISRUPT)
        try:
            return value if value != "true" and parse_duration(value) <= timedelta() else ""
        except ValueError:
            return value

    def is_disruptable(self, now: datetime) -> bool:
        """Return whether this pod allows a voluntary disruption of its node."""
        return not self.is_active() or not self.is_protected(now)

    def is_evictable(self, now: datetime) -> bool:
        """Return whether the pod may be evicted with the eviction API."""
        return (
            self.is_active()
            and not self.can_tolerate_disruption()
            and not self.is_mirror()
            and not self.is_protected(now)
        )

    def is_stuck(self, now: datetime) -> bool:
        """Return whether the pod's termination is overdue by more than a minute."""
        return self.meta.deleted_at is not None and now - self.meta.deleted_at > STUCK_TERMINATION_TIMEOUT

    def is_waiting_eviction(self, now: datetime) -> bool:
        """Return whether a drain waits for the pod."""
        is_drainable = not self.can_tolerate_disruption() and not self.is_stuck(now) and not self.is_mirror()
        return not self.is_terminal() and is_drainable

    def is_critical(self) -> bool:
        """Return whether the pod is evicted in the last groups of a drain."""
        return self.priority_class in CRITICAL_PRIORITY_CLASSES

    def compute_eviction_cost(self) -> float:
        """Return the cost of evicting the pod: 1 normally, between -10 and 10."""
        try:
            deletion_cost = float(self.meta.get_annotation(POD_DELETION_COST) or 0)
        except ValueError:
            deletion_cost = 0.0
        if math.isnan(deletion_cost):
            deletion_cost = 0.0
        priority = min(max(self.priority, -_MAX_PRIORITY_MAGNITUDE), _MAX_PRIORITY_MAGNITUDE)
        return min(max(1 + deletion_cost / 2**27 + priority / 2**25, -10.0), 10.0)


def build_strict_requirements(spec: PodSpec, term: int = 0) -> Requirements:
    """Return the requirements of nodeSelector and of required term number *term*; preferences are ignored."""
    selector_requirements = build_label_requirements(spec.node_selector)
    return selector_requirements & spec.required_terms[term] if spec.required_terms else selector_requirements


def has_port_conflict(used_ports: Iterable[HostPort], requested_ports: tuple[HostPort, ...]) -> bool:
    """Return whether any of *requested_ports* conflicts with *used_ports*."""
    return bool(requested_ports) and any(
        used_port.has_conflict(requested_port) for used_port in used_ports for requested_port in requested_ports
    )
