"""One SQS queue on the virtual clock: delays, visibility, receive counts, retention, redrive.

A message is received at least once, in no promised order. With the seed 0 the order is that of sending, with any other
it is shuffled, always in the same way.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256

from sim.clock import Clock
from sim.lambdas.parts import Queue


class Message:
    """One message; *visible_at* moves when it is received."""

    __slots__ = ("body", "first_received_at", "id", "receives", "sent_at", "visible_at")

    def __init__(self, message_id: str, body: str, sent_at: datetime, visible_at: datetime) -> None:
        """Be sent."""
        self.id = message_id
        self.body = body
        self.sent_at = sent_at
        self.visible_at = visible_at
        self.receives = 0
        self.first_received_at = sent_at


class SqsQueue:
    """One queue's messages."""

    def __init__(self, queue: Queue, clock: Clock, seed: int = 0) -> None:
        """Be empty, as *queue* describes it."""
        self.queue = queue
        self.dead_letters: SqsQueue | None = None
        """Where messages go that were received too often."""
        self.expired: list[Message] = []
        """What nobody received before its retention was over."""
        self.ripens: Callable[[datetime], None] = lambda _: None
        """Told when a message will be visible: whoever reads the queue polls then."""
        self._clock = clock
        self._seed = seed
        self._messages: dict[str, Message] = {}

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything that was sent and neither deleted, moved nor expired, in the order of sending."""
        return tuple(self._messages.values())

    def send(self, message_id: str, body: str, delay: timedelta | None = None) -> None:
        """Take a message, visible after *delay* or, without one, after the queue's own delay."""
        now = self._clock.now()
        message = Message(message_id, body, now, now + (self.queue.delay if delay is None else delay))
        self._messages[message_id] = message
        self.ripens(message.visible_at)

    def receive(self, limit: int) -> tuple[Message, ...]:
        """Answer at most *limit* visible messages and hide them; move those away that were received too often."""
        now = self._clock.now()
        self._expire(now)
        received: list[Message] = []
        for message in sorted((m for m in self._messages.values() if m.visible_at <= now), key=self._order):
            if len(received) == limit:
                break
            if self.dead_letters is not None and self._is_dead(message):
                self.delete(message.id)
                self.dead_letters.adopt(message)
                continue
            message.first_received_at = message.first_received_at if message.receives else now
            message.receives += 1
            message.visible_at = now + self.queue.visibility_timeout
            self.ripens(message.visible_at)
            received.append(message)
        return tuple(received)

    def visible(self) -> int:
        """Answer how many messages could be received now."""
        return sum(message.visible_at <= self._clock.now() for message in self._messages.values())

    def delete(self, message_id: str) -> None:
        """Forget a message; that it is gone already is no error."""
        self._messages.pop(message_id, None)

    def _order(self, message: Message) -> tuple[str, datetime, str]:
        drawn = sha256(f"{self._seed}:{message.id}:{message.receives}".encode()).hexdigest() if self._seed else ""
        return drawn, message.sent_at, message.id

    def _is_dead(self, message: Message) -> bool:
        return message.receives >= self.queue.max_receive_count

    def adopt(self, message: Message) -> None:
        """Take *message* from the queue that gave it up: visible at once, with its id, as old as it is."""
        message.receives = 0
        message.visible_at = self._clock.now()
        self._messages[message.id] = message
        self.ripens(message.visible_at)

    def _expire(self, now: datetime) -> None:
        for message in self.messages:
            if message.sent_at + self.queue.retention <= now:
                self.expired.append(message)
                self.delete(message.id)
