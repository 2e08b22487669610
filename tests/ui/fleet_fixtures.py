"""A small fleet with all states of nodes."""

import random
from typing import Any

from tests.ui.fleet_builder import FleetBuilder, to_ms

ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
ATTACK = "<img src=x onerror=window.attacked=1>"
"""Text of a cluster that a page must show as text."""


class Story:
    """Launches nodes, places pods first-fit and removes nodes, as a fleet does."""

    def __init__(self, builder: FleetBuilder, seed: int) -> None:
        """Write to *builder*; nodes boot as long as *seed* implies."""
        self.builder = builder
        self.random = random.Random(seed)  # noqa: S311 - the same fleet for each seed
        self.free: dict[int, list[int]] = {}
        self.pods_of: dict[int, list[int]] = {}
        self.count = 0

    def launch(self, seconds: float, instance_type: str, *, pool: int = 0, capacity: str = "spot") -> int:
        """Launch a node that is ready after about 45 s."""
        self.count += 1
        zone = ZONES[self.count % 3]
        name = f"ip-10-0-{self.count % 7 + 1}-{self.count * 37 % 250}.eu-west-1.compute.internal"
        node = self.builder.add_node(seconds, name, instance_type, pool=pool, zone=zone, capacity=capacity)
        boot = seconds + self.random.uniform(26, 40)
        for after, state in ((seconds + 3, "launched"), (boot, "registered"), (boot + 9, "ready")):
            self.builder.set_state(after, node, state)
        self.free[node] = [self.builder.nodes["cpuMilli"][node], self.builder.nodes["memoryMiB"][node]]
        self.pods_of[node] = []
        self.builder.mark(seconds + 3, "launch", f"{instance_type} {capacity} in {zone}")
        return node

    def create(self, seconds: float, workload: str, count: int, cpu: int, memory: int) -> list[int]:
        first_number = len(self.builder.pods["name"])
        return [
            self.builder.add_pod(seconds + 0.4 * i, f"{workload}-{first_number + i:05d}", workload, cpu, memory)
            for i in range(count)
        ]

    def place(self, seconds: float, pods: list[int], nodes: list[int]) -> list[int]:
        """Place *pods* first-fit from *seconds* on; returns the pods that don't fit."""
        unplaced = []
        for number, pod in enumerate(pods):
            need = (self.builder.pods["cpuMilli"][pod], self.builder.pods["memoryMiB"][pod])
            node = next((n for n in nodes if all(f >= x for f, x in zip(self.free[n], need, strict=True))), None)
            if node is None:
                unplaced.append(pod)
                continue
            self.free[node] = [f - x for f, x in zip(self.free[node], need, strict=True)]
            self.pods_of[node].append(pod)
            self.builder.place(seconds + 0.3 * number, pod, node)
        return unplaced

    def empty(self, seconds: float, node: int, reason: str) -> list[int]:
        """Evict the pods of *node* in steps and remove it; returns the pods."""
        pods = self.pods_of.pop(node)
        self.free.pop(node)
        for number, pod in enumerate(pods):
            self.builder.place(seconds + 6 + 1.5 * number, pod, -1, f"Evicted: {reason}")
        terminated_at = seconds + 20 + 1.5 * len(pods)
        self.builder.set_state(terminated_at, node, "gone")
        self.builder.mark(terminated_at, "terminate", "node removed")
        return pods

    def end(self, seconds: float, pods: list[int]) -> None:
        for number, pod in enumerate(pods):
            self.builder.place(seconds + 0.5 * number, pod, -2)
            for node, members in self.pods_of.items():
                if pod in members:
                    members.remove(pod)
                    self.free[node][0] += self.builder.pods["cpuMilli"][pod]
                    self.free[node][1] += self.builder.pods["memoryMiB"][pod]


class SmallFleet:
    """Seven acts with all states of nodes. Times are seconds."""

    def __init__(self) -> None:
        """Begin with two NodePools and no nodes."""
        self.builder = FleetBuilder(title="Joiner: a day in 40 minutes")
        self.builder.add_pool("default", "consolidates after 30s; budget 20 %", {"cpu": "200"})
        self.builder.add_pool("batch", f"removes empty nodes after 1m {ATTACK}")
        self.story = Story(self.builder, 7)

    def scale_up(self) -> None:
        self.builder.mark(0, "act", "A web shop starts: 40 pods need nodes")
        web = self.story.create(10, "web", 40, 400, 900)
        self.first = [self.story.launch(18, kind) for kind in ("m7g.4xlarge", "m7g.xlarge", "m7g.xlarge")]
        reasons = ["cheapest of 475 matching instance types: m7g.4xlarge spot", f"refused: {ATTACK}"]
        title = "40 pods don't fit existing nodes: launches 3 nodes"
        self.builder.decide(18, "launch", title, reasons, nodes=self.first, pods=web)
        self.story.place(65, web, self.first)
        self.builder.mark(300, "act", "Traffic doubles")
        self.added_pods = self.story.create(305, "web", 36, 400, 900)
        self.second = [self.story.launch(312, "c7g.2xlarge"), self.story.launch(312, "c7g.2xlarge")]
        self.second.append(self.story.launch(312, "m7g.large", capacity="on-demand"))
        title = "36 pods don't fit existing nodes: launches 3 nodes"
        self.builder.decide(
            312, "launch", title, ["cheapest: c7g.2xlarge spot"], nodes=self.second, pods=self.added_pods
        )
        self.story.place(360, self.added_pods, [*self.first, *self.second])

    def run_batch(self) -> None:
        self.builder.mark(620, "act", "A nightly batch job")
        self.batch = self.story.create(625, "report", 60, 700, 2600)
        self.third = [self.story.launch(632, "r7g.xlarge", pool=1) for _ in range(9)]
        self.third.append(self.story.launch(632, "m7g.4xlarge", pool=1))
        title = "60 pods don't fit existing nodes: launches 10 nodes"
        reasons = ["cheapest: r7g.xlarge spot"]
        self.builder.decide(632, "launch", title, reasons, nodes=self.third, pods=self.batch)
        self.story.place(680, self.batch, self.third)

    def interrupt(self) -> None:
        node = self.first[1]
        self.builder.mark(900, "act", "EC2 takes a spot instance back")
        self.builder.set_state(905, node, "interrupted")
        title = "spot interruption of a node: replaces it before EC2 takes it"
        decision = self.builder.decide(905, "interrupt", title, ["2 minutes until termination"], nodes=[node])
        self.builder.mark(905, "interruption", "spot interruption", decision)
        self.replacement = self.story.launch(908, "m7g.xlarge")
        self.builder.set_state(950, node, "draining")
        evicted = self.story.empty(950, node, "SpotInterrupted")
        self.story.place(966, evicted, [self.replacement, *self.second, self.first[0]])

    def remove_empty_nodes(self) -> None:
        self.builder.mark(1200, "act", "The batch job ends: empty nodes go")
        self.story.end(1210, self.batch)
        for number, node in enumerate(self.third):
            self.builder.set_state(1250 + 8 * number, node, "cordoned")
            self.builder.set_state(1256 + 8 * number, node, "draining")
            self.story.empty(1256 + 8 * number, node, "Empty")
        title = "10 empty nodes: removes them"
        self.builder.decide(1250, "empty", title, ["no pods for 1m"], nodes=self.third, savesUsdPerHour=1.09)

    def consolidate(self) -> None:
        node, targets = self.second[0], [self.first[0], self.replacement, *self.second[1:], self.first[2]]
        self.builder.mark(1500, "act", "The traffic falls: consolidation")
        self.story.end(1505, self.added_pods[:24])
        self.builder.set_state(1560, node, "cordoned")
        self.builder.set_state(1565, node, "draining")
        self.story.place(1590, self.story.empty(1565, node, "Underutilized"), targets)
        title = "its pods fit on other nodes; saves $0.1229/h"
        self.builder.decide(1560, "consolidate", title, ["moves 4 pods"], nodes=[node], savesUsdPerHour=0.1229)
        self.builder.set_state(1600, self.first[0], "blocked")

    def fail_launch(self) -> None:
        self.builder.mark(1700, "act", "A launch fails")
        name = "nodeclaim-batch-fail1"
        failed = self.builder.add_node(1705, name, "m7g.large", pool=1, zone="eu-west-1a", capacity="spot")
        title = "InsufficientInstanceCapacity: m7g.large spot in eu-west-1a"
        fault = self.builder.decide(1710, "fault", title, ["the next run avoids this offering"], nodes=[failed])
        self.builder.mark(1710, "failure", "no capacity", fault)
        self.builder.set_state(1720, failed, "gone")
        billing = self.story.create(1712, "billing", 6, 500, 1500)
        self.extra = self.story.launch(1722, "m7g.xlarge", capacity="on-demand")
        title = "6 pods don't fit existing nodes: launches 1 node"
        self.builder.decide(1722, "launch", title, ["m7g.xlarge on-demand"], nodes=[self.extra], pods=billing)
        self.story.place(1770, billing, [self.extra])
        self.builder.set_state(2000, self.second[2], "lost")
        self.builder.mark(2100, "deployment", "version 0.2.0")
        self.story.create(2300, "huge", 5, 190_000, 900)
        reasons = ["CPU request 190 exceeds all instance types"]
        self.builder.decide(2310, "refuse", "5 pods fit no instance type", reasons, function="provision")
        self.story.create(2310, f"x{ATTACK}", 1, 100, 100)

    def explain(self) -> None:
        for node in (*self.first, *self.second, self.replacement, self.extra):
            self.builder.explain_node(
                node,
                ["cheapest of 475 matching instance types", "its pods need 12.4 vCPU and 31 GiB"],
                ["PodDisruptionBudget shop/web allows no eviction", f"annotation {ATTACK}"],
                [("m7g.4xlarge", 0.2754), ("c7g.4xlarge", 0.2912), ("m6g.4xlarge", 0.3011)],
            )
        self.builder.series.append(
            {
                "id": "no-consolidation",
                "title": "Without consolidation",
                "unit": "USD/h",
                "stack": None,
                "step": True,
                "t": [to_ms(0), to_ms(60), to_ms(360), to_ms(680)],
                "v": [0, 0.41, 0.75, 1.84],
            }
        )


def build_small_fleet() -> dict[str, Any]:
    """Return 40 minutes with about 20 nodes and 170 pods."""
    fleet = SmallFleet()
    fleet.scale_up()
    fleet.run_batch()
    fleet.interrupt()
    fleet.remove_empty_nodes()
    fleet.consolidate()
    fleet.fail_launch()
    fleet.explain()
    return fleet.builder.build(2400)
