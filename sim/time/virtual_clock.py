"""A virtual clock: runs callbacks at simulated times; their order depends only on the schedule.

Two callbacks at the same time run in the order in which they were scheduled. Nothing here reads real time.
"""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

DEFAULT_START_TIME: Final = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


class Timer:
    """A scheduled callback, returned by `Clock.call_at`; `cancel` prevents it from running."""

    __slots__ = ("callback", "cancelled", "name")

    def __init__(self, callback: Callable[[], None], name: str) -> None:
        """Store *callback*; *name* is for display."""
        self.callback = callback
        self.name = name
        self.cancelled = False

    def cancel(self) -> None:
        """Prevent the callback from running."""
        self.cancelled = True


class Clock:
    """The virtual time of one simulated world."""

    def __init__(self, start: datetime = DEFAULT_START_TIME) -> None:
        """Start at *start*, timezone-aware UTC."""
        self._now = start
        self._sequence = 0
        self._timers: list[tuple[datetime, int, Timer]] = []

    def get_time(self) -> datetime:
        """Return the current virtual time."""
        return self._now

    def call_at(self, when: datetime, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* at *when*; if that is in the past, run it next."""
        self._sequence += 1
        timer = Timer(callback, name)
        heapq.heappush(self._timers, (max(when, self._now), self._sequence, timer))
        return timer

    def call_after(self, delay: timedelta, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* after *delay*."""
        return self.call_at(self._now + delay, callback, name)

    def run_until(self, when: datetime) -> None:
        """Run all callbacks that are due until *when*, then set the time to *when*."""
        while self._has_timer() and self._timers[0][0] <= when:
            self.step()
        self._now = max(self._now, when)

    def step(self) -> bool:
        """Advance to the next timer and run its callback; return False if there is none.

        A canceled timer does not advance the time.
        """
        if not self._has_timer():
            return False
        self._now, _, timer = heapq.heappop(self._timers)
        timer.callback()
        return True

    def get_next_due_time(self) -> datetime | None:
        """Return when the next timer is due; None if there is none."""
        return self._timers[0][0] if self._has_timer() else None

    def advance(self, delay: timedelta) -> None:
        """Run until *delay* from now."""
        self.run_until(self._now + delay)

    def _has_timer(self) -> bool:
        """Return whether a timer is left; canceled timers before it are removed."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return bool(self._timers)
