"""Writes a large synthetic fleet document: `python -m tests.ui.synthetic_fleet fleet.json --nodes 2000 --pods 20000`.

A day of a cluster whose load has a peak: nodes are launched, drained, interrupted and terminated, and pods move.
"""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from msgspec.structs import replace

from cli.explain.evidence import Evidence
from cli.fleet.document.fleet_decisions import FleetDecision, FleetMarker, NodeWhy, OfferingAlternative
from cli.fleet.document.fleet_document import FleetDocument, FleetSource
from cli.fleet.document.json_format import convert_to_milliseconds, encode_fleet_document
from cli.fleet.fleet_builder import FleetInputs, build_fleet_document
from cli.fleet.recording.fleet_recorder import FleetRecorder
from cli.fleet.recording.observed_objects import ObservedNode, ObservedPod
from cli.journal.journal import Journal
from shared.state.node_prices import PriceList

START = datetime(2026, 11, 21, tzinfo=UTC)
SPAN = timedelta(hours=24)
POOLS = ("default", "batch", "gpu", "memory", "arm")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
TYPES = (
    ("m5.xlarge", 4, 16, 0.192),
    ("m6i.2xlarge", 8, 32, 0.384),
    ("c6a.4xlarge", 16, 32, 0.612),
    ("r5.2xlarge", 8, 64, 0.504),
    ("c7g.2xlarge", 8, 16, 0.29),
    ("m5.4xlarge", 16, 64, 0.768),
)
STATES_BEFORE_READY = (("requested", 0), ("launched", 3), ("registered", 40), ("ready", 55))
STATES_BEFORE_GONE = (("cordoned", 0), ("draining", 30))


def build_synthetic_document(node_count: int, pod_count: int, seed: int = 1) -> FleetDocument:
    """Return a document with *node_count* nodes and *pod_count* pods in total."""
    random = Random(seed)  # noqa: S311 - the same document for each seed
    recorder, decisions, markers = FleetRecorder(), list[FleetDecision](), list[FleetMarker]()
    positions: dict[str, int] = {}
    nodes = [_choose_node(random, number) for number in range(node_count)]
    events = sorted(_plan_events(random, nodes, pod_count), key=lambda event: event[:3])
    for at, _, _, kind, content in events:
        match kind, content:
            case "node", ObservedNode():
                recorder.observe_node(at, content)
                positions.setdefault(content.key, len(recorder.nodes) - 1)
                if content.state == "launched":
                    decisions.append(_build_decision(at, "launch", content, positions[content.key]))
                    markers.append(_build_marker(at, "launch", content))
            case "remove-node", ObservedNode():
                recorder.remove_node(at, content.key)
                decisions.append(_build_decision(at, "terminate", content, positions[content.key]))
                markers.append(_build_marker(at, "terminate", content))
            case "pod", ObservedPod():
                recorder.observe_pod(at, content)
            case "remove-pod", ObservedPod():
                recorder.remove_pod(at, content.key)
            case _:
                raise AssertionError(kind)
    end = START + SPAN
    document = build_fleet_document(
        FleetInputs(
            source=FleetSource(
                kind="demo",
                cluster="synthetic",
                title=f"{node_count} nodes, {pod_count} pods",
                generated_at=convert_to_milliseconds(end),
            ),
            start=START,
            end=end,
            nodes=recorder.nodes,
            pods=recorder.pods,
            evidence=Evidence(journal=Journal(source="", now=end), node_records=()),
            price_list=PriceList(None),
            decisions=decisions,
            markers=markers,
        )
    )
    return _explain_nodes(document)


def _choose_node(random: Random, number: int) -> ObservedNode:
    instance_type, cpu, memory, price = random.choice(TYPES)
    capacity_type = random.choice(("spot", "spot", "on-demand"))
    pool = random.choice(POOLS)
    return ObservedNode(
        key=f"{pool}-{number:05x}",
        name=f"ip-10-{number // 62500}-{number // 250 % 250}-{number % 250}.ec2.internal",
        claim=f"{pool}-{number:05x}",
        pool=pool,
        instance_type=instance_type,
        zone=random.choice(ZONES),
        capacity_type=capacity_type,
        arch="arm64" if instance_type.startswith("c7g") else "amd64",
        cpu_milli=cpu * 1000 - 80,
        memory_mib=memory * 1024 - 1100,
        pod_capacity=58,
        price=price * (0.35 if capacity_type == "spot" else 1),
        state="ready",
    )


def _plan_events(
    random: Random, nodes: list[ObservedNode], pod_count: int
) -> Iterator[tuple[datetime, int, int, str, ObservedNode | ObservedPod]]:
    """Yield changes as (time, rank, number, kind, object)."""
    lifetimes: list[tuple[datetime, datetime | None]] = []
    for number, node in enumerate(nodes):
        is_initial = number % 5 < 2
        started_at = START if is_initial else START + random.random() * SPAN * 0.9
        ended_at = None if random.random() < 0.5 else started_at + random.uniform(0.02, 0.5) * SPAN
        ended_at = None if ended_at is not None and ended_at > START + SPAN else ended_at
        lifetimes.append((started_at, ended_at))
        for state, seconds in (("ready", 0),) if is_initial else STATES_BEFORE_READY:
            yield started_at + timedelta(seconds=seconds), 0, number, "node", replace(node, state=state)
        if random.random() < 0.1:
            yield started_at + timedelta(minutes=5), 0, number, "node", replace(node, state="blocked")
        if ended_at is not None:
            states = (("interrupted", 0),) if random.random() < 0.1 else STATES_BEFORE_GONE
            for state, seconds in states:
                yield ended_at + timedelta(seconds=seconds), 0, number, "node", replace(node, state=state)
            yield ended_at + timedelta(seconds=100), 2, number, "remove-node", node
    for number in range(pod_count):
        yield from _plan_pod(random, number, nodes, lifetimes)


def _plan_pod(
    random: Random, number: int, nodes: list[ObservedNode], lifetimes: list[tuple[datetime, datetime | None]]
) -> Iterator[tuple[datetime, int, int, str, ObservedPod]]:
    position = random.randrange(len(nodes))
    started_at, ended_at = lifetimes[position]
    workload = f"service-{number % 400}"
    pod = ObservedPod(
        key=f"uid-{number}",
        namespace=f"team-{number % 40}",
        name=f"{workload}-{number:06x}",
        workload=f"Deployment/{workload}",
        cpu_milli=random.choice((100, 250, 500, 1000)),
        memory_mib=random.choice((128, 256, 512, 1024, 2048)),
        created_at=started_at,
        was_unschedulable=True,
        running_since=started_at + timedelta(seconds=random.uniform(60, 90)),
    )
    yield started_at, 1, number, "pod", pod
    yield started_at + timedelta(seconds=60), 1, number, "pod", replace(pod, node_name=nodes[position].name)
    if ended_at is not None:
        yield ended_at + timedelta(seconds=random.uniform(40, 90)), 1, number, "remove-pod", pod


def _build_decision(at: datetime, kind: str, node: ObservedNode, position: int) -> FleetDecision:
    words = "created for 10 pods" if kind == "launch" else "deleted: underutilized"
    return FleetDecision(
        t=convert_to_milliseconds(at),
        id=f"journal/provision/{at:%Y/%m/%d/%H%M%S}-synthetic.json",
        function="provision" if kind == "launch" else "disrupt",
        kind="launch" if kind == "launch" else "consolidate",
        title=f"NodeClaim {node.claim} {words}",
        lines=(f"10 pods do not fit existing nodes; cheapest of 408 matching instance types: {node.instance_type}",),
        nodes=(position,),
        saves_usd_per_hour=None if kind == "launch" else node.price,
    )


def _build_marker(at: datetime, kind: str, node: ObservedNode) -> FleetMarker:
    title = f"{node.instance_type} {node.capacity_type}"
    if kind == "launch":
        return FleetMarker(t=convert_to_milliseconds(at), kind="launch", title=f"{title} launched")
    return FleetMarker(t=convert_to_milliseconds(at), kind="terminate", title=f"{title} terminated")


def _explain_nodes(document: FleetDocument) -> FleetDocument:
    """Return *document* with an explanation of each node."""
    alternatives = tuple(
        OfferingAlternative(instance_type=name, capacity_type="spot", zone=ZONES[0], price=price * 0.35)
        for name, _, _, price in TYPES
    )
    names = [document.strings[number] for number in document.nodes.name]
    explanations = tuple(
        NodeWhy(
            lines=(f"names: node {name}", "reason: 10 pods do not fit existing nodes", "cost: $0.3 for 3h"),
            alternatives=alternatives,
            blocked_by=("PolicyWhenEmpty: NodePool default consolidates only empty nodes",),
        )
        for name in names
    )
    nodes = replace(document.nodes, explanation=tuple(range(len(names))))
    return replace(document, nodes=nodes, explanations=explanations)


def main() -> None:
    """Write the document to the file that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--pods", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.file.write_bytes(encode_fleet_document(build_synthetic_document(args.nodes, args.pods, args.seed)))


if __name__ == "__main__":
    main()
