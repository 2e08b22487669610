"""One instance: what was ordered, what it holds, and how Describe shows it."""

from datetime import datetime
from ipaddress import IPv4Address
from typing import Literal

import msgspec

from shared.model.ec2 import (
    CapacityType,
    FailedCheck,
    Instance,
    InstanceState,
    InstanceStatus,
    LaunchTemplate,
    ScheduledEvent,
    Tags,
)
from sim.clock import Timer
from sim.cloud.network import SubnetAddresses
from sim.cloud.pools import Pool
from sim.cloud.selectors import sorted_tags

StatusCheck = Literal["instance", "system"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started; whoever orders has seen to it that there is room."""

    instance_type: str
    vcpus: int
    capacity_type: CapacityType
    image_id: str
    template: LaunchTemplate
    tags: Tags


class Machine:
    """One instance, from its start until it is forgotten."""

    def __init__(self, instance_id: str, order: Order, subnet: SubnetAddresses, pool: Pool, at: datetime) -> None:
        """Take an address of *subnet* and a slot of *pool*."""
        self.instance_id = instance_id
        self.order = order
        self.subnet = subnet
        self.address: IPv4Address = subnet.take()
        self.launched_at = at
        self.state: InstanceState = "pending"
        self.tags = dict(order.tags)
        self.is_faulty = False
        self.is_reclaimed = False
        self.impaired: dict[StatusCheck, datetime] = {}
        """Status checks that fail, and since when."""
        self.ahead: tuple[ScheduledEvent, ...] = ()
        self.timer = Timer(_nothing, "nothing lies ahead")
        self._pool = pool
        pool.take()

    def release(self) -> None:
        """Give back the address, and the slot unless EC2 wanted it for itself."""
        self.subnet.give_back(self.address)
        if not self.is_reclaimed:
            self._pool.give_back()

    def status(self) -> InstanceStatus:
        """Answer DescribeInstanceStatus' view."""
        failed = tuple(FailedCheck(of=of, since=since) for of, since in sorted(self.impaired.items()))
        return InstanceStatus(instance_id=self.instance_id, failed=failed, events=self.ahead)

    def described(self, region: str) -> Instance:
        """Answer DescribeInstances' view."""
        return Instance(
            instance_id=self.instance_id,
            instance_type=self.order.instance_type,
            zone=self.subnet.zone,
            subnet_id=self.subnet.subnet_id,
            image_id=self.order.image_id,
            state=self.state,
            launched_at=self.launched_at,
            capacity_type=self.order.capacity_type,
            private_dns_name=private_dns_name(self.address, region),
            security_group_ids=tuple(sorted(self.order.template.security_group_ids)),
            tags=sorted_tags(self.tags),
        )


def _nothing() -> None:
    """What comes next, until somebody says."""


def private_dns_name(address: IPv4Address, region: str) -> str:
    """Answer the IP-based name: ``ip-10-0-1-4.ec2.internal`` in us-east-1, with the region elsewhere."""
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return f"ip-{str(address).replace('.', '-')}.{domain}"
