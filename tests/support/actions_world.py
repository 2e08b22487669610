"""A cloud, an API server, a table and a bucket on one clock: everything that an action may change."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.labels import LAUNCH_GROUP
from shared.model.core.metadata import ObjectMeta
from shared.model.ec2.instance import Instance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.ports.world import World
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2, CloudEks, CloudParameters, CloudPricing
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.fault_tap import PortCall, Tap, tap_world
from sim.time.virtual_clock import Clock
from sim.world.memory_ports import MemoryBucket, MemoryTable
from tests.contract.asking import TAGS, build_fleet_request
from tests.contract.memory_face import build_memory_face

Sent = tuple[str, str, timedelta]


class Post:
    """A message queue that records what is sent."""

    def __init__(self) -> None:
        """Start empty."""
        self.sent: list[Sent] = []

    def add(self, function: str, body: str, after: timedelta) -> None:
        self.sent.append((function, body, after))

    def add_batch(self, function: str, body: str, delays: Sequence[timedelta]) -> None:
        for delay in delays:
            self.add(function, body, delay)


class Outside:
    """All external systems; `build_world` returns one function's ports to them."""

    def __init__(self, **settings: Any) -> None:
        """Start with a new account and a new cluster, and with *settings* by name."""
        self._settings = Settings(cluster_name="joiner", region="us-east-1", **settings)
        self.clock = Clock()
        self.cloud = Cloud(self.clock)
        self.api = ApiServer(self.clock)
        self.table, self.bucket, self.post = MemoryTable(), MemoryBucket(), Post()
        self.group_table = MemoryTable()
        self.lines: list[str] = []
        self.calls: list[PortCall] = []

    def build_world(self, name: str = "one", *, mode: str = "active", tap: Tap | None = None) -> World:
        """Return the world of the invocation *name*; every call is recorded, then passed to *tap*."""

        def record_call(call: PortCall) -> None:
            self.calls.append(call)
            if tap is not None:
                tap(call)

        world = World(
            settings=msgspec.structs.replace(self._settings, mode=mode),
            kube=InMemoryKube(self.api),
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPricing(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.post,
            table=self.table,
            bucket=self.bucket,
            clock=self.clock.get_time,
            group_table=self.group_table if self._settings.group else None,
            emit=self.lines.append,
            name=name,
        )
        return tap_world(world, record_call)

    def build_launch_group(self, name: str = "group", capacity: int = 1) -> LaunchGroup:
        """Return a group for *capacity* times m5.large; its launch template does not exist yet."""
        fleet_request = build_fleet_request(
            build_memory_face(self.cloud),
            "m5.large",
            client_token=f"token-{name}",
            capacity=capacity,
            tags=(*TAGS, (LAUNCH_GROUP, name)),
        )
        [template] = self.list_templates()
        self.cloud.templates.delete(template.name)
        plain = msgspec.structs.replace(template, created_at=None)
        return LaunchGroup(
            name=name,
            claims=("a",),
            request=fleet_request,
            templates=(plain,),
            created_at=self.clock.get_time(),
            result=None,
        )

    def list_instances(self) -> tuple[Instance, ...]:
        """Return all instances that were ever started, once DescribeInstances returns them."""
        self.clock.advance(timedelta(seconds=10))
        return self.cloud.instances.describe_all()

    def list_templates(self) -> tuple[LaunchTemplate, ...]:
        """Return Joiner's launch templates."""
        return self.cloud.templates.list_by_tag("eks:eks-cluster-name", "joiner")

    def create_node(self, name: str = "n") -> dict[str, Any]:
        """Create a Node."""
        return self.api.create("nodes", {"metadata": {"name": name}})

    def create_pod(self, name: str = "cart", *, on: str = "n", **labels: str) -> dict[str, Any]:
        """Create a ready pod that runs on the node *on*."""
        spec = {"nodeName": on, "containers": [{"name": "main", "image": "main"}]}
        metadata = {"name": name, "namespace": "default", "labels": labels}
        self.api.create("pods", {"metadata": metadata, "spec": spec})
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return self.api.patch("pods", name, {"status": status}, "default", "status")

    def create_budget(self, allowed: int) -> None:
        """Allow *allowed* disruptions of pods labelled ``app=web``."""
        metadata = {"name": "web", "namespace": "default"}
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        self.api.create("poddisruptionbudgets.policy", {"metadata": metadata, "spec": spec})
        status = {"disruptionsAllowed": allowed, "observedGeneration": 1, "expectedPods": 1, "desiredHealthy": 1}
        status["currentHealthy"] = 1 + allowed
        self.api.patch("poddisruptionbudgets.policy", "web", {"status": status}, "default", "status")

    def list_called_methods(self, port: str) -> list[str]:
        """Return the names of the methods of *port* that were called, in order."""
        return [call.method for call in self.calls if call.port == port and call.phase == "before"]


def make_claim(name: str = "default-1") -> NodeClaim:
    """Return a claim to create."""
    return NodeClaim(meta=ObjectMeta(name=name), node_class=NodeClassRef(name="default"))
