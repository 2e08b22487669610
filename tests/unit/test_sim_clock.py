"""The virtual clock."""

from datetime import timedelta

import pytest

from sim.clock import START, Clock

SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_clock_begins_at_an_instant_of_its_own(clock: Clock) -> None:
    assert clock.now() == START
    assert START.tzinfo is not None
    assert Clock(START + SECOND).now() == START + SECOND


def test_an_empty_clock_has_no_step(clock: Clock) -> None:
    assert not clock.step()
    assert clock.now() == START


def test_a_step_is_one_timer(clock: Clock) -> None:
    rung: list[str] = []
    clock.call_after(2 * SECOND, lambda: rung.append("b"))
    clock.call_after(SECOND, lambda: rung.append("a"))
    assert clock.step()
    assert (rung, clock.now()) == (["a"], START + SECOND)


def test_what_is_past_rings_as_the_next_thing_without_turning_time_back(clock: Clock) -> None:
    rung: list[object] = []
    clock.advance(10 * SECOND)
    clock.call_at(START, lambda: rung.append(clock.now()))
    clock.advance(timedelta())
    assert rung == [START + 10 * SECOND]


def test_a_timer_that_is_cancelled_never_rings_and_moves_no_time(clock: Clock) -> None:
    rung: list[str] = []
    clock.call_after(SECOND, lambda: rung.append("never")).cancel()
    assert not clock.step()
    assert (rung, clock.now()) == ([], START)
    clock.call_after(SECOND, lambda: rung.append("never")).cancel()
    clock.call_after(9 * SECOND, lambda: rung.append("late"))
    clock.run_until(START + 2 * SECOND)
    assert (rung, clock.now()) == ([], START + 2 * SECOND)


def test_a_timer_may_cancel_another_of_the_same_instant(clock: Clock) -> None:
    rung: list[str] = []
    clock.call_after(SECOND, lambda: later.cancel())  # noqa: PLW0108 - it does not exist yet
    later = clock.call_after(SECOND, lambda: rung.append("b"))
    clock.advance(SECOND)
    assert rung == []


def test_what_a_timer_schedules_for_now_rings_within_the_same_run(clock: Clock) -> None:
    rung: list[str] = []

    def ring() -> None:
        clock.call_after(timedelta(), lambda: rung.append("b"))

    clock.call_after(SECOND, ring)
    clock.advance(SECOND)
    assert rung == ["b"]


def test_a_run_to_the_past_changes_nothing(clock: Clock) -> None:
    clock.advance(SECOND)
    clock.run_until(START)
    assert clock.now() == START + SECOND


def test_a_timer_that_fails_is_over(clock: Clock) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    clock.call_after(SECOND, fail)
    with pytest.raises(ZeroDivisionError):
        clock.advance(SECOND)
    clock.advance(SECOND)
    assert clock.now() == START + 2 * SECOND


def test_a_timer_has_a_name_for_people(clock: Clock) -> None:
    assert clock.call_after(SECOND, lambda: None, "end").name == "end"


def test_the_next_timer_is_known_before_it_rings(clock: Clock) -> None:
    assert clock.next_at() is None
    clock.call_after(SECOND, lambda: None).cancel()
    clock.call_after(2 * SECOND, lambda: None)
    assert clock.next_at() == START + 2 * SECOND
    assert clock.now() == START
