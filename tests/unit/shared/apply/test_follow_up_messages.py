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


def test_the_message_says_whence_and_why() -> None:
    outside = Outside()
    request_follow_up(outside, 5)
    [(function, body, _)] = outside.post.sent
    assert (function, json.loads(body)) == ("provision", {"source": "follow-up", "why": "waiting"})


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(5, 5, [5]), (5, 9, [5]), (9, 5, [9, 5])],
    ids=["the same", "a later one", "a sooner one"],
)
def test_of_two_the_sooner_one_is_pending(first: int, second: int, expected: list[float]) -> None:
    outside = Outside()
    request_follow_up(outside, first)
    request_follow_up(outside, second)
    assert list_delays(outside) == expected


def test_functions_are_woken_apart() -> None:
    outside = Outside()
    request_follow_up(outside, 5)
    request_follow_up(outside, 5, "lifecycle")
    assert [function for function, _, _ in outside.post.sent] == ["provision", "lifecycle"]


def test_a_chain_stays_one_chain() -> None:
    outside = Outside()
    for _ in range(5):
        for _ in range(3):
            request_follow_up(outside, 5)
        outside.clock.advance(timedelta(seconds=5))
    assert list_delays(outside) == [5] * 5


@pytest.mark.parametrize(("passed", "is_sent_again"), [(4, False), (5, True)])
def test_a_message_that_was_lost_is_sent_again_once_it_is_due(passed: int, is_sent_again: bool) -> None:  # noqa: FBT001 - a table's column
    outside = Outside()
    request_follow_up(outside, 5)
    outside.clock.advance(timedelta(seconds=passed))
    request_follow_up(outside, 5)
    assert (len(outside.post.sent) == 2) is is_sent_again


def test_who_wants_more_than_a_mailbox_can_delay_is_woken_by_then_and_may_ask_again() -> None:
    outside = Outside()
    request_follow_up(outside, 1800)
    outside.clock.advance(timedelta(minutes=15))
    request_follow_up(outside, 900)
    assert list_delays(outside) == [900, 900]


def test_who_dies_before_it_is_written_down_wakes_twice() -> None:
    outside = Outside()

    def kill_on_write(call: PortCall) -> None:
        if call.method == "write":
            raise Killed

    with pytest.raises(Killed):
        request_follow_up(outside, 5, tap=kill_on_write)
    request_follow_up(outside, 5)
    assert list_delays(outside) == [5, 5]


def test_a_message_that_was_not_sent_is_not_written_down() -> None:
    outside = Outside()

    def fail_mailbox(call: PortCall) -> None:
        if call.port == "mailbox":
            raise Unreachable("sqs")

    with pytest.raises(Unreachable):
        request_follow_up(outside, 5, tap=fail_mailbox)
    assert outside.table.read(ROW_KIND, "provision") is None


@pytest.mark.parametrize("version", [0, 1])
def test_somebody_who_woke_it_too_does_no_harm(version: int) -> None:
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


def test_a_row_that_cannot_be_read_is_no_pending_message() -> None:
    outside = Outside()
    outside.table.write(ROW_KIND, "provision", "soon", version=0)
    request_follow_up(outside, 5)
    request_follow_up(outside, 5)
    assert list_delays(outside) == [5]
