"""Node repair: who is given up, when, and what holds it back."""

from datetime import datetime, timedelta

import pytest

from shared.disruption.repair import Repairs, ailment_of, repair
from shared.disruption.verdicts import Disrupted, Kept
from shared.model import labels
from shared.model.action import DeleteObject, FollowUp, PatchMetadata, PublishEvent
from shared.model.commands import Pause, Pauses
from shared.model.nodes import Node
from shared.model.objects import Condition, Meta
from tests.unit.lifecycle_cases import NOW, Case, ago, changed, claim, cluster, node, provider_id

HALF_AN_HOUR = timedelta(minutes=30)
FREE = Pauses()


def says(type_: str, status: str, since: datetime | None) -> Condition:
    return Condition(type=type_, status=status, reason="Test", since=since)


def broken(name: str = "a", minutes: float = 30, **fields: Case) -> Node:
    return node(name, conditions=(says("Ready", "Unknown", ago(minutes=minutes)),), **fields)


def looked(*nodes: Node, paused: Pauses = FREE, sound: int = 0, **of_claim: Case) -> Repairs:
    """Repair a cluster of *nodes* with their claims, and of so many sound ones."""
    some = [*nodes, *(node(f"sound{number}") for number in range(sound))]
    names = [one.name.removeprefix("node-") for one in some]
    claims = tuple(claim(name, **(of_claim if name == "a" else {})) for name in names)
    return repair(cluster(nodes=tuple(some), node_claims=claims), paused)


def ended(found: Repairs) -> list[str]:
    return [one.name for one in found.actions if isinstance(one, DeleteObject)]


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
def test_how_long_what_a_node_says_is_put_up_with(type_: str, status: str, minutes: int | None) -> None:
    for age in (1, 9, 10, 29, 30, 600):
        found = looked(node(conditions=(says(type_, status, ago(minutes=age)),)))
        assert bool(ended(found)) is (minutes is not None and age >= minutes), age


def test_where_nobody_is_broken_nothing_is_counted() -> None:
    assert looked(sound=3) == Repairs()
    assert Repairs().counts() == {}


def test_what_is_due_first_counts() -> None:
    hardware = says("AcceleratedHardwareReady", "False", ago(minutes=11))
    some = (says("KernelReady", "False", ago(minutes=20)), hardware, says("Ready", "True", ago(days=1)))
    ailment = ailment_of(node(conditions=some))
    assert ailment is not None
    assert (ailment.policy.type, ailment.due) == ("AcceleratedHardwareReady", ago(minutes=1))


@pytest.mark.parametrize("since", [None, NOW + timedelta(hours=1)])
def test_a_condition_without_a_time_or_from_the_future_is_not_due(since: datetime | None) -> None:
    assert looked(node(conditions=(says("Ready", "False", since),))) == Repairs()


def test_the_claim_is_deleted_with_its_time_up_and_all_is_told() -> None:
    found = looked(broken(minutes=31))
    note, end, *said, wake = found.actions
    assert note == PatchMetadata(
        kind="NodeClaim", name="a", annotations=((labels.TERMINATION_TIMESTAMP, "2026-11-21T12:00:00Z"),), why=WORDS
    )
    assert end == DeleteObject(kind="NodeClaim", name="a", uid="uid-a", why="unhealthy")
    assert [(one.kind, one.reason, one.message) for one in said if isinstance(one, PublishEvent)] == [
        (kind, "DisruptionTerminating", f"Deleting a: {WORDS}") for kind in ("NodeClaim", "Node")
    ]
    assert isinstance(wake, FollowUp)
    assert wake.function == "lifecycle"
    assert found.verdicts == (Disrupted(node="node-a", reason="Unhealthy", message=WORDS),)
    assert found.nodes == {"node-a"}
    assert found.counts() == {"RepairedNodes": 1.0, "HeldRepairs": 0.0}


WORDS = "condition Ready has been Unknown since 2026-11-21T11:29:00Z, longer than 30 minutes"


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
def test_a_grace_period_that_still_runs_is_cut_short_and_what_is_done_is_not_done_again(
    noted: str,
    actions: list[type],
    *,
    deleting: bool,
) -> None:
    notes = {labels.TERMINATION_TIMESTAMP: noted} if noted else {}
    found = looked(broken(), annotations=notes, deleted=ago(minutes=1) if deleting else None)
    assert [type(one) for one in found.actions if isinstance(one, PatchMetadata | DeleteObject)] == actions
    assert found.nodes == {"node-a"}


def test_neither_do_not_disrupt_nor_a_grace_period_holds_it_back() -> None:
    there = broken(annotations={labels.DO_NOT_DISRUPT: "true"})
    assert ended(looked(there, termination_grace_period=timedelta(hours=1))) == ["a"]


@pytest.mark.parametrize(("sick", "sound", "ends"), [(1, 0, 1), (1, 4, 1), (2, 3, 0), (2, 4, 2), (2, 8, 2), (3, 8, 3)])
def test_where_more_than_a_fifth_are_unhealthy_none_is_repaired(sick: int, sound: int, ends: int) -> None:
    found = looked(*(broken(f"b{number}") for number in range(sick)), sound=sound)
    assert len(ended(found)) == ends
    if not ends:
        assert [one.verdict for one in found.verdicts] == ["blocked"] * sick
        words = f"{sick} of {sick + sound} nodes of NodePool default are unhealthy, more than 20 %: none is repaired"
        assert all(one.reason == "Unhealthy" and words in one.message for one in found.verdicts)
        assert found.counts() == {"RepairedNodes": 0.0, "HeldRepairs": float(sick)}
        assert (found.actions, found.nodes) == ((), frozenset())


def test_those_count_that_have_not_been_unhealthy_for_long() -> None:
    assert ended(looked(broken("a"), broken("b", 1), sound=3)) == []


def test_each_nodepool_is_counted_for_itself() -> None:
    there = [broken("a"), *(broken(f"b{number}", extra={labels.NODEPOOL: "other"}) for number in range(9))]
    claims = [claim("a"), *(claim(f"b{number}", extra={labels.NODEPOOL: "other"}) for number in range(9))]
    found = repair(cluster(nodes=tuple(there), node_claims=tuple(claims)), FREE)
    assert ended(found) == ["a"]
    assert len(found.verdicts) == 10


def test_a_claim_without_a_nodepool_is_held_against_the_whole_cluster_unmanaged_nodes_too() -> None:
    nobodys = [Node(meta=node(f"o{number}").meta, conditions=()) for number in range(5)]
    mine = claim("a", extra={labels.NODEPOOL: ""})
    assert ended(repair(cluster(nodes=(broken(), *nobodys), node_claims=(mine,)), FREE)) == ["a"]
    others = tuple(broken(f"b{number}") for number in range(2))
    found = repair(cluster(nodes=(broken(), *nobodys, *others), node_claims=(mine,)), FREE)
    assert ended(found) == []
    assert "3 of 8 nodes of the cluster are unhealthy" in found.verdicts[0].message


def test_nodes_that_are_not_ours_or_not_one_with_one_claim_are_left_alone() -> None:
    unlabelled = Node(meta=Meta(name="node-a"), conditions=broken().conditions, provider_id=provider_id("a"))
    assert repair(cluster(nodes=(unlabelled,), node_claims=(claim(),)), FREE) == Repairs()
    assert repair(cluster(nodes=(broken(),)), FREE) == Repairs()
    twin = broken("b", provider_id=provider_id("a"))
    assert repair(cluster(nodes=(broken(), twin), node_claims=(claim(),)), FREE) == Repairs()
    double = changed(claim("c"), provider_id=provider_id("a"))
    assert repair(cluster(nodes=(broken(),), node_claims=(claim(), double)), FREE) == Repairs()


def test_people_hold_it_back_and_pods_that_wait_do_not() -> None:
    found = looked(broken(), paused=Pauses(items=(Pause(pool="default", why="we look into it", holds_all=True),)))
    assert ended(found) == []
    [verdict] = found.verdicts
    assert isinstance(verdict, Kept)
    assert verdict.why.startswith("Paused: condition Ready has been Unknown since ")
    assert verdict.why.endswith("its repair is paused: we look into it")
    crowd = Pauses(items=(Pause(why="pods wait", holds_all=True, spares_repair=True),))
    assert ended(looked(broken(), paused=crowd)) == ["a"]


def test_what_it_says_of_a_node_goes_before_what_a_sweep_does() -> None:
    found = looked(broken("b"), sound=1)
    others = (Kept(node="node-b", reason="NotEmpty", message="m"), Kept(node="node-a", reason="NotEmpty", message="m"))
    merged = found.with_verdicts(others)
    assert [(one.node, one.reason) for one in merged] == [("node-a", "NotEmpty"), ("node-b", "Unhealthy")]
