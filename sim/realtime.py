"""The same clock, driven by real time: what is due happens now, what is late happens late, in the same order.

On the virtual clock a handler takes no time. Here it takes what it takes: `now` goes on while a callback runs, so that
delays count from when they are asked for and an invocation lasts as long as it lasted. Real time itself is an argument:
a trigger owns it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from threading import Event
from typing import Final

from sim.clock import Clock, Timer

LONGEST_SLEEP: Final = timedelta(seconds=0.25)
"""Of real time: as long as a condition or a request to stop may go unseen."""


class RealTimeClock(Clock):
    """A clock whose present moves by itself."""

    def __init__(self, instant: Callable[[], datetime], speed: float = 1.0) -> None:
        """Begin at what *instant* (aware UTC) answers now, and pass *speed* times as fast.

        Raises:
            ValueError: *speed* is not above zero.
        """
        if speed <= 0:
            raise ValueError(f"a clock cannot go at speed {speed}")
        self._instant, self._speed = instant, speed
        self._began = self._latest = instant()
        super().__init__(self._began)

    def now(self) -> datetime:
        """Answer the present instant; it never goes back, whatever is done to the machine's clock."""
        self._latest = max(self._latest, self._began + (self._instant() - self._began) * self._speed)
        self._now = self._latest
        return self._latest

    def call_at(self, when: datetime, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* at *when*, or as soon as possible if that is past."""
        self.now()
        return super().call_at(when, callback, name)

    def call_after(self, delay: timedelta, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* once *delay* has passed from now, not from when the present callback began."""
        return self.call_at(self.now() + delay, callback, name)

    def step_if_due(self) -> bool:
        """Ring the next timer if its time has come; answer whether one rang."""
        due = self.next_at()
        if due is None or due > self.now():
            return False
        return self.step()

    def until_next(self) -> timedelta | None:
        """Answer how much real time is left until a timer is due (zero: it is); None if there is none."""
        due = self.next_at()
        return None if due is None else max(timedelta(), due - self.now()) / self._speed


class RealTime:
    """Lets the timers of one clock ring when their time has come, in the thread that calls `run`."""

    def __init__(self, clock: RealTimeClock, lock: AbstractContextManager[object] | None = None) -> None:
        """Drive *clock*."""
        self.lock: AbstractContextManager[object] = lock if lock is not None else nullcontext()
        """Held while a timer rings, for those who touch the same world from other threads."""
        self._clock = clock
        self._wake, self._stopped = Event(), Event()

    @property
    def stopped(self) -> bool:
        """Whether somebody has called `stop`."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let `run` return after the timer that rings now; from any thread, or a signal handler."""
        self._stopped.set()
        self._wake.set()

    def wake(self) -> None:
        """Look at the timers again: another thread has added one."""
        self._wake.set()

    def run(self, holds: Callable[[], bool] | None = None, limit: timedelta | None = None) -> bool:
        """Let things happen until *holds*, for *limit* of the clock's time, or until `stop`.

        Answers whether *holds*; it is asked at most four times a second, and not while timers are due. Without it the
        answer is False.
        """
        end = self._clock.now() + limit if limit is not None else None
        while not self.stopped:
            self._ring(end)
            if holds is not None and holds():
                return True
            if end is not None and self._clock.now() >= end:
                return False
            self._sleep()
        return False

    def _ring(self, end: datetime | None) -> None:
        """Ring what is due; timers that keep coming do not keep `run` beyond *end*."""
        while not self.stopped and (end is None or self._clock.now() < end):
            with self.lock:
                if not self._clock.step_if_due():
                    return

    def _sleep(self) -> None:
        left = self._clock.until_next()
        self._wake.wait(min(LONGEST_SLEEP, LONGEST_SLEEP if left is None else left).total_seconds())
        self._wake.clear()
