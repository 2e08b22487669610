"""Other AWS notices about instances: failed status checks and scheduled changes; late, early, or duplicated."""

from datetime import timedelta

import pytest

from shared.model.core import labels
from shared.model.decisions.action import DeletePod, EvictPod
from shared.model.ec2.account import CapacityReservation
from sim.cloud.ec2.instance import StatusCheck
from tests.scenario.disruption.test_interruption import is_fit
from tests.scenario.worlds import (
    World,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
    make_pod_disruption_budget,
)

DO_NOT_DISRUPT_ANNOTATIONS = {labels.DO_NOT_DISRUPT: "true"}


def build_settled_world(*objects: dict[str, object], annotations: dict[str, str] | None = None) -> World:
    """Build a world with three pods on one node."""
    world = World(
        make_node_class(), make_node_pool(after="Never"), make_deployment(3, annotations=annotations), *objects
    )
    world.wait_until_settled(3)
    world.wait_until(lambda: all(is_fit(one) for one in world.list_claims()))
    return world


def list_pod_instances(world: World) -> set[str]:
    """Return the ids of the instances that pods run on."""
    names = {pod["spec"]["nodeName"] for pod in world.list_running_pods()}
    return {world.find_instance(node).instance_id for node in world.list_nodes() if node["metadata"]["name"] in names}


@pytest.mark.parametrize("check", ["instance", "system"])
def test_instance_with_failed_status_check_is_replaced_despite_pdb_and_do_not_disrupt(check: StatusCheck) -> None:
    world = build_settled_world(make_pod_disruption_budget(minAvailable=3), annotations=DO_NOT_DISRUPT_ANNOTATIONS)
    (old,) = world.list_active_instances()
    (claim,) = world.list_claims()
    world.forfeit.add(old.instance_id)
    world.cloud.instances.set_status_check(old.instance_id, check)
    world.advance_seconds(115)
    assert [instance.instance_id for instance in world.list_active_instances()] == [old.instance_id]
    world.wait_until(lambda: world.list_done_actions(DeletePod), timeout=90)
    assert len(world.list_done_actions(DeletePod)) == 3
    assert world.list_done_actions(EvictPod) == []
    assert any(check in event for event in world.list_events(claim["metadata"]["name"], "InstanceUnhealthy"))
    world.wait_until(
        lambda: old.instance_id not in {one.instance_id for one in world.list_active_instances()}, timeout=60
    )
    world.wait_until_settled(3)


def test_status_check_that_fails_for_one_minute_keeps_the_instance() -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.cloud.instances.set_status_check(old.instance_id, "instance")
    world.advance_seconds(100)
    world.cloud.instances.set_status_check(old.instance_id, "instance", failing=False)
    world.advance_seconds(300)
    assert [instance.instance_id for instance in world.list_active_instances()] == [old.instance_id]


def test_unreadable_instance_statuses_keep_all_instances_and_are_reported() -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.cloud.instances.set_status_check(old.instance_id, "system")
    with world.fail_ports("ec2.describe_instance_statuses"):
        world.advance_seconds(300)
    assert [instance.instance_id for instance in world.list_active_instances()] == [old.instance_id]
    assert any("instance statuses" in problem for problem in world.list_problems())
    assert not world.list_errors()


def test_scheduled_maintenance_weeks_ahead_drains_the_node_immediately() -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.cloud.schedule_maintenance([old.instance_id])
    world.wait_until(lambda: world.list_done_actions(EvictPod), timeout=150)
    world.wait_until(
        lambda: [one.instance_id for one in world.list_active_instances()] != [old.instance_id], timeout=300
    )
    world.wait_until_settled(3)


def test_scheduled_maintenance_without_its_event_is_found_by_the_scheduled_run() -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.runtime.count_copies = lambda queue, _: 0 if queue.endswith("interruption") else 1
    world.cloud.schedule_maintenance([old.instance_id])
    world.wait_until(lambda: world.list_done_actions(EvictPod), timeout=150)
    assert world.list_events(reason="InstanceUnhealthy")
    world.wait_until_settled(3)
    world.wait_until(lambda: len(world.list_active_instances()) == 1, timeout=300)
    assert old.instance_id not in {instance.instance_id for instance in world.list_active_instances()}


def test_scheduled_maintenance_cancelled_before_it_is_processed_keeps_the_instance() -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.cloud.schedule_maintenance([old.instance_id])
    world.cloud.cancel_maintenance([old.instance_id])
    world.advance_seconds(180)
    assert [instance.instance_id for instance in world.list_active_instances()] == [old.instance_id]
    assert world.list_events(reason="ScheduledChangeCancelled")
    assert not world.list_events(reason="TerminatingOnInterruption")


def test_scheduled_maintenance_cancelled_after_deletion_reports_that_the_node_still_terminates() -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.cloud.schedule_maintenance([old.instance_id])
    world.advance_seconds(10)
    world.cloud.cancel_maintenance([old.instance_id])
    world.advance_seconds(5)
    assert any("terminated anyway" in event for event in world.list_events(reason="ScheduledChangeCancelled"))
    world.wait_until(
        lambda: old.instance_id not in {one.instance_id for one in world.list_active_instances()}, timeout=300
    )
    world.wait_until_settled(3)
    assert len(world.launched) == 2


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_instance_with_a_stopping_or_terminating_state_change_event_is_replaced(state: str) -> None:
    world = build_settled_world()
    (old,) = world.list_active_instances()
    world.forfeit.add(old.instance_id)
    world.interrupt(make_ec2_message("EC2 Instance State-change Notification", old.instance_id, state=state))
    world.advance_seconds(5)
    (claim,) = [candidate for candidate in world.list_claims() if "deletionTimestamp" in candidate["metadata"]]
    assert world.list_events(claim["metadata"]["name"], "TerminatingOnInterruption")
    world.wait_until(lambda: len(world.launched) == 2, timeout=30)
    world.wait_until_settled(3)
    world.wait_until(
        lambda: len(world.list_claims()) == len(world.list_nodes()) == len(world.list_active_instances()) == 1,
        timeout=300,
    )


def test_state_change_event_before_the_spot_warning_counts_as_one_interruption() -> None:
    world = World(make_node_class(), make_node_pool(capacity=("spot",), after="Never"), make_deployment(3))
    world.wait_until_settled(3)
    (old,) = world.list_active_instances()
    world.forfeit.add(old.instance_id)
    world.interrupt(make_ec2_message("EC2 Instance State-change Notification", old.instance_id, state="terminated"))
    world.interrupt(make_ec2_message("EC2 Instance State-change Notification", old.instance_id, state="shutting-down"))
    world.advance_seconds(10)
    world.interrupt(make_ec2_message("EC2 Spot Instance Interruption Warning", old.instance_id))
    world.wait_until_settled(3)
    world.wait_until(lambda: len(world.list_claims()) == len(world.list_active_instances()) == 1, timeout=300)
    assert (len(world.launched), world.list_errors()) == (2, [])


def test_interrupted_reserved_instance_is_replaced_on_demand_within_two_minutes() -> None:
    term = [{"id": "cr-0aaaaaaaaaaaaaaaa"}]
    world = World(make_node_pool(capacity=("reserved", "on-demand"), after="Never"), make_deployment(0))
    world.cloud.reservations.add(
        CapacityReservation(
            reservation_id="cr-0aaaaaaaaaaaaaaaa",
            instance_type="m5.xlarge",
            zone="us-east-1a",
            available_count=4,
            total_count=4,
        )
    )
    world.apply([make_node_class(capacityReservationSelectorTerms=term)])
    world.advance_seconds(330)
    world.scale(3)
    world.wait_until_settled(3)
    world.wait_until(lambda: all(is_fit(one) for one in world.list_claims()))
    (old,) = world.list_active_instances()
    assert old.capacity_type == "reserved"
    began = world.clock.get_time()
    world.cloud.instances.interrupt_reserved(old.instance_id)
    world.wait_until(lambda: len(world.launched) == 2, timeout=30)
    world.advance_seconds(5)
    (new,) = [instance for instance in world.cloud.instances.describe_all() if instance.instance_id != old.instance_id]
    assert new.capacity_type == "on-demand"
    world.wait_until(lambda: list_pod_instances(world) == {new.instance_id}, timeout=120)
    assert world.clock.get_time() - began < timedelta(minutes=2)
