"""Workloads that own or select pods: DaemonSets, Deployments, Services, Namespaces."""

from datetime import timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.core.metadata import ObjectMeta, Pairs
from shared.model.core.selectors import LabelSelector
from shared.model.kubernetes.pod import PodSpec


class DaemonSet(msgspec.Struct, frozen=True, kw_only=True):
    """apps/v1 DaemonSet: *spec* is that of a pod it would create today, without preferences."""

    meta: ObjectMeta
    spec: PodSpec


DEFAULT_PROGRESS_DEADLINE: Final = timedelta(minutes=10)
"""The progressDeadlineSeconds of a Deployment that does not set it."""


class Rollout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a Deployment replaces its pods when its template changes, and how far the last replacement is."""

    is_rolling_update: bool = True
    """False: the strategy Recreate, which deletes all old pods first."""
    max_surge: int = 0
    """Number of pods above spec.replicas."""
    max_unavailable: int = 0
    is_paused: bool = False
    progress_deadline: timedelta = DEFAULT_PROGRESS_DEADLINE
    surge_drain: str = ""
    """The template's annotation joiner.dev/surge-drain-restart."""
    is_observed: bool = True
    """Whether the status describes the current template."""
    pods: int = 0
    """Number of pods, old and new."""
    updated_pods: int = 0
    available_pods: int = 0


WorkloadKind: TypeAlias = Literal["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "PodTemplate"]


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A pod template and its number of replicas."""

    kind: WorkloadKind
    meta: ObjectMeta
    replicas: int = 1
    selector: LabelSelector | None = None
    labels: Pairs = ()
    """The labels of its pods."""
    spec: PodSpec = PodSpec()
    rollout: Rollout | None = None
    """None for kinds other than Deployment."""

    @property
    def name(self) -> str:
        """Namespace and name: ``shop/cart``."""
        return f"{self.meta.namespace}/{self.meta.name}"


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """v1 Service."""

    meta: ObjectMeta
    selector: Pairs = ()


class Namespace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Namespace."""

    name: str
    labels: Pairs = ()
    annotations: Pairs = ()
    """Only Joiner's own annotations."""
