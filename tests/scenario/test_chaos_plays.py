"""Plays of one misfortune each: that it strikes, is counted and told, and is recovered from."""

from typing import get_args

import pytest

from sim.chaos.draw import script_of
from sim.chaos.events import (
    WORK,
    AnyEvent,
    Batch,
    Doom,
    Drift,
    Erase,
    Impair,
    Notice,
    Release,
    Remove,
    Restaff,
    Retag,
    Scale,
    Shape,
    SlowDetach,
    Trouble,
    name_of,
)
from sim.chaos.run import Verdict, play
from sim.chaos.script import Script, Setting

WEB = (("web", 3),)


def played(setting: Setting, *events: AnyEvent, length: int = 300) -> Verdict:
    verdict = play(Script(seed=3, setting=setting, length=length, events=events))
    assert not verdict.violations, "\n".join(verdict.timeline)
    assert {name for name, _ in verdict.happened} == {name_of(one) for one in events}, "\n".join(verdict.timeline)
    return verdict


def told(verdict: Verdict, words: str) -> bool:
    return any(words in line for line in verdict.timeline)


def test_every_kind_of_event_is_drawn_and_counted_by_its_name() -> None:
    drawn = [event for seed in range(1, 400) for event in script_of(seed).events]
    assert {type(one) for one in drawn} == set(get_args(AnyEvent))
    assert {one.shape for one in drawn if isinstance(one, Notice)} == set(get_args(Shape))
    assert name_of(Doom(at=0, how="called-off", which=0.0)) == "Doom called-off"
    assert name_of(Erase(at=0, what="nodeclaims.karpenter.sh", which=0.0)) == "Erase nodeclaims"
    assert name_of(Trouble(at=0, port="kube", fault="lost", share=0.1)) == "Trouble kube lost"


def test_every_play_has_something_that_others_have_not() -> None:
    settings = [script_of(seed).setting for seed in range(1, 200)]
    assert {one.reaction for one in settings} == {"tick", "watch", "logs"}
    for name in ("percent", "closed", "rebalance", "second_cpu", "has_static", "reserved", "agent", "neighbour"):
        assert len({bool(getattr(one, name)) for one in settings}) == 2, name


def test_notices_that_cannot_be_read_to_end_are_given_up_and_the_tick_heals_it() -> None:
    deaf = Trouble(at=10, lasts=200, port="kube", fault="unreachable", share=1.0, function="interrupt")
    verdict = played(Setting(replicas=WEB), deaf, Doom(at=20, how="stop", which=0.0))
    assert verdict.dead_letters > 0
    assert told(verdict, "interrupt: failed")


@pytest.mark.parametrize("shape", get_args(Shape))
def test_a_message_that_means_nothing_changes_nothing(shape: Shape) -> None:
    setting = Setting(replicas=WEB, neighbour=True)
    setup = Doom(at=10, how="die", which=0.0)
    verdict = played(setting, setup, Notice(at=140, shape=shape, which=0.0), length=200)
    assert verdict.dead_letters == 0


@pytest.mark.parametrize("how", ["terminate", "maintenance", "called-off", "rebalance"])
def test_what_befalls_a_machine_is_told_and_recovered_from(how: str) -> None:
    setting = Setting(replicas=WEB, rebalance="drain")
    verdict = played(setting, Doom(at=20, lasts=15, how=how, which=0.0), length=120)  # type: ignore[arg-type] # a how
    assert told(verdict, f"Doom {how}: i-")


def test_reserved_capacity_is_used_and_may_be_taken_back() -> None:
    verdict = played(Setting(replicas=WEB, reserved=2), Doom(at=20, how="reservation", which=0.0))
    assert told(verdict, "m5.xlarge reserved us-east-1a pending")
    assert told(verdict, "EC2 Capacity Reservation Instance Interruption Warning")


def test_a_machine_that_fails_its_status_check_is_replaced() -> None:
    verdict = played(Setting(replicas=WEB), Impair(at=20, lasts=400, of="system", which=0.0))
    assert told(verdict, "shutting-down")


@pytest.mark.parametrize("whole", [True, False])
def test_a_pool_that_is_deleted_takes_its_machines_along_and_may_come_back(whole: bool) -> None:  # noqa: FBT001
    setting = Setting(replicas=WEB, second_cpu=8)
    verdict = played(setting, Remove(at=20, lasts=60, whole=whole), Scale(at=250, name="web", replicas=5))
    started = [line for line in verdict.timeline if line.endswith("pending")]
    assert len(started) >= 2


def test_disks_daemons_jobs_and_a_static_pool_come_and_go() -> None:
    setting = Setting(
        replicas=(("store", 2), ("web", 1)), agent=True, has_static=True, static=1, percent="50%", closed=6
    )
    verdict = played(
        setting,
        Batch(at=10, name="batch", pods=2, seconds=40),
        SlowDetach(at=15, lasts=200, seconds=60),
        Erase(at=150, what="nodes", which=0.0),
        Restaff(at=60, replicas=2),
        length=400,
    )
    assert sum(line.endswith("pending") for line in verdict.timeline) >= 3


def test_nodes_drift_with_their_pool_their_class_and_their_image() -> None:
    setting = Setting(replicas=WEB, reaction="logs")
    events = (Drift(at=10, release="r1"), Retag(at=200, owner="b"), Release(at=400))
    verdict = played(setting, *events, length=900)
    assert all(isinstance(one, WORK) for one in events)
    assert sum(line.endswith("shutting-down") for line in verdict.timeline) >= 3
