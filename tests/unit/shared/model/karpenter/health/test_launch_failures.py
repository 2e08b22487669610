"""When launches of an EC2NodeClass pause, and when the next node is launched as a test."""

from datetime import datetime, timedelta

import pytest

from shared.model.core.labels import LAUNCH_FAILURES, PAUSE_AFTER_FAILURES
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.health.launch_failures import (
    MAX_REGISTRATION_TIME,
    MAX_TEST_DELAY,
    MIN_TEST_DELAY,
    LaunchPause,
    find_failure_limit,
    find_history_problem,
    find_launch_pause,
    parse_failure_limit,
    parse_launch_failures,
)
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.failing_launches import encode_failures
from tests.support.lifecycle_cases import NOW, Case, get_time_before, make_claim, make_true_conditions


def make_class(launched_at: list[datetime], limit: str = "3", *, generation: int = 1) -> EC2NodeClass:
    """Return an EC2NodeClass of generation 1 whose nodes, launched at *launched_at*, did not register."""
    failed = {f"c{number}/uid-c{number}": at for number, at in enumerate(launched_at)}
    annotations = {PAUSE_AFTER_FAILURES: limit, LAUNCH_FAILURES: encode_failures(failed, generation=generation)}
    meta = ObjectMeta(name="default", generation=1, annotations=build_pairs(annotations))
    return EC2NodeClass(meta=meta)


def make_starting_claim(name: str, minutes: float, **fields: Case) -> Case:
    launched_at = get_time_before(minutes=minutes)
    return make_claim(name, conditions=make_true_conditions("Launched", since=launched_at), **fields)


def find_pause(node_class: EC2NodeClass, *claims: Case) -> LaunchPause:
    pause = find_launch_pause(node_class, claims, NOW)
    assert pause is not None
    return pause


def test_launches_pause_when_as_many_nodes_as_the_limit_did_not_register() -> None:
    at = get_time_before(minutes=10)
    assert find_launch_pause(make_class([at, at]), (), NOW) is None
    assert find_launch_pause(make_class([at, at, at], ""), (), NOW) is None
    pause = find_pause(make_class([at, at, at]))
    assert (pause.failure_count, pause.since) == (3, at + MAX_REGISTRATION_TIME)


def test_history_of_an_earlier_spec_does_not_pause() -> None:
    at = get_time_before(minutes=10)
    assert find_launch_pause(make_class([at, at, at], generation=0), (), NOW) is None


def make_edited_class(time: str) -> EC2NodeClass:
    """Return an EC2NodeClass whose history has *time* as the launch of two nodes that failed."""
    text = f'{{"of": 1, "since": "2026-11-01T00:00:00Z", "failed": {{"a/1": "{time}", "b/2": "{time}"}}}}'
    return make_class_with_history(text)


def make_class_with_history(text: str) -> EC2NodeClass:
    annotations = {PAUSE_AFTER_FAILURES: "2", LAUNCH_FAILURES: text}
    return EC2NodeClass(meta=ObjectMeta(name="default", generation=1, annotations=build_pairs(annotations)))


@pytest.mark.parametrize(
    "node_class",
    [
        make_class_with_history("?"),
        make_class_with_history('{"of": 1, "since": "2026-11-01T00:00:00"}'),
        make_class_with_history(
            '{"of": 1, "since": "2026-11-01T00:00:00Z", "registered": "9999-12-31T23:59:59-23:59"}'
        ),
        make_class_with_history('{"x": ' + "[" * 100_000),
        make_edited_class("2026-01-01T00:00:00"),
        make_edited_class("9999-12-31T00:00:00Z"),
        make_edited_class("0001-01-01T00:00:00+23:59"),
    ],
)
def test_invalid_history_counts_as_none_and_is_a_problem(node_class: EC2NodeClass) -> None:
    assert parse_launch_failures(node_class) is None
    assert find_launch_pause(node_class, (), NOW) is None
    message = (
        "metadata.annotations[joiner.dev/launch-failures]: is not a history of Joiner, and counts as none: remove it"
    )
    assert find_history_problem(node_class) == message


def test_history_with_times_of_another_zone_is_valid() -> None:
    node_class = make_edited_class("2026-11-20T09:00:00+01:00")
    assert find_launch_pause(node_class, (), NOW) is not None
    assert find_history_problem(node_class) == ""


@pytest.mark.parametrize(
    ("minutes_ago", "delay"),
    [
        ([30, 30, 30], MIN_TEST_DELAY),
        ([40, 40, 26], timedelta(minutes=14)),
        ([200, 200, 40], MAX_TEST_DELAY),
    ],
)
def test_next_test_waits_as_long_as_nodes_have_failed_within_bounds(minutes_ago: list[int], delay: timedelta) -> None:
    pause = find_pause(make_class([get_time_before(minutes=minutes) for minutes in minutes_ago]))
    assert pause.test_at == get_time_before(minutes=min(minutes_ago)) + MAX_REGISTRATION_TIME + delay


def test_test_is_due_when_its_time_has_come_and_no_node_is_starting() -> None:
    node_class = make_class([get_time_before(minutes=30)] * 3)
    assert find_pause(node_class).is_test_due(NOW)
    assert not find_pause(make_class([get_time_before(minutes=10)] * 3)).is_test_due(NOW)
    assert not find_pause(node_class, make_starting_claim("a", 8)).is_test_due(NOW)
    # lifecycle may not have recorded the failure yet
    assert not find_pause(node_class, make_starting_claim("a", 10)).is_test_due(NOW)
    assert find_pause(node_class, make_starting_claim("c1", 10)).is_test_due(NOW)
    assert find_pause(node_class, make_starting_claim("a", 14)).is_test_due(NOW)
    assert find_pause(node_class, make_starting_claim("a", 8, deleted=NOW)).is_test_due(NOW)
    assert find_pause(node_class, make_claim("a", conditions=())).is_test_due(NOW)


def test_message_has_the_next_step_and_how_to_resume() -> None:
    node_class, recent_class = (make_class([get_time_before(minutes=minutes)] * 3) for minutes in (30, 10))
    assert "one node is launched now as a test, and launches resume" in find_pause(node_class).describe(NOW)
    assert "one node is launched as a test at 20" in find_pause(recent_class).describe(NOW)
    assert "NodeClaim a is starting" in find_pause(node_class, make_starting_claim("a", 8)).describe(NOW)
    cause = find_pause(node_class).describe_cause()
    assert cause.startswith("the last 3 nodes of EC2NodeClass default did not register; launches are paused")
    assert "to resume now: correct the EC2NodeClass, or remove its annotation joiner.dev/launch-failures" in cause


@pytest.mark.parametrize("text", ["1", "101", "-3", "three", "3.5", "²"])
def test_invalid_limit_is_rejected_with_field_and_fix(text: str) -> None:
    node_class = make_class([], text)
    field = r"metadata\.annotations\[joiner\.dev/pause-launches-after-failures\]"
    with pytest.raises(ValueError, match=rf"^{field}: '{text}' is not a number from 2 to 100: write one, like \"3\"$"):
        parse_failure_limit(node_class)
    assert find_failure_limit(node_class) == 0


def test_limits_from_2_to_100_are_valid() -> None:
    assert [parse_failure_limit(make_class([], text)) for text in ("2", "100", "")] == [2, 100, 0]
