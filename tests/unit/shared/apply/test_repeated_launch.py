"""A launch that was sent before, whatever EC2 returns for its client token: no instance is doubled, none is lost."""

from datetime import timedelta

import msgspec
import pytest

from shared.apply.launch import CONFIRMATION_PERIOD
from shared.errors import Conflict, Fault, InsufficientCapacity, NotFound, Throttled, Unreachable
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.store.launch_groups import ROW_KIND
from sim.cloud.ec2.fleet import REPLAY_ANSWERS, ReplayAnswer
from sim.fault_tap import Killed, PortCall, Tap
from tests.support.actions_world import Outside
from tests.unit.shared.apply.launch_taps import (
    FIRST_LAUNCH_SITES,
    build_killing_tap,
    build_raising_tap,
    build_site_counter,
    launch_group,
    read_stored_group,
)

REPEATED_SITES = (
    *FIRST_LAUNCH_SITES[:7],
    "ec2.describe_launch_group before",
    "ec2.describe_launch_group after",
    *FIRST_LAUNCH_SITES[7:],
)
"""The calls of a repetition to which EC2 responds without instances."""


@pytest.fixture(params=REPLAY_ANSWERS)
def outside(request: pytest.FixtureRequest) -> Outside:
    outside = Outside()
    outside.cloud.fleets.replay_answer = request.param
    return outside


def kill_at(outside: Outside, group: LaunchGroup, site: str) -> None:
    """Launch *group*, and die at *site*."""
    with pytest.raises(Killed):
        launch_group(group, outside.build_world(tap=build_killing_tap(site)))


def launch_until_confirmed(outside: Outside, group: LaunchGroup, tap: Tap | None = None) -> LaunchGroup:
    """Launch *group* once a minute, as scheduled runs do, until the result is known."""
    for _ in range(5):
        try:
            return launch_group(group, outside.build_world(tap=tap))
        except (Conflict, Unreachable):
            outside.clock.advance(timedelta(minutes=1))
    raise AssertionError("the result is not known after 5m")


def list_result_ids(group: LaunchGroup) -> list[str]:
    assert group.result is not None
    return [instance.instance_id for instance in group.result.instances]


@pytest.mark.parametrize("site", FIRST_LAUNCH_SITES)
def test_launch_is_repeated_after_a_crash_without_a_second_fleet(outside: Outside, site: str) -> None:
    group = outside.build_launch_group(capacity=2)
    kill_at(outside, group, site)
    launched_group = launch_until_confirmed(outside, group)
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.list_instances()]
    assert len(list_result_ids(launched_group)) == 2
    assert read_stored_group(outside) == launched_group


def test_the_sites_of_a_repetition_are_all_there_are() -> None:
    outside, met, site = Outside(), [], build_site_counter()
    outside.cloud.fleets.replay_answer = "empty"
    group = outside.build_launch_group()
    kill_at(outside, group, "ec2.create_fleet after")
    outside.clock.advance(timedelta(minutes=1))
    launch_group(group, outside.build_world(tap=lambda call: met.append(site(call))))
    assert [place for place in met if place != "table.read after"] == list(REPEATED_SITES)


@pytest.mark.parametrize("first_site", ["ec2.create_fleet before", "ec2.create_fleet after"])
@pytest.mark.parametrize("site", REPEATED_SITES)
def test_repeated_launch_is_repeated_again_after_a_crash(outside: Outside, first_site: str, site: str) -> None:
    group = outside.build_launch_group(capacity=2)
    kill_at(outside, group, first_site)
    outside.clock.advance(timedelta(seconds=1))  # DescribeInstances shows nothing yet
    try:
        launch_group(group, outside.build_world(tap=build_killing_tap(site)))
    except (Killed, Unreachable):
        outside.clock.advance(timedelta(minutes=1))
    launched_group = launch_until_confirmed(outside, group)
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.list_instances()]
    assert len(list_result_ids(launched_group)) == 2


def test_instances_that_are_not_listed_yet_are_awaited(outside: Outside) -> None:
    group = outside.build_launch_group()
    kill_at(outside, group, "ec2.create_fleet after")
    outside.cloud.instances.describe_lag = timedelta(seconds=90)
    launched_group = launch_until_confirmed(outside, group)
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.cloud.instances.list_all()]
    assert launched_group.unconfirmed_since is None


@pytest.mark.parametrize("answer", ["empty", "rejected"])
def test_a_part_of_the_instances_is_the_result_only_after_the_lag_of_lists(answer: ReplayAnswer) -> None:
    outside = Outside()
    outside.cloud.fleets.replay_answer = answer
    group = outside.build_launch_group(capacity=2)
    kill_at(outside, group, "ec2.create_fleet after")
    first_id, second_id = (instance.instance_id for instance in outside.list_instances())
    outside.cloud.terminate_instances([first_id])
    began_at = outside.clock.get_time()
    launched_group = launch_until_confirmed(outside, group)
    assert outside.clock.get_time() - began_at >= CONFIRMATION_PERIOD
    assert list_result_ids(launched_group) == [second_id]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("empty", "too few instances returned"),
        ("rejected", "IdempotentParameterMismatch"),
        ("original", "InsufficientInstanceCapacity"),
    ],
)
def test_launch_group_without_launched_instances_ends_without_instances(answer: ReplayAnswer, code: str) -> None:
    outside = Outside()
    outside.cloud.fleets.replay_answer = answer
    group = outside.build_launch_group()
    outside.cloud.set_capacity(0)
    kill_at(outside, group, "ec2.create_fleet after")
    began_at = outside.clock.get_time()
    launched_group = launch_until_confirmed(outside, group)
    assert launched_group.result is not None
    assert [error.code for error in launched_group.result.errors] == [code]
    assert (outside.clock.get_time() - began_at >= CONFIRMATION_PERIOD) is (answer != "original")
    assert outside.list_instances() == ()
    assert read_stored_group(outside) == launched_group


@pytest.mark.parametrize("fault", [NotFound("template"), InsufficientCapacity("ec2:CreateFleet: no capacity")])
def test_rejected_repetition_finds_the_launched_instances(fault: Fault) -> None:
    outside = Outside()
    group = outside.build_launch_group()
    kill_at(outside, group, "ec2.create_fleet after")
    outside.clock.advance(timedelta(minutes=1))
    launched_group = launch_group(group, outside.build_world(tap=build_raising_tap("create_fleet", fault, times=2)))
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.list_instances()]


@pytest.mark.parametrize("when", ["before", "after"])
def test_throttled_create_fleet_is_repeated_with_the_same_token(outside: Outside, when: str) -> None:
    group = outside.build_launch_group()
    with pytest.raises(Throttled):
        launch_group(group, outside.build_world(tap=build_raising_tap("create_fleet", Throttled("later"), when)))
    assert len(list_result_ids(launch_until_confirmed(outside, group))) == 1
    assert len(outside.list_instances()) == 1


def test_sender_that_lost_its_lease_uses_the_stored_result(outside: Outside) -> None:
    group = outside.build_launch_group()

    def launch_group_first(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "after":
            outside.clock.advance(timedelta(minutes=1))
            launch_group(group, outside.build_world("two"))

    launched_group = launch_group(group, outside.build_world("one", tap=launch_group_first))
    assert read_stored_group(outside) == launched_group
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.list_instances()]


def test_suspended_sender_records_no_result_after_a_repeated_launch(outside: Outside) -> None:
    group = outside.build_launch_group()

    def repeat_and_die(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "before":
            kill_at(outside, group, "ec2.create_fleet after")

    with pytest.raises(Conflict, match="another process repeats the request"):
        launch_group(group, outside.build_world("one", tap=repeat_and_die))
    outside.clock.advance(timedelta(minutes=1))
    launched_group = launch_until_confirmed(outside, group)
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.list_instances()]


@pytest.mark.parametrize("site", ["ec2.create_fleet after", ""])
def test_unreadable_launch_row_is_written_again_and_nothing_is_launched_twice(outside: Outside, site: str) -> None:
    group = outside.build_launch_group()
    if site:
        kill_at(outside, group, site)
    else:
        launch_group(group, outside.build_world())
    row = outside.table.read(ROW_KIND, group.name)
    assert row is not None
    outside.table.write(ROW_KIND, group.name, "{nonsense", version=row.version, expires_at=row.expires_at)
    launched_group = launch_until_confirmed(outside, group)
    assert list_result_ids(launched_group) == [instance.instance_id for instance in outside.list_instances()]
    assert len(list_result_ids(launched_group)) == 1
    assert read_stored_group(outside) == launched_group


def test_without_a_repetition_no_instances_are_listed() -> None:
    outside = Outside()
    outside.cloud.set_capacity(0)
    launched_group = launch_group(outside.build_launch_group(), outside.build_world())
    assert launched_group.result is not None
    assert "describe_launch_group" not in outside.list_called_methods("ec2")
    assert msgspec.json.decode(msgspec.json.encode(launched_group), type=LaunchGroup) == launched_group
