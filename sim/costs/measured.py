"""Runs a deployed stack beside a cluster of some size, and counts what it uses, on a real clock."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from time import process_time
from typing import Any, Final

from shared.ports import World
from sim.clock import Clock
from sim.costs.usage import Usage, Used
from sim.embedded import Embedded
from sim.faults import Call
from sim.lambdas.invocation import Answer, Event, Handle
from sim.lambdas.runtime import LambdaRuntime, imported
from sim.measure import is_running

TYPE: Final = "m5.2xlarge"
"""What every node is: eight processors, so that ten pods fill it."""
PODS_PER_NODE: Final = 10
CHANGE_EVERY: Final = timedelta(minutes=10)
SETTLING: Final = timedelta(minutes=30)
LOOKED_AT: Final = timedelta(seconds=10)
"""Between two looks whether all pods run: to look at ten thousand takes a while."""
CHANGED: Final = 0.05
"""Such a part of the pods goes, and comes back, in turn."""
EVERYWHERE: Final = [{"tags": {"karpenter.sh/discovery": "demo"}}]


class Metered(Embedded):
    """An embedded world that counts what its functions use."""

    def __init__(self, template: dict[str, Any]) -> None:
        """Deploy *template*."""
        self.used: dict[str, Used] = defaultdict(Used)
        self._stored: Counter[str] = Counter()
        self._began = self._away = 0.0
        super().__init__(0, template=template, tap=self._see)

    def switch_on(self, clock: Clock, seed: int) -> None:
        """Let schedules ring; every call of a handler is timed."""
        self.runtime = LambdaRuntime(clock, self.wiring, self._world, seed, load=self._metered)
        self.cloud.subscribe_events(self.runtime.put_event)

    def forget(self) -> None:
        """Begin to count."""
        self.used.clear()
        self.lines.clear()
        self._stored = self._in_bucket()

    def usage(self, lasted: timedelta) -> Usage:
        """Answer what was counted."""
        names = {name for line in self.lines for name in _metrics(line)}
        return Usage(
            lasted=lasted,
            functions=dict(self.used),
            metrics=len(names),
            log_bytes=sum(map(len, self.lines)),
            stored_bytes=self._in_bucket() - self._stored,
        )

    def _in_bucket(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for key in self.bucket.keys(""):
            found[f"{key.partition('/')[0]}/"] += len(self.bucket.get(key))
        return found

    def _metered(self, handler: str) -> Handle:
        handle, name = imported(handler), handler.split(".")[1]

        def run(event: Event, world: World) -> Answer:
            began, self._away = process_time(), 0.0
            try:
                return handle(event, world)
            finally:
                used = self.used[name]
                used.invocations += 1
                used.processor_seconds += process_time() - began - self._away

        return run

    def _see(self, call: Call) -> None:
        if call.when == "before":
            self.used[call.who.rpartition("-")[0]].calls[call.port, call.method] += 1
            self._began = process_time()
        else:
            self._away += process_time() - self._began


def metered(template: dict[str, Any], nodes: int, lasted: timedelta, told: Callable[[str], None]) -> Usage:
    """Answer what the stack of *template* uses in *lasted* with so many *nodes* of ten pods each.

    A twentieth of the pods goes and comes back every ten minutes; *told* hears how far it is.
    """
    world = Metered(template)
    world.cloud.types = {TYPE: world.cloud.types[TYPE]}
    world.cloud.offerings = tuple(one for one in world.cloud.offerings if one[0] == TYPE)
    pods = nodes * PODS_PER_NODE
    world.apply(_manifests(pods))
    told(f"{nodes} nodes: {pods} pods are started")
    end = world.clock.now() + SETTLING
    while _running(world) < pods:
        if world.clock.now() >= end:
            raise RuntimeError(f"{_running(world)} of {pods} pods run after half an hour")
        world.run(LOOKED_AT)
    world.run(timedelta(minutes=10))
    world.forget()
    fewer = round(pods * (1 - CHANGED))
    for number in range(round(lasted / CHANGE_EVERY)):
        told(f"{nodes} nodes: {number * CHANGE_EVERY} of {lasted}")
        world.live.scale("Deployment", "default", "web", fewer if number % 2 == 0 else pods)
        world.run(CHANGE_EVERY)
    return world.usage(lasted)


def _running(world: Embedded) -> int:
    return sum(is_running(pod) for pod in world.live.pods("default"))


def _metrics(line: str) -> list[tuple[str, ...]]:
    document = json.loads(line)
    found: list[tuple[str, ...]] = []
    for directive in document.get("_aws", {}).get("CloudWatchMetrics", []):
        for keys in directive["Dimensions"]:
            values = tuple(f"{key}={document[key]}" for key in keys)
            found.extend((metric["Name"], *values) for metric in directive["Metrics"])
    return found


def _manifests(pods: int) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": "default"},
            "spec": {
                "role": "joiner-node",
                "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": EVERYWHERE,
                "securityGroupSelectorTerms": EVERYWHERE,
            },
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "template": {
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
                    }
                },
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": pods,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "containers": [
                            {"name": "web", "resources": {"requests": {"cpu": "750m", "memory": "1Gi"}}},
                        ]
                    },
                },
            },
        },
    ]
