"""Lambda as its callers see it: aliases lead to versions, a call waits for its end or is taken for later.

A call that is taken for later is made once more a minute after it has failed, then two minutes after that, as often as
its function allows; one that is throttled is tried again until it is too old. What is given up goes where the function
says.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import count
from threading import Lock
from typing import Final, Protocol

import msgspec

from sim.account.contract import Function, Invocation, Throttled
from sim.account.kinds.functions import split
from sim.sandboxes.sandboxes import Call, Sandboxes
from sim.sandboxes.workers import Workers

RETRY_AFTER: Final = timedelta(minutes=1)
"""Before the first repetition of a call that failed; twice as long before the second."""
THROTTLED_AFTER: Final = timedelta(seconds=1)
"""Before the first repetition of one that was throttled; each later pause is twice as long."""
LONGEST_PAUSE: Final = timedelta(minutes=5)
_WHOLE: Final = 16**8


class Directory(Protocol):
    """Who knows the functions of an account."""

    def function(self, name: str, qualifier: str = "", roll: float = 0.0) -> Function:
        """Answer the version that *qualifier* leads to, of the function *name*.

        Where an alias leads to two, *roll*, of [0, 1), falls on one of them.

        Raises:
            LookupError: there is none.
        """


class Later(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was taken, and has to be made."""

    name: str
    qualifier: str
    payload: bytes
    by: str
    request_id: str
    taken: datetime
    due: datetime
    failures: int = 0
    throttles: int = 0


GiveUp = Callable[[Function, Later, str], None]
"""Hears of a call that will not be made again, and why: it failed too often, or is too old."""


class LambdaService:
    """One account's Lambda; `look` has to be called now and then. Safe to share between threads."""

    def __init__(
        self,
        directory: Directory,
        sandboxes: Sandboxes,
        clock: Callable[[], datetime],
        workers: Workers,
        *,
        give_up: GiveUp = lambda _function, _later, _why: None,
    ) -> None:
        """Find functions in *directory*, run them in *sandboxes*, calls that were taken in threads of *workers*."""
        self._directory, self._sandboxes, self._clock = directory, sandboxes, clock
        self._workers, self._give_up = workers, give_up
        self._numbers, self._lock = count(1), Lock()
        self._waiting: list[Later] = []
        self._made = 0

    @property
    def pending(self) -> int:
        """How many calls were taken and have not ended for good."""
        with self._lock:
            return len(self._waiting) + self._made

    def invoke(self, name: str, qualifier: str, payload: bytes, *, by: str = "a call", request_id: str = "") -> Call:
        """Make a call, and answer how it ended.

        Raises:
            LookupError: there is no such function, version or alias.
            Throttled: as many of its calls run as are reserved for it.
        """
        name, qualifier = parts_of(name, qualifier)
        identity = request_id or self._request_id(name)
        function = self._directory.function(name, qualifier, int(identity[:8], 16) / _WHOLE)
        called = msgspec.structs.replace(function, arn=_called(function.arn, qualifier))
        return self._sandboxes.invoke(called, payload, request_id=identity, by=by)

    def invoker(self, name: str, qualifier: str, payload: bytes) -> Invocation:
        """Do what `sim.account.contract.Invoker` asks for."""
        call = self.invoke(name, qualifier, payload)
        error = "" if call.how.status == "success" else "Unhandled"
        return Invocation(payload=call.how.payload, error=error, log=call.tail(), version=call.version)

    def take(self, name: str, qualifier: str, payload: bytes, by: str = "an event") -> None:
        """Take a call, to be made by the next `look`; nobody waits for its end.

        Raises:
            LookupError: there is no such function, version or alias.
        """
        name, qualifier = parts_of(name, qualifier)
        self._directory.function(name, qualifier)
        now = self._clock()
        self._wait(
            Later(
                name=name,
                qualifier=qualifier,
                payload=payload,
                by=by,
                request_id=self._request_id(name),
                taken=now,
                due=now,
            )
        )

    def look(self) -> None:
        """Make the calls that are due, each in a thread of its own."""
        now = self._clock()
        with self._lock:
            due = [one for one in self._waiting if one.due <= now]
            self._waiting = [one for one in self._waiting if one.due > now]
            self._made += len(due)
        for one in due:
            self._workers.start(partial(self._make, one))

    def _make(self, one: Later) -> None:
        again = None
        try:
            again = self._repeated(self._directory.function(one.name, one.qualifier), one)
        except LookupError:
            return  # the function was deleted meanwhile
        finally:
            with self._lock:
                self._made -= 1
                self._waiting += [again] if again is not None else []

    def _repeated(self, function: Function, one: Later) -> Later | None:
        """Make the call *one*; answer its repetition if there is to be one."""
        try:
            call = self.invoke(one.name, one.qualifier, one.payload, by=one.by, request_id=one.request_id)
        except Throttled as why:
            pause = min(THROTTLED_AFTER * 2**one.throttles, LONGEST_PAUSE)
            again = msgspec.structs.replace(one, throttles=one.throttles + 1, due=self._clock() + pause)
            reason = str(why)
        else:
            if call.how.status == "success":
                return None
            pause = RETRY_AFTER * (one.failures + 1)
            again = msgspec.structs.replace(one, failures=one.failures + 1, due=self._clock() + pause)
            reason = call.how.payload.decode(errors="replace")
        is_too_old = again.due - one.taken > timedelta(seconds=function.max_event_age_seconds)
        if again.failures > function.async_retries or is_too_old:
            self._give_up(function, one, reason)
            return None
        return again

    def _wait(self, one: Later) -> None:
        with self._lock:
            self._waiting.append(one)

    def _request_id(self, name: str) -> str:
        """Answer an id that no other request has; it looks like any."""
        with self._lock:
            number = next(self._numbers)
        drawn = sha256(f"{name} {number}".encode()).hexdigest()
        return "-".join((drawn[:8], drawn[8:12], f"4{drawn[13:16]}", f"a{drawn[17:20]}", drawn[20:32]))


def parts_of(name: str, qualifier: str = "") -> tuple[str, str]:
    """Answer the name of a function and the qualifier; *name* may be an ARN, and have the qualifier in it."""
    plain, within = split(name)
    return plain, within or qualifier


def _called(arn: str, qualifier: str) -> str:
    """Answer the ARN by which a function was called: with an alias, if by one.

    >>> _called("arn:aws:lambda:us-east-1:111122223333:function:web:7", "live")
    'arn:aws:lambda:us-east-1:111122223333:function:web:live'
    """
    whole = ":".join(arn.split(":")[:7])
    return f"{whole}:{qualifier}" if qualifier else whole
