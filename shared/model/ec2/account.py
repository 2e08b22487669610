"""Account resources that node classes select: subnets, security groups, images, reservations."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.ec2.types import Tags


class SelectorTerm(msgspec.Struct, frozen=True, kw_only=True):
    """One term of an EC2NodeClass selector: an id, a name, or tags that must all match (`*` is any value)."""

    id: str = ""
    name: str = ""
    owner: str = ""
    alias: str = ""
    ssm_parameter: str = ""
    instance_match_criteria: str = ""
    """For capacity reservations: `open` or `targeted`."""
    tags: Tags = ()


CAPACITY_BLOCK_RECLAIM_PERIOD: Final = timedelta(minutes=40)
"""EC2 starts to reclaim the instances of a capacity block this long before its end."""


class CapacityReservation(msgspec.Struct, frozen=True, kw_only=True):
    """One active or scheduled capacity reservation, from DescribeCapacityReservations."""

    reservation_id: str
    instance_type: str
    zone: str
    owner_id: str = ""
    instance_match_criteria: str = "targeted"
    reservation_type: str = "default"
    """`default` or `capacity-block`."""
    is_interruptible: bool = False
    available_count: int = 0
    total_count: int = 0
    ends_at: datetime | None = None
    """None: it does not end."""
    starts_at: datetime | None = None
    """When a scheduled one starts; None: it is active."""
    state: str = ""
    """The state in a node class status, `active` or `expiring`; "" if it was read from EC2."""

    @property
    def is_block(self) -> bool:
        """Whether it is a Capacity Block."""
        return self.reservation_type == "capacity-block"

    def is_ending_block(self, now: datetime) -> bool:
        """Return whether it is a capacity block whose instances EC2 reclaims at *now*."""
        return self.is_block and self.ends_at is not None and now >= self.ends_at - CAPACITY_BLOCK_RECLAIM_PERIOD


class PlacementGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One available placement group, from DescribePlacementGroups."""

    group_id: str
    name: str = ""
    strategy: str = "cluster"
    """`cluster`, `partition` or `spread`."""
    partition_count: int = 0


class Subnet(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A subnet, from DescribeSubnets."""

    subnet_id: str
    zone: str
    zone_id: str
    available_ip_count: int


class SecurityGroup(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A security group, from DescribeSecurityGroups."""

    group_id: str
    name: str


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image, from DescribeImages; *architecture* is EC2's: ``x86_64`` or ``arm64``."""

    image_id: str
    name: str
    architecture: str
    created_at: datetime
    deprecated_at: datetime | None = None
    tags: Tags = ()


class ControlPlaneFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's control plane, from eks:DescribeCluster."""

    name: str
    endpoint: str
    certificate_authority: str
    """Base64."""
    version: str
    """For example ``1.33``."""
    service_cidr: str
