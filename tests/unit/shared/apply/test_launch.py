"""One CreateFleet, exactly once, wherever a function dies in between."""

import msgspec
import pytest

from shared.apply.launch import LAUNCH_GROUP_TTL, launch_instances
from shared.errors import Conflict, Fault, InsufficientCapacity, Invalid, NotFound
from shared.model.decisions.action import LaunchInstances
from shared.store.launch_groups import ROW_KIND
from shared.store.lease import LEASE_TTL, hold_lease
from sim.fault_tap import Killed, PortCall
from tests.support.actions_world import Outside
from tests.unit.shared.apply.launch_taps import (
    FIRST_LAUNCH_SITES,
    build_killing_tap,
    build_raising_tap,
    build_site_counter,
    launch_group,
    read_stored_group,
)


def test_list_of_crash_sites_is_complete() -> None:
    outside, met, site = Outside(), [], build_site_counter()
    launch_group(outside.build_launch_group(), outside.build_world(tap=lambda call: met.append(site(call))))
    assert [place for place in met if place != "table.read after"] == list(FIRST_LAUNCH_SITES)


def test_launch_group_is_stored_before_create_fleet_is_called() -> None:
    outside = Outside()
    group = outside.build_launch_group()

    def expect_stored_group(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "before":
            assert read_stored_group(outside) == group

    assert launch_group(group, outside.build_world(tap=expect_stored_group)).result is not None
    row = outside.table.read(ROW_KIND, "group")
    assert row is not None
    assert row.expires_at == outside.clock.get_time() + LAUNCH_GROUP_TTL


def test_stored_launch_group_takes_precedence_over_a_changed_request() -> None:
    outside = Outside()
    group = outside.build_launch_group()
    with pytest.raises(Killed):
        launch_group(group, outside.build_world(tap=build_killing_tap("ec2.create_fleet before")))
    changed_group = msgspec.structs.replace(
        group, claims=("b",), request=msgspec.structs.replace(group.request, capacity=3)
    )
    launched_group = launch_group(changed_group, outside.build_world())
    assert launched_group.claims == ("a",)
    assert len(outside.list_instances()) == 1


def test_launch_group_with_a_stored_result_is_not_sent_again() -> None:
    outside = Outside()
    first = launch_group(outside.build_launch_group(), outside.build_world())
    outside.calls.clear()
    assert launch_group(outside.build_launch_group(), outside.build_world()) == first
    assert outside.list_called_methods("ec2") == []


@pytest.mark.parametrize(
    ("code", "expected_code"), [("InvalidParameterValue", "InvalidParameterValue"), ("", "LaunchFailed")]
)
@pytest.mark.parametrize("method", ["create_fleet", "ensure_launch_template"])
def test_rejected_request_is_stored_as_a_launch_error(method: str, code: str, expected_code: str) -> None:
    outside = Outside()
    launched_group = launch_group(
        outside.build_launch_group(), outside.build_world(tap=build_raising_tap(method, Invalid("nonsense", code)))
    )
    assert launched_group.result is not None
    assert [(error.code, error.message) for error in launched_group.result.errors] == [(expected_code, "nonsense")]
    assert read_stored_group(outside) == launched_group
    assert outside.list_instances() == ()


@pytest.mark.parametrize("method", ["create_fleet", "ensure_launch_template"])
def test_insufficient_capacity_error_is_stored_as_the_launch_result(method: str) -> None:
    outside = Outside()
    words = "ec2:CreateFleet: InsufficientInstanceCapacity: no room"
    launched_group = launch_group(
        outside.build_launch_group(), outside.build_world(tap=build_raising_tap(method, InsufficientCapacity(words)))
    )
    assert launched_group.result is not None
    assert [(error.code, error.message) for error in launched_group.result.errors] == [
        ("InsufficientInstanceCapacity", words)
    ]
    assert read_stored_group(outside) == launched_group


def test_rejection_after_recreating_the_launch_template_is_a_launch_error() -> None:
    outside = Outside()
    faults: list[Fault] = [Invalid("nonsense", "InvalidParameterValue"), NotFound("template")]

    def raise_fault(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "before":
            raise faults.pop()

    launched_group = launch_group(outside.build_launch_group(), outside.build_world(tap=raise_fault))
    assert launched_group.result is not None
    assert [error.code for error in launched_group.result.errors] == ["InvalidParameterValue"]


def test_launch_template_deleted_before_create_fleet_is_created_again() -> None:
    outside = Outside()

    def collect(call: PortCall) -> None:
        if (
            call.method == "create_fleet"
            and call.phase == "before"
            and outside.list_called_methods("ec2").count("create_fleet") == 1
        ):
            for template in outside.list_templates():
                outside.cloud.templates.delete(template.name)

    launched_group = launch_group(outside.build_launch_group(), outside.build_world(tap=collect))
    assert outside.list_called_methods("ec2").count("create_fleet") == 2
    assert launched_group.result is not None
    assert len(launched_group.result.instances) == 1
    assert len(outside.list_templates()) == 1


def test_launch_template_deleted_twice_leaves_the_launch_to_the_next_cycle() -> None:
    outside = Outside()
    with pytest.raises(NotFound):
        launch_group(
            outside.build_launch_group(),
            outside.build_world(tap=build_raising_tap("create_fleet", NotFound("template"), times=2)),
        )
    group = read_stored_group(outside)
    assert group is not None
    assert group.result is None


def test_concurrent_write_of_the_launch_group_sends_no_fleet() -> None:
    outside = Outside()
    group = outside.build_launch_group()

    def write_group_first(call: PortCall) -> None:
        if call.method == "write" and call.phase == "before" and read_stored_group(outside) is None:
            outside.table.write(ROW_KIND, "group", msgspec.json.encode(group).decode(), version=0)

    with pytest.raises(Conflict):
        launch_group(group, outside.build_world(tap=write_group_first))
    assert outside.list_called_methods("ec2") == []


def test_lost_lease_prevents_storing_and_sending_the_launch_group() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as fence:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"), pytest.raises(Conflict):
            launch_instances(LaunchInstances(group=outside.build_launch_group()), outside.build_world("one"), fence)
    assert read_stored_group(outside) is None
    assert outside.list_called_methods("ec2") == []
    assert outside.list_instances() == ()


def test_launch_group_of_three_sent_twice_launches_three_instances() -> None:
    outside = Outside()
    launch_group(outside.build_launch_group(capacity=3), outside.build_world())
    launch_group(outside.build_launch_group(capacity=3), outside.build_world())
    assert len(outside.list_instances()) == 3
