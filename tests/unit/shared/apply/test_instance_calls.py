"""Calls on instances that EC2 may not find, and calls that lack a permission: EC2 refuses both in the same way."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.apply.executor import apply_actions
from shared.errors import Forbidden, Throttled
from shared.model.decisions.action import LaunchInstances, TagInstance, TerminateInstances
from shared.model.decisions.action_outcome import Outcome
from sim.fault_tap import PortCall, Tap
from tests.support.actions_world import Outside

GONE = "i-0123456789abcdef0"
TAGS = (("Name", "n1"),)
CALLS = {"create_tags", "terminate_instances"}


def launch_instance(outside: Outside, name: str = "group") -> str:
    [outcome] = apply_actions((LaunchInstances(group=outside.build_launch_group(name)),), outside.build_world())
    assert outcome.group is not None
    assert outcome.group.result is not None
    outside.clock.advance(timedelta(seconds=30))
    return outcome.group.result.instances[0].instance_id


def apply_one_action(action: TagInstance | TerminateInstances, outside: Outside, tap: Tap) -> Outcome:
    [outcome] = apply_actions((action,), outside.build_world(tap=tap))
    return outcome


def refuse_calls(is_refused: Callable[[PortCall], bool]) -> Tap:
    """Return a tap that refuses the calls on instances for which *is_refused* is true."""

    def check(call: PortCall) -> None:
        if call.phase == "before" and call.method in CALLS and is_refused(call):
            raise Forbidden("UnauthorizedOperation: You are not authorized to perform this operation.")

    return check


def names_missing_instance(call: PortCall) -> bool:
    return GONE in call.detail


def count_calls(outside: Outside, method: str) -> int:
    return sum(1 for call in outside.calls if call.method == method and call.phase == "before")


def test_refused_tags_of_an_instance_that_ec2_does_not_show_are_skipped() -> None:
    outside = Outside()
    outcome = apply_one_action(TagInstance(instance_id=GONE, tags=TAGS), outside, refuse_calls(names_missing_instance))
    assert outcome.result == "skipped"
    assert "InvalidInstanceID.NotFound" in outcome.message


def test_refused_tags_of_an_instance_that_is_visible_by_now_are_added() -> None:
    outside = Outside()
    instance_id, refusals = launch_instance(outside), [True, False]
    outcome = apply_one_action(
        TagInstance(instance_id=instance_id, tags=TAGS), outside, refuse_calls(lambda _: refusals.pop(0))
    )
    assert outcome.result == "done"
    assert outside.cloud.instances.describe(instance_id).get_tag("Name") == "n1"


@pytest.mark.parametrize("kind", ["tag", "terminate"])
def test_missing_permission_for_an_existing_instance_is_reported(kind: str) -> None:
    outside = Outside()
    instance_id = launch_instance(outside)
    action = (
        TagInstance(instance_id=instance_id, tags=TAGS)
        if kind == "tag"
        else TerminateInstances(instance_ids=(GONE, instance_id), message="test")
    )
    outcome = apply_one_action(action, outside, refuse_calls(lambda _: True))
    assert outcome.result == "failed"
    assert outcome.message.startswith("Forbidden: UnauthorizedOperation")
    assert outside.cloud.instances.find(instance_id).state == "running"


def test_instances_are_terminated_although_ec2_refuses_the_list_for_a_missing_one() -> None:
    outside = Outside()
    instance_ids = (GONE, launch_instance(outside, "a"), launch_instance(outside, "b"))
    action = TerminateInstances(instance_ids=instance_ids, message="test")
    outcome = apply_one_action(action, outside, refuse_calls(names_missing_instance))
    assert outcome.result == "done"
    assert {instance.state for instance in outside.cloud.instances.list_all()} == {"shutting-down"}
    assert (count_calls(outside, "describe_instances"), count_calls(outside, "describe_instance")) == (1, 1)


def test_terminated_instances_are_terminated_again_without_an_error() -> None:
    outside = Outside()
    instance_id = launch_instance(outside)
    outside.cloud.instances.terminate_immediately(instance_id)
    action = TerminateInstances(instance_ids=(GONE, instance_id), message="test")
    outcome = apply_one_action(action, outside, refuse_calls(names_missing_instance))
    assert outcome.result == "done"
    assert count_calls(outside, "terminate_instances") == 2


def test_refused_termination_of_missing_instances_is_not_repeated() -> None:
    outside = Outside()
    action = TerminateInstances(instance_ids=(GONE,), message="test")
    assert apply_one_action(action, outside, refuse_calls(names_missing_instance)).result == "done"
    assert count_calls(outside, "terminate_instances") == 1


def test_action_fails_if_ec2_cannot_say_whether_the_instance_exists() -> None:
    def check(call: PortCall) -> None:
        if call.method == "create_tags":
            raise Forbidden("UnauthorizedOperation")
        if call.method == "describe_instance":
            raise Throttled("RequestLimitExceeded")

    outcome = apply_one_action(TagInstance(instance_id=GONE, tags=TAGS), Outside(), check)
    assert (outcome.result, outcome.message) == ("failed", "Throttled: RequestLimitExceeded")
