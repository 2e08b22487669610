"""The clock that moves by itself, and what drives it. Real time is played here: it passes when somebody asks for it."""

from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Thread

import pytest

from sim.realtime import RealTime, RealTimeClock

SECOND = timedelta(seconds=1)
TICK = SECOND / 20
START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


class Watch:
    """A watch on somebody's wrist, which goes on by *pace* whenever it is looked at."""

    pace = timedelta()

    time = START

    def __call__(self) -> datetime:
        self.time += self.pace
        return self.time


def hasty(pace: timedelta) -> Watch:
    watch = Watch()
    watch.pace = pace
    return watch


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def clock(watch: Watch) -> RealTimeClock:
    return RealTimeClock(watch)


def test_the_present_goes_on_without_a_timer(watch: Watch, clock: RealTimeClock) -> None:
    assert clock.now() == START
    watch.time += SECOND
    assert clock.now() == START + SECOND


def test_a_clock_may_pass_faster_than_the_watch(watch: Watch) -> None:
    clock = RealTimeClock(watch, speed=60)
    watch.time += 2 * SECOND
    assert clock.now() == START + timedelta(minutes=2)
    clock.call_after(timedelta(minutes=1), lambda: None)
    assert clock.until_next() == SECOND


@pytest.mark.parametrize("speed", [0, -1])
def test_a_clock_must_go_forward(watch: Watch, speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        RealTimeClock(watch, speed=speed)


def test_the_present_never_goes_back(watch: Watch, clock: RealTimeClock) -> None:
    watch.time += 5 * SECOND
    clock.now()
    watch.time = START
    assert clock.now() == START + 5 * SECOND


def test_a_late_timer_does_not_turn_the_present_back(watch: Watch, clock: RealTimeClock) -> None:
    seen: list[datetime] = []
    clock.call_after(SECOND, lambda: seen.append(clock.now()))
    watch.time += 5 * SECOND
    clock.now()
    watch.time = START
    assert clock.step_if_due()
    assert seen == [START + 5 * SECOND]


def test_only_what_is_due_rings(watch: Watch, clock: RealTimeClock) -> None:
    rung: list[str] = []
    assert not clock.step_if_due()
    assert clock.until_next() is None
    clock.call_after(2 * SECOND, lambda: rung.append("later"))
    clock.call_after(SECOND, lambda: rung.append("soon"))
    assert not clock.step_if_due()
    assert clock.until_next() == SECOND
    watch.time += SECOND
    assert clock.step_if_due()
    assert not clock.step_if_due()
    assert rung == ["soon"]


def test_what_is_late_rings_in_the_order_in_which_it_was_due(watch: Watch, clock: RealTimeClock) -> None:
    rung: list[int] = []
    for seconds in (3, 1, 2):
        clock.call_after(seconds * SECOND, partial(rung.append, seconds))
    watch.time += 10 * SECOND
    assert clock.until_next() == timedelta()
    while clock.step_if_due():
        pass
    assert rung == [1, 2, 3]


def test_a_delay_counts_from_when_it_is_asked_for(watch: Watch, clock: RealTimeClock) -> None:
    def slow() -> None:
        watch.time += 4 * SECOND
        clock.call_after(SECOND, lambda: None)

    clock.call_after(SECOND, slow)
    watch.time += SECOND
    clock.step_if_due()
    assert clock.next_at() == START + 6 * SECOND


def test_a_timer_for_the_past_is_the_next_thing(watch: Watch, clock: RealTimeClock) -> None:
    watch.time += 3 * SECOND
    clock.call_at(START, lambda: None)
    assert clock.next_at() == START + 3 * SECOND
    assert clock.step_if_due()


def test_a_cancelled_timer_is_not_waited_for(clock: RealTimeClock) -> None:
    clock.call_after(SECOND, lambda: None).cancel()
    assert clock.next_at() is None
    assert clock.until_next() is None


def test_a_drive_ends_when_its_time_is_over() -> None:
    clock = RealTimeClock(hasty(TICK / 10))
    rung: list[datetime] = []

    def tick() -> None:
        rung.append(clock.now())
        clock.call_after(TICK, tick)

    tick()
    assert not RealTime(clock).run(limit=5 * TICK)
    assert 3 <= len(rung) <= 6


def test_a_drive_ends_when_its_condition_holds() -> None:
    clock = RealTimeClock(hasty(TICK / 10))
    rung: list[str] = []
    clock.call_after(TICK, lambda: rung.append("bell"))
    assert RealTime(clock).run(lambda: bool(rung), 60 * TICK)
    assert clock.now() < START + 60 * TICK


def test_timers_that_keep_coming_do_not_outlast_the_limit() -> None:
    clock = RealTimeClock(hasty(SECOND / 100))

    def storm() -> None:
        clock.call_at(clock.now(), storm)

    storm()
    assert not RealTime(clock).run(limit=SECOND)


def test_a_stopped_drive_finishes_the_timer_that_rings_and_no_other(watch: Watch, clock: RealTimeClock) -> None:
    drive, rung = RealTime(clock), list[str]()

    def first() -> None:
        drive.stop()
        rung.append("first")

    clock.call_after(SECOND, first)
    clock.call_after(SECOND, lambda: rung.append("second"))
    watch.time += SECOND
    assert not drive.stopped
    assert not drive.run()
    assert drive.stopped
    assert rung == ["first"]


class Door:
    """A lock that can be looked at."""

    held = False

    def __enter__(self) -> None:
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False


def test_a_timer_rings_under_the_lock_and_a_condition_without_it(watch: Watch, clock: RealTimeClock) -> None:
    door, seen = Door(), list[bool]()
    clock.call_after(SECOND, lambda: seen.append(door.held))
    watch.time += SECOND
    assert RealTime(clock, door).run(lambda: bool(seen) and not door.held, SECOND)
    assert seen == [True]


def test_another_thread_may_stop_a_drive_that_sleeps() -> None:
    drive = RealTime(RealTimeClock(lambda: datetime.now(UTC)))
    other = Thread(target=drive.stop)

    def begin() -> bool:
        if other.ident is None:
            other.start()
        return False

    assert not drive.run(begin)
    other.join()


def test_a_timer_that_another_thread_adds_is_heard_at_once() -> None:
    clock = RealTimeClock(lambda: datetime.now(UTC))
    drive, rung = RealTime(clock), list[str]()

    def add() -> None:
        clock.call_at(clock.now(), lambda: rung.append("bell"))
        drive.wake()

    other = Thread(target=add)
    other.start()
    assert drive.run(lambda: bool(rung), 600 * SECOND)
    other.join()
