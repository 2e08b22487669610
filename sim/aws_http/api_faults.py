"""Injected API errors: a call fails before it takes effect, or its response is replaced by an error or lost."""

from threading import Lock
from typing import Final

import msgspec

from sim.aws_http.protocol import ApiCall, ApiError

LOST_RESPONSE_STATUS: Final = 0
"""The status that means: the connection ends without a response."""


class InjectedFault(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of one call."""

    code: str
    status: int
    takes_effect: bool

    def build_error(self) -> ApiError:
        """Return the error to send.

        Raises:
            ConnectionError: no response is to be sent; the server closes the connection.
        """
        if self.status == LOST_RESPONSE_STATUS:
            raise ConnectionError(self.code)
        return ApiError(self.code, "injected", self.status)


class FaultQueue:
    """Pending faults by service and action; faults of the same action apply in the order in which they were added."""

    def __init__(self) -> None:
        """Create an empty queue."""
        self._pending_faults: dict[tuple[str, str], list[InjectedFault]] = {}
        self._lock = Lock()

    def add(self, service: str, action: str, fault: InjectedFault, times: int) -> None:
        """Apply *fault* to the next *times* calls of *action*."""
        with self._lock:
            self._pending_faults.setdefault((service, action), []).extend([fault] * times)

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._pending_faults.clear()

    def take(self, call: ApiCall) -> InjectedFault | None:
        """Return and remove the fault of this call, or None."""
        with self._lock:
            pending_faults = self._pending_faults.get((call.service, call.action))
            return pending_faults.pop(0) if pending_faults else None
