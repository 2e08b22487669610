"""The NodeClaim object."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, is_condition_true
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.resources import NONE, Resources
from shared.model.core.taints import Taint

KARPENTER_API_VERSION: Final = "karpenter.sh/v1"
NODE_CLASS_GROUP: Final = "karpenter.k8s.aws"
EC2_NODE_CLASS_KIND: Final = "EC2NodeClass"


class NodeClassRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Reference to a node class."""

    name: str
    group: str = NODE_CLASS_GROUP
    kind: str = EC2_NODE_CLASS_KIND

    def is_supported(self) -> bool:
        """Return whether Joiner supports this kind of node class."""
        return has_own_group(self.group) and self.kind == EC2_NODE_CLASS_KIND


def has_own_group(group: str) -> bool:
    """Return whether *group* is the API group of Joiner's node classes; other groups are of other autoscalers."""
    return group == NODE_CLASS_GROUP


class NodeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """karpenter.sh/v1 NodeClaim."""

    meta: ObjectMeta
    node_class: NodeClassRef
    requirements: Requirements = ANYTHING
    requests: Resources = NONE
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: timedelta | None = None
    """None: never."""
    termination_grace_period: timedelta | None = None
    node_name: str = ""
    provider_id: str = ""
    image_id: str = ""
    capacity: Resources = NONE
    allocatable: Resources = NONE
    conditions: tuple[Condition, ...] = ()
    last_pod_event_at: datetime | None = None

    @property
    def name(self) -> str:
        """The NodeClaim's name."""
        return self.meta.name

    @property
    def instance_id(self) -> str:
        """The EC2 instance id, "" before launch."""
        return self.provider_id.rpartition("/")[2]

    def is_deleting(self) -> bool:
        """Return whether the NodeClaim is deleted and waits for its finalizers."""
        return self.meta.deleted_at is not None

    def is_launched(self) -> bool:
        """Return whether an instance was launched for the NodeClaim."""
        return bool(self.provider_id)

    def is_registered(self) -> bool:
        """Return whether the NodeClaim's node has registered."""
        return is_condition_true(self.conditions, "Registered")

    def is_initialized(self) -> bool:
        """Return whether the NodeClaim's node is initialized."""
        return is_condition_true(self.conditions, "Initialized")
