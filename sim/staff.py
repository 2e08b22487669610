"""What is in a cluster before Joiner: a node of a managed node group."""

from datetime import timedelta
from typing import Final

import msgspec

from shared.model.ec2 import Instance
from sim.cloud.cloud import Cloud
from sim.cluster.kubelet import Boot
from sim.cluster.userdata import UserDataSettings
from sim.embedded import Embedded
from sim.machines import boot_of
from sim.scenario import Managed

NAME: Final = "ip-10-0-0-1.ec2.internal"
"""Of an address that EC2 gives to no instance: the first of a subnet is its router's."""


def start_managed_node(world: Embedded, managed: Managed) -> str:
    """Switch on a node that no NodePool made, ready at once; answer its name.

    Raises:
        ValueError: EC2 has no such instance type.
    """
    world.live.start_node(managed_boot(world.cloud, managed))
    return NAME


def managed_boot(cloud: Cloud, managed: Managed) -> Boot:
    """Answer the machine of a node that no NodePool made, ready at once; EC2 does not show it.

    Raises:
        ValueError: EC2 has no such instance type.
    """
    info = cloud.types.get(managed.instance_type)
    if info is None:
        raise ValueError(f"EC2 has no type {managed.instance_type!r}")
    instance = Instance(
        instance_id="i-0managed00000001",
        instance_type=managed.instance_type,
        zone=cloud.zones[0],
        subnet_id="",
        image_id="",
        state="running",
        launched_at=cloud.clock.now(),
        capacity_type="on-demand",
        private_dns_name=NAME,
    )
    settings = UserDataSettings(dialect="nodeadm", cluster_name=cloud.facts.name, labels=managed.labels)
    boot = boot_of(instance, info, settings, seed=0, zone_id="")
    return msgspec.structs.replace(boot, register_after=timedelta(), ready_after=timedelta(seconds=1))
