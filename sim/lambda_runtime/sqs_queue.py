"""An SQS queue on the virtual clock: delays, visibility timeout, receive counts, retention, redrive.

A message is received at least once, in no guaranteed order. With seed 0, the order is that of sending; with any other
seed it is shuffled deterministically.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256

from sim.lambda_runtime.stack_template.stack_parts import SqsQueueSpec
from sim.time.virtual_clock import Clock


class SqsMessage:
    """A message; receiving it moves *visible_at*."""

    __slots__ = ("body", "first_received_at", "id", "receives", "sent_at", "visible_at")

    def __init__(self, message_id: str, body: str, sent_at: datetime, visible_at: datetime) -> None:
        """Create a message that was never received."""
        self.id = message_id
        self.body = body
        self.sent_at = sent_at
        self.visible_at = visible_at
        self.receives = 0
        self.first_received_at = sent_at


class SqsQueue:
    """The messages of one queue."""

    def __init__(self, spec: SqsQueueSpec, clock: Clock, seed: int = 0) -> None:
        """Create an empty queue with the configuration *queue*."""
        self.spec = spec
        self.dead_letter_queue: SqsQueue | None = None
        """The dead-letter queue: gets messages that were received too often."""
        self.expired: list[SqsMessage] = []
        """Messages that were not deleted within the retention period."""
        self.on_visible_at: Callable[[datetime], None] = lambda _: None
        """Called with the time at which a message becomes visible; the poller of the queue then polls."""
        self._clock = clock
        self._seed = seed
        self._messages: dict[str, SqsMessage] = {}

    @property
    def messages(self) -> tuple[SqsMessage, ...]:
        """All messages that were sent and not deleted, moved or expired, in the order of sending."""
        return tuple(self._messages.values())

    def add(self, message_id: str, body: str, delay: timedelta | None = None) -> None:
        """Add a message that becomes visible after *delay* (None: the queue's own delay)."""
        now = self._clock.get_time()
        message = SqsMessage(message_id, body, now, now + (self.spec.delay if delay is None else delay))
        self._messages[message_id] = message
        self.on_visible_at(message.visible_at)

    def receive(self, limit: int) -> tuple[SqsMessage, ...]:
        """Return at most *limit* visible messages and hide them for the visibility timeout.

        Messages that were received too often are moved to the dead-letter queue.
        """
        now = self._clock.get_time()
        self._remove_expired(now)
        received: list[SqsMessage] = []
        for message in sorted(
            (candidate for candidate in self._messages.values() if candidate.visible_at <= now), key=self._get_sort_key
        ):
            if len(received) == limit:
                break
            if self.dead_letter_queue is not None and self._exceeds_receive_count(message):
                self.delete(message.id)
                self.dead_letter_queue.accept_dead_letter(message)
                continue
            message.first_received_at = message.first_received_at if message.receives else now
            message.receives += 1
            message.visible_at = now + self.spec.visibility_timeout
            self.on_visible_at(message.visible_at)
            received.append(message)
        return tuple(received)

    def count_visible(self) -> int:
        """Return the number of messages that can be received now."""
        return sum(message.visible_at <= self._clock.get_time() for message in self._messages.values())

    def delete(self, message_id: str) -> None:
        """Delete a message; if it is already gone, that is no error."""
        self._messages.pop(message_id, None)

    def _get_sort_key(self, message: SqsMessage) -> tuple[str, datetime, str]:
        shuffle_key = sha256(f"{self._seed}:{message.id}:{message.receives}".encode()).hexdigest() if self._seed else ""
        return shuffle_key, message.sent_at, message.id

    def _exceeds_receive_count(self, message: SqsMessage) -> bool:
        return message.receives >= self.spec.max_receive_count

    def accept_dead_letter(self, message: SqsMessage) -> None:
        """Add *message* from its source queue: visible immediately, with its id and its sent time."""
        message.receives = 0
        message.visible_at = self._clock.get_time()
        self._messages[message.id] = message
        self.on_visible_at(message.visible_at)

    def _remove_expired(self, now: datetime) -> None:
        for message in self.messages:
            if message.sent_at + self.spec.retention <= now:
                self.expired.append(message)
                self.delete(message.id)
