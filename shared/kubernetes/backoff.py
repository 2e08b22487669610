"""Backoff for an API server that throttles or does not respond.

After a throttled request, no request is sent before the requested time (Retry-After), and each time twice as long, up
to 30 seconds. After a read timeout, no request is sent for the same time again. Calls during the backoff fail here,
without a request: hundreds of actions neither overload the server nor wait one by one, and the cycle ends in time to
report the failure.

Calls that run at the same time meet the same overload: if the server refuses several of them, the delay doubles once,
they wait together, and the success of a call that was sent before does not end the backoff.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event, Lock
from typing import Final

from shared.errors import Throttled, Unreachable

INITIAL_BACKOFF_DELAY: Final = timedelta(seconds=1)
MAX_BACKOFF_DELAY: Final = timedelta(seconds=30)
MAX_INLINE_WAIT: Final = timedelta(seconds=3)
"""The longest wait inside one call; there is at most one such wait per `INLINE_WAIT_INTERVAL`."""
INLINE_WAIT_INTERVAL: Final = timedelta(minutes=1)


class Backoff:
    """The backoff state for one API server. Safe to share between threads."""

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
        self._waiting_until: datetime | None = None
        self.round = 0
        """Number of backoffs that have begun."""
        self._lock = Lock()

    def check(self, call: str) -> int:
        """Return if *call* may be sent now; the result tells `record_success` and `record_throttling` when it was sent.

        While another call waits for the server's requested time, this call waits with it.

        Raises:
            Throttled: the server's requested time is not over; the exception has the remaining time.
            Unreachable: the server did not respond a moment ago.
        """
        if self._clock is None:
            return self.round
        with self._lock:
            now, until = self._clock(), self._backoff_until
            if until is None or until <= now:
                return self.round
            remaining, is_waiting = until - now, self._waiting_until is not None and now < self._waiting_until
            words, is_throttled = f"{call}: not sent: {self._message}", self._is_throttled
        if not is_throttled:
            raise Unreachable(words)
        if not is_waiting or remaining > MAX_INLINE_WAIT:
            raise Throttled(words, remaining)
        self._wait(remaining.total_seconds())
        return self.round

    def record_success(self, sent_in: int | None = None) -> None:
        """Reset the backoff: the server responded to a call that was sent after its begin (*sent_in*: see `check`)."""
        with self._lock:
            if sent_in is None or sent_in == self.round:
                self._refusals, self._backoff_until = 0, None

    def record_throttling(self, fault: Throttled, sent_in: int | None = None) -> Throttled:
        """Back off for the time that *fault* requests, or longer; return the fault with the resulting time.

        The delay does not double for a call that was sent before the current backoff (*sent_in*: see `check`).
        """
        with self._lock:
            is_same_round = self._clock is not None and sent_in is not None and sent_in < self.round
            refusals = self._refusals - 1 if is_same_round and self._refusals else self._refusals
            retry_after = max(fault.retry_after, min(INITIAL_BACKOFF_DELAY * 2**refusals, MAX_BACKOFF_DELAY))
            self._refusals = min(refusals + 1, 10)
            self._start_backoff(retry_after, "the API server throttled requests (429)", is_throttled=True)
        return Throttled(str(fault), retry_after)

    def record_silence(self, lasted: timedelta) -> None:
        """Back off for *lasted*: the server was silent for so long."""
        with self._lock:
            self._start_backoff(
                lasted, f"the API server did not respond for {lasted.total_seconds():g} s", is_throttled=False
            )

    def wait(self, fault: Throttled) -> bool:
        """Wait for the time that *fault* requests, if it is short and the last such wait was long ago.

        If another call is waiting, wait with it. Returns whether it has waited.
        """
        if self._clock is None or fault.retry_after > MAX_INLINE_WAIT:
            return False
        with self._lock:
            now = self._clock()
            is_waiting = self._waiting_until is not None and now < self._waiting_until
            waited_at = self._waited_at
            if waited_at is not None and timedelta() <= now - waited_at < INLINE_WAIT_INTERVAL and not is_waiting:
                return False
            if not is_waiting:
                self._waited_at = now
            self._waiting_until = now + fault.retry_after
        self._wait(fault.retry_after.total_seconds())
        return True

    def _start_backoff(self, duration: timedelta, message: str, *, is_throttled: bool) -> None:
        if self._clock is not None:
            self.round += 1
            self._backoff_until, self._message, self._is_throttled = self._clock() + duration, message, is_throttled
