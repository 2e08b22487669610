"""Plays of one misfortune each: that it strikes, is counted and told, and is recovered from."""

from typing import get_args

import pytest

from sim.fault_simulation.drawing.draw_script import draw_script
from sim.fault_simulation.events.script import Script, ScriptSetup
from sim.fault_simulation.events.script_events import (
    USER_ACTION_TYPES,
    AnyEvent,
    Batch,
    CallFailure,
    Doom,
    Drift,
    Erase,
    Impair,
    MessageKind,
    Notice,
    Release,
    Remove,
    Restaff,
    Retag,
    Scale,
    SlowDetach,
    format_event_kind,
)
from sim.fault_simulation.run import RunResult, run_script

WEB = (("web", 3),)


def run_play(setting: ScriptSetup, *events: AnyEvent, length: int = 300) -> RunResult:
    verdict = run_script(Script(seed=3, setup=setting, length_seconds=length, events=events))
    assert not verdict.violations, "\n".join(verdict.timeline)
    assert {name for name, _ in verdict.event_counts} == {format_event_kind(event) for event in events}, "\n".join(
        verdict.timeline
    )
    return verdict


def is_in_timeline(verdict: RunResult, words: str) -> bool:
    return any(words in line for line in verdict.timeline)


def test_every_event_type_is_drawn_and_counted_by_its_name() -> None:
    events = [event for seed in range(1, 400) for event in draw_script(seed).events]
    assert {type(event) for event in events} == set(get_args(AnyEvent))
    assert {event.shape for event in events if isinstance(event, Notice)} == set(get_args(MessageKind))
    assert format_event_kind(Doom(at=0, cause="called-off", position=0.0)) == "Doom called-off"
    assert format_event_kind(Erase(at=0, resource="nodeclaims.karpenter.sh", position=0.0)) == "Erase nodeclaims"
    assert format_event_kind(CallFailure(at=0, port="kube", fault="lost", ratio=0.1)) == "CallFailure kube lost"


def test_every_setup_option_varies_between_seeds() -> None:
    settings = [draw_script(seed).setup for seed in range(1, 200)]
    assert {setup.reaction for setup in settings} == {"tick", "watch", "logs"}
    names = ("budget_percent", "closed_after_minutes", "rebalance_policy", "second_pool_cpu", "has_static")
    for name in (*names, "reserved_count", "has_agent", "has_neighbor"):
        assert len({bool(getattr(setup, name)) for setup in settings}) == 2, name


def test_interruption_messages_that_always_fail_become_dead_letters_and_the_next_run_recovers() -> None:
    deaf = CallFailure(at=10, lasts=200, port="kube", fault="unreachable", ratio=1.0, function="interrupt")
    verdict = run_play(ScriptSetup(replicas=WEB), deaf, Doom(at=20, cause="stop", position=0.0))
    assert verdict.dead_letters > 0
    assert is_in_timeline(verdict, "interrupt: failed")


@pytest.mark.parametrize("shape", get_args(MessageKind))
def test_irrelevant_interruption_message_changes_nothing(shape: MessageKind) -> None:
    setting = ScriptSetup(replicas=WEB, has_neighbor=True)
    setup = Doom(at=10, cause="die", position=0.0)
    verdict = run_play(setting, setup, Notice(at=140, shape=shape, position=0.0), length=200)
    assert verdict.dead_letters == 0


@pytest.mark.parametrize("cause", ["terminate", "maintenance", "called-off", "rebalance"])
def test_instance_termination_maintenance_and_rebalance_events_are_recovered_from(cause: str) -> None:
    setting = ScriptSetup(replicas=WEB, rebalance_policy="drain")
    verdict = run_play(setting, Doom(at=20, lasts=15, cause=cause, position=0.0), length=120)  # type: ignore[arg-type] # a how
    assert is_in_timeline(verdict, f"Doom {cause}: i-")


def test_reserved_capacity_is_used_and_its_interruption_handled() -> None:
    verdict = run_play(ScriptSetup(replicas=WEB, reserved_count=2), Doom(at=20, cause="reservation", position=0.0))
    assert is_in_timeline(verdict, "m5.xlarge reserved us-east-1a pending")
    assert is_in_timeline(verdict, "EC2 Capacity Reservation Instance Interruption Warning")


def test_instance_with_a_failed_status_check_is_replaced() -> None:
    verdict = run_play(ScriptSetup(replicas=WEB), Impair(at=20, lasts=400, status_check="system", position=0.0))
    assert is_in_timeline(verdict, "shutting-down")


@pytest.mark.parametrize("with_node_class", [True, False])
def test_deleted_nodepool_terminates_its_instances_and_can_be_recreated(with_node_class: bool) -> None:  # noqa: FBT001
    setting = ScriptSetup(replicas=WEB, second_pool_cpu=8)
    verdict = run_play(
        setting, Remove(at=20, lasts=60, with_node_class=with_node_class), Scale(at=250, name="web", replicas=5)
    )
    started = [line for line in verdict.timeline if line.endswith("pending")]
    assert len(started) >= 2


def test_run_with_static_nodepool_daemonset_jobs_and_volumes_violates_no_invariant() -> None:
    setting = ScriptSetup(
        replicas=(("store", 2), ("web", 1)),
        has_agent=True,
        has_static=True,
        static_replicas=1,
        budget_percent="50%",
        closed_after_minutes=6,
    )
    verdict = run_play(
        setting,
        Batch(at=10, name="batch", pods=2, seconds=40),
        SlowDetach(at=15, lasts=200, seconds=60),
        Erase(at=150, resource="nodes", position=0.0),
        Restaff(at=60, replicas=2),
        length=400,
    )
    assert sum(line.endswith("pending") for line in verdict.timeline) >= 3


def test_nodes_drift_when_their_nodepool_node_class_or_ami_changes() -> None:
    setting = ScriptSetup(replicas=WEB, reaction="logs")
    events = (Drift(at=10, release="r1"), Retag(at=200, owner="b"), Release(at=400))
    verdict = run_play(setting, *events, length=900)
    assert all(isinstance(event, USER_ACTION_TYPES) for event in events)
    assert sum(line.endswith("shutting-down") for line in verdict.timeline) >= 3
