"""The trace of a pod of a burst: where the time went until it ran, also after a capacity error."""

from datetime import timedelta

from cli.explain.evidence import build_evidence
from cli.explain.pod_trace.build_trace import build_pod_trace
from cli.explain.pod_trace.trace import PodTrace
from cli.explain.pod_trace.waterfall import render_waterfall
from cli.journal.journal import Cycle, Journal
from cli.terminal.text import Palette
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

STEPS = [
    "pod created",
    "unschedulable",
    "planned",
    "NodeClaim created",
    "CreateFleet",
    "instance launched",
    "Node created",
    "registered",
    "initialized",
    "pod bound",
    "pod ready",
]


def build_traces(world: World) -> list[PodTrace]:
    """Return the traces of all pods, as `joiner explain --trace --context` builds them."""
    now = world.clock.get_time()
    documents = [*world.cluster.list_pods("default"), *world.cluster.api.list("nodes"), *world.list_claims()]
    live = build_snapshot_from_documents(documents, now)
    cycles = tuple(Cycle(key=str(number), entry=entry) for number, entry in enumerate(world.entries))
    evidence = build_evidence(Journal(source="world", cycles=cycles, now=now), live)
    return [build_pod_trace(evidence, pod.name) for pod in live.pods]


def test_waterfall_of_a_burst_has_every_step_of_every_pod() -> None:
    world = World(make_node_class(), make_node_pool(types=("m5.xlarge",)), make_deployment(0))
    world.scale(12)
    world.wait_until_settled(12)
    traces = build_traces(world)
    assert len(traces) == 12
    for trace in traces:
        assert [step.name for step in trace.steps if step.name in STEPS[-2:]] == STEPS[-2:]
        assert trace.uid
        assert not trace.is_waiting
        assert {step.name for step in trace.steps if step.at is None} <= {"planned"}  # bound to another node
        assert sum((step.elapsed or timedelta() for step in trace.steps), timedelta()) == trace.total
        text = render_waterfall(trace, "world", Palette(enabled=False), 100)
        print(text)  # noqa: T201 - shown if the test fails
        assert text.splitlines()[0].startswith(f"pod {trace.pod} on node {trace.node} (NodeClaim {trace.node_claim})")
    assert any([step.name for step in trace.steps] == STEPS for trace in traces), "no pod was planned only once"


def test_capacity_error_is_a_failed_launch_in_the_trace() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone)
    world.scale(1)
    world.advance_seconds(130)
    [waiting_trace] = build_traces(world)
    assert waiting_trace.is_waiting
    assert any(step.is_failed and step.name == "CreateFleet" for step in waiting_trace.steps)
    for zone in world.cloud.zones:
        world.cloud.restore_zone(zone)
    world.wait_until_settled(1, timeout=400)
    [trace] = build_traces(world)
    print(render_waterfall(trace, "world", Palette(enabled=False), 100))  # noqa: T201 - shown if the test fails
    assert not trace.is_waiting
    requests = [step for step in trace.steps if step.name == "CreateFleet"]
    assert len(requests) >= 2
    assert [step.is_failed for step in requests][-1] is False
    assert all(step.is_failed and "EC2 refused" in step.detail for step in requests[:1])
