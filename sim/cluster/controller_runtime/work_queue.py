"""A work queue of keys to reconcile: each key at most once at a time, after a fixed delay, retried after a fault."""

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from shared.errors import Fault
from sim.time.virtual_clock import Clock, Timer

K = TypeVar("K", bound=Hashable)

RECONCILE_DELAY: Final = timedelta(milliseconds=100)
"""Long enough that a burst of events causes one reconcile of its object."""
_INITIAL_RETRY_DELAY: Final = timedelta(seconds=1)
_MAX_RETRY_DELAY: Final = timedelta(seconds=64)


class WorkQueue(Generic[K]):
    """Keys in the order in which they are due."""

    def __init__(
        self, clock: Clock, reconcile: Callable[[K], None], name: str, delay: timedelta = RECONCILE_DELAY
    ) -> None:
        """Call *reconcile* for each key, *delay* after it was added; *name* is for display."""
        self._clock, self._reconcile, self._name, self._delay = clock, reconcile, name, delay
        self._timers: dict[K, tuple[datetime, Timer]] = {}
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Reconcile *key* after the queue's delay."""
        self.add_after(key, self._delay)

    def add_after(self, key: K, delay: timedelta) -> None:
        """Reconcile *key* after *delay*, or earlier if it is already due earlier."""
        due_at = self._clock.get_time() + delay
        pending = self._timers.get(key)
        if pending is not None:
            if pending[0] <= due_at:
                return
            pending[1].cancel()
        self._timers[key] = (due_at, self._clock.call_at(due_at, lambda: self._run(key), f"{self._name} {key}"))

    def discard(self, key: K) -> None:
        """Cancel the pending reconcile of *key*, if there is one."""
        pending = self._timers.pop(key, None)
        if pending is not None:
            pending[1].cancel()

    def _run(self, key: K) -> None:
        del self._timers[key]
        try:
            self._reconcile(key)
        except Fault:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self.add_after(key, min(_MAX_RETRY_DELAY, _INITIAL_RETRY_DELAY * 2 ** (failures - 1)))
        else:
            self._failures.pop(key, None)
