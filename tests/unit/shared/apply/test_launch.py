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
    build_killing_tap,
    build_raising_tap,
    build_site_counter,
    launch_group,
    read_stored_group,
)

SITES = (
    "table.read before",
    "table.write before",
    "table.write after",
    "ec2.ensure_launch_template before",
    "ec2.ensure_launch_template after",
    "ec2.create_fleet before",
    "ec2.create_fleet after",
    "table.write 2 before",
    "table.write 2 after",
)


def test_the_sites_below_are_all_there_are() -> None:
    outside, met, site = Outside(), [], build_site_counter()
    launch_group(outside.build_launch_group(), outside.build_world(tap=lambda call: met.append(site(call))))
    assert [place for place in met if place != "table.read after"] == list(SITES)


def test_a_group_is_written_down_before_it_is_sent() -> None:
    outside = Outside()
    group = outside.build_launch_group()

    def expect_stored_group(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "before":
            assert read_stored_group(outside) == group

    assert launch_group(group, outside.build_world(tap=expect_stored_group)).result is not None
    row = outside.table.read(ROW_KIND, "group")
    assert row is not None
    assert row.expires_at == outside.clock.get_time() + LAUNCH_GROUP_TTL


def test_what_was_written_down_is_sent_whatever_is_asked_now() -> None:
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


def test_a_group_with_an_answer_is_not_sent_again() -> None:
    outside = Outside()
    first = launch_group(outside.build_launch_group(), outside.build_world())
    outside.calls.clear()
    assert launch_group(outside.build_launch_group(), outside.build_world()) == first
    assert outside.list_called_methods("ec2") == []


@pytest.mark.parametrize(
    ("code", "expected_code"), [("InvalidParameterValue", "InvalidParameterValue"), ("", "LaunchFailed")]
)
@pytest.mark.parametrize("method", ["create_fleet", "ensure_launch_template"])
def test_a_refusal_is_an_answer(method: str, code: str, expected_code: str) -> None:
    outside = Outside()
    launched_group = launch_group(
        outside.build_launch_group(), outside.build_world(tap=build_raising_tap(method, Invalid("nonsense", code)))
    )
    assert launched_group.result is not None
    assert [(error.code, error.message) for error in launched_group.result.errors] == [(expected_code, "nonsense")]
    assert read_stored_group(outside) == launched_group
    assert outside.list_instances() == ()


@pytest.mark.parametrize("method", ["create_fleet", "ensure_launch_template"])
def test_that_there_is_no_capacity_at_all_is_an_answer_and_closes_the_group(method: str) -> None:
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


def test_a_refusal_after_the_template_was_made_again_is_an_answer_too() -> None:
    outside = Outside()
    faults: list[Fault] = [Invalid("nonsense", "InvalidParameterValue"), NotFound("template")]

    def raise_fault(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "before":
            raise faults.pop()

    launched_group = launch_group(outside.build_launch_group(), outside.build_world(tap=raise_fault))
    assert launched_group.result is not None
    assert [error.code for error in launched_group.result.errors] == ["InvalidParameterValue"]


def test_a_template_that_was_collected_in_between_is_made_again() -> None:
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


def test_a_template_that_is_collected_twice_is_left_to_the_next_cycle() -> None:
    outside = Outside()
    with pytest.raises(NotFound):
        launch_group(
            outside.build_launch_group(),
            outside.build_world(tap=build_raising_tap("create_fleet", NotFound("template"), times=2)),
        )
    group = read_stored_group(outside)
    assert group is not None
    assert group.result is None


def test_who_finds_the_row_written_in_between_sends_nothing() -> None:
    outside = Outside()
    group = outside.build_launch_group()

    def write_group_first(call: PortCall) -> None:
        if call.method == "write" and call.phase == "before" and read_stored_group(outside) is None:
            outside.table.write(ROW_KIND, "group", msgspec.json.encode(group).decode(), version=0)

    with pytest.raises(Conflict):
        launch_group(group, outside.build_world(tap=write_group_first))
    assert outside.list_called_methods("ec2") == []


def test_without_the_lease_nothing_is_written_down_and_nothing_sent() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as fence:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"), pytest.raises(Conflict):
            launch_instances(LaunchInstances(group=outside.build_launch_group()), outside.build_world("one"), fence)
    assert read_stored_group(outside) is None
    assert outside.list_called_methods("ec2") == []
    assert outside.list_instances() == ()


def test_a_group_of_three_sent_twice_is_three_instances() -> None:
    outside = Outside()
    launch_group(outside.build_launch_group(capacity=3), outside.build_world())
    launch_group(outside.build_launch_group(capacity=3), outside.build_world())
    assert len(outside.list_instances()) == 3
