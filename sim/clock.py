"""A virtual clock: things happen at instants, in an order that depends on nothing but the schedule.

Two callbacks at the same instant run in the order in which they were scheduled. Nothing here reads real time.
"""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


class Timer:
    """What `Clock.call_at` answers; `cancel` makes it never ring."""

    __slots__ = ("callback", "cancelled", "name")

    def __init__(self, callback: Callable[[], None], name: str) -> None:
        """Ring *callback*; *name* is for people."""
        self.callback = callback
        self.name = name
        self.cancelled = False

    def cancel(self) -> None:
        """Never ring."""
        self.cancelled = True


class Clock:
    """The time of one simulated world."""

    def __init__(self, start: datetime = START) -> None:
        """Begin at *start*, aware UTC."""
        self._now = start
        self._sequence = 0
        self._timers: list[tuple[datetime, int, Timer]] = []

    def now(self) -> datetime:
        """Answer the present instant."""
        return self._now

    def call_at(self, when: datetime, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* at *when*, or as the next thing if that is past."""
        self._sequence += 1
        timer = Timer(callback, name)
        heapq.heappush(self._timers, (max(when, self._now), self._sequence, timer))
        return timer

    def call_after(self, delay: timedelta, callback: Callable[[], None], name: str = "") -> Timer:
        """Run *callback* once *delay* has passed."""
        return self.call_at(self._now + delay, callback, name)

    def run_until(self, when: datetime) -> None:
        """Let everything happen that is due until *when*, then be at *when*."""
        while self._has_timer() and self._timers[0][0] <= when:
            self.step()
        self._now = max(self._now, when)

    def step(self) -> bool:
        """Advance to the next timer and ring it; False if there is none. A cancelled timer moves no time."""
        if not self._has_timer():
            return False
        self._now, _, timer = heapq.heappop(self._timers)
        timer.callback()
        return True

    def next_at(self) -> datetime | None:
        """Answer when the next timer rings; None if there is none."""
        return self._timers[0][0] if self._has_timer() else None

    def advance(self, delay: timedelta) -> None:
        """`run_until` *delay* from now."""
        self.run_until(self._now + delay)

    def _has_timer(self) -> bool:
        """Whether one is left to ring; cancelled ones before it are forgotten."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return bool(self._timers)
