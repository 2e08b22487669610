"""Recursive loop detection: count the invocations that are connected by messages, as Lambda does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sim.lambda_runtime.invocation import Event

MAX_CHAINED_INVOCATIONS: Final = 16
"""Invocations of one chain; only a function with ``RecursiveLoop: Allow`` is invoked more often."""


class InvocationChains:
    """The invocation chains of all messages of a stack."""

    def __init__(self) -> None:
        """Start without messages."""
        self._chain_length_by_message: dict[str, int] = {}
        """The chain length before each message, by message id."""
        self._current_chain_length = 0

    def record_message(self, message_id: str) -> None:
        """Record that the running invocation, if there is one, sent this message."""
        self._chain_length_by_message[message_id] = self._current_chain_length

    def count_invocations(self, event: Event) -> int:
        """Return the position in its chain of the invocation with *event*: 1 if no function sent its messages."""
        records = event.get("Records", ())
        return 1 + max((self._chain_length_by_message.get(record["messageId"], 0) for record in records), default=0)

    @contextmanager
    def track_invocation(self, chain_length: int) -> Iterator[None]:
        """Run the body as the invocation with this position in its chain."""
        self._current_chain_length = chain_length
        try:
            yield
        finally:
            self._current_chain_length = 0
