"""Backoff for an API server that throttles or does not respond.

After a throttled request, no request is sent before the requested time (Retry-After), and each time twice as long, up
to 30 seconds. After a read timeout, no request is sent for the same time again. Calls during the backoff fail here,
without a request: hundreds of actions neither overload the server nor wait one by one, and the cycle ends in time to
report the failure.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event
from typing import Final

from shared.errors import Throttled, Unreachable

INITIAL_BACKOFF_DELAY: Final = timedelta(seconds=1)
MAX_BACKOFF_DELAY: Final = timedelta(seconds=30)
MAX_INLINE_WAIT: Final = timedelta(seconds=3)
"""The longest wait inside one call; there is at most one such wait per `INLINE_WAIT_INTERVAL`."""
INLINE_WAIT_INTERVAL: Final = timedelta(minutes=1)


class Backoff:
    """The backoff state for one API server."""

    def __init__(
        self, clock: Callable[[], datetime] | None = None, wait: Callable[[float], object] | None = None
    ) -> None:
        """Begin without backoff.

        *clock* returns aware UTC (None: never back off), *wait* sleeps for a number of seconds.
        """
        self._clock, self._wait = clock, wait or Event().wait
        self._backoff_until: datetime | None = None
        self._message = ""
        self._is_throttled = False
        self._refusals = 0
        self._waited_at: datetime | None = None

    def check(self, call: str) -> None:
        """Return if *call* may be sent now.

        Raises:
            Throttled: the server's requested time is not over; the exception has the remaining time.
            Unreachable: the server did not respond a moment ago.
        """
        if self._clock is None or self._backoff_until is None:
            return
        remaining = self._backoff_until - self._clock()
        if remaining <= timedelta():
            return
        words = f"{call}: not sent: {self._message}"
        raise Throttled(words, remaining) if self._is_throttled else Unreachable(words)

    def record_success(self) -> None:
        """Reset the backoff: the server responded."""
        self._refusals, self._backoff_until = 0, None

    def record_throttling(self, fault: Throttled) -> Throttled:
        """Back off for the time that *fault* requests, or longer; return the fault with the resulting time."""
        retry_after = max(fault.retry_after, min(INITIAL_BACKOFF_DELAY * 2**self._refusals, MAX_BACKOFF_DELAY))
        self._refusals = min(self._refusals + 1, 10)
        self._start_backoff(retry_after, "the API server throttled requests (429)", is_throttled=True)
        return Throttled(str(fault), retry_after)

    def record_silence(self, lasted: timedelta) -> None:
        """Back off for *lasted*: the server was silent for so long."""
        self._start_backoff(
            lasted, f"the API server did not respond for {lasted.total_seconds():g} s", is_throttled=False
        )

    def wait(self, fault: Throttled) -> bool:
        """Wait for the time that *fault* requests, if it is short and the last such wait was long ago.

        Returns whether it has waited.
        """
        if self._clock is None or fault.retry_after > MAX_INLINE_WAIT:
            return False
        now = self._clock()
        if self._waited_at is not None and timedelta() <= now - self._waited_at < INLINE_WAIT_INTERVAL:
            return False
        self._waited_at = now
        self._wait(fault.retry_after.total_seconds())
        return True

    def _start_backoff(self, duration: timedelta, message: str, *, is_throttled: bool) -> None:
        if self._clock is not None:
            self._backoff_until, self._message, self._is_throttled = self._clock() + duration, message, is_throttled
