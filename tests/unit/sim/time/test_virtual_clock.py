"""Tests of the virtual clock."""

from datetime import timedelta

import pytest

from sim.time.virtual_clock import DEFAULT_START_TIME, Clock

ONE_SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_virtual_clock_starts_at_a_fixed_time(clock: Clock) -> None:
    assert clock.get_time() == DEFAULT_START_TIME
    assert DEFAULT_START_TIME.tzinfo is not None
    assert Clock(DEFAULT_START_TIME + ONE_SECOND).get_time() == DEFAULT_START_TIME + ONE_SECOND


def test_virtual_clock_without_timers_has_no_step(clock: Clock) -> None:
    assert not clock.step()
    assert clock.get_time() == DEFAULT_START_TIME


def test_virtual_clock_step_fires_one_timer(clock: Clock) -> None:
    rung: list[str] = []
    clock.call_after(2 * ONE_SECOND, lambda: rung.append("b"))
    clock.call_after(ONE_SECOND, lambda: rung.append("a"))
    assert clock.step()
    assert (rung, clock.get_time()) == (["a"], DEFAULT_START_TIME + ONE_SECOND)


def test_timer_in_the_past_fires_next_without_setting_time_back(clock: Clock) -> None:
    rung: list[object] = []
    clock.advance(10 * ONE_SECOND)
    clock.call_at(DEFAULT_START_TIME, lambda: rung.append(clock.get_time()))
    clock.advance(timedelta())
    assert rung == [DEFAULT_START_TIME + 10 * ONE_SECOND]


def test_cancelled_timer_never_fires_and_does_not_advance_time(clock: Clock) -> None:
    rung: list[str] = []
    clock.call_after(ONE_SECOND, lambda: rung.append("never")).cancel()
    assert not clock.step()
    assert (rung, clock.get_time()) == ([], DEFAULT_START_TIME)
    clock.call_after(ONE_SECOND, lambda: rung.append("never")).cancel()
    clock.call_after(9 * ONE_SECOND, lambda: rung.append("late"))
    clock.run_until(DEFAULT_START_TIME + 2 * ONE_SECOND)
    assert (rung, clock.get_time()) == ([], DEFAULT_START_TIME + 2 * ONE_SECOND)


def test_timer_can_cancel_another_timer_of_the_same_time(clock: Clock) -> None:
    rung: list[str] = []
    clock.call_after(ONE_SECOND, lambda: later.cancel())  # noqa: PLW0108 - it does not exist yet
    later = clock.call_after(ONE_SECOND, lambda: rung.append("b"))
    clock.advance(ONE_SECOND)
    assert rung == []


def test_timer_scheduled_for_now_fires_in_the_same_run(clock: Clock) -> None:
    rung: list[str] = []

    def schedule_immediately() -> None:
        clock.call_after(timedelta(), lambda: rung.append("b"))

    clock.call_after(ONE_SECOND, schedule_immediately)
    clock.advance(ONE_SECOND)
    assert rung == ["b"]


def test_running_until_a_past_time_changes_nothing(clock: Clock) -> None:
    clock.advance(ONE_SECOND)
    clock.run_until(DEFAULT_START_TIME)
    assert clock.get_time() == DEFAULT_START_TIME + ONE_SECOND


def test_failed_timer_is_removed(clock: Clock) -> None:
    def raise_error() -> None:
        raise ZeroDivisionError

    clock.call_after(ONE_SECOND, raise_error)
    with pytest.raises(ZeroDivisionError):
        clock.advance(ONE_SECOND)
    clock.advance(ONE_SECOND)
    assert clock.get_time() == DEFAULT_START_TIME + 2 * ONE_SECOND


def test_timer_has_a_name(clock: Clock) -> None:
    assert clock.call_after(ONE_SECOND, lambda: None, "end").name == "end"


def test_next_due_time_ignores_cancelled_timers(clock: Clock) -> None:
    assert clock.get_next_due_time() is None
    clock.call_after(ONE_SECOND, lambda: None).cancel()
    clock.call_after(2 * ONE_SECOND, lambda: None)
    assert clock.get_next_due_time() == DEFAULT_START_TIME + 2 * ONE_SECOND
    assert clock.get_time() == DEFAULT_START_TIME
