"""Nodes and NodeClaims: machines as Kubernetes knows them and as we asked for them."""

from datetime import datetime, timedelta

import msgspec

from shared.model.objects import Condition, Meta, is_true
from shared.model.requirements import ANYTHING, Requirements
from shared.model.resources import NONE, Resources
from shared.model.taints import Taint


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """v1 Node."""

    meta: Meta
    provider_id: str = ""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    capacity: Resources = NONE
    allocatable: Resources = NONE
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.meta.name

    def is_ready(self) -> bool:
        """Whether its kubelet says so."""
        return is_true(self.conditions, "Ready")


class NodeClassRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which node class."""

    name: str
    group: str = "karpenter.k8s.aws"
    kind: str = "EC2NodeClass"

    def is_supported(self) -> bool:
        """Whether it is a kind that we run."""
        return self.group == "karpenter.k8s.aws" and self.kind == "EC2NodeClass"


class NodeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """karpenter.sh/v1 NodeClaim."""

    meta: Meta
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
        """Its name."""
        return self.meta.name

    @property
    def instance_id(self) -> str:
        """EC2's id, "" before launch."""
        return self.provider_id.rpartition("/")[2]

    def is_deleting(self) -> bool:
        """Whether it is on its way out."""
        return self.meta.deleted_at is not None

    def is_launched(self) -> bool:
        """Whether an instance was started for it."""
        return bool(self.provider_id)

    def is_registered(self) -> bool:
        """Whether its node has joined."""
        return is_true(self.conditions, "Registered")

    def is_initialized(self) -> bool:
        """Whether its node is fit for use."""
        return is_true(self.conditions, "Initialized")
