"""The rows of commands: written before anything is done, by whoever has the lease, and read again by others."""

from datetime import timedelta

import msgspec
import pytest

from shared import cycle
from shared.actions.command_rows import (
    CURSOR,
    KEPT_FOR,
    KIND,
    MOST_REMOVED,
    read_commands,
    read_cursor,
    write_command,
    write_cursor,
)
from shared.actions.commands import begin
from shared.actions.lease import leased
from shared.errors import Conflict, Invalid, Unreachable
from shared.model.commands import Standing
from shared.model.objects import Problem
from shared.ports import Fence, Row
from shared.snapshot.take import take
from sim.faults import Call
from tests.unit.command_cases import holds, order, stands
from tests.unit.disrupted_world import STAGES, Idle
from tests.unit.lifecycle_cases import Case, changed

STALE = Fence(name="planner", version=99)
SOON = timedelta(seconds=6)


def judged(cluster: Case, command: Case, others: Case, *, homes: Case) -> None:
    del others, homes
    holds(cluster, command)


def written(idle: Idle, one: Standing) -> Row:
    world = idle.world()
    with leased(world, "planner") as fence:
        assert fence is not None
        write_command(one, world, fence)
    [row] = idle.table.rows(KIND)
    return row


# Rows


def test_what_is_written_is_read_again() -> None:
    idle = Idle()
    one = stands(changed(order("a", by=("new",)), homes=(("shop/cart", "new"),)), since=idle.clock.now())
    row = written(idle, one)
    assert (row.version, row.expires_at) == (1, None)
    assert read_commands(idle.world(), []) == {row.name: changed(one, version=1, fence=1)}


def test_what_has_ended_is_kept_for_a_while_and_in_outline() -> None:
    idle = Idle()
    one = stands(changed(order("a", by=("new",)), homes=(("shop/cart", "new"),)), "DONE", since=idle.clock.now())
    row = written(idle, one)
    assert row.expires_at == idle.clock.now() + KEPT_FOR
    [read] = read_commands(idle.world(), []).values()
    assert [made.claim.name for made in read.command.replacements] == ["new"]
    assert (read.command.homes, read.command.replacements[0].why) == ((), "")


def test_a_row_that_cannot_be_read_is_named_and_about_no_node() -> None:
    idle = Idle()
    idle.table.write(KIND, "odd", "{", version=0)
    problems: list[Problem] = []
    assert read_commands(idle.world(), problems) == {}
    assert [(one.kind, one.name) for one in problems] == [(KIND, "odd")]
    assert "remove the row" in problems[0].message


def test_who_lost_the_lease_writes_nothing() -> None:
    idle = Idle()
    with pytest.raises(Conflict):
        write_command(stands(order("a")), idle.world(), STALE)
    write_cursor(Row(kind=CURSOR, name="disrupt", version=0, body=""), "node-a", idle.world(), STALE)
    assert idle.table.rows(KIND) == idle.table.rows(CURSOR) == ()


def test_where_a_sweep_came_to_is_remembered_by_whoever_comes_next() -> None:
    idle = Idle()
    world = idle.world()
    with leased(world, "planner") as fence:
        assert fence is not None
        first = read_cursor(world)
        assert first.body == ""
        write_cursor(first, "", world, fence)
        assert idle.table.rows(CURSOR) == ()
        write_cursor(first, "node-a", world, fence)
        assert read_cursor(world).body == "node-a"
        write_cursor(read_cursor(world), "", world, fence)
    assert read_cursor(idle.world()).body == ""


def test_commands_that_ended_long_ago_are_forgotten_some_at_a_time() -> None:
    idle = Idle()
    idle.machine("a")
    for number in range(MOST_REMOVED + 2):
        idle.begin(idle.order("a", by=(f"new-{number}",)), phase="DONE")
    idle.clock.advance(KEPT_FOR)
    idle.api.delete("nodes", "node-a")
    idle.disrupt()
    assert len(idle.phases()) == MOST_REMOVED + 2
    idle.later()
    assert len(idle.phases()) == 2
    idle.later()
    assert idle.phases() == []


# A cycle


def test_an_empty_node_goes_in_two_looks() -> None:
    idle = Idle("a", "b")
    idle.disrupt()
    assert (idle.phases(), idle.tainted(), idle.told(), idle.deleting()) == (["PROPOSED"], {"a"}, {"a"}, set())
    idle.later(seconds=4)
    assert idle.deleting() == set()
    idle.later(seconds=1)
    assert (idle.phases(), idle.deleting()) == (["INITIALIZED"], {"a"})
    idle.later()
    assert idle.phases() == ["DRAINING"]
    assert idle.deleting() == {"a"}


def test_a_replacement_is_made_before_its_node_goes() -> None:
    idle = Idle(budget="100%")
    idle.machine("a", drifted=True)
    idle.begin(idle.order("a", by=("new",)))
    idle.disrupt()
    idle.later()
    assert (idle.phases(), idle.made(), idle.deleting()) == (["LAUNCHED"], {"new"}, set())
    idle.later()
    assert (idle.phases(), idle.deleting()) == (["LAUNCHED"], set())
    idle.come_up("new", STAGES[:3])
    idle.later()
    assert (idle.phases(), idle.deleting()) == (["INITIALIZED"], {"a"})
    assert sorted(function for function, _, _ in idle.post.sent if function != "disrupt") == ["lifecycle", "provision"]


def test_a_table_that_was_emptied_is_healed_from_what_the_cluster_says() -> None:
    idle = Idle("a", "b")
    idle.begin(idle.order("a", by=("new",)))
    idle.disrupt()
    idle.claim("new")
    for row in idle.table.rows(KIND):
        idle.table.remove(KIND, row.name, version=row.version)
    idle.api.patch("nodepools.karpenter.sh", "default", {"spec": {"disruption": {"consolidateAfter": "Never"}}})
    idle.later()
    assert (idle.tainted(), idle.told(), idle.phases()) == (set(), set(), [])
    assert {one["metadata"]["name"] for one in idle.api.list("nodeclaims.karpenter.sh")} == {"a", "b", "new"}


def test_in_mode_plan_nothing_is_written_and_nothing_goes_on() -> None:
    idle = Idle("a")
    idle.begin(idle.order("a"))
    before = idle.table.rows(KIND)
    report = cycle.disrupt(idle.world(mode="plan"), "schedule")
    assert (idle.table.rows(KIND), idle.tainted()) == (before, set())
    assert {one.result for one in report.outcomes} <= {"skipped"}
    assert [one.verdict for one in report.notes if one.kind == "Node"] == []
    other = Idle("a")
    report = cycle.disrupt(other.world(mode="plan"), "schedule")
    assert [one.verdict for one in report.notes] == ["disrupted"]
    assert other.table.rows(KIND) == ()


def test_who_loses_the_lease_in_the_middle_does_no_more() -> None:
    idle = Idle("a", "b", budget="100%")

    def steal(call: Call) -> None:
        if (call.port, call.method, call.when) == ("table", "rows", "after"):
            row = idle.table.read("lease", "planner")
            assert row is not None
            idle.table.write("lease", "planner", "{}", version=row.version)

    report = cycle.disrupt(idle.world(tap=steal), "schedule")
    assert (idle.tainted(), idle.phases()) == (set(), [])
    assert report.counts["OpenCommands"] == 0


def test_a_command_that_cannot_be_written_down_is_named_and_not_begun() -> None:
    idle = Idle("a", budget="100%")

    def refuse(call: Call) -> None:
        if (call.port, call.method, call.detail, call.when) == ("table", "write", KIND, "before"):
            raise Invalid("item too large", code="ValidationException")

    report = cycle.disrupt(idle.world(tap=refuse), "schedule")
    assert idle.tainted() == set()
    assert ["cannot be written down: item too large" in one.message for one in report.problems] == [True]
    idle.later()
    assert idle.phases() == ["PROPOSED"]


def test_a_claim_that_cannot_be_created_is_created_by_the_next_look() -> None:
    idle = Idle("a", budget="100%")
    idle.begin(idle.order("a", by=("new",)))
    idle.table.write(KIND, *_validated(idle), version=1)

    def refuse(call: Call) -> None:
        if (call.method, call.when) == ("create", "before") and call.detail.endswith("nodeclaims"):
            raise Unreachable("no answer")

    world = idle.world(tap=refuse)
    with leased(world, "planner") as fence:
        assert fence is not None
        course = begin(take(world), world, fence, judged)
        course.advance()
        assert [one.phase for one in course.standings.values()] == ["VALIDATED"]
    world = idle.world()
    with leased(world, "planner") as fence:
        assert fence is not None
        course = begin(take(world), world, fence, judged)
        course.advance()
        assert [one.phase for one in course.standings.values()] == ["LAUNCHED"]


def _validated(idle: Idle) -> tuple[str, str]:
    [(name, one)] = idle.standings().items()
    return name, msgspec.json.encode(changed(one, phase="VALIDATED")).decode()


def test_what_is_paused_is_not_begun_and_told_loudly() -> None:
    idle = Idle("a", "b", budget="100%")
    idle.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {"joiner.dev/disruption-paused": "Empty"}}}
    )
    report = cycle.disrupt(idle.world(), "schedule")
    assert (idle.phases(), idle.tainted()) == ([], set())
    assert (report.counts["IntendedPauses"], report.counts["DisruptionPauses"]) == (1, 0)
    assert ("NodePool", "default", "DisruptionPaused") in {(one.kind, one.name, one.verdict) for one in report.notes}
    assert [one["reason"] for one in idle.api.list("events") if one["involvedObject"]["kind"] == "NodePool"] == [
        "DisruptionPaused"
    ]


def test_a_pause_takes_back_what_was_only_proposed() -> None:
    idle = Idle("a", budget="100%")
    idle.disrupt()
    assert idle.tainted() == {"a"}
    idle.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {"joiner.dev/disruption-paused": "true"}}}
    )
    idle.later(seconds=SOON.total_seconds())
    assert (idle.phases(), idle.tainted(), idle.told()) == (["ROLLED_BACK"], set(), set())


def test_the_same_decision_after_a_rollback_is_the_same_row() -> None:
    idle = Idle("a", budget="100%")
    idle.disrupt()
    idle.pod(on="node-a")
    idle.later(seconds=SOON.total_seconds())
    assert (idle.phases(), idle.tainted()) == (["ROLLED_BACK"], set())
    idle.api.delete("pods", "cart", "default", grace_period_seconds=0)
    idle.later()
    [row] = idle.table.rows(KIND)
    assert idle.phases() == ["PROPOSED"]
    assert row.version > 2


def test_a_command_is_told_of_once_for_each_step() -> None:
    idle = Idle("a", budget="100%")
    first = cycle.disrupt(idle.world(), "schedule")
    assert [(one.kind, one.verdict) for one in first.notes] == [
        ("Command", "PROPOSED"),
        ("Node", "PROPOSED"),
        ("Node", "disrupted"),
    ]
    known = {
        "OpenCommands": 1.0,
        "ProposedCommands": 1.0,
        "RolledBackCommands": 0.0,
        "DisruptionPauses": 0.0,
        "IntendedPauses": 0.0,
        "SavedUsdPerHour": 0.0,
    }
    assert {name: first.counts[name] for name in known} == known


def test_no_more_is_begun_than_there_is_time_for() -> None:
    idle = Idle("a", "b", budget="100%")
    world = idle.world()
    with leased(world, "planner") as fence:
        assert fence is not None
        course = begin(take(world), world, fence, judged)
        course.propose([idle.order("a"), idle.order("b")], lambda: bool(course.standings))
        assert len(course.standings) == 1
        course.propose([idle.order("a"), idle.order("b")])
        assert len(course.standings) == 2
        course.propose([idle.order("a")])
    assert idle.tainted() == {"a", "b"}


def test_a_step_that_can_no_longer_be_written_down_is_not_done() -> None:
    idle = Idle("a", budget="100%")
    idle.disrupt()
    idle.clock.advance(SOON)
    world = idle.world()
    with leased(world, "planner") as fence:
        assert fence is not None
        course = begin(take(world), world, STALE, judged)
        course.advance()
        assert course.is_lost
    assert (idle.phases(), idle.deleting(), course.outcomes) == (["PROPOSED"], set(), [])
