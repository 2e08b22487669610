"""A node of a managed node group, as a cluster has it before Joiner is installed."""

from datetime import timedelta
from typing import Final

import msgspec

from shared.model.ec2.instance import Instance
from sim.cloud.cloud import Cloud
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.cluster.kubelet.user_data import UserDataSettings
from sim.scenarios.scenario import ManagedNode
from sim.world.embedded_world import EmbeddedWorld
from sim.world.instance_boot import build_node_boot

MANAGED_NODE_NAME: Final = "ip-10-0-0-1.ec2.internal"
"""Named after an address that EC2 assigns to no instance: the first address of a subnet is its router's."""


def start_managed_node(world: EmbeddedWorld, managed: ManagedNode) -> str:
    """Boot a node without a NodePool that is ready immediately; return its name.

    Raises:
        ValueError: EC2 has no such instance type.
    """
    world.cluster.start_node(build_managed_boot(world.cloud, managed))
    return MANAGED_NODE_NAME


def build_managed_boot(cloud: Cloud, managed: ManagedNode) -> NodeBoot:
    """Return the boot data of a node without a NodePool that is ready immediately; EC2 does not show its instance.

    Raises:
        ValueError: EC2 has no such instance type.
    """
    instance_type_info = cloud.types.get(managed.instance_type)
    if instance_type_info is None:
        raise ValueError(f"EC2 has no type {managed.instance_type!r}")
    instance = Instance(
        instance_id="i-0managed00000001",
        instance_type=managed.instance_type,
        zone=cloud.zones[0],
        subnet_id="",
        image_id="",
        state="running",
        launched_at=cloud.clock.get_time(),
        capacity_type="on-demand",
        private_dns_name=MANAGED_NODE_NAME,
    )
    settings = UserDataSettings(dialect="nodeadm", cluster_name=cloud.facts.name, labels=managed.labels)
    boot = build_node_boot(instance, instance_type_info, settings, seed=0, zone_id="")
    return msgspec.structs.replace(boot, register_after=timedelta(), ready_after=timedelta(seconds=1))
