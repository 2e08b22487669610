"""A cloud, an API server, a table and a bucket on one clock: what an action may touch."""

from datetime import timedelta
from typing import Any

import msgspec

from shared.model.cluster import LaunchGroup
from shared.model.ec2 import Instance, LaunchTemplate
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.ports import World
from shared.settings import Settings
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from sim.faults import Call, Tap, tapped_world
from sim.memory import MemoryBucket, MemoryTable
from tests.contract.asking import request
from tests.contract.memory_face import in_memory

Sent = tuple[str, str, timedelta]


class Post:
    """A mailbox that keeps what is sent."""

    def __init__(self) -> None:
        """Begin empty."""
        self.sent: list[Sent] = []

    def send(self, function: str, body: str, after: timedelta) -> None:
        self.sent.append((function, body, after))


class Outside:
    """Everything outside; `world` is one function's way to it."""

    def __init__(self, **settings: str) -> None:
        """Begin with a new account and a new cluster, and with *settings* by name."""
        self._settings = Settings(cluster_name="joiner", region="us-east-1", **settings)
        self.clock = Clock()
        self.cloud = Cloud(self.clock)
        self.api = ApiServer(self.clock)
        self.table, self.bucket, self.post = MemoryTable(), MemoryBucket(), Post()
        self.lines: list[str] = []
        self.calls: list[Call] = []

    def world(self, name: str = "one", *, mode: str = "active", tap: Tap | None = None) -> World:
        """Answer the world of the invocation *name*; every call is noted, then shown to *tap*."""

        def both(call: Call) -> None:
            self.calls.append(call)
            if tap is not None:
                tap(call)

        world = World(
            settings=msgspec.structs.replace(self._settings, mode=mode),
            kube=InMemoryKube(self.api),
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPrices(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.post,
            table=self.table,
            bucket=self.bucket,
            clock=self.clock.now,
            emit=self.lines.append,
            name=name,
        )
        return tapped_world(world, both)

    def group(self, name: str = "group", capacity: int = 1) -> LaunchGroup:
        """Answer a group for *capacity* times m5.large. Its template does not exist yet."""
        asked = request(in_memory(self.cloud), "m5.large", client_token=f"token-{name}", capacity=capacity)
        [template] = self.templates()
        self.cloud.templates.delete(template.name)
        plain = msgspec.structs.replace(template, created_at=None)
        return LaunchGroup(
            name=name, claims=("a",), request=asked, templates=(plain,), created_at=self.clock.now(), result=None
        )

    def instances(self) -> tuple[Instance, ...]:
        """Answer all that were ever started, once Describe knows them."""
        self.clock.advance(timedelta(seconds=10))
        return self.cloud.instances()

    def templates(self) -> tuple[LaunchTemplate, ...]:
        """Answer our launch templates."""
        return self.cloud.templates.tagged("eks:eks-cluster-name", "joiner")

    def node(self, name: str = "n") -> dict[str, Any]:
        """Create a Node."""
        return self.api.create("nodes", {"metadata": {"name": name}})

    def pod(self, name: str = "cart", *, on: str = "n", **labels: str) -> dict[str, Any]:
        """Create a pod that runs on *on* and is ready."""
        spec = {"nodeName": on, "containers": [{"name": "main", "image": "main"}]}
        metadata = {"name": name, "namespace": "default", "labels": labels}
        self.api.create("pods", {"metadata": metadata, "spec": spec})
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return self.api.patch("pods", name, {"status": status}, "default", "status")

    def budget(self, allowed: int) -> None:
        """Allow *allowed* disruptions of pods labelled ``app=web``."""
        metadata = {"name": "web", "namespace": "default"}
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        self.api.create("poddisruptionbudgets.policy", {"metadata": metadata, "spec": spec})
        status = {"disruptionsAllowed": allowed, "observedGeneration": 1, "expectedPods": 1, "desiredHealthy": 1}
        status["currentHealthy"] = 1 + allowed
        self.api.patch("poddisruptionbudgets.policy", "web", {"status": status}, "default", "status")

    def sent(self, port: str) -> list[str]:
        """Answer which methods of *port* were called."""
        return [call.method for call in self.calls if call.port == port and call.when == "before"]


def claim(name: str = "default-1") -> NodeClaim:
    """Answer a claim to create."""
    return NodeClaim(meta=Meta(name=name), node_class=NodeClassRef(name="default"))
