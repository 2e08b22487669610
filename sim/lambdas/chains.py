"""How many calls came of one another by messages: Lambda takes a long chain of them for a loop that nobody meant."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sim.lambdas.invocation import Event

LONGEST: Final = 16
"""Calls of one chain; the next is made only of a function that may call itself (``RecursiveLoop``)."""


class Chains:
    """Of all messages of a stack."""

    def __init__(self) -> None:
        """Begin without messages."""
        self._calls: dict[str, int] = {}
        """Before each message, by its id."""
        self._running = 0

    def sent(self, message_id: str) -> None:
        """Note that the call that runs, if one does, sent this message."""
        self._calls[message_id] = self._running

    def calls(self, event: Event) -> int:
        """Answer which call of its chain that with *event* is: one, if no function sent what it was handed."""
        records = event.get("Records", ())
        return 1 + max((self._calls.get(one["messageId"], 0) for one in records), default=0)

    @contextmanager
    def running(self, calls: int) -> Iterator[None]:
        """Run the call that is this one of its chain."""
        self._running = calls
        try:
            yield
        finally:
            self._running = 0
