"""Messages to ourselves: one pending per function."""

import json
from datetime import timedelta

import pytest

from shared.apply.follow_up_messages import ROW_KIND, send_follow_up
from shared.errors import Unreachable
from shared.model.decisions.action import FollowUp, Function
from sim.fault_tap import Killed, PortCall, Tap
from tests.support.actions_world import Outside


def request_follow_up(
    outside: Outside, seconds: float, function: Function = "provision", *, tap: Tap | None = None
) -> None:
    action = FollowUp(function=function, after=timedelta(seconds=seconds), message="waiting")
    send_follow_up(action, outside.build_world(tap=tap))


def list_delays(outside: Outside) -> list[float]:
    return [after.total_seconds() for _, _, after in outside.post.sent]


def test_message_contains_source_and_reason() -> None:
    outside = Outside()
    request_follow_up(outside, 5)
    [(function, body, _)] = outside.post.sent
    assert (function, json.loads(body)) == ("provision", {"source": "follow-up", "why": "waiting"})


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(5, 5, [5]), (5, 9, [5]), (9, 5, [9, 5])],
    ids=["same delay", "later delay", "sooner delay"],
)
def test_message_is_sent_only_if_it_is_due_before_the_pending_message(
    first: int, second: int, expected: list[float]
) -> None:
    outside = Outside()
    request_follow_up(outside, first)
    request_follow_up(outside, second)
    assert list_delays(outside) == expected


def test_each_function_has_its_own_pending_message() -> None:
    outside = Outside()
    request_follow_up(outside, 5)
    request_follow_up(outside, 5, "lifecycle")
    assert [function for function, _, _ in outside.post.sent] == ["provision", "lifecycle"]


def test_repeated_follow_ups_send_one_message_per_interval() -> None:
    outside = Outside()
    for _ in range(5):
        for _ in range(3):
            request_follow_up(outside, 5)
        outside.clock.advance(timedelta(seconds=5))
    assert list_delays(outside) == [5] * 5


@pytest.mark.parametrize(("passed", "is_sent_again"), [(4, False), (5, True)])
def test_lost_message_is_sent_again_after_its_due_time(passed: int, is_sent_again: bool) -> None:  # noqa: FBT001 - a table's column
    outside = Outside()
    request_follow_up(outside, 5)
    outside.clock.advance(timedelta(seconds=passed))
    request_follow_up(outside, 5)
    assert (len(outside.post.sent) == 2) is is_sent_again


def test_delay_is_capped_at_the_sqs_maximum_and_can_be_requested_again() -> None:
    outside = Outside()
    request_follow_up(outside, 1800)
    outside.clock.advance(timedelta(minutes=15))
    request_follow_up(outside, 900)
    assert list_delays(outside) == [900, 900]


def test_crash_before_the_row_is_written_sends_the_message_twice() -> None:
    outside = Outside()

    def kill_on_write(call: PortCall) -> None:
        if call.method == "write":
            raise Killed

    with pytest.raises(Killed):
        request_follow_up(outside, 5, tap=kill_on_write)
    request_follow_up(outside, 5)
    assert list_delays(outside) == [5, 5]


def test_unsent_message_is_not_stored() -> None:
    outside = Outside()

    def fail_mailbox(call: PortCall) -> None:
        if call.port == "mailbox":
            raise Unreachable("sqs")

    with pytest.raises(Unreachable):
        request_follow_up(outside, 5, tap=fail_mailbox)
    assert outside.table.read(ROW_KIND, "provision") is None


@pytest.mark.parametrize("version", [0, 1])
def test_concurrent_follow_up_by_another_container_is_harmless(version: int) -> None:
    outside = Outside()
    if version:
        request_follow_up(outside, 5)
        outside.clock.advance(timedelta(seconds=9))

    def send_first(call: PortCall) -> None:
        row = outside.table.read(ROW_KIND, "provision")
        if call.method == "add" and call.phase == "after" and (row.version if row is not None else 0) == version:
            request_follow_up(outside, 5)

    request_follow_up(outside, 5, tap=send_first)
    row = outside.table.read(ROW_KIND, "provision")
    assert row is not None
    assert row.version == version + 1
    assert row.expires_at == outside.clock.get_time() + timedelta(seconds=5)


def test_unreadable_row_counts_as_no_pending_message() -> None:
    outside = Outside()
    outside.table.write(ROW_KIND, "provision", "soon", version=0)
    request_follow_up(outside, 5)
    request_follow_up(outside, 5)
    assert list_delays(outside) == [5]
