"""The embedded cloud and the deployed handlers around a cluster that is not ours, in real time.

The cluster is an API server behind two `Kube` ports: one for the functions, with the rights that a deployment has, and
one for everything that a cluster has besides (kubelets, the cloud's controllers, a person). The cloud, the queues, the
table and the bucket live in this process; the functions are wired by the synthesised template.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.ports import Kube
from sim.cluster.controllers.cloud_node import DELETING
from sim.deployed import Deployed
from sim.machines import Machines
from sim.measure import Sample, counted, is_ours
from sim.playground_desk import NODES, PODS, Desk
from sim.playground_nodes import ApiNodes
from sim.realtime import RealTime, RealTimeClock
from sim.scenario import Managed
from sim.staff import managed_boot

SCHEDULED: Final = '{"detail-type": "Scheduled Event", "source": "aws.events"}'
CUSTODIANS: Final = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces whose pods nobody looks at."""


class Playground(Deployed):
    """Everything around one API server, wired; `drive` lets it live."""

    def __init__(
        self,
        clock: RealTimeClock,
        *,
        functions: Kube,
        people: Kube,
        endpoint: str = "",
        certificate_authority: str = "",
        seed: int = 0,
        template: Mapping[str, Any] | None = None,
        node_deletion: timedelta = DELETING,
        haste: float = 1.0,
    ) -> None:
        """Deploy the stack of *template* (what the app synthesises, unless given) beside the cluster.

        EKS answers *endpoint* and *certificate_authority*, PEM in base64, for it; empty: what it makes up. A Node goes
        *node_deletion* after its instance; machines boot and end *haste* times as fast as real ones.
        """
        super().__init__(clock, seed, template)
        self.clock, self.desk, self.drive = clock, Desk(people), RealTime(clock)
        self._functions = functions
        if endpoint:
            self.cloud.facts = msgspec.structs.replace(
                self.cloud.facts, endpoint=endpoint, certificate_authority=certificate_authority
            )
        self.cloud.machines.haste = haste
        self.nodes = ApiNodes(clock, people, deleting=node_deletion, haste=haste)
        self.machines = Machines(self.cloud, self.nodes, seed)
        self.switch_on(clock, seed)

    def start_managed_node(self, managed: Managed) -> str:
        """Switch on a node that no NodePool made, ready at once; answer its name.

        Raises:
            ValueError: EC2 has no such instance type.
        """
        boot = managed_boot(self.cloud, managed)
        self.nodes.start_node(boot)
        return boot.node_name

    def ring_every(self, period: timedelta) -> None:
        """Ring all schedules every *period* besides: for those who cannot wait for the minute."""
        for schedule in self.wiring.schedules:
            for target in schedule.targets:
                if target.kind == "function":
                    self.runtime.invoke(target.name, json.loads(target.input or SCHEDULED))
        self.clock.call_after(period, partial(self.ring_every, period), "ring all schedules")

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
        for one in self.living():
            if node in (one.private_dns_name, one.private_dns_name.partition(".")[0], one.instance_id):
                return one.instance_id
        raise ValueError(f"no living instance is node {node!r}")

    def _kube(self) -> Kube:
        return self._functions
