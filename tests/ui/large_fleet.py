"""A fleet of thousands of nodes at the same time, with pods that move."""

from typing import Any, Final

from tests.ui.fleet_builder import FleetBuilder
from tests.ui.fleet_fixtures import Story

DAY_S: Final = 86_400


def build_large_fleet(nodes: int = 2000, pods: int = 20_000) -> dict[str, Any]:
    """Return a day of a fleet with *nodes* nodes at a time, and churn."""
    builder = FleetBuilder(title=f"{nodes} nodes, {pods} pods")
    for name in ("default", "batch", "spot-only", "gpu"):
        builder.add_pool(name, "consolidates after 5m")
    story = Story(builder, 11)
    kinds = ("m7g.xlarge", "m7g.4xlarge", "c7g.2xlarge", "r7g.xlarge", "m7g.large")
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
            at = 10_000 + (i * 7919 + move * 36_000) % (DAY_S - 12_000)
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
    return builder.build(DAY_S)
