"""One simulated instance: its launch parameters, the address and capacity it uses, and its Describe output."""

from collections.abc import Iterable
from datetime import datetime
from ipaddress import IPv4Address
from typing import Literal

import msgspec

from shared.errors import Invalid
from shared.model.ec2.instance import FailedCheck, Instance, InstanceStatus, ScheduledEvent
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType, InstanceState, Tags
from sim.cloud.ec2.capacity_pools import CapacityPool
from sim.cloud.resources.network import SubnetAddresses
from sim.cloud.resources.selector_terms import sort_tags
from sim.time.virtual_clock import Timer

StatusCheck = Literal["instance", "system"]


class LaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one launch; the caller has checked that there is capacity."""

    instance_type: str
    vcpus: int
    capacity_type: CapacityType
    image_id: str
    template: LaunchTemplate
    tags: Tags


class SimulatedInstance:
    """One instance, from its launch until EC2 forgets it."""

    def __init__(
        self,
        instance_id: str,
        launch_spec: LaunchSpec,
        subnet: SubnetAddresses,
        pool: CapacityPool,
        launched_at: datetime,
    ) -> None:
        """Allocate an address of *subnet* and a slot of *pool*."""
        self.instance_id = instance_id
        self.launch_spec = launch_spec
        self.subnet = subnet
        self.address: IPv4Address = subnet.allocate_address()
        self.launched_at = launched_at
        self.state: InstanceState = "pending"
        self.state_reason = ""
        self.tags = dict(launch_spec.tags)
        self.launch_error = ""
        """The state reason with which the instance ends instead of running, empty if it runs."""
        self.is_faulty = False
        self.is_reclaimed = False
        self.failing_checks: dict[StatusCheck, datetime] = {}
        """Failing status checks, and the time since which each fails."""
        self.scheduled_events: tuple[ScheduledEvent, ...] = ()
        self.timer = Timer(_ignore_transition, "nothing lies ahead")
        self._pool = pool
        pool.acquire_slot()

    def release(self) -> None:
        """Release the address, and the pool slot unless EC2 reclaimed it."""
        self.subnet.release_address(self.address)
        if not self.is_reclaimed:
            self._pool.release_slot()

    def describe_status(self) -> InstanceStatus:
        """Return the instance as DescribeInstanceStatus shows it."""
        failed_checks = tuple(FailedCheck(kind=of, since=since) for of, since in sorted(self.failing_checks.items()))
        return InstanceStatus(instance_id=self.instance_id, failed=failed_checks, events=self.scheduled_events)

    def describe(self, region: str) -> Instance:
        """Return the instance as DescribeInstances shows it."""
        return Instance(
            instance_id=self.instance_id,
            instance_type=self.launch_spec.instance_type,
            zone=self.subnet.zone,
            subnet_id=self.subnet.subnet_id,
            image_id=self.launch_spec.image_id,
            state=self.state,
            launched_at=self.launched_at,
            capacity_type=self.launch_spec.capacity_type,
            private_dns_name=build_private_dns_name(self.address, region),
            security_group_ids=tuple(sorted(self.launch_spec.template.security_group_ids)),
            tags=sort_tags(self.tags),
            state_reason=self.state_reason,
        )


def _ignore_transition() -> None:
    """Do nothing: the callback until a transition is scheduled."""


def build_private_dns_name(address: IPv4Address, region: str) -> str:
    """Return the IP-based name: ``ip-10-0-1-4.ec2.internal`` in us-east-1, with the region elsewhere."""
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return f"ip-{str(address).replace('.', '-')}.{domain}"


def check_tags(tags: Iterable[tuple[str, str]]) -> None:
    """Check the keys of *tags*.

    Raises:
        Invalid: a key is empty or reserved for EC2.
    """
    for key, _ in tags:
        if not key or key.startswith("aws:"):
            text = "Tag keys starting with 'aws:' are reserved for internal use" if key else "Tag key cannot be empty"
            raise Invalid(text, code="InvalidParameterValue")
