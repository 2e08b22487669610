"""Calls wait when the API server asks for time, and not every call waits for an API server that is silent."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.errors import Throttled, Unreachable
from shared.kubernetes.backoff import MAX_BACKOFF_DELAY, Backoff

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


class World:
    """A clock in memory: time passes when `wait` is called or `seconds` is set."""

    def __init__(self) -> None:
        """Start at zero seconds."""
        self.seconds = 0.0
        self.waits: list[float] = []
        self.backoff = Backoff(self.get_time, self.wait)

    def get_time(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    def record_throttling(self, retry_seconds: float = 1) -> float:
        """Record a throttled response that asks for *retry_seconds*, and return the backoff delay in seconds."""
        return self.backoff.record_throttling(
            Throttled("429", timedelta(seconds=retry_seconds))
        ).retry_after.total_seconds()


def test_repeated_throttling_doubles_the_backoff_delay_up_to_a_maximum() -> None:
    world = World()
    assert [world.record_throttling() for _ in range(7)] == [1, 2, 4, 8, 16, 30, MAX_BACKOFF_DELAY.total_seconds()]
    world.backoff.record_success()
    assert world.record_throttling() == 1


def test_retry_after_of_the_server_is_used_if_it_is_longer() -> None:
    world = World()
    assert [world.record_throttling(20), world.record_throttling(1), world.record_throttling(60)] == [20, 2, 60]


def test_requests_are_rejected_until_the_backoff_delay_ends() -> None:
    world = World()
    world.record_throttling(10)
    world.seconds = 4
    with pytest.raises(Throttled, match="PATCH /x: not sent: the API server throttled requests") as raised:
        world.backoff.check("PATCH /x")
    assert raised.value.retry_after == timedelta(seconds=6)
    world.seconds = 10
    world.backoff.check("PATCH /x")


def test_unresponsive_api_server_gets_no_requests_for_the_timeout_duration() -> None:
    world = World()
    world.backoff.record_silence(timedelta(seconds=10))
    with pytest.raises(Unreachable, match="not sent: the API server did not respond for 10 s"):
        world.backoff.check("GET /x")
    world.seconds = 10
    world.backoff.check("GET /x")


def test_success_ends_the_backoff() -> None:
    world = World()
    world.backoff.record_silence(timedelta(seconds=10))
    world.backoff.record_success()
    world.backoff.check("GET /x")


def test_short_retry_after_is_waited_for_within_a_call_at_most_once_a_minute() -> None:
    world = World()
    waits = [(0.0, 1, True), (5.0, 1, False), (59.9, 3, False), (60.0, 3, True), (500.0, 4, False)]
    for at, requested_seconds, has_waited in waits:
        world.seconds = at
        assert world.backoff.wait(Throttled("429", timedelta(seconds=requested_seconds))) is has_waited, at
    assert world.waits == [1, 3]


def test_backoff_without_a_clock_never_waits_or_rejects() -> None:
    backoff = Backoff()
    fault = backoff.record_throttling(Throttled("429"))
    backoff.record_silence(timedelta(seconds=10))
    backoff.check("GET /x")
    assert not backoff.wait(fault)


def test_calls_that_are_refused_together_double_the_delay_once() -> None:
    world = World()
    sent_in = world.backoff.check("PATCH /x")
    delays = [world.backoff.record_throttling(Throttled("429"), sent_in).retry_after for _ in range(16)]
    assert set(delays) == {timedelta(seconds=1)}
    world.seconds = 1
    sent_in = world.backoff.check("PATCH /x")
    delays = [world.backoff.record_throttling(Throttled("429"), sent_in).retry_after for _ in range(16)]
    assert set(delays) == {timedelta(seconds=2)}


def test_success_of_a_call_that_was_sent_before_the_backoff_does_not_end_it() -> None:
    world = World()
    sent_in = world.backoff.check("PATCH /x")
    world.record_throttling(10)
    world.backoff.record_success(sent_in)
    with pytest.raises(Throttled):
        world.backoff.check("PATCH /x")
    world.seconds = 10
    world.backoff.record_success(world.backoff.check("PATCH /x"))
    assert world.record_throttling() == 1


@pytest.mark.parametrize("is_refused", [True, False])
def test_call_waits_while_another_call_waits(is_refused: bool) -> None:  # noqa: FBT001 - a table's column
    world, waits = World(), list[float]()
    fault = Throttled("429", timedelta(seconds=2))

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 1:
            return
        if is_refused:
            assert backoff.wait(fault)
        else:
            backoff.check("PATCH /new")

    backoff = Backoff(world.get_time, wait)
    backoff.record_throttling(fault)
    assert backoff.wait(fault)
    assert waits == [2, 2]
    world.seconds = 10
    assert not backoff.wait(fault)
    backoff.record_throttling(fault)
    with pytest.raises(Throttled):
        backoff.check("PATCH /new")
