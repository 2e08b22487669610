"""A queue of keys to reconcile: each at most once at a time, after a fixed delay, again later if a fault came."""

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from shared.errors import Fault
from sim.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)

DELAY: Final = timedelta(milliseconds=100)
"""Long enough that a burst of events costs one look at what they are about."""
_FIRST_RETRY: Final = timedelta(seconds=1)
_LAST_RETRY: Final = timedelta(seconds=64)


class Queue(Generic[K]):
    """Keys in the order in which they fall due."""

    def __init__(self, clock: Clock, reconcile: Callable[[K], None], name: str, delay: timedelta = DELAY) -> None:
        """Call *reconcile* for each key *delay* after it was added; *name* is for people."""
        self._clock, self._reconcile, self._name, self._delay = clock, reconcile, name, delay
        self._timers: dict[K, tuple[datetime, Timer]] = {}
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Reconcile *key* soon."""
        self.add_after(key, self._delay)

    def add_after(self, key: K, delay: timedelta) -> None:
        """Reconcile *key* once *delay* has passed, or earlier if it was to be anyway."""
        due = self._clock.now() + delay
        waiting = self._timers.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._timers[key] = (due, self._clock.call_at(due, lambda: self._run(key), f"{self._name} {key}"))

    def forget(self, key: K) -> None:
        """Do not reconcile *key* after all."""
        waiting = self._timers.pop(key, None)
        if waiting is not None:
            waiting[1].cancel()

    def _run(self, key: K) -> None:
        del self._timers[key]
        try:
            self._reconcile(key)
        except Fault:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self.add_after(key, min(_LAST_RETRY, _FIRST_RETRY * 2 ** (failures - 1)))
        else:
            self._failures.pop(key, None)
