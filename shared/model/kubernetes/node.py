"""The Node object."""

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, is_condition_true
from shared.model.core.resources import NONE, Resources
from shared.model.core.taints import Taint


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """v1 Node."""

    meta: ObjectMeta
    provider_id: str = ""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    capacity: Resources = NONE
    allocatable: Resources = NONE
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """The Node's name."""
        return self.meta.name

    def is_ready(self) -> bool:
        """Return whether the kubelet reports Ready."""
        return is_condition_true(self.conditions, "Ready")
