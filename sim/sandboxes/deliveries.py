"""Events on their way to a target, as EventBridge delivers them: again and again, and then to the dead letters.

A target that does not take its event is offered it again, after pauses that double, until its retry policy says that it
was often or long enough.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Final, Protocol

import msgspec

from sim.sandboxes.workers import Workers

PAUSE: Final = timedelta(seconds=1)
"""Before the first repetition of a delivery that failed."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where an event goes."""

    arn: str
    role_arn: str = ""
    """As whom; empty: as EventBridge, which the target's own policy must let in."""
    source_arn: str = ""
    """In whose name it becomes that role."""
    input: str = ""
    """JSON, in the event's place; empty: the event itself."""
    attempts: int = 186
    """The first included."""
    max_age: timedelta = timedelta(days=1)
    dead_letters_arn: str = ""


class Undelivered(Exception):
    """The target did not take the event; the message is its own."""


class Wires(Protocol):
    """Hands events over."""

    def deliver(self, target: Target, event: str, by: str) -> None:
        """Hand *event*, JSON, to *target*; a function is handed it asynchronously, *by* whom is for people.

        Raises:
            Undelivered: it was not taken.
        """

    def bury(self, target: Target, event: str, why: str) -> None:
        """Hand *event* to the target's dead letters, if it has any."""


class _Delivery(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    event: str
    by: str
    begun: datetime
    due: datetime
    failures: int = 0


class Deliveries:
    """What is on its way; `look` has to be called now and then. Safe to share between threads."""

    def __init__(self, wires: Wires, workers: Workers, clock: Callable[[], datetime]) -> None:
        """Hand over by *wires*, in threads of *workers*."""
        self._wires, self._workers, self._clock = wires, workers, clock
        self._waiting: list[_Delivery] = []
        self._lock = Lock()

    def send(self, target: Target, event: str, by: str) -> None:
        """Have *event*, or what *target* wants in its place, delivered by the next `look`."""
        now = self._clock()
        with self._lock:
            self._waiting.append(_Delivery(target=target, event=target.input or event, by=by, begun=now, due=now))

    def look(self) -> None:
        """Deliver what is due, each in a thread of its own."""
        now = self._clock()
        with self._lock:
            due = [one for one in self._waiting if one.due <= now]
            self._waiting = [one for one in self._waiting if one.due > now]
        for one in due:
            self._workers.start(partial(self._try, one))

    def _try(self, one: _Delivery) -> None:
        try:
            self._wires.deliver(one.target, one.event, one.by)
        except Undelivered as why:
            due = self._clock() + PAUSE * 2**one.failures
            if one.failures + 1 >= one.target.attempts or due - one.begun > one.target.max_age:
                self._wires.bury(one.target, one.event, str(why))
                return
            with self._lock:
                self._waiting.append(msgspec.structs.replace(one, failures=one.failures + 1, due=due))
