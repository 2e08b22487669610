"""Tests of the real-time clock and its driver. The real time is simulated: it passes when a test asks for it."""

from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Thread

import pytest

from sim.time.real_clock import RealTimeClock, RealTimeDriver

ONE_SECOND = timedelta(seconds=1)
TICK = ONE_SECOND / 20
START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


class Watch:
    """A watch that advances by *pace* at every reading."""

    pace = timedelta()

    time = START

    def __call__(self) -> datetime:
        self.time += self.pace
        return self.time


def make_watch(pace: timedelta) -> Watch:
    watch = Watch()
    watch.pace = pace
    return watch


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def clock(watch: Watch) -> RealTimeClock:
    return RealTimeClock(watch)


def test_real_clock_advances_without_timers(watch: Watch, clock: RealTimeClock) -> None:
    assert clock.get_time() == START
    watch.time += ONE_SECOND
    assert clock.get_time() == START + ONE_SECOND


def test_real_clock_speed_multiplies_time(watch: Watch) -> None:
    clock = RealTimeClock(watch, speed=60)
    watch.time += 2 * ONE_SECOND
    assert clock.get_time() == START + timedelta(minutes=2)
    clock.call_after(timedelta(minutes=1), lambda: None)
    assert clock.get_time_until_next() == ONE_SECOND


@pytest.mark.parametrize("speed", [0, -1])
def test_real_clock_speed_must_be_positive(watch: Watch, speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        RealTimeClock(watch, speed=speed)


def test_real_clock_never_goes_backwards(watch: Watch, clock: RealTimeClock) -> None:
    watch.time += 5 * ONE_SECOND
    clock.get_time()
    watch.time = START
    assert clock.get_time() == START + 5 * ONE_SECOND


def test_late_timer_does_not_set_the_clock_back(watch: Watch, clock: RealTimeClock) -> None:
    ring_times: list[datetime] = []
    clock.call_after(ONE_SECOND, lambda: ring_times.append(clock.get_time()))
    watch.time += 5 * ONE_SECOND
    clock.get_time()
    watch.time = START
    assert clock.step_if_due()
    assert ring_times == [START + 5 * ONE_SECOND]


def test_only_due_timers_fire(watch: Watch, clock: RealTimeClock) -> None:
    rung: list[str] = []
    assert not clock.step_if_due()
    assert clock.get_time_until_next() is None
    clock.call_after(2 * ONE_SECOND, lambda: rung.append("later"))
    clock.call_after(ONE_SECOND, lambda: rung.append("soon"))
    assert not clock.step_if_due()
    assert clock.get_time_until_next() == ONE_SECOND
    watch.time += ONE_SECOND
    assert clock.step_if_due()
    assert not clock.step_if_due()
    assert rung == ["soon"]


def test_overdue_timers_fire_in_due_order(watch: Watch, clock: RealTimeClock) -> None:
    rung: list[int] = []
    for seconds in (3, 1, 2):
        clock.call_after(seconds * ONE_SECOND, partial(rung.append, seconds))
    watch.time += 10 * ONE_SECOND
    assert clock.get_time_until_next() == timedelta()
    while clock.step_if_due():
        pass
    assert rung == [1, 2, 3]


def test_timer_delay_counts_from_the_scheduling_time(watch: Watch, clock: RealTimeClock) -> None:
    def advance_and_schedule() -> None:
        watch.time += 4 * ONE_SECOND
        clock.call_after(ONE_SECOND, lambda: None)

    clock.call_after(ONE_SECOND, advance_and_schedule)
    watch.time += ONE_SECOND
    clock.step_if_due()
    assert clock.get_next_due_time() == START + 6 * ONE_SECOND


def test_timer_in_the_past_is_due_immediately(watch: Watch, clock: RealTimeClock) -> None:
    watch.time += 3 * ONE_SECOND
    clock.call_at(START, lambda: None)
    assert clock.get_next_due_time() == START + 3 * ONE_SECOND
    assert clock.step_if_due()


def test_cancelled_timer_is_not_waited_for(clock: RealTimeClock) -> None:
    clock.call_after(ONE_SECOND, lambda: None).cancel()
    assert clock.get_next_due_time() is None
    assert clock.get_time_until_next() is None


def test_driver_run_ends_at_its_time_limit() -> None:
    clock = RealTimeClock(make_watch(TICK / 10))
    rung: list[datetime] = []

    def tick() -> None:
        rung.append(clock.get_time())
        clock.call_after(TICK, tick)

    tick()
    assert not RealTimeDriver(clock).run(limit=5 * TICK)
    assert 3 <= len(rung) <= 6


def test_driver_run_ends_when_its_condition_holds() -> None:
    clock = RealTimeClock(make_watch(TICK / 10))
    rung: list[str] = []
    clock.call_after(TICK, lambda: rung.append("bell"))
    assert RealTimeDriver(clock).run(lambda: bool(rung), 60 * TICK)
    assert clock.get_time() < START + 60 * TICK


def test_rescheduling_timers_do_not_exceed_the_time_limit() -> None:
    clock = RealTimeClock(make_watch(ONE_SECOND / 100))

    def reschedule_immediately() -> None:
        clock.call_at(clock.get_time(), reschedule_immediately)

    reschedule_immediately()
    assert not RealTimeDriver(clock).run(limit=ONE_SECOND)


def test_stopped_driver_finishes_only_the_current_timer(watch: Watch, clock: RealTimeClock) -> None:
    drive, rung = RealTimeDriver(clock), list[str]()

    def stop_and_record() -> None:
        drive.stop()
        rung.append("first")

    clock.call_after(ONE_SECOND, stop_and_record)
    clock.call_after(ONE_SECOND, lambda: rung.append("second"))
    watch.time += ONE_SECOND
    assert not drive.is_stopped
    assert not drive.run()
    assert drive.is_stopped
    assert rung == ["first"]


class ObservableLock:
    """A lock whose state can be read."""

    is_held = False

    def __enter__(self) -> None:
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = False


def test_timer_fires_under_the_lock_and_conditions_run_without_it(watch: Watch, clock: RealTimeClock) -> None:
    lock, lock_states = ObservableLock(), list[bool]()
    clock.call_after(ONE_SECOND, lambda: lock_states.append(lock.is_held))
    watch.time += ONE_SECOND
    assert RealTimeDriver(clock, lock).run(lambda: bool(lock_states) and not lock.is_held, ONE_SECOND)
    assert lock_states == [True]


def test_sleeping_driver_can_be_stopped_by_another_thread() -> None:
    drive = RealTimeDriver(RealTimeClock(lambda: datetime.now(UTC)))
    thread = Thread(target=drive.stop)

    def begin() -> bool:
        if thread.ident is None:
            thread.start()
        return False

    assert not drive.run(begin)
    thread.join()


def test_timer_added_by_another_thread_fires_immediately() -> None:
    clock = RealTimeClock(lambda: datetime.now(UTC))
    drive, rung = RealTimeDriver(clock), list[str]()

    def add() -> None:
        clock.call_at(clock.get_time(), lambda: rung.append("bell"))
        drive.notify()

    thread = Thread(target=add)
    thread.start()
    assert drive.run(lambda: bool(rung), 600 * ONE_SECOND)
    thread.join()
