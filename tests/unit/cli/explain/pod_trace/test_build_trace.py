"""The trace of a pod: what is recorded, what is not, and what happens after a capacity error."""

from datetime import timedelta

from cli.explain.pod_trace.build_trace import build_pod_trace
from cli.explain.pod_trace.trace import PodTrace
from shared.model.decisions.action import DeleteObject, PatchStatus, PublishEvent
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.unit.cli.explain.explained_journals import (
    build_journal_evidence,
    make_claim_creation,
    make_entry,
    make_launch,
    make_launched_patches,
    make_note,
    make_unavailable_mark,
)
from tests.unit.cli.explain.pod_trace.traced_journals import BOUND_POD_UID, TRACED_ENTRIES, make_trace_cluster


def list_steps(trace: PodTrace) -> list[tuple[str, float | str]]:
    """Return each step with its seconds since the start, or with its status if it has no time."""
    started_at = trace.started_at
    return [
        (step.name, (step.at - started_at).total_seconds() if step.at and started_at else step.status)
        for step in trace.steps
    ]


def test_complete_trace_has_the_time_of_each_step() -> None:
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, live=make_trace_cluster()), "shop/cart")
    assert list_steps(trace) == [
        ("pod created", 0),
        ("unschedulable", 5),
        ("planned", 5),
        ("NodeClaim created", 6),
        ("CreateFleet", 5),
        ("instance launched", 7),
        ("Node created", 35),
        ("registered", 40),
        ("initialized", 50),
        ("pod bound", 52),
        ("pod ready", 60),
    ]
    assert (trace.uid, trace.node, trace.node_claim, trace.is_waiting) == (BOUND_POD_UID, "n1", "c1", False)
    assert trace.total == timedelta(seconds=60)
    assert sum((step.elapsed for step in trace.recorded_steps if step.elapsed), timedelta()) == trace.total
    assert trace.longest_step is not None
    assert trace.longest_step.name == "Node created"


def test_steps_that_only_objects_record_are_not_recorded_without_a_cluster() -> None:
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES), "shop/cart")
    assert [name for name, value in list_steps(trace) if value == "not recorded"] == [
        "pod created",
        "Node created",
        "pod bound",
        "pod ready",
    ]
    assert trace.total == timedelta(seconds=45)


def test_journal_without_the_launch_leaves_its_steps_unrecorded() -> None:
    trace = build_pod_trace(
        build_journal_evidence(make_entry(0, notes=(make_note("Pod", "shop/cart", "nodeclaim/c1", "new node"),))),
        "shop/cart",
    )
    recorded = [name for name, value in list_steps(trace) if value != "not recorded"]
    assert recorded == ["unschedulable", "planned"]


def test_rejected_pod_waits_and_later_steps_are_not_reached() -> None:
    entries = [make_entry(at, notes=(make_note("Pod", "shop/cart", "NoOffering", "none"),)) for at in (0, 1, 2)]
    trace = build_pod_trace(build_journal_evidence(*entries), "shop/cart")
    assert trace.is_waiting
    assert trace.total == timedelta(minutes=2)
    assert list_steps(trace)[:4] == [
        ("pod created", "not recorded"),
        ("unschedulable", 0),
        ("waiting", 120),
        ("planned", "not reached"),
    ]
    assert {value for _, value in list_steps(trace)[3:]} == {"not reached"}


def test_pending_pod_of_a_cluster_waits_until_now_for_its_node() -> None:
    live = make_trace_cluster(is_pod_bound=False)
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES[:1], live=live), "shop/cart")
    assert trace.is_waiting
    assert trace.ended_at == live.taken_at
    assert [name for name, value in list_steps(trace) if value == "not reached"] == ["pod bound", "pod ready"]


def test_capacity_error_shows_both_launches_and_the_refusal() -> None:
    refused = make_entry(
        0,
        make_claim_creation("c0"),
        make_launch("c0"),
        make_unavailable_mark("m5.large"),
        make_unavailable_mark("c5.xlarge"),
        DeleteObject(kind="NodeClaim", name="c0", message="insufficient_capacity"),
        notes=(make_note("Pod", "shop/cart", "nodeclaim/c0", "new node"),),
    )
    launched = make_entry(
        1,
        make_claim_creation("c1"),
        make_launch("c1"),
        *make_launched_patches(),
        notes=(make_note("Pod", "shop/cart", "nodeclaim/c1", "new node"),),
    )
    trace = build_pod_trace(build_journal_evidence(refused, launched), "shop/cart")
    assert [(step.name, step.node_claim) for step in trace.steps[2:8]] == [
        ("planned", "c0"),
        ("NodeClaim created", "c0"),
        ("CreateFleet", "c0"),
        ("NodeClaim deleted", "c0"),
        ("planned", "c1"),
        ("NodeClaim created", "c1"),
    ]
    [failed_request, deletion] = [step for step in trace.steps if step.is_failed]
    assert failed_request.detail == "EC2 refused 2 offerings: InsufficientInstanceCapacity"
    assert deletion.detail == "insufficient_capacity"
    assert trace.steps[6].elapsed == timedelta(minutes=1)


def test_existing_node_has_no_steps_from_before_the_plan() -> None:
    later = make_entry(9, notes=(make_note("Pod", "shop/late", "node/n1", "fits an existing node"),))
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, later), "shop/late")
    assert [name for name, _ in list_steps(trace)] == [
        "pod created",
        "unschedulable",
        "planned",
        "pod bound",
        "pod ready",
    ]


def test_plans_for_a_running_pod_are_not_part_of_its_trace() -> None:
    moved = make_entry(30, notes=(make_note("Pod", "shop/cart", "nodeclaim/c2", "new node"),))
    drained = make_entry(0, make_claim_creation("c3"), function="interrupt")
    for live in (None, make_trace_cluster()):
        trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, drained, moved, live=live), "shop/cart")
        assert trace.node_claim == "c1"


def test_uid_is_from_the_events_of_the_journal_without_a_cluster() -> None:
    event = PublishEvent(
        kind="Pod", name="cart", namespace="shop", uid="u-1", reason="Nominated", message="", at=DEFAULT_START_TIME
    )
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, make_entry(3, event)), "shop/cart")
    assert trace.uid == "u-1"


def test_status_that_cannot_be_read_is_ignored() -> None:
    broken = make_entry(0, PatchStatus(kind="NodeClaim", name="c1", status="{", message=""))
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, broken), "shop/cart")
    assert ("initialized", 45) in list_steps(trace)
