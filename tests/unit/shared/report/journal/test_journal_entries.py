"""Events, journal notes and requeues that result from the verdicts of a disruption run."""

from datetime import timedelta
from typing import Any

import pytest

from shared.decide.disruption.disruption_requeues import plan_disruption_requeues
from shared.decide.disruption.events import describe_verdicts
from shared.decide.disruption.orchestration.command_targets import exclude_running_pods, find_expected_nodes
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core import labels
from shared.model.decisions.action import FollowUp, PublishEvent
from shared.model.decisions.command import DisruptionPause, DisruptionPauses
from shared.model.decisions.disruption_verdict import (
    MAX_NODES_WITH_EVENTS,
    BlockedVerdict,
    DisruptedVerdict,
    KeptVerdict,
    Verdict,
)
from shared.model.decisions.placement import (
    CheapestOffering,
    ExistingNodePlacement,
    NewNodeClaim,
    Placement,
    Unschedulable,
)
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.report.journal import journal_entries
from shared.report.journal.journal import DecisionNote
from shared.report.journal.journal_entries import (
    KEPT_EVENT_INTERVAL,
    ReportedVerdicts,
    build_command_notes,
    build_node_notes,
    build_pause_notes,
    build_pod_notes,
    get_reported_verdicts,
    select_event_verdicts,
    select_new_verdicts,
)
from shared.report.metrics.cycle_metrics import compute_catalog_ages, count_pending_pods, count_reschedulable_pods
from shared.state.cluster_state import ClusterState
from shared.state.state_node import compute_pod_digest
from tests.support.command_cases import (
    make_cluster_with_nodes,
    make_command,
    make_command_context,
    make_command_state,
    make_replacement_claim,
)
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_node,
    make_pod,
    make_true_conditions,
    replace_fields,
)

KEPT_VERDICT = KeptVerdict(node="node-a", reason="NotEmpty", message="2 pods")
BLOCKED_VERDICT = BlockedVerdict(node="node-a", reason="DoNotDisrupt", message="annotated")


def make_blocked_pool(**fields: Case) -> Case:
    return replace_fields(POOL, budgets=(DisruptionBudget(nodes="0"),), **fields)


# Events


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (BLOCKED_VERDICT, "DisruptionBlocked: Cannot disrupt: annotated"),
        (KEPT_VERDICT, "Unconsolidatable: Kept: 2 pods"),
        (DisruptedVerdict(node="node-a", reason="Empty", message="x"), ""),
        (BlockedVerdict(node="node-a", reason="NotInitialized", message="x"), ""),
        (KeptVerdict(node="node-a", reason="NotConsolidatable", message="x"), ""),
        (BlockedVerdict(node="node-a", reason="Nominated", message="for seconds"), ""),
        (KeptVerdict(node="node-a", reason="Expecting", message="until they are there"), ""),
        (KeptVerdict(node="node-z", reason="NotEmpty", message="of nobody"), ""),
    ],
)
def test_nodeclaim_and_node_get_events_for_new_lasting_verdicts(verdict: Case, expected: str) -> None:
    events = filter_actions(
        PublishEvent, describe_verdicts([verdict], [verdict], make_command_context((make_claim(), make_node())))
    )
    summaries = [(event.kind, event.name, f"{event.reason}: {event.message}") for event in events]
    assert summaries == ([("NodeClaim", "a", expected), ("Node", "node-a", expected)] if expected else [])
    assert describe_verdicts([], [verdict], make_command_context((make_claim(), make_node()))) == ()


def test_unmanaged_node_gets_no_event() -> None:
    assert describe_verdicts([BLOCKED_VERDICT], [BLOCKED_VERDICT], make_command_context((None, make_node()))) == ()
    alone = make_command_context((make_claim("a", conditions=make_true_conditions("Launched")), None))
    [event] = filter_actions(PublishEvent, describe_verdicts([replace_fields(BLOCKED_VERDICT, node="a")], [], alone))
    assert event.kind == "NodeClaim"


def test_number_of_nodes_with_events_per_cycle_is_limited() -> None:
    machines = [(make_claim(f"n{number}"), make_node(f"n{number}")) for number in range(MAX_NODES_WITH_EVENTS + 1)]
    verdicts = [replace_fields(BLOCKED_VERDICT, node=f"node-n{number}") for number in range(MAX_NODES_WITH_EVENTS + 1)]
    assert len(describe_verdicts(verdicts, verdicts, make_command_context(*machines))) == 2 * MAX_NODES_WITH_EVENTS


def test_nodepool_event_names_the_blocking_disruption_budget() -> None:
    stopped = [BlockedVerdict(node="node-a", reason="Budget", message="none")]
    shut = make_command_context((make_claim(), make_node()), node_pools=(make_blocked_pool(),))
    events = filter_actions(PublishEvent, describe_verdicts(stopped, stopped, shut))
    assert {(published_event.kind, published_event.reason) for published_event in events} == {
        ("NodePool", "DisruptionBlocked")
    }
    assert "No allowed disruptions for disruption reason Empty due to blocking budget" in {
        published_event.message for published_event in events
    }
    by_reason = replace_fields(POOL, budgets=(DisruptionBudget(nodes="0", reasons=("Drifted",)),))
    [event] = filter_actions(
        PublishEvent,
        describe_verdicts([], stopped, make_command_context((make_claim(), make_node()), node_pools=(by_reason,))),
    )
    assert "reason Drifted" in event.message
    odd = replace_fields(POOL, budgets=(DisruptionBudget(nodes="many"),))
    [event] = filter_actions(
        PublishEvent,
        describe_verdicts([], stopped, make_command_context((make_claim(), make_node()), node_pools=(odd,))),
    )
    assert (event.type, event.message[:37]) == ("Warning", "No disruption is allowed: spec.disrup")
    assert describe_verdicts([], [KEPT_VERDICT], shut) == ()


def test_unconsolidatable_event_is_repeated_at_growing_intervals() -> None:
    memory: dict[str, object] = {}

    def is_reported(minutes: float, verdict: Case) -> bool:
        now = NOW + timedelta(minutes=minutes)
        return select_event_verdicts(select_new_verdicts([verdict], memory, now), [verdict], memory, now) == (verdict,)

    three_pods, four_pods = (
        replace_fields(KEPT_VERDICT, message="3 pods"),
        replace_fields(KEPT_VERDICT, message="4 pods"),
    )
    assert [
        is_reported(minutes, verdict)
        for minutes, verdict in ((0, KEPT_VERDICT), (1, three_pods), (14, four_pods), (15, four_pods))
    ] == [1, 0, 0, 1]
    assert [
        is_reported(minutes, verdict) for minutes, verdict in ((16, three_pods), (17, four_pods), (50, four_pods))
    ] == [0, 0, 0]
    assert [
        is_reported(minutes, verdict)
        for minutes, verdict in ((60, four_pods), (61, BLOCKED_VERDICT), (62, BLOCKED_VERDICT), (62.5, KEPT_VERDICT))
    ] == [
        1,
        0,
        1,
        0,
    ]
    assert is_reported(77, KEPT_VERDICT)


def test_events_beyond_the_limit_are_published_by_the_next_cycle() -> None:
    names = [f"node-{number:02}" for number in range(MAX_NODES_WITH_EVENTS + 1)]
    memory: dict[str, object] = {
        "verdicts": ReportedVerdicts(since=NOW, events=dict.fromkeys(names, ("x", NOW - 2 * KEPT_EVENT_INTERVAL)))
    }
    verdicts: list[Verdict] = [replace_fields(KEPT_VERDICT, node=name) for name in names]
    assert (
        len(select_event_verdicts(select_new_verdicts(verdicts, memory, NOW), verdicts, memory, NOW))
        == MAX_NODES_WITH_EVENTS
    )
    assert select_event_verdicts(select_new_verdicts(verdicts, memory, NOW), verdicts, memory, NOW) == (verdicts[-1],)


def test_disrupted_node_is_reported_once_and_temporary_verdicts_never() -> None:
    disrupted, fleeting = (
        DisruptedVerdict(node="node-b", reason="Empty", message="x"),
        replace_fields(BLOCKED_VERDICT, reason="Nominated"),
    )
    verdicts: list[Verdict] = [disrupted, fleeting]
    memory = dict[str, object]()
    assert select_event_verdicts(select_new_verdicts(verdicts, memory, NOW), verdicts, memory, NOW) == (disrupted,)
    assert select_event_verdicts(select_new_verdicts(verdicts, memory, NOW), verdicts, memory, NOW) == ()


def test_copy_of_reported_verdicts_is_independent() -> None:
    memory: dict[str, object] = {"verdicts": ReportedVerdicts(since=NOW)}
    copy = get_reported_verdicts(memory)
    select_event_verdicts(select_new_verdicts([KEPT_VERDICT], memory, NOW), [KEPT_VERDICT], memory, NOW)
    assert copy is not None
    assert (copy.events, copy.verdicts) == ({}, {})


# Notes


def test_verdict_is_noted_on_change_and_all_verdicts_every_hour() -> None:
    memory: dict[str, object] = {}
    other_verdict = replace_fields(KEPT_VERDICT, node="node-b")
    assert select_new_verdicts([other_verdict, KEPT_VERDICT], memory, NOW) == (KEPT_VERDICT, other_verdict)
    assert select_new_verdicts([KEPT_VERDICT, other_verdict], memory, NOW) == ()
    changed_verdict = replace_fields(KEPT_VERDICT, message="3 pods")
    assert select_new_verdicts([changed_verdict, other_verdict], memory, NOW) == (changed_verdict,)
    assert select_new_verdicts([changed_verdict, other_verdict], memory, NOW + timedelta(minutes=59)) == ()
    assert select_new_verdicts([changed_verdict, other_verdict], memory, NOW + timedelta(hours=1)) == (
        changed_verdict,
        other_verdict,
    )
    assert (
        select_new_verdicts([KEPT_VERDICT], None, NOW)
        == select_new_verdicts([KEPT_VERDICT], None, NOW)
        == (KEPT_VERDICT,)
    )


def test_notes_beyond_the_entry_limit_are_written_by_the_next_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_entries, "MAX_VERDICTS_PER_ENTRY", 2)
    memory: dict[str, object] = {"verdicts": ReportedVerdicts(since=NOW)}
    verdicts = [replace_fields(KEPT_VERDICT, node=f"node-{number}") for number in range(3)]
    assert [len(select_new_verdicts(verdicts, memory, NOW)) for _ in range(3)] == [2, 1, 0]


def test_node_note_contains_the_verdict_reason_and_message() -> None:
    assert list(build_node_notes([BLOCKED_VERDICT])) == [
        DecisionNote(kind="Node", name="node-a", verdict="blocked", reason="DoNotDisrupt: annotated")
    ]


def test_command_note_contains_its_savings_once() -> None:
    message = "its pods fit on other nodes; saves $0.2500/h"
    command = replace_fields(make_command("a"), savings_usd_per_hour=0.25, message=message)
    state = make_command_state(command, message=message)
    note = next(iter(build_command_notes([state])))
    assert note.reason == "SingleNode (Underutilized) of node-a: its pods fit on other nodes; saves $0.2500/h"


def test_every_command_state_is_noted_for_the_command_and_its_nodes() -> None:
    command = replace_fields(make_command("a", "b", replacements=("new",)), savings_usd_per_hour=0.25)
    first, last = (
        make_command_state(command, message="why"),
        make_command_state(command, "ROLLED_BACK", message="replacement new was deleted"),
    )
    summary = "SingleNode (Underutilized) of node-a, node-b by new, saves $0.2500/h: why"
    command_fields: dict[str, Any] = {
        "links": ("Node/node-a", "NodeClaim/a", "Node/node-b", "NodeClaim/b"),
        "replaced_by": ("new",),
        "usd_per_hour": 0.25,
        "disruption_reason": "Underutilized",
    }
    node_fields: dict[str, Any] = {"links": (f"Command/{command.command_id}",)}
    undone = "replacement new was deleted"
    assert list(build_command_notes([first, last])) == [
        DecisionNote(kind="Command", name=command.command_id, verdict="PROPOSED", reason=summary, **command_fields),
        DecisionNote(
            kind="Node", name="node-a", verdict="PROPOSED", reason=f"{command.command_id}: why", **node_fields
        ),
        DecisionNote(
            kind="Node", name="node-b", verdict="PROPOSED", reason=f"{command.command_id}: why", **node_fields
        ),
        DecisionNote(
            kind="Command",
            name=command.command_id,
            verdict="ROLLED_BACK",
            reason=f"{undone}; {summary}",
            **command_fields,
        ),
        DecisionNote(
            kind="Node", name="node-a", verdict="ROLLED_BACK", reason=f"{command.command_id}: {undone}", **node_fields
        ),
        DecisionNote(
            kind="Node", name="node-b", verdict="ROLLED_BACK", reason=f"{command.command_id}: {undone}", **node_fields
        ),
    ]
    plain = replace_fields(make_command("a"), message="")
    assert next(iter(build_command_notes([make_command_state(plain)]))).reason == "SingleNode (Underutilized) of node-a"


def test_pause_is_noted_for_its_nodepool() -> None:
    pauses = DisruptionPauses(
        items=(DisruptionPause(message="x"), DisruptionPause(pool="a", reason="Drifted", message="y"))
    )
    assert [(note.kind, note.name, note.reason) for note in build_pause_notes(pauses)] == [
        ("NodePool", "*", "All disruption is paused: x"),
        ("NodePool", "a", "Drifted disruption is paused: y"),
    ]


# Where pods are expected


def test_nominations_of_open_commands_use_current_node_names() -> None:
    command = replace_fields(
        make_command("a", replacements=("new",)), nominations=(("shop/cart", "node-b"), ("shop/till", "new"))
    )
    joined_context = make_command_context((make_replacement_claim(fit=True), make_node("new")))
    assert find_expected_nodes(joined_context, [make_command_state(command, "LAUNCHED")]) == {
        "shop/cart": "node-b",
        "shop/till": "node-new",
    }
    assert find_expected_nodes(make_command_context(), [make_command_state(command)]) == {
        "shop/cart": "node-b",
        "shop/till": "new",
    }
    assert find_expected_nodes(joined_context, [make_command_state(command, "DONE")]) == {}


# When to look again


def make_quiet_claim(seconds: float, *, pods: Case = (), digest: str | None = None, **fields: Case) -> Case:
    annotations = {labels.POD_DIGEST: compute_pod_digest(pods) if digest is None else digest}
    return make_claim(annotations=annotations, last_pod_event_at=get_time_before(seconds=seconds), **fields)


def list_requeues(node_claim: Case, pods: Case = (), **pool: Case) -> list[tuple[str, float]]:
    usual = {"consolidate_after": timedelta(seconds=30)}
    scene = make_command_context(
        (node_claim, make_node()), pods=pods, node_pools=(replace_fields(POOL, **(usual | pool)),)
    )
    follow_ups = filter_actions(FollowUp, plan_disruption_requeues(scene.nodes, scene.snapshot))
    return [(follow_up.function, follow_up.after.total_seconds()) for follow_up in follow_ups]


@pytest.mark.parametrize(
    ("node_claim", "pool", "expected"),
    [
        (make_quiet_claim(10), {}, [("disrupt", 20)]),
        (make_quiet_claim(30), {}, []),
        (make_quiet_claim(10), {"consolidate_after": None}, []),
        (make_quiet_claim(10), {"replicas": 1}, []),
        (make_quiet_claim(10, deleted=NOW), {}, []),
        (make_quiet_claim(10, conditions=make_true_conditions("Launched")), {}, []),
        (make_quiet_claim(10, digest=""), {}, [("disrupt", 20)]),
        (make_quiet_claim(10, digest="another"), {}, [("disrupt", 30), ("lifecycle", 5)]),
        (
            make_quiet_claim(90, digest="another"),
            {"consolidate_after": timedelta()},
            [("disrupt", 10), ("lifecycle", 5)],
        ),
    ],
)
def test_disrupt_is_requeued_when_a_node_becomes_consolidatable(node_claim: Case, pool: Case, expected: Case) -> None:
    assert list_requeues(node_claim, **pool) == expected


def test_node_with_pods_is_requeued_only_if_its_policy_allows_consolidation() -> None:
    pods = (make_pod(),)
    assert list_requeues(make_quiet_claim(10, pods=pods), pods) == [("disrupt", 20)]
    assert list_requeues(make_quiet_claim(10, pods=pods), pods, consolidation_policy="WhenEmpty") == []


def test_clusters_with_many_nodes_use_a_minimum_requeue_delay() -> None:
    node_claim = make_quiet_claim(29)
    other_nodes = [
        (make_claim(f"n{number}", conditions=make_true_conditions(*STAGES)), make_node(f"n{number}"))
        for number in range(199)
    ]
    pool = replace_fields(POOL, consolidate_after=timedelta(seconds=30))
    scene = make_command_context((node_claim, make_node()), *other_nodes, node_pools=(pool,))
    [wake] = filter_actions(FollowUp, plan_disruption_requeues(scene.nodes, scene.snapshot))
    assert wake.after == timedelta(seconds=2)


# What provisioning makes of pods that still run


CHOICE = CheapestOffering(instance_type="m7i.large", zone="us-east-1a", capacity_type="spot", price_usd_per_hour=0.1)


def make_new_node(name: str, *pods: str) -> NewNodeClaim:
    return NewNodeClaim(name=name, node_pool="default", pods=pods, cheapest=CHOICE)


def test_running_pods_keep_their_reserved_capacity_without_other_placement() -> None:
    placement = Placement(
        new_nodes=(make_new_node("x", "shop/cart"), make_new_node("y", "shop/cart", "shop/till")),
        existing=(
            ExistingNodePlacement(node="node-b", pods=("shop/cart", "shop/till")),
            ExistingNodePlacement(node="node-c", pods=("shop/cart",)),
        ),
        unschedulable=tuple(
            Unschedulable(pod=f"shop/{name}", reason="NoOffering", message="") for name in ("cart", "z")
        ),
    )
    running = ClusterState(
        make_cluster_with_nodes((make_claim(), make_node()), pods=(make_pod("cart"), make_pod("till", on="")))
    )
    remaining_placement = exclude_running_pods(placement, running, frozenset({"node-a"}))
    assert [new_node.name for new_node in remaining_placement.new_nodes] == ["y"]
    assert remaining_placement.existing == (ExistingNodePlacement(node="node-b", pods=("shop/till",)),)
    assert [failure.pod for failure in remaining_placement.unschedulable] == ["shop/z"]


def test_pods_of_deleting_nodes_are_fully_placed() -> None:
    placement = Placement(new_nodes=(make_new_node("x", "shop/cart"),))
    deleted = ClusterState(make_cluster_with_nodes((make_claim(deleted=NOW), make_node()), pods=(make_pod("cart"),)))
    assert exclude_running_pods(placement, deleted, frozenset({"node-a"})) is placement
    assert exclude_running_pods(placement, deleted, frozenset()) is placement


def test_pod_placements_are_noted_and_counted() -> None:
    placement = Placement(
        new_nodes=(make_new_node("x", "shop/cart", "shop/room"),),
        existing=(ExistingNodePlacement(node="node-b", pods=("shop/till",)),),
        unschedulable=(
            Unschedulable(pod="shop/big", reason="NoOffering", message="too big"),
            Unschedulable(pod="shop/late", reason="NotReached", message="late"),
        ),
    )
    assert [(note.name, note.verdict, note.reason) for note in build_pod_notes(placement)] == [
        ("shop/cart", "nodeclaim/x", "new node, cheapest instance type m7i.large"),
        ("shop/room", "nodeclaim/x", "new node, cheapest instance type m7i.large"),
        ("shop/till", "node/node-b", "fits an existing node"),
        ("shop/big", "NoOffering", "too big"),
        ("shop/late", "NotReached", "late"),
    ]
    expected = {"PendingPods": 4.0, "PlannedNodes": 1.0, "UnschedulablePods": 1.0}
    assert count_pending_pods(placement, frozenset({"shop/room"})) == expected
    running_pods = (make_pod("cart"), make_pod("big"), make_pod("unplanned"))
    assert count_reschedulable_pods(placement, make_cluster_with_nodes(pods=running_pods)) == {"ReschedulablePods": 2.0}
    assert count_reschedulable_pods(placement, make_cluster_with_nodes()) == {}


def test_price_age_is_reported_if_the_catalog_has_prices() -> None:
    assert compute_catalog_ages(make_cluster_with_nodes()) == {}
    catalogue = Catalog(region="us-east-1", instance_types=(), priced_at=get_time_before(minutes=1))
    assert compute_catalog_ages(make_cluster_with_nodes(catalog=catalogue)) == {"PriceAgeSeconds": 60.0}
