"""One CreateFleet, exactly once: whoever dies in between, wherever."""

from collections.abc import Callable

import msgspec
import pytest

from shared.actions.launches import KEPT_FOR, KIND, launch
from shared.actions.lease import LASTS, leased
from shared.errors import Conflict, Fault, Gone, InsufficientCapacity, Invalid, Throttled
from shared.model.action import LaunchInstances
from shared.model.cluster import LaunchGroup
from shared.ports import World
from sim.faults import Call, Killed
from tests.unit.actions_world import Outside

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


def site_counter() -> Callable[[Call], str]:
    counts: dict[str, int] = {}

    def site(call: Call) -> str:
        place = f"{call.port}.{call.method}"
        if call.when == "before":
            counts[place] = counts.get(place, 0) + 1
        return f"{place} {call.when}" if counts[place] == 1 else f"{place} {counts[place]} {call.when}"

    return site


def killer(wanted: str) -> Callable[[Call], None]:
    site = site_counter()

    def tap(call: Call) -> None:
        if site(call) == wanted:
            raise Killed(wanted)

    return tap


def raising(method: str, fault: Fault, when: str = "before", times: int = 1) -> Callable[[Call], None]:
    left = [fault] * times

    def tap(call: Call) -> None:
        if left and call.method == method and call.when == when:
            raise left.pop()

    return tap


def sent(group: LaunchGroup, world: World) -> LaunchGroup:
    return launch(LaunchInstances(group=group), world, None)


def stored(outside: Outside, name: str = "group") -> LaunchGroup | None:
    row = outside.table.read(KIND, name)
    return msgspec.json.decode(row.body, type=LaunchGroup) if row is not None else None


def test_the_sites_below_are_all_there_are() -> None:
    outside, met, site = Outside(), [], site_counter()
    sent(outside.group(), outside.world(tap=lambda call: met.append(site(call))))
    assert [one for one in met if one != "table.read after"] == list(SITES)


@pytest.mark.parametrize("where", SITES)
def test_a_launch_that_died_there_is_repeated_without_a_second_fleet(where: str) -> None:
    outside = Outside()
    group = outside.group()
    with pytest.raises(Killed):
        sent(group, outside.world(tap=killer(where)))
    first = {one.instance_id for one in outside.cloud.machines.alive()}
    answered = sent(group, outside.world())
    assert answered.result is not None
    [instance] = outside.instances()
    assert [one.instance_id for one in answered.result.instances] == [instance.instance_id]
    assert first <= {instance.instance_id}
    assert stored(outside) == answered


def test_a_group_is_written_down_before_it_is_sent() -> None:
    outside = Outside()
    group = outside.group()

    def tap(call: Call) -> None:
        if call.method == "create_fleet" and call.when == "before":
            assert stored(outside) == group

    assert sent(group, outside.world(tap=tap)).result is not None
    row = outside.table.read(KIND, "group")
    assert row is not None
    assert row.expires_at == outside.clock.now() + KEPT_FOR


def test_what_was_written_down_is_sent_whatever_is_asked_now() -> None:
    outside = Outside()
    group = outside.group()
    with pytest.raises(Killed):
        sent(group, outside.world(tap=killer("ec2.create_fleet before")))
    other = msgspec.structs.replace(group, claims=("b",), request=msgspec.structs.replace(group.request, capacity=3))
    answered = sent(other, outside.world())
    assert answered.claims == ("a",)
    assert len(outside.instances()) == 1


def test_a_group_with_an_answer_is_not_sent_again() -> None:
    outside = Outside()
    first = sent(outside.group(), outside.world())
    outside.calls.clear()
    assert sent(outside.group(), outside.world()) == first
    assert outside.sent("ec2") == []


@pytest.mark.parametrize(("code", "told"), [("InvalidParameterValue", "InvalidParameterValue"), ("", "LaunchFailed")])
@pytest.mark.parametrize("method", ["create_fleet", "ensure_launch_template"])
def test_a_refusal_is_an_answer(method: str, code: str, told: str) -> None:
    outside = Outside()
    answered = sent(outside.group(), outside.world(tap=raising(method, Invalid("nonsense", code))))
    assert answered.result is not None
    assert [(error.code, error.message) for error in answered.result.errors] == [(told, "nonsense")]
    assert stored(outside) == answered
    assert outside.instances() == ()


@pytest.mark.parametrize("method", ["create_fleet", "ensure_launch_template"])
def test_that_there_is_no_capacity_at_all_is_an_answer_and_closes_the_group(method: str) -> None:
    outside = Outside()
    words = "ec2:CreateFleet: InsufficientInstanceCapacity: no room"
    answered = sent(outside.group(), outside.world(tap=raising(method, InsufficientCapacity(words))))
    assert answered.result is not None
    assert [(error.code, error.message) for error in answered.result.errors] == [
        ("InsufficientInstanceCapacity", words)
    ]
    assert stored(outside) == answered


def test_a_refusal_after_the_template_was_made_again_is_an_answer_too() -> None:
    outside = Outside()
    faults: list[Fault] = [Invalid("nonsense", "InvalidParameterValue"), Gone("template")]

    def tap(call: Call) -> None:
        if call.method == "create_fleet" and call.when == "before":
            raise faults.pop()

    answered = sent(outside.group(), outside.world(tap=tap))
    assert answered.result is not None
    assert [error.code for error in answered.result.errors] == ["InvalidParameterValue"]


def test_a_template_that_was_collected_in_between_is_made_again() -> None:
    outside = Outside()

    def collect(call: Call) -> None:
        if call.method == "create_fleet" and call.when == "before" and outside.sent("ec2").count("create_fleet") == 1:
            for template in outside.templates():
                outside.cloud.templates.delete(template.name)

    answered = sent(outside.group(), outside.world(tap=collect))
    assert outside.sent("ec2").count("create_fleet") == 2
    assert answered.result is not None
    assert len(answered.result.instances) == 1
    assert len(outside.templates()) == 1


def test_a_template_that_is_collected_twice_is_left_to_the_next_cycle() -> None:
    outside = Outside()
    with pytest.raises(Gone):
        sent(outside.group(), outside.world(tap=raising("create_fleet", Gone("template"), times=2)))
    group = stored(outside)
    assert group is not None
    assert group.result is None


@pytest.mark.parametrize("when", ["before", "after"])
def test_ec2_that_says_later_is_asked_the_same_again(when: str) -> None:
    outside = Outside()
    group = outside.group()
    with pytest.raises(Throttled):
        sent(group, outside.world(tap=raising("create_fleet", Throttled("later"), when)))
    assert sent(group, outside.world()).result is not None
    assert len(outside.instances()) == 1


def test_who_finds_the_row_written_in_between_sends_nothing() -> None:
    outside = Outside()
    group = outside.group()

    def overtake(call: Call) -> None:
        if call.method == "write" and call.when == "before" and stored(outside) is None:
            outside.table.write(KIND, "group", msgspec.json.encode(group).decode(), version=0)

    with pytest.raises(Conflict):
        sent(group, outside.world(tap=overtake))
    assert outside.sent("ec2") == []


def test_who_finds_its_answer_written_already_has_the_same() -> None:
    outside = Outside()
    group = outside.group()

    def overtake(call: Call) -> None:
        if call.method == "create_fleet" and call.when == "after":
            sent(group, outside.world("two"))

    answered = sent(group, outside.world("one", tap=overtake))
    assert stored(outside) == answered
    assert len(outside.instances()) == 1


def test_without_the_lease_nothing_is_written_down_and_nothing_sent() -> None:
    outside = Outside()
    with leased(outside.world("one"), "planner") as fence:
        outside.clock.advance(LASTS)
        with leased(outside.world("two"), "planner"), pytest.raises(Conflict):
            launch(LaunchInstances(group=outside.group()), outside.world("one"), fence)
    assert stored(outside) is None
    assert outside.sent("ec2") == []
    assert outside.instances() == ()


def test_a_group_of_three_sent_twice_is_three_instances() -> None:
    outside = Outside()
    sent(outside.group(capacity=3), outside.world())
    sent(outside.group(capacity=3), outside.world())
    assert len(outside.instances()) == 3


def test_a_row_that_cannot_be_read_is_written_anew_and_the_same_is_sent() -> None:
    outside = Outside()
    group = outside.group()
    sent(group, outside.world())
    row = outside.table.read(KIND, "group")
    assert row is not None
    outside.table.write(KIND, "group", "{", version=row.version, expires_at=row.expires_at)
    answered = sent(group, outside.world())
    assert stored(outside) == answered
    assert len(outside.instances()) == 1


def test_a_row_that_cannot_be_read_is_written_anew_and_nothing_is_started_twice() -> None:
    outside = Outside()
    group = outside.group()
    with pytest.raises(Killed):
        sent(group, outside.world(tap=killer("ec2.create_fleet after")))
    row = outside.table.read(KIND, group.name)
    assert row is not None
    outside.table.write(KIND, group.name, "{nonsense", version=row.version)
    answered = sent(group, outside.world())
    assert answered.result is not None
    assert len(outside.instances()) == 1
    assert stored(outside) == answered
