"""The CapacityBuffer object."""

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.resources import NONE, Resources
from shared.model.karpenter.schedule import Schedule


class ScalableRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Reference to an object with replicas."""

    kind: str
    name: str
    api_group: str = ""
    """Empty means apps."""


class CapacityBuffer(msgspec.Struct, frozen=True, kw_only=True):
    """autoscaling.x-k8s.io/v1beta1 CapacityBuffer: capacity that is kept free."""

    meta: ObjectMeta
    strategy: str = "buffer.x-k8s.io/active-capacity"
    template: str = ""
    """The name of a PodTemplate; empty if *scalable* is set."""
    scalable: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Resources = NONE
    status_replicas: int | None = msgspec.field(default=None, name="told_replicas")
    """From the status, like the following fields."""
    status_template: str = msgspec.field(default="", name="told_template")
    status_generation: int | None = msgspec.field(default=None, name="told_generation")
    status_strategy: str = msgspec.field(default="", name="told_strategy")
    conditions: tuple[Condition, ...] = ()
    schedule: Schedule | None = None
    """The annotation joiner.dev/schedule; `state.schedules` applies it."""
    usual: "CapacityBuffer | None" = None
    """The CapacityBuffer without its schedule, while a window of the schedule is open."""

    @property
    def name(self) -> str:
        """Namespace and name: ``shop/room``."""
        return f"{self.meta.namespace}/{self.meta.name}"
