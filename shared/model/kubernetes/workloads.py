"""Workloads that own or select pods: DaemonSets, Deployments, Services, Namespaces."""

from typing import Literal, TypeAlias

import msgspec

from shared.model.core.metadata import ObjectMeta, Pairs
from shared.model.core.selectors import LabelSelector
from shared.model.kubernetes.pod import PodSpec


class DaemonSet(msgspec.Struct, frozen=True, kw_only=True):
    """apps/v1 DaemonSet: *spec* is that of a pod it would create today, without preferences."""

    meta: ObjectMeta
    spec: PodSpec


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
