"""A cluster that is not ours and the embedded cloud beside it, whose instances join the cluster as nodes, in real time.

Whoever looks after the cluster is here too: a person with a kubeconfig, and a node of a managed node group.
"""

from datetime import timedelta
from typing import Final

import msgspec

from shared.ports import Kube
from sim.cloud.cloud import Cloud
from sim.cluster.controllers.cloud_node import DELETING
from sim.machines import Machines, living
from sim.measure import Sample, counted, is_ours
from sim.playground_desk import NODES, PODS, Desk
from sim.playground_nodes import ApiNodes
from sim.realtime import RealTime, RealTimeClock
from sim.scenario import Managed
from sim.staff import managed_boot

CUSTODIANS: Final = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces whose pods nobody looks at."""


class Grounds:
    """Everything around one API server but Joiner; `drive` lets it live."""

    def __init__(
        self,
        clock: RealTimeClock,
        cloud: Cloud,
        people: Kube,
        *,
        endpoint: str = "",
        certificate_authority: str = "",
        seed: int = 0,
        node_deletion: timedelta = DELETING,
        haste: float = 1.0,
    ) -> None:
        """Let instances of *cloud* join the cluster that *people*, who may do anything, reach.

        EKS answers *endpoint* and *certificate_authority*, PEM in base64, for it; empty: what it makes up. A Node goes
        *node_deletion* after its instance; machines boot and end *haste* times as fast as real ones.
        """
        self.clock, self.cloud = clock, cloud
        self.desk, self.drive = Desk(people), RealTime(clock)
        if endpoint:
            cloud.facts = msgspec.structs.replace(
                cloud.facts, endpoint=endpoint, certificate_authority=certificate_authority
            )
        cloud.machines.haste = haste
        self.nodes = ApiNodes(clock, people, deleting=node_deletion, haste=haste)
        self.machines = Machines(cloud, self.nodes, seed)

    def start_managed_node(self, managed: Managed) -> str:
        """Switch on a node that no NodePool made, ready at once; answer its name.

        Raises:
            ValueError: EC2 has no such instance type.
        """
        boot = managed_boot(self.cloud, managed)
        self.nodes.start_node(boot)
        return boot.node_name

    def sample(self) -> Sample:
        """Answer what can be counted now; pods of the cluster's own namespaces do not count."""
        pods = (pod for pod in self.desk.look(PODS) if pod["metadata"]["namespace"] not in CUSTODIANS)
        return counted(pods, self.desk.look(NODES), self.cloud)

    def busiest(self) -> str:
        """Answer the name of the node of ours with most pods, the first of several.

        Raises:
            ValueError: there is none.
        """
        ours: list[str] = [node["metadata"]["name"] for node in self.desk.look(NODES) if is_ours(node)]
        pods = [pod["spec"].get("nodeName", "") for pod in self.desk.look(PODS)]
        if not ours:
            raise ValueError("no NodePool has a node yet")
        return min(ours, key=lambda name: (-pods.count(name), name))

    def instance_of(self, node: str) -> str:
        """Answer the id of the living instance that is *node*: its name, the first part of it, or the instance's id.

        Raises:
            ValueError: there is none.
        """
        for one in living(self.cloud):
            if node in (one.private_dns_name, one.private_dns_name.partition(".")[0], one.instance_id):
                return one.instance_id
        raise ValueError(f"no living instance is node {node!r}")
