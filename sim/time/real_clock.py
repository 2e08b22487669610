"""The virtual clock driven by real time: due callbacks run now, late ones run late, in the same order.

On the virtual clock a handler takes no time. Here the time continues while a callback runs, so that delays count from
the call that asks for them and an invocation has its real duration. Real time is an argument: the entry point provides
it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from threading import Event
from typing import Final

from sim.time.virtual_clock import Clock, Timer

MAX_SLEEP: Final = timedelta(seconds=0.25)
"""Real time: the longest delay until a condition or a stop request is noticed."""


class RealTimeClock(Clock):
    """A clock whose time advances by itself."""

    def __init__(self, get_real_time: Callable[[], datetime], speed: float = 1.0) -> None:
        """Start at the current value of *get_real_time* (timezone-aware UTC), and run *speed* times as fast.

        Raises:
            ValueError: *speed* is not above zero.
        """
        if speed <= 0:
            raise ValueError(f"a clock cannot go at speed {speed}")
        self._get_real_time, self._speed = get_real_time, speed
        self._started_at = self._latest = get_real_time()
        super().__init__(self._started_at)

    def get_time(self) -> datetime:
        """Return the current time; it never decreases, even if the computer's clock is set back."""
        self._latest = max(self._latest, self._started_at + (self._get_real_time() - self._started_at) * self._speed)
        self._now = self._latest
        return self._latest

    def call_at(self, when: datetime, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* at *when*; if that is in the past, as soon as possible."""
        self.get_time()
        return super().call_at(when, callback, name)

    def call_after(self, delay: timedelta, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* after *delay* from now, not from the start of the running callback."""
        return self.call_at(self.get_time() + delay, callback, name)

    def step_if_due(self) -> bool:
        """Run the next timer if it is due; return whether one ran."""
        next_due_time = self.get_next_due_time()
        if next_due_time is None or next_due_time > self.get_time():
            return False
        return self.step()

    def get_time_until_next(self) -> timedelta | None:
        """Return the real time until the next timer is due, zero if it is due already; None if there is none."""
        next_due_time = self.get_next_due_time()
        return None if next_due_time is None else max(timedelta(), next_due_time - self.get_time()) / self._speed


class RealTimeDriver:
    """Runs the due timers of one clock, in the thread that calls `run`."""

    def __init__(self, clock: RealTimeClock, lock: AbstractContextManager[object] | None = None) -> None:
        """Drive *clock*."""
        self.lock: AbstractContextManager[object] = lock if lock is not None else nullcontext()
        """Held while a timer runs, for other threads that access the same world."""
        self._clock = clock
        self._notified, self._stopped = Event(), Event()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let `run` return after the running timer; can be called from any thread or signal handler."""
        self._stopped.set()
        self._notified.set()

    def notify(self) -> None:
        """Check the timers again: another thread has added one."""
        self._notified.set()

    def run(self, condition: Callable[[], bool] | None = None, limit: timedelta | None = None) -> bool:
        """Run timers until *condition* holds, for *limit* of the clock's time, or until `stop`.

        Return whether *condition* holds; it is checked at most four times a second, and not while timers are due.
        Without a condition the result is False.
        """
        end = self._clock.get_time() + limit if limit is not None else None
        while not self.is_stopped:
            self._run_due_timers(end)
            if condition is not None and condition():
                return True
            if end is not None and self._clock.get_time() >= end:
                return False
            self._sleep()
        return False

    def _run_due_timers(self, end: datetime | None) -> None:
        """Run the due timers; timers that are added continuously do not extend `run` beyond *end*."""
        while not self.is_stopped and (end is None or self._clock.get_time() < end):
            with self.lock:
                if not self._clock.step_if_due():
                    return

    def _sleep(self) -> None:
        time_until_next = self._clock.get_time_until_next()
        self._notified.wait(min(MAX_SLEEP, MAX_SLEEP if time_until_next is None else time_until_next).total_seconds())
        self._notified.clear()
