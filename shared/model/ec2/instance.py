"""EC2 instances and their status checks."""

from datetime import datetime
from typing import Final, Literal

import msgspec

from shared.model.ec2.types import CapacityType, InstanceState, Tags


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, from DescribeInstances."""

    instance_id: str
    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    state: InstanceState
    launched_at: datetime
    capacity_type: CapacityType
    private_dns_name: str = ""
    security_group_ids: tuple[str, ...] = ()
    tags: Tags = ()
    state_reason: str = ""
    """Why it stopped or terminated, as ``Client.InternalError: Client error on launch``; empty while it runs."""

    @property
    def provider_id(self) -> str:
        """The provider id of the Node: ``aws:///us-east-1a/i-0abc``."""
        return f"aws:///{self.zone}/{self.instance_id}"

    def is_terminating(self) -> bool:
        """Return whether it is shutting down or terminated."""
        return self.state in ("shutting-down", "terminated")

    def get_tag(self, key: str) -> str:
        """Return the value of a tag, "" if it is absent."""
        return dict(self.tags).get(key, "")


class FailedCheck(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A failed status check of EC2: of the instance itself, or of the host system."""

    kind: Literal["instance", "system"] = msgspec.field(name="of")
    since: datetime


class ScheduledEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A scheduled event of an instance."""

    event_id: str
    code: str
    """``instance-retirement``, ``system-reboot`` …"""
    begins_at: datetime | None = None


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Current and upcoming problems of one instance, from DescribeInstanceStatus; both lists are sorted."""

    instance_id: str
    failed: tuple[FailedCheck, ...] = ()
    events: tuple[ScheduledEvent, ...] = ()


CLUSTER_TAG: Final = "eks:eks-cluster-name"
NODE_CLAIM_TAG: Final = "karpenter.sh/nodeclaim"
