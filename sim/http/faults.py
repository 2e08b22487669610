"""Calls that fail on demand: refused before they take effect, or answered with an error (or not at all) after."""

from threading import Lock
from typing import Final

import msgspec

from sim.http.protocol import ApiError, Call

LOST: Final = 0
"""The status that means: the connection ends without an answer."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with one call."""

    code: str
    status: int
    after: bool

    def error(self) -> ApiError:
        """Answer the refusal to write.

        Raises:
            ConnectionError: there is to be no answer; the server ends the connection.
        """
        if self.status == LOST:
            raise ConnectionError(self.code)
        return ApiError(self.code, "injected", self.status)


class Faults:
    """The faults that are still to come, by service and action; those of one call come in the order they were given."""

    def __init__(self) -> None:
        """Begin with none."""
        self._coming: dict[tuple[str, str], list[Fault]] = {}
        self._lock = Lock()

    def add(self, service: str, action: str, fault: Fault, times: int) -> None:
        """Let the next *times* calls of *action* have *fault*."""
        with self._lock:
            self._coming.setdefault((service, action), []).extend([fault] * times)

    def clear(self) -> None:
        """Let nothing fail any more."""
        with self._lock:
            self._coming.clear()

    def take(self, call: Call) -> Fault | None:
        """Answer the fault of this call, which is spent by that."""
        with self._lock:
            coming = self._coming.get((call.service, call.action))
            return coming.pop(0) if coming else None
