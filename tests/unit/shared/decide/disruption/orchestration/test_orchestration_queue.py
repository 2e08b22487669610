"""Command rows: written before a command acts, only with the lease, and read again by later runs."""

from datetime import timedelta

import msgspec
import pytest

from shared.cycles import disrupt
from shared.cycles.setup.decision_driver import DecisionDriver, run_decision
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.orchestration import orchestration_queue
from shared.decide.disruption.orchestration.orchestration_queue import OrchestrationQueue, build_orchestration_queue
from shared.decide.disruption.pauses import PauseSettings
from shared.errors import Conflict, Invalid, Unreachable
from shared.model.core.metadata import Problem
from shared.model.decisions.command import CommandState
from shared.model.decisions.decision_requests import DecisionProcess
from shared.model.decisions.placement import SchedulingOptions
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.state.cluster_state import ClusterState
from shared.store.commands import (
    COMMAND_KIND,
    CURSOR_KIND,
    ENDED_COMMAND_TTL,
    MAX_ROWS_DELETED_PER_CYCLE,
    delete_old_commands,
    read_commands,
    read_cursor,
    write_command,
    write_cursor,
)
from shared.store.lease import hold_lease
from shared.take.snapshot import take_snapshot
from sim.fault_tap import PortCall
from tests.support.command_cases import approve_command, make_command, make_command_state
from tests.support.disrupted_world import STAGES, Idle
from tests.support.lifecycle_cases import Case, replace_fields

STALE = FencingToken(name="planner", version=99)
AFTER_VALIDATION_DELAY = timedelta(seconds=6)


@pytest.fixture
def queued_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command be valid."""

    def accept_command(cluster_state: Case, command: Case, *_: Case, **__: Case) -> None:
        approve_command(cluster_state, command)

    monkeypatch.setattr(orchestration_queue, "validate_command", accept_command)


def load_queue(world: World) -> OrchestrationQueue:
    return build_orchestration_queue(
        ClusterState(take_snapshot(world)),
        read_commands(world, []).values(),
        PauseSettings(),
        SchedulingOptions(),
        DisruptionSettings(),
        is_stopped=False,
    )


def run_queue(queue: OrchestrationQueue, process: DecisionProcess[None], world: World, fence: FencingToken) -> None:
    run_decision(process, DecisionDriver(world, fence, queue.cluster_state.snapshot).perform_request)


def write_command_row(idle: Idle, command_state: CommandState) -> TableRow:
    world = idle.build_world()
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        write_command(command_state, world, fence)
    [row] = idle.table.list_rows(COMMAND_KIND)
    return row


# Rows


def test_command_row_round_trips() -> None:
    idle = Idle()
    command_state = make_command_state(
        replace_fields(make_command("a", replacements=("new",)), nominations=(("shop/cart", "new"),)),
        since=idle.clock.get_time(),
    )
    row = write_command_row(idle, command_state)
    assert (row.version, row.expires_at) == (1, None)
    assert read_commands(idle.build_world(), []) == {
        row.name: replace_fields(command_state, version=1, fencing_token=1)
    }


def test_ended_command_is_kept_without_details_until_its_ttl() -> None:
    idle = Idle()
    command_state = make_command_state(
        replace_fields(make_command("a", replacements=("new",)), nominations=(("shop/cart", "new"),)),
        "DONE",
        since=idle.clock.get_time(),
    )
    row = write_command_row(idle, command_state)
    assert row.expires_at == idle.clock.get_time() + ENDED_COMMAND_TTL
    [read] = read_commands(idle.build_world(), []).values()
    assert [replacement.claim.name for replacement in read.command.replacements] == ["new"]
    assert (read.command.nominations, read.command.replacements[0].message) == ((), "")


@pytest.mark.parametrize(("workloads", "kept_hours"), [(("shop/Deployment/web",), 4), ((), 1)])
def test_row_of_an_ended_command_is_kept_for_the_cooldown_of_its_workloads(
    workloads: tuple[str, ...], kept_hours: int
) -> None:
    idle = Idle()
    world = idle.build_world()
    world = replace_fields(world, settings=replace_fields(world.settings, workload_cooldown="4h"))
    command = replace_fields(make_command("a"), workloads=workloads)
    command_state = make_command_state(command, "DONE", since=idle.clock.get_time())
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        write_command(command_state, world, fence)
    [row] = idle.table.list_rows(COMMAND_KIND)
    assert row.expires_at == idle.clock.get_time() + timedelta(hours=kept_hours)
    for hours, is_kept in ((kept_hours, True), (kept_hours + 0.1, False)):
        command_states = read_commands(world, [])
        ended_at = idle.clock.get_time() - timedelta(hours=hours)
        command_states = {name: replace_fields(state, phase_since=ended_at) for name, state in command_states.items()}
        delete_old_commands(command_states, world)
        assert bool(command_states) is is_kept


def test_unreadable_command_row_is_reported() -> None:
    idle = Idle()
    idle.table.write(COMMAND_KIND, "odd", "{", version=0)
    problems: list[Problem] = []
    assert read_commands(idle.build_world(), problems) == {}
    assert [(problem.kind, problem.name) for problem in problems] == [(COMMAND_KIND, "odd")]
    assert "remove the row" in problems[0].message


def test_controller_without_the_lease_writes_no_rows() -> None:
    idle = Idle()
    with pytest.raises(Conflict):
        write_command(make_command_state(make_command("a")), idle.build_world(), STALE)
    write_cursor(TableRow(kind=CURSOR_KIND, name="disrupt", version=0, body=""), "node-a", idle.build_world(), STALE)
    assert idle.table.list_rows(COMMAND_KIND) == idle.table.list_rows(CURSOR_KIND) == ()


def test_search_cursor_is_stored_for_the_next_run() -> None:
    idle = Idle()
    world = idle.build_world()
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        first = read_cursor(world)
        assert first.body == ""
        write_cursor(first, "", world, fence)
        assert idle.table.list_rows(CURSOR_KIND) == ()
        write_cursor(first, "node-a", world, fence)
        assert read_cursor(world).body == "node-a"
        write_cursor(read_cursor(world), "", world, fence)
    assert read_cursor(idle.build_world()).body == ""


def test_expired_command_rows_are_deleted_a_limited_number_per_run() -> None:
    idle = Idle()
    idle.create_claimed_node("a")
    for number in range(MAX_ROWS_DELETED_PER_CYCLE + 2):
        idle.store_command(idle.make_command("a", replacements=(f"new-{number}",)), phase="DONE")
    idle.clock.advance(ENDED_COMMAND_TTL)
    idle.api.delete("nodes", "node-a")
    idle.disrupt()
    assert len(idle.list_phases()) == MAX_ROWS_DELETED_PER_CYCLE + 2
    idle.advance_and_disrupt()
    assert len(idle.list_phases()) == 2
    idle.advance_and_disrupt()
    assert idle.list_phases() == []


# A cycle


def test_empty_node_is_proposed_in_one_run_and_deleted_after_the_validation_delay() -> None:
    idle = Idle("a", "b")
    idle.disrupt()
    assert (
        idle.list_phases(),
        idle.list_tainted_claims(),
        idle.list_claims_with_reason(),
        idle.list_deleting_claims(),
    ) == (["PROPOSED"], {"a"}, {"a"}, set())
    idle.advance_and_disrupt(seconds=4)
    assert idle.list_deleting_claims() == set()
    idle.advance_and_disrupt(seconds=1)
    assert (idle.list_phases(), idle.list_deleting_claims()) == (["INITIALIZED"], {"a"})
    idle.advance_and_disrupt()
    assert idle.list_phases() == ["DRAINING"]
    assert idle.list_deleting_claims() == {"a"}


def test_replacement_is_initialized_before_its_node_is_deleted() -> None:
    idle = Idle(budget="100%")
    idle.create_claimed_node("a", drifted=True)
    idle.store_command(idle.make_command("a", replacements=("new",)))
    idle.disrupt()
    idle.advance_and_disrupt()
    assert (idle.list_phases(), idle.list_replacement_claims(), idle.list_deleting_claims()) == (
        ["LAUNCHED"],
        {"new"},
        set(),
    )
    idle.advance_and_disrupt()
    assert (idle.list_phases(), idle.list_deleting_claims()) == (["LAUNCHED"], set())
    idle.bring_up_node("new", STAGES[:3])
    idle.advance_and_disrupt()
    assert (idle.list_phases(), idle.list_deleting_claims()) == (["INITIALIZED"], {"a"})
    assert sorted(function for function, _, _ in idle.post.sent if function != "disrupt") == ["lifecycle", "provision"]


def test_taints_and_conditions_are_removed_when_the_command_rows_are_lost() -> None:
    idle = Idle("a", "b")
    idle.store_command(idle.make_command("a", replacements=("new",)))
    idle.disrupt()
    idle.create_claim("new")
    for row in idle.table.list_rows(COMMAND_KIND):
        idle.table.remove(COMMAND_KIND, row.name, version=row.version)
    idle.api.patch("nodepools.karpenter.sh", "default", {"spec": {"disruption": {"consolidateAfter": "Never"}}})
    idle.advance_and_disrupt()
    assert (idle.list_tainted_claims(), idle.list_claims_with_reason(), idle.list_phases()) == (set(), set(), [])
    assert {node_claim["metadata"]["name"] for node_claim in idle.api.list("nodeclaims.karpenter.sh")} == {
        "a",
        "b",
        "new",
    }


def test_plan_mode_writes_no_rows_and_advances_no_commands() -> None:
    idle = Idle("a")
    idle.store_command(idle.make_command("a"))
    before = idle.table.list_rows(COMMAND_KIND)
    report = disrupt.run_disrupt(idle.build_world(mode="plan"), "schedule")
    assert (idle.table.list_rows(COMMAND_KIND), idle.list_tainted_claims()) == (before, set())
    assert {outcome.result for outcome in report.outcomes} <= {"skipped"}
    assert [note.verdict for note in report.notes if note.kind == "Node"] == []
    fresh_world = Idle("a")
    report = disrupt.run_disrupt(fresh_world.build_world(mode="plan"), "schedule")
    assert [note.verdict for note in report.notes] == ["disrupted"]
    assert fresh_world.table.list_rows(COMMAND_KIND) == ()


def test_controller_that_loses_its_lease_during_a_run_stops_acting() -> None:
    idle = Idle("a", "b", budget="100%")

    def steal_lease(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("table", "list_rows", "after"):
            row = idle.table.read("lease", "planner")
            assert row is not None
            idle.table.write("lease", "planner", "{}", version=row.version)

    report = disrupt.run_disrupt(idle.build_world(tap=steal_lease), "schedule")
    assert (idle.list_tainted_claims(), idle.list_phases()) == (set(), [])
    assert report.counts["OpenCommands"] == 0


def test_command_that_cannot_be_recorded_is_reported_and_not_started() -> None:
    idle = Idle("a", budget="100%")

    def refuse_write(call: PortCall) -> None:
        if (call.port, call.method, call.detail, call.phase) == ("table", "write", COMMAND_KIND, "before"):
            raise Invalid("item too large", code="ValidationException")

    report = disrupt.run_disrupt(idle.build_world(tap=refuse_write), "schedule")
    assert idle.list_tainted_claims() == set()
    assert ["cannot be recorded: item too large" in problem.message for problem in report.problems] == [True]
    idle.advance_and_disrupt()
    assert idle.list_phases() == ["PROPOSED"]


@pytest.mark.usefixtures("queued_world")
def test_failed_replacement_creation_is_repeated_by_the_next_run() -> None:
    idle = Idle("a", budget="100%")
    idle.store_command(idle.make_command("a", replacements=("new",)))
    idle.table.write(COMMAND_KIND, *_build_validated_row(idle), version=1)

    def refuse_create(call: PortCall) -> None:
        if (call.method, call.phase) == ("create", "before") and call.detail.endswith("nodeclaims"):
            raise Unreachable("no answer")

    world = idle.build_world(tap=refuse_create)
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        queue = load_queue(world)
        run_queue(queue, queue.advance_commands(), world, fence)
        assert [command_state.phase for command_state in queue.command_states.values()] == ["VALIDATED"]
    world = idle.build_world()
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        queue = load_queue(world)
        run_queue(queue, queue.advance_commands(), world, fence)
        assert [command_state.phase for command_state in queue.command_states.values()] == ["LAUNCHED"]


def _build_validated_row(idle: Idle) -> tuple[str, str]:
    [(name, command_state)] = idle.read_command_states().items()
    return name, msgspec.json.encode(replace_fields(command_state, phase="VALIDATED")).decode()


def test_paused_disruption_starts_no_command_and_is_reported() -> None:
    idle = Idle("a", "b", budget="100%")
    idle.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {"joiner.dev/disruption-paused": "Empty"}}}
    )
    report = disrupt.run_disrupt(idle.build_world(), "schedule")
    assert (idle.list_phases(), idle.list_tainted_claims()) == ([], set())
    assert (report.counts["OperatorDisruptionPauses"], report.counts["AutomaticDisruptionPauses"]) == (1, 0)
    assert ("NodePool", "default", "DisruptionPaused") in {
        (note.kind, note.name, note.verdict) for note in report.notes
    }
    assert [event["reason"] for event in idle.api.list("events") if event["involvedObject"]["kind"] == "NodePool"] == [
        "DisruptionPaused"
    ]


def test_pause_rolls_back_proposed_commands() -> None:
    idle = Idle("a", budget="100%")
    idle.disrupt()
    assert idle.list_tainted_claims() == {"a"}
    idle.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {"joiner.dev/disruption-paused": "true"}}}
    )
    idle.advance_and_disrupt(seconds=AFTER_VALIDATION_DELAY.total_seconds())
    assert (idle.list_phases(), idle.list_tainted_claims(), idle.list_claims_with_reason()) == (
        ["ROLLED_BACK"],
        set(),
        set(),
    )


def test_repeated_decision_after_a_rollback_reuses_the_command_row() -> None:
    idle = Idle("a", budget="100%")
    idle.disrupt()
    idle.create_pod(on="node-a")
    idle.advance_and_disrupt(seconds=AFTER_VALIDATION_DELAY.total_seconds())
    assert (idle.list_phases(), idle.list_tainted_claims()) == (["ROLLED_BACK"], set())
    idle.api.delete("pods", "cart", "default", grace_period_seconds=0)
    idle.advance_and_disrupt()
    [row] = idle.table.list_rows(COMMAND_KIND)
    assert idle.list_phases() == ["PROPOSED"]
    assert row.version > 2


def test_command_is_reported_once_per_phase() -> None:
    idle = Idle("a", budget="100%")
    first = disrupt.run_disrupt(idle.build_world(), "schedule")
    assert [(note.kind, note.verdict) for note in first.notes] == [
        ("Command", "PROPOSED"),
        ("Node", "PROPOSED"),
        ("Node", "disrupted"),
    ]
    expected_counts = {
        "OpenCommands": 1.0,
        "ProposedCommands": 1.0,
        "RolledBackCommands": 0.0,
        "AutomaticDisruptionPauses": 0.0,
        "OperatorDisruptionPauses": 0.0,
        "SavingsUsdPerHour": 0.0,
    }
    assert {name: first.counts[name] for name in expected_counts} == expected_counts


@pytest.mark.usefixtures("queued_world")
def test_commands_are_started_only_within_the_time_limit() -> None:
    idle = Idle("a", "b", budget="100%")
    world = idle.build_world()
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        queue, commands = load_queue(world), [idle.make_command("a"), idle.make_command("b")]
        run_queue(queue, queue.begin_commands(commands, lambda: bool(queue.command_states)), world, fence)
        assert len(queue.command_states) == 1
        run_queue(queue, queue.begin_commands(commands), world, fence)
        assert len(queue.command_states) == 2
        run_queue(queue, queue.begin_commands(commands[:1]), world, fence)
    assert idle.list_tainted_claims() == {"a", "b"}


@pytest.mark.usefixtures("queued_world")
def test_command_step_that_cannot_be_recorded_is_not_executed() -> None:
    idle = Idle("a", budget="100%")
    idle.disrupt()
    idle.clock.advance(AFTER_VALIDATION_DELAY)
    world = idle.build_world()
    with hold_lease(world, "planner") as fence:
        assert fence is not None
        queue = load_queue(world)
        run_queue(queue, queue.advance_commands(), world, STALE)
        assert queue.is_stopped
    assert (idle.list_phases(), idle.list_deleting_claims(), queue.outcomes) == (["PROPOSED"], set(), [])
