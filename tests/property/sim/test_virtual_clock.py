"""Laws of the virtual clock."""

from datetime import datetime, timedelta
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from sim.time.virtual_clock import DEFAULT_START_TIME, Clock

DELAYS = st.lists(st.integers(-5, 60), max_size=20)


def run_timers(
    delays: list[int], steps: list[int], cancelled: frozenset[int] = frozenset()
) -> list[tuple[datetime, int]]:
    """Return the time and number of each timer that fires, in order, when time passes in *steps*."""
    clock = Clock()
    rung: list[tuple[datetime, int]] = []

    def record_timer(number: int) -> None:
        rung.append((clock.get_time(), number))

    timers = [
        clock.call_after(timedelta(seconds=delay), partial(record_timer, number)) for number, delay in enumerate(delays)
    ]
    for number in sorted(cancelled):
        if number < len(timers):
            timers[number].cancel()
    for step in steps:
        clock.advance(timedelta(seconds=step))
    return rung


@given(DELAYS)
def test_timers_fire_on_time_ordered_by_due_time_then_scheduling_order(delays: list[int]) -> None:
    due = sorted((DEFAULT_START_TIME + timedelta(seconds=max(0, delay)), number) for number, delay in enumerate(delays))
    assert run_timers(delays, [60]) == due


@given(DELAYS, st.lists(st.integers(0, 30), max_size=6))
def test_timer_order_does_not_depend_on_how_time_is_advanced(delays: list[int], steps: list[int]) -> None:
    assert run_timers(delays, [*steps, 60]) == run_timers(delays, [sum(steps) + 60])


@given(DELAYS, st.frozensets(st.integers(0, 19)), st.lists(st.integers(0, 30), max_size=4))
def test_cancelled_timer_has_no_effect(delays: list[int], cancelled: frozenset[int], steps: list[int]) -> None:
    firings = run_timers(delays, [*steps, 60])
    assert run_timers(delays, [*steps, 60], cancelled) == [firing for firing in firings if firing[1] not in cancelled]


@given(DELAYS, st.integers(0, 60))
def test_run_until_stops_at_the_given_time(delays: list[int], until: int) -> None:
    clock = Clock()
    rung: list[int] = []
    for delay in delays:
        clock.call_after(timedelta(seconds=delay), partial(rung.append, delay))
    clock.run_until(DEFAULT_START_TIME + timedelta(seconds=until))
    assert clock.get_time() == DEFAULT_START_TIME + timedelta(seconds=until)
    assert sorted(rung) == sorted(delay for delay in delays if delay <= until)


@given(DELAYS)
def test_time_never_runs_backwards(delays: list[int]) -> None:
    clock = Clock()
    instants: list[datetime] = []

    def schedule_next(remaining_delays: list[int]) -> None:
        instants.append(clock.get_time())
        if remaining_delays:
            clock.call_after(timedelta(seconds=remaining_delays[0]), lambda: schedule_next(remaining_delays[1:]))

    schedule_next(delays)
    while clock.step():
        pass
    assert instants == sorted(instants)
    assert len(instants) == len(delays) + 1
