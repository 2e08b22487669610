"""The embedded cloud and the deployed handlers around a cluster that is not ours, in real time.

The cluster is an API server behind two `Kube` ports: one for the functions, with the rights that a deployment has, and
one for everything that a cluster has besides (kubelets, the cloud's controllers, a person). The cloud, the queues, the
table and the bucket live in this process; the functions are wired by the synthesised template.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.model.ec2 import Instance
from shared.ports import Kube, World
from shared.report.journal import Entry
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices
from sim.cluster.controllers.cloud_node import DELETING
from sim.embedded import Journalled
from sim.faults import Call, Tap, tapped_world
from sim.lambdas.runtime import LambdaRuntime
from sim.lambdas.template import synthesised
from sim.lambdas.wiring import Wiring
from sim.machines import Machines
from sim.measure import Sample, is_ours, is_over, is_running, vcpus_of
from sim.memory import MemoryTable
from sim.playground_desk import NODES, PODS, Desk
from sim.playground_nodes import ApiNodes
from sim.realtime import RealTime, RealTimeClock
from sim.scenario import Managed
from sim.staff import managed_boot

SCHEDULED: Final = '{"detail-type": "Scheduled Event", "source": "aws.events"}'
CUSTODIANS: Final = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces whose pods nobody looks at."""


class Playground:
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
        self.on_journal: Callable[[Entry], None] = lambda _: None
        """Hears every journal entry as it is written."""
        wiring = Wiring.parse(template if template is not None else synthesised())
        settings = Settings.from_environment(dict(wiring.functions[0].environment))
        self.clock, self.desk, self.drive = clock, Desk(people), RealTime(clock)
        self.cloud = Cloud(clock, seed, region=settings.region, cluster=settings.cluster_name)
        if endpoint:
            self.cloud.facts = msgspec.structs.replace(
                self.cloud.facts, endpoint=endpoint, certificate_authority=certificate_authority
            )
        self.cloud.machines.haste = haste
        self.nodes = ApiNodes(clock, people, deleting=node_deletion, haste=haste)
        self.machines = Machines(self.cloud, self.nodes, seed)
        self.table, self.bucket = MemoryTable(), Journalled(self._hear)
        self.lines: list[str] = []
        """What the functions logged, oldest first."""
        self.tap: Tap = _unseen
        self._functions, self._schedules = functions, wiring.schedules
        self.runtime = LambdaRuntime(clock, wiring, self._world, seed)
        self.cloud.subscribe_events(self.runtime.put_event)

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
        for schedule in self._schedules:
            for target in schedule.targets:
                if target.kind == "function":
                    self.runtime.invoke(target.name, json.loads(target.input or SCHEDULED))
        self.clock.call_after(period, partial(self.ring_every, period), "ring all schedules")

    def living(self) -> tuple[Instance, ...]:
        """Answer the instances that have not begun to end, sorted by id."""
        return tuple(one for one in self.cloud.instances() if one.state in ("pending", "running"))

    def sample(self) -> Sample:
        """Answer what can be counted now; pods of the cluster's own namespaces do not count."""
        nodes = self.desk.look(NODES)
        pods = [pod for pod in self.desk.look(PODS) if pod["metadata"]["namespace"] not in CUSTODIANS]
        running = sum(is_running(pod) for pod in pods)
        ours = [node for node in nodes if is_ours(node)]
        return Sample(
            at=self.clock.now(),
            running=running,
            pending=sum(not is_over(pod) for pod in pods) - running,
            nodes=len(ours),
            managed=len(nodes) - len(ours),
            vcpus=sum(vcpus_of(node) for node in ours),
            cost_usd_per_hour=round(self.cloud.hourly_cost(), 4),
        )

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

    def _world(self, function: str, environment: dict[str, str]) -> World:
        world = World(
            settings=Settings.from_environment(environment),
            kube=self._functions,
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPrices(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.runtime.mailbox(),
            table=self.table,
            bucket=self.bucket,
            clock=self.clock.now,
            emit=self.lines.append,
            name=f"{function}-{len(self.runtime.records):06d}",
        )
        return tapped_world(world, self._tapped)

    def _tapped(self, call: Call) -> None:
        self.tap(call)

    def _hear(self, entry: Entry) -> None:
        self.on_journal(entry)


def _unseen(call: Call) -> None:
    del call
