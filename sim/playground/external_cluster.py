"""An external cluster and the embedded cloud beside it; instances join the cluster as nodes in real time.

It also contains the cluster's administrator (a person with a kubeconfig) and a node of a managed node group.
"""

from datetime import timedelta
from typing import Final

import msgspec

from shared.ports.kubernetes import Kube
from sim.cloud.cloud import Cloud
from sim.cluster.controllers.nodes.cloud_node import NODE_DELETION_DELAY
from sim.playground.kubectl import NODES_PATH, PODS_PATH, KubectlClient
from sim.playground.nodes import ExternalNodes
from sim.scenarios.managed_node_group import build_managed_boot
from sim.scenarios.scenario import ManagedNode
from sim.time.real_clock import RealTimeClock, RealTimeDriver
from sim.world.instance_boot import InstanceBooter, list_active_instances
from sim.world.measurements import ClusterSample, build_sample, is_joiner_node

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces whose pods are not counted."""


class ExternalCluster:
    """One API server and its surroundings, without Joiner; `drive` runs it."""

    def __init__(
        self,
        clock: RealTimeClock,
        cloud: Cloud,
        admin_kube: Kube,
        *,
        endpoint: str = "",
        certificate_authority: str = "",
        seed: int = 0,
        node_deletion_delay: timedelta = NODE_DELETION_DELAY,
        node_speed: float = 1.0,
    ) -> None:
        """Let instances of *cloud* join the cluster that *admin_kube* reaches with all permissions.

        EKS returns *endpoint* and *certificate_authority* (PEM in base64) for the cluster; empty: generated values. A
        Node is deleted *node_deletion_delay* after its instance; instances boot and end *node_speed* times as fast as
        real ones.
        """
        self.clock, self.cloud = clock, cloud
        self.kubectl, self.drive = KubectlClient(admin_kube), RealTimeDriver(clock)
        if endpoint:
            cloud.facts = msgspec.structs.replace(
                cloud.facts, endpoint=endpoint, certificate_authority=certificate_authority
            )
        cloud.instances.speed_factor = node_speed
        self.nodes = ExternalNodes(clock, admin_kube, deletion_delay=node_deletion_delay, speed=node_speed)
        self.instance_booter = InstanceBooter(cloud, self.nodes, seed)

    def start_managed_node(self, managed: ManagedNode) -> str:
        """Boot a node without a NodePool that is ready immediately; return its name.

        Raises:
            ValueError: EC2 has no such instance type.
        """
        node_boot = build_managed_boot(self.cloud, managed)
        self.nodes.start_node(node_boot)
        return node_boot.node_name

    def take_sample(self) -> ClusterSample:
        """Return the current counts, without the pods of system namespaces."""
        pods = (
            pod for pod in self.kubectl.list_objects(PODS_PATH) if pod["metadata"]["namespace"] not in SYSTEM_NAMESPACES
        )
        return build_sample(pods, self.kubectl.list_objects(NODES_PATH), self.cloud)

    def find_busiest_node(self) -> str:
        """Return the name of the Joiner node with the most pods; of several, the first by name.

        Raises:
            ValueError: there is no such node.
        """
        joiner_node_names: list[str] = [
            node["metadata"]["name"] for node in self.kubectl.list_objects(NODES_PATH) if is_joiner_node(node)
        ]
        pod_node_names = [pod["spec"].get("nodeName", "") for pod in self.kubectl.list_objects(PODS_PATH)]
        if not joiner_node_names:
            raise ValueError("no NodePool has a node yet")
        return min(joiner_node_names, key=lambda name: (-pod_node_names.count(name), name))

    def find_instance_id(self, node: str) -> str:
        """Return the id of the active instance of *node*: a node name, its first label, or an instance id.

        Raises:
            ValueError: there is no such instance.
        """
        for instance in list_active_instances(self.cloud):
            if node in (instance.private_dns_name, instance.private_dns_name.partition(".")[0], instance.instance_id):
                return instance.instance_id
        raise ValueError(f"no living instance is node {node!r}")
