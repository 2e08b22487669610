"""A small fleet with all states and acts, and a large one for performance."""

import random
from typing import Any

from tests.ui.fleet_builder import FleetBuilder, to_ms

ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
ATTACK = "<img src=x onerror=window.attacked=1>"
"""Text of a cluster that a page must show as text."""


class Story:
    """Launches nodes, places pods first-fit and removes nodes, as a fleet does."""

    def __init__(self, builder: FleetBuilder, seed: int) -> None:
        self.builder = builder
        self.random = random.Random(seed)
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
        made = len(self.builder.pods["name"])
        return [
            self.builder.add_pod(seconds + 0.4 * i, f"{workload}-{made + i:05d}", workload, cpu, memory)
            for i in range(count)
        ]

    def place(self, seconds: float, pods: list[int], nodes: list[int]) -> list[int]:
        """Place *pods* first-fit from *seconds* on; returns the pods that don't fit."""
        left = []
        for number, pod in enumerate(pods):
            need = (self.builder.pods["cpuMilli"][pod], self.builder.pods["memoryMiB"][pod])
            node = next((n for n in nodes if all(f >= x for f, x in zip(self.free[n], need, strict=True))), None)
            if node is None:
                left.append(pod)
                continue
            self.free[node] = [f - x for f, x in zip(self.free[node], need, strict=True)]
            self.pods_of[node].append(pod)
            self.builder.place(seconds + 0.3 * number, pod, node)
        return left

    def empty(self, seconds: float, node: int, reason: str) -> list[int]:
        """Evict the pods of *node* in steps and remove it; returns the pods."""
        pods = self.pods_of.pop(node)
        self.free.pop(node)
        for number, pod in enumerate(pods):
            self.builder.place(seconds + 6 + 1.5 * number, pod, -1, f"Evicted: {reason}")
        gone = seconds + 20 + 1.5 * len(pods)
        self.builder.set_state(gone, node, "gone")
        self.builder.mark(gone, "terminate", "node removed")
        return pods

    def end(self, seconds: float, pods: list[int]) -> None:
        for number, pod in enumerate(pods):
            self.builder.place(seconds + 0.5 * number, pod, -2)
            for node, members in self.pods_of.items():
                if pod in members:
                    members.remove(pod)
                    self.free[node][0] += self.builder.pods["cpuMilli"][pod]
                    self.free[node][1] += self.builder.pods["memoryMiB"][pod]


def build_small_fleet() -> dict[str, Any]:
    """Return 40 minutes with about 20 nodes and 170 pods."""
    builder = FleetBuilder(title="Joiner: a day in 40 minutes")
    builder.add_pool("default", "consolidates empty and underutilized nodes after 30s; budget 20 %", {"cpu": "200"})
    builder.add_pool("batch", f"removes empty nodes after 1m {ATTACK}")
    story = Story(builder, 7)
    builder.mark(0, "act", "A web shop starts: 40 pods need nodes")
    web = story.create(10, "web", 40, 400, 900)
    first = [story.launch(18, kind, capacity="spot") for kind in ("m7g.4xlarge", "m7g.xlarge", "m7g.xlarge")]
    builder.decide(
        18,
        "launch",
        "40 pods don't fit existing nodes: launches 3 nodes",
        ["cheapest of 475 matching instance types: m7g.4xlarge spot", f"refused: {ATTACK}"],
        nodes=first,
        pods=web,
    )
    story.place(65, web, first)
    builder.mark(300, "act", "Traffic doubles")
    more = story.create(305, "web", 36, 400, 900)
    second = [
        story.launch(312, "c7g.2xlarge"),
        story.launch(312, "c7g.2xlarge"),
        story.launch(312, "m7g.large", capacity="on-demand"),
    ]
    builder.decide(
        312,
        "launch",
        "36 pods don't fit existing nodes: launches 3 nodes",
        ["cheapest: c7g.2xlarge spot"],
        nodes=second,
        pods=more,
    )
    story.place(360, more, [*first, *second])
    builder.mark(620, "act", "A nightly batch job")
    batch = story.create(625, "report", 60, 700, 2600)
    third = [story.launch(632, "r7g.xlarge", pool=1) for _ in range(9)] + [story.launch(632, "m7g.4xlarge", pool=1)]
    builder.decide(
        632,
        "launch",
        "60 pods don't fit existing nodes: launches 10 nodes",
        ["cheapest: r7g.xlarge spot"],
        nodes=third,
        pods=batch,
    )
    story.place(680, batch, third)
    builder.mark(900, "act", "EC2 takes a spot instance back")
    builder.set_state(905, first[1], "interrupted")
    warning = builder.decide(
        905,
        "interrupt",
        "spot interruption of a node: replaces it before EC2 takes it",
        ["2 minutes until termination"],
        nodes=[first[1]],
    )
    builder.mark(905, "interruption", "spot interruption", warning)
    replacement = story.launch(908, "m7g.xlarge")
    builder.set_state(950, first[1], "draining")
    story.place(966, story.empty(950, first[1], "SpotInterrupted"), [replacement, *second, first[0]])
    builder.mark(1200, "act", "The batch job ends: empty nodes go")
    story.end(1210, batch)
    for number, node in enumerate(third):
        builder.set_state(1250 + 8 * number, node, "cordoned")
        builder.set_state(1256 + 8 * number, node, "draining")
        story.empty(1256 + 8 * number, node, "Empty")
    builder.decide(1250, "empty", "10 empty nodes: removes them", ["no pods for 1m"], nodes=third, savesUsdPerHour=1.09)
    builder.mark(1500, "act", "The traffic falls: consolidation")
    story.end(1505, more[:24])
    for node in second[:1]:
        builder.set_state(1560, node, "cordoned")
        builder.set_state(1565, node, "draining")
        story.place(
            1590, story.empty(1565, node, "Underutilized"), [first[0], replacement, second[1], second[2], first[2]]
        )
    builder.decide(
        1560,
        "consolidate",
        "its pods fit on other nodes; saves $0.1229/h",
        ["moves 4 pods"],
        nodes=[second[0]],
        savesUsdPerHour=0.1229,
    )
    builder.set_state(1600, first[0], "blocked")
    builder.mark(1700, "act", "A launch fails")
    failed = builder.add_node(1705, "nodeclaim-batch-fail1", "m7g.large", pool=1, zone="eu-west-1a", capacity="spot")
    fault = builder.decide(
        1710,
        "fault",
        "InsufficientInstanceCapacity: m7g.large spot in eu-west-1a",
        ["the next run avoids this offering"],
        nodes=[failed],
    )
    builder.mark(1710, "failure", "no capacity", fault)
    builder.set_state(1720, failed, "gone")
    last = story.create(1712, "billing", 6, 500, 1500)
    extra = story.launch(1722, "m7g.xlarge", capacity="on-demand")
    builder.decide(
        1722,
        "launch",
        "6 pods don't fit existing nodes: launches 1 node",
        ["m7g.xlarge on-demand"],
        nodes=[extra],
        pods=last,
    )
    story.place(1770, last, [extra])
    lost = second[2]
    builder.set_state(2000, lost, "lost")
    builder.mark(2100, "deployment", "version 0.2.0")
    story.create(2300, "huge", 5, 190000, 900)
    builder.decide(
        2310,
        "refuse",
        "5 pods fit no instance type",
        ["CPU request 190 exceeds all instance types"],
        function="provision",
    )
    for node in (*first, *second, replacement, extra):
        builder.explain_node(
            node,
            ["cheapest of 475 matching instance types", "its pods need 12.4 vCPU and 31 GiB"],
            ["PodDisruptionBudget shop/web allows no eviction", f"annotation {ATTACK}"],
            [("m7g.4xlarge", 0.2754), ("c7g.4xlarge", 0.2912), ("m6g.4xlarge", 0.3011)],
        )
    story.create(2310, f"x{ATTACK}", 1, 100, 100)
    builder.series.append(
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
    return builder.build(2400)


def build_large_fleet(nodes: int = 2000, pods: int = 20_000) -> dict[str, Any]:
    """Return a day of a fleet with *nodes* nodes at a time, and churn."""
    builder = FleetBuilder(title=f"{nodes} nodes, {pods} pods")
    for name in ("default", "batch", "spot-only", "gpu"):
        builder.add_pool(name, "consolidates after 5m")
    story = Story(builder, 11)
    kinds = ("m7g.xlarge", "m7g.4xlarge", "c7g.2xlarge", "r7g.xlarge", "m7g.large")
    day = 86_400
    members = [
        story.launch(i * 3, kinds[i * 7 % 5], pool=i % 4, capacity="spot" if i % 3 else "on-demand")
        for i in range(nodes)
    ]
    builder.markers = builder.markers[::40]
    for i in range(pods):
        node = members[i * 13 % nodes]
        created = (i * 13 % nodes) * 3 + 20.0
        pod = builder.add_pod(created, f"app-{i:05d}", f"app-{i % 60}", 250, 700)
        builder.place(created + 40, pod, node)
        for move in range(2):
            at = 10_000 + (i * 7919 + move * 36_000) % (day - 12_000)
            builder.place(at, pod, -1, "Evicted: Underutilized")
            builder.place(at + 30, pod, members[(i * 13 + move * 577 + 1) % nodes])
    for i in range(0, nodes, 5):
        builder.set_state(20_000 + i * 20, members[i], "cordoned")
        builder.set_state(20_060 + i * 20, members[i], "draining")
        builder.set_state(20_300 + i * 20, members[i], "ready")
        builder.decide(
            20_000 + i * 20,
            "consolidate",
            f"node {i}: its pods fit on other nodes",
            ["saves money"],
            nodes=[members[i]],
        )
    return builder.build(day)
