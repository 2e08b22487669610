"""Node repair: which nodes are replaced, when, and what prevents it."""

from datetime import datetime, timedelta

import pytest

from shared.decide.disruption.node_repair import NodeRepairDecision, decide_node_repair, find_unhealthy_condition
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.decisions.action import DeleteObject, FollowUp, PatchMetadata, PublishEvent
from shared.model.decisions.command import DisruptionPause, DisruptionPauses
from shared.model.decisions.disruption_verdict import DisruptedVerdict, KeptVerdict
from shared.model.kubernetes.node import Node
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import (
    NOW,
    Case,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_provider_id,
    replace_fields,
)

TOLERATION_DURATION = timedelta(minutes=30)
FREE = DisruptionPauses()


def make_condition(type_: str, status: str, since: datetime | None) -> Condition:
    return Condition(type=type_, status=status, reason="Test", since=since)


def make_unhealthy_node(name: str = "a", minutes: float = 30, **fields: Case) -> Node:
    return make_node(name, conditions=(make_condition("Ready", "Unknown", get_time_before(minutes=minutes)),), **fields)


def decide_repair(
    *nodes: Node, paused: DisruptionPauses = FREE, sound: int = 0, **of_claim: Case
) -> NodeRepairDecision:
    """Repair a cluster of *nodes* with their claims, and *sound* healthy nodes."""
    all_nodes = [*nodes, *(make_node(f"sound{number}") for number in range(sound))]
    names = [cluster_node.name.removeprefix("node-") for cluster_node in all_nodes]
    claims = tuple(make_claim(name, **(of_claim if name == "a" else {})) for name in names)
    return decide_node_repair(ClusterState(make_cluster(nodes=tuple(all_nodes), node_claims=claims)), paused)


def list_deleted_claims(decision: NodeRepairDecision) -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, DeleteObject)]


@pytest.mark.parametrize(
    ("type_", "status", "minutes"),
    [
        ("Ready", "False", 30),
        ("Ready", "Unknown", 30),
        ("AcceleratedHardwareReady", "False", 10),
        ("StorageReady", "False", 30),
        ("NetworkingReady", "False", 30),
        ("KernelReady", "False", 30),
        ("ContainerRuntimeReady", "False", 30),
        ("Ready", "True", None),
        ("AcceleratedHardwareReady", "Unknown", None),
        ("KernelReady", "Unknown", None),
        ("DiskPressure", "True", None),
    ],
)
def test_node_is_repaired_after_the_toleration_duration_of_its_condition(
    type_: str, status: str, minutes: int | None
) -> None:
    for age in (1, 9, 10, 29, 30, 600):
        decision = decide_repair(make_node(conditions=(make_condition(type_, status, get_time_before(minutes=age)),)))
        assert bool(list_deleted_claims(decision)) is (minutes is not None and age >= minutes), age


def test_healthy_nodes_cause_no_repair_metrics() -> None:
    assert decide_repair(sound=3) == NodeRepairDecision()
    assert NodeRepairDecision().count_metrics() == {}


def test_unhealthy_condition_with_the_earliest_due_time_is_used() -> None:
    hardware = make_condition("AcceleratedHardwareReady", "False", get_time_before(minutes=11))
    conditions = (
        make_condition("KernelReady", "False", get_time_before(minutes=20)),
        hardware,
        make_condition("Ready", "True", get_time_before(days=1)),
    )
    ailment = find_unhealthy_condition(make_node(conditions=conditions))
    assert ailment is not None
    assert (ailment.policy.type, ailment.due) == ("AcceleratedHardwareReady", get_time_before(minutes=1))


@pytest.mark.parametrize("since", [None, NOW + timedelta(hours=1)])
def test_condition_without_a_time_or_in_the_future_is_not_due_for_repair(since: datetime | None) -> None:
    assert decide_repair(make_node(conditions=(make_condition("Ready", "False", since),))) == NodeRepairDecision()


def test_repair_deletes_the_node_claim_without_a_grace_period_and_publishes_events() -> None:
    decision = decide_repair(make_unhealthy_node(minutes=31))
    note, end, *events, wake = decision.actions
    assert note == PatchMetadata(
        kind="NodeClaim", name="a", annotations=((labels.TERMINATION_TIMESTAMP, "2026-11-21T12:00:00Z"),), message=WORDS
    )
    assert end == DeleteObject(kind="NodeClaim", name="a", uid="uid-a", message="unhealthy")
    assert [(event.kind, event.reason, event.message) for event in events if isinstance(event, PublishEvent)] == [
        (kind, "DisruptionTerminating", f"Deleting a: {WORDS}") for kind in ("NodeClaim", "Node")
    ]
    assert isinstance(wake, FollowUp)
    assert wake.function == "lifecycle"
    assert decision.verdicts == (DisruptedVerdict(node="node-a", reason="Unhealthy", message=WORDS),)
    assert decision.nodes == {"node-a"}
    assert decision.count_metrics() == {"RepairedNodes": 1.0, "BlockedRepairs": 0.0}


WORDS = "condition Ready has been Unknown since 2026-11-21T11:29:00Z, longer than 30m"


@pytest.mark.parametrize(
    ("noted", "deleting", "actions"),
    [
        ("", False, [PatchMetadata, DeleteObject]),
        ("2026-11-21T13:00:00Z", False, [PatchMetadata, DeleteObject]),
        ("soon", False, [PatchMetadata, DeleteObject]),
        ("2026-11-21T11:59:00Z", False, [DeleteObject]),
        ("", True, [PatchMetadata]),
        ("2026-11-21T13:00:00Z", True, [PatchMetadata]),
        ("2026-11-21T12:00:00Z", True, []),
    ],
)
def test_repair_shortens_a_running_grace_period_and_repeats_no_action(
    noted: str,
    actions: list[type],
    *,
    deleting: bool,
) -> None:
    notes = {labels.TERMINATION_TIMESTAMP: noted} if noted else {}
    decision = decide_repair(
        make_unhealthy_node(), annotations=notes, deleted=get_time_before(minutes=1) if deleting else None
    )
    assert [type(action) for action in decision.actions if isinstance(action, PatchMetadata | DeleteObject)] == actions
    assert decision.nodes == {"node-a"}


def test_repair_ignores_do_not_disrupt_and_termination_grace_period() -> None:
    unhealthy_node = make_unhealthy_node(annotations={labels.DO_NOT_DISRUPT: "true"})
    assert list_deleted_claims(decide_repair(unhealthy_node, termination_grace_period=timedelta(hours=1))) == ["a"]


@pytest.mark.parametrize(("sick", "sound", "ends"), [(1, 0, 1), (1, 4, 1), (2, 3, 0), (2, 4, 2), (2, 8, 2), (3, 8, 3)])
def test_no_node_is_repaired_when_more_than_20_percent_of_its_node_pool_is_unhealthy(
    sick: int, sound: int, ends: int
) -> None:
    decision = decide_repair(*(make_unhealthy_node(f"b{number}") for number in range(sick)), sound=sound)
    assert len(list_deleted_claims(decision)) == ends
    if not ends:
        assert [node_verdict.verdict for node_verdict in decision.verdicts] == ["blocked"] * sick
        words = f"{sick} of {sick + sound} nodes of NodePool default are unhealthy, more than 20%: no node is repaired"
        assert all(
            node_verdict.reason == "Unhealthy" and words in node_verdict.message for node_verdict in decision.verdicts
        )
        assert decision.count_metrics() == {"RepairedNodes": 0.0, "BlockedRepairs": float(sick)}
        assert (decision.actions, decision.nodes) == ((), frozenset())


def test_recently_unhealthy_nodes_count_for_the_repair_limit() -> None:
    assert list_deleted_claims(decide_repair(make_unhealthy_node("a"), make_unhealthy_node("b", 1), sound=3)) == []


def test_repair_limit_applies_to_each_node_pool_separately() -> None:
    nodes = [
        make_unhealthy_node("a"),
        *(make_unhealthy_node(f"b{number}", extra={labels.NODEPOOL: "other"}) for number in range(9)),
    ]
    claims = [make_claim("a"), *(make_claim(f"b{number}", extra={labels.NODEPOOL: "other"}) for number in range(9))]
    decision = decide_node_repair(ClusterState(make_cluster(nodes=tuple(nodes), node_claims=tuple(claims))), FREE)
    assert list_deleted_claims(decision) == ["a"]
    assert len(decision.verdicts) == 10


def test_repair_limit_of_a_node_claim_without_a_node_pool_applies_to_the_whole_cluster() -> None:
    unmanaged_nodes = [Node(meta=make_node(f"o{number}").meta, conditions=()) for number in range(5)]
    unpooled_claim = make_claim("a", extra={labels.NODEPOOL: ""})
    assert list_deleted_claims(
        decide_node_repair(
            ClusterState(make_cluster(nodes=(make_unhealthy_node(), *unmanaged_nodes), node_claims=(unpooled_claim,))),
            FREE,
        )
    ) == ["a"]
    unhealthy_nodes = tuple(make_unhealthy_node(f"b{number}") for number in range(2))
    decision = decide_node_repair(
        ClusterState(
            make_cluster(
                nodes=(make_unhealthy_node(), *unmanaged_nodes, *unhealthy_nodes), node_claims=(unpooled_claim,)
            )
        ),
        FREE,
    )
    assert list_deleted_claims(decision) == []
    assert "3 of 8 nodes of the cluster are unhealthy" in decision.verdicts[0].message


def test_unmanaged_and_ambiguous_nodes_are_not_repaired() -> None:
    unlabelled = Node(
        meta=ObjectMeta(name="node-a"), conditions=make_unhealthy_node().conditions, provider_id=make_provider_id("a")
    )
    assert (
        decide_node_repair(ClusterState(make_cluster(nodes=(unlabelled,), node_claims=(make_claim(),))), FREE)
        == NodeRepairDecision()
    )
    assert decide_node_repair(ClusterState(make_cluster(nodes=(make_unhealthy_node(),))), FREE) == NodeRepairDecision()
    twin = make_unhealthy_node("b", provider_id=make_provider_id("a"))
    assert (
        decide_node_repair(
            ClusterState(make_cluster(nodes=(make_unhealthy_node(), twin), node_claims=(make_claim(),))), FREE
        )
        == NodeRepairDecision()
    )
    double = replace_fields(make_claim("c"), provider_id=make_provider_id("a"))
    assert (
        decide_node_repair(
            ClusterState(make_cluster(nodes=(make_unhealthy_node(),), node_claims=(make_claim(), double))), FREE
        )
        == NodeRepairDecision()
    )


def test_requested_pause_holds_repair_and_pending_pods_do_not() -> None:
    decision = decide_repair(
        make_unhealthy_node(),
        paused=DisruptionPauses(
            items=(DisruptionPause(pool="default", message="we look into it", pauses_open_commands=True),)
        ),
    )
    assert list_deleted_claims(decision) == []
    [verdict] = decision.verdicts
    assert isinstance(verdict, KeptVerdict)
    assert verdict.summary.startswith("Paused: condition Ready has been Unknown since ")
    assert verdict.summary.endswith("repair is paused: we look into it")
    crowd = DisruptionPauses(
        items=(DisruptionPause(message="pods are pending", pauses_open_commands=True, allows_repair=True),)
    )
    assert list_deleted_claims(decide_repair(make_unhealthy_node(), paused=crowd)) == ["a"]


def test_repair_verdict_replaces_the_verdict_of_the_disruption_search() -> None:
    decision = decide_repair(make_unhealthy_node("b"), sound=1)
    sweep_verdicts = (
        KeptVerdict(node="node-b", reason="NotEmpty", message="m"),
        KeptVerdict(node="node-a", reason="NotEmpty", message="m"),
    )
    merged = decision.with_verdicts(sweep_verdicts)
    assert [(node_verdict.node, node_verdict.reason) for node_verdict in merged] == [
        ("node-a", "NotEmpty"),
        ("node-b", "Unhealthy"),
    ]
