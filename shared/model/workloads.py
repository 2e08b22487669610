"""What makes pods, and what selects them: as far as buffers and default spread ask."""

from typing import Literal, TypeAlias

import msgspec

from shared.model.objects import Condition, Meta, Pairs
from shared.model.pods import PodSpec
from shared.model.resources import NONE, Resources
from shared.model.selectors import LabelSelector

WorkloadKind: TypeAlias = Literal["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "PodTemplate"]


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A template of pods, and how many there are to be of it."""

    kind: WorkloadKind
    meta: Meta
    replicas: int = 1
    selector: LabelSelector | None = None
    labels: Pairs = ()
    """Of its pods."""
    spec: PodSpec = PodSpec()


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """v1 Service."""

    meta: Meta
    selector: Pairs = ()


class ScalableRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that has replicas."""

    kind: str
    name: str
    api_group: str = ""
    """Empty stands for apps."""


class CapacityBuffer(msgspec.Struct, frozen=True, kw_only=True):
    """autoscaling.x-k8s.io/v1beta1 CapacityBuffer: room that is kept free."""

    meta: Meta
    strategy: str = "buffer.x-k8s.io/active-capacity"
    template: str = ""
    """Of a PodTemplate, the name; or there is a *scalable*."""
    scalable: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Resources = NONE
    told_replicas: int | None = None
    """What status says, as are the rest."""
    told_template: str = ""
    told_generation: int | None = None
    told_strategy: str = ""
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """As people write it: ``shop/room``."""
        return f"{self.meta.namespace}/{self.meta.name}"
