"""What else AWS says of machines, and what is done: they are broken, or will be touched, or not; late, early, twice."""

from datetime import timedelta

import pytest

from shared.model import labels
from shared.model.action import DeletePod, EvictPod
from shared.model.ec2 import CapacityReservation
from sim.cloud.machine import StatusCheck
from tests.scenario.test_world_interruption import is_fit
from tests.scenario.worlds import World, budget, deployment, node_class, notice, pool

KEPT = {labels.DO_NOT_DISRUPT: "true"}


def at_work(*more: dict[str, object], annotations: dict[str, str] | None = None) -> World:
    """Answer a world with three pods on one node."""
    world = World(node_class(), pool(after="Never"), deployment(3, annotations=annotations), *more)
    world.settled(3)
    world.until(lambda: all(is_fit(one) for one in world.claims()))
    return world


def hosts(world: World) -> set[str]:
    """Answer the instances that pods run on."""
    names = {one["spec"]["nodeName"] for one in world.running()}
    return {world.instance_of(one).instance_id for one in world.nodes() if one["metadata"]["name"] in names}


@pytest.mark.parametrize("check", ["instance", "system"])
def test_a_machine_that_fails_a_status_check_is_given_up_whatever_is_on_it(check: StatusCheck) -> None:
    world = at_work(budget(minAvailable=3), annotations=KEPT)
    (old,) = world.living()
    (claim,) = world.claims()
    world.forfeit.add(old.instance_id)
    world.cloud.impair(old.instance_id, check)
    world.seconds(115)
    assert [one.instance_id for one in world.living()] == [old.instance_id]
    world.until(lambda: world.done(DeletePod), within=90)
    assert len(world.done(DeletePod)) == 3
    assert world.done(EvictPod) == []
    assert any(check in one for one in world.events(claim["metadata"]["name"], "InstanceUnhealthy"))
    world.until(lambda: old.instance_id not in {one.instance_id for one in world.living()}, within=60)
    world.settled(3)


def test_a_status_check_that_fails_for_a_minute_is_nothing() -> None:
    world = at_work()
    (old,) = world.living()
    world.cloud.impair(old.instance_id, "instance")
    world.seconds(100)
    world.cloud.impair(old.instance_id, "instance", failing=False)
    world.seconds(300)
    assert [one.instance_id for one in world.living()] == [old.instance_id]


def test_statuses_that_cannot_be_read_break_nobody_and_are_named() -> None:
    world = at_work()
    (old,) = world.living()
    world.cloud.impair(old.instance_id, "system")
    with world.down("ec2.instance_statuses"):
        world.seconds(300)
    assert [one.instance_id for one in world.living()] == [old.instance_id]
    assert any("instance statuses" in one for one in world.problems())
    assert not world.errors()


def test_a_change_weeks_ahead_is_drained_for_at_once() -> None:
    world = at_work()
    (old,) = world.living()
    world.cloud.schedule_maintenance([old.instance_id])
    world.until(lambda: world.done(EvictPod), within=150)
    world.until(lambda: [one.instance_id for one in world.living()] != [old.instance_id], within=300)
    world.settled(3)


def test_a_change_whose_announcement_is_lost_is_found_by_the_tick() -> None:
    world = at_work()
    (old,) = world.living()
    world.runtime.copies = lambda queue, _: 0 if queue.endswith("interruption") else 1
    world.cloud.schedule_maintenance([old.instance_id])
    world.until(lambda: world.done(EvictPod), within=150)
    assert world.events(reason="InstanceUnhealthy")
    world.settled(3)
    world.until(lambda: len(world.living()) == 1, within=300)
    assert old.instance_id not in {one.instance_id for one in world.living()}


def test_a_change_that_is_called_off_before_it_was_heard_touches_nobody() -> None:
    world = at_work()
    (old,) = world.living()
    world.cloud.schedule_maintenance([old.instance_id])
    world.cloud.call_off_maintenance([old.instance_id])
    world.seconds(180)
    assert [one.instance_id for one in world.living()] == [old.instance_id]
    assert world.events(reason="ScheduledChangeCancelled")
    assert not world.events(reason="TerminatingOnInterruption")


def test_a_change_that_is_called_off_too_late_takes_no_deletion_back_and_says_so() -> None:
    world = at_work()
    (old,) = world.living()
    world.cloud.schedule_maintenance([old.instance_id])
    world.seconds(10)
    world.cloud.call_off_maintenance([old.instance_id])
    world.seconds(5)
    assert any("goes all the same" in one for one in world.events(reason="ScheduledChangeCancelled"))
    world.until(lambda: old.instance_id not in {one.instance_id for one in world.living()}, within=300)
    world.settled(3)
    assert len(world.launched) == 2


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_a_machine_that_is_said_to_stop_or_end_is_replaced(state: str) -> None:
    world = at_work()
    (old,) = world.living()
    world.forfeit.add(old.instance_id)
    world.interrupt(notice("EC2 Instance State-change Notification", old.instance_id, state=state))
    world.seconds(5)
    (claim,) = [one for one in world.claims() if "deletionTimestamp" in one["metadata"]]
    assert world.events(claim["metadata"]["name"], "TerminatingOnInterruption")
    world.until(lambda: len(world.launched) == 2, within=30)
    world.settled(3)
    world.until(lambda: len(world.claims()) == len(world.nodes()) == len(world.living()) == 1, within=300)


def test_the_end_before_its_warning_is_one_interruption() -> None:
    world = World(node_class(), pool(capacity=("spot",), after="Never"), deployment(3))
    world.settled(3)
    (old,) = world.living()
    world.forfeit.add(old.instance_id)
    world.interrupt(notice("EC2 Instance State-change Notification", old.instance_id, state="terminated"))
    world.interrupt(notice("EC2 Instance State-change Notification", old.instance_id, state="shutting-down"))
    world.seconds(10)
    world.interrupt(notice("EC2 Spot Instance Interruption Warning", old.instance_id))
    world.settled(3)
    world.until(lambda: len(world.claims()) == len(world.living()) == 1, within=300)
    assert (len(world.launched), world.errors()) == (2, [])


def test_reserved_capacity_that_is_wanted_back_is_left_within_two_minutes_and_not_asked_for_at_once() -> None:
    term = [{"id": "cr-0aaaaaaaaaaaaaaaa"}]
    world = World(pool(capacity=("reserved", "on-demand"), after="Never"), deployment(0))
    world.cloud.reservations.add(
        CapacityReservation(
            reservation_id="cr-0aaaaaaaaaaaaaaaa",
            instance_type="m5.xlarge",
            zone="us-east-1a",
            available_count=4,
            total_count=4,
        )
    )
    world.apply([node_class(capacityReservationSelectorTerms=term)])
    world.seconds(330)
    world.scale(3)
    world.settled(3)
    world.until(lambda: all(is_fit(one) for one in world.claims()))
    (old,) = world.living()
    assert old.capacity_type == "reserved"
    began = world.clock.now()
    world.cloud.reclaim_reserved(old.instance_id)
    world.until(lambda: len(world.launched) == 2, within=30)
    world.seconds(5)
    (new,) = [one for one in world.cloud.instances() if one.instance_id != old.instance_id]
    assert new.capacity_type == "on-demand"
    world.until(lambda: hosts(world) == {new.instance_id}, within=120)
    assert world.clock.now() - began < timedelta(minutes=2)
