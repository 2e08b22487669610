"""Laws of the virtual clock."""

from datetime import datetime, timedelta
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from sim.clock import START, Clock

DELAYS = st.lists(st.integers(-5, 60), max_size=20)


def played(delays: list[int], steps: list[int], cancelled: frozenset[int] = frozenset()) -> list[tuple[datetime, int]]:
    """Answer when each timer rang, in order, if time passes in *steps*."""
    clock = Clock()
    rung: list[tuple[datetime, int]] = []

    def ring(number: int) -> None:
        rung.append((clock.now(), number))

    timers = [clock.call_after(timedelta(seconds=delay), partial(ring, number)) for number, delay in enumerate(delays)]
    for number in sorted(cancelled):
        if number < len(timers):
            timers[number].cancel()
    for step in steps:
        clock.advance(timedelta(seconds=step))
    return rung


@given(DELAYS)
def test_timers_ring_at_their_instant_in_the_order_of_instant_then_schedule(delays: list[int]) -> None:
    due = sorted((START + timedelta(seconds=max(0, delay)), number) for number, delay in enumerate(delays))
    assert played(delays, [60]) == due


@given(DELAYS, st.lists(st.integers(0, 30), max_size=6))
def test_how_time_is_cut_does_not_matter(delays: list[int], steps: list[int]) -> None:
    assert played(delays, [*steps, 60]) == played(delays, [sum(steps) + 60])


@given(DELAYS, st.frozensets(st.integers(0, 19)), st.lists(st.integers(0, 30), max_size=4))
def test_a_cancelled_timer_is_as_if_it_had_never_been(
    delays: list[int], cancelled: frozenset[int], steps: list[int]
) -> None:
    everything = played(delays, [*steps, 60])
    assert played(delays, [*steps, 60], cancelled) == [one for one in everything if one[1] not in cancelled]


@given(DELAYS, st.integers(0, 60))
def test_a_run_ends_where_it_was_told_to(delays: list[int], until: int) -> None:
    clock = Clock()
    rung: list[int] = []
    for delay in delays:
        clock.call_after(timedelta(seconds=delay), partial(rung.append, delay))
    clock.run_until(START + timedelta(seconds=until))
    assert clock.now() == START + timedelta(seconds=until)
    assert sorted(rung) == sorted(delay for delay in delays if delay <= until)


@given(DELAYS)
def test_time_never_runs_backwards(delays: list[int]) -> None:
    clock = Clock()
    seen: list[datetime] = []

    def ring(left: list[int]) -> None:
        seen.append(clock.now())
        if left:
            clock.call_after(timedelta(seconds=left[0]), lambda: ring(left[1:]))

    ring(delays)
    while clock.step():
        pass
    assert seen == sorted(seen)
    assert len(seen) == len(delays) + 1
