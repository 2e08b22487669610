"""How one keeps away from an API server that asked for time, or was silent.

Whoever is throttled comes back not before the time that was wished for, and each time after twice as long, up to half a
minute. Who was silent for as long as one waits is left alone for as long again. Calls meanwhile fail here, without a
request: hundreds of actions do not hammer on a door, nor does each of them wait before it, and the cycle ends in time
to be told of.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event
from typing import Final

from shared.errors import Throttled, Unreachable

FIRST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(seconds=30)
SHORT: Final = timedelta(seconds=3)
"""What is waited for within a call: once, and not again for as long as `RESTED`."""
RESTED: Final = timedelta(minutes=1)


class Patience:
    """What is known of one API server's wish to be left alone."""

    def __init__(
        self, clock: Callable[[], datetime] | None = None, wait: Callable[[float], object] | None = None
    ) -> None:
        """Expect it to answer; *clock* is aware UTC, without one nothing is kept to; *wait* lets seconds pass."""
        self._clock, self._wait = clock, wait or Event().wait
        self._until: datetime | None = None
        self._why = ""
        self._is_busy = False
        self._refusals = 0
        self._waited_at: datetime | None = None

    def check(self, call: str) -> None:
        """Let *call* go ahead.

        Raises:
            Throttled: the server's time is not over; it says how much of it is left.
            Unreachable: it was silent just now.
        """
        if self._clock is None or self._until is None:
            return
        left = self._until - self._clock()
        if left <= timedelta():
            return
        words = f"{call}: not sent: {self._why}"
        raise Throttled(words, left) if self._is_busy else Unreachable(words)

    def answered(self) -> None:
        """It did answer: all is well again."""
        self._refusals, self._until = 0, None

    def throttled(self, fault: Throttled) -> Throttled:
        """Keep away for as long as *fault* wishes, or longer; answer it with how long that is."""
        wished = max(fault.retry_after, min(FIRST * 2**self._refusals, LONGEST))
        self._refusals = min(self._refusals + 1, 10)
        self._close(wished, "the API server asked for time, for it has too many requests", is_busy=True)
        return Throttled(str(fault), wished)

    def silent(self, lasted: timedelta) -> None:
        """It was silent for *lasted*: keep away for as long."""
        self._close(lasted, f"the API server was silent for {lasted.total_seconds():g} s", is_busy=False)

    def wait(self, fault: Throttled) -> bool:
        """Wait for as long as *fault* wishes, if that is little, and long since something was waited for.

        Answers whether it has waited.
        """
        if self._clock is None or fault.retry_after > SHORT:
            return False
        now = self._clock()
        if self._waited_at is not None and timedelta() <= now - self._waited_at < RESTED:
            return False
        self._waited_at = now
        self._wait(fault.retry_after.total_seconds())
        return True

    def _close(self, lasts: timedelta, why: str, *, is_busy: bool) -> None:
        if self._clock is not None:
            self._until, self._why, self._is_busy = self._clock() + lasts, why, is_busy
