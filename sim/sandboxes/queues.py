"""Event source mappings at work: a thread each that waits at its queue, and hands batches to a function.

What the function answers settles the batch: what it names, or all if it failed, comes back when its time-out of
visibility is over; the rest is deleted. Only as many batches are out at once as the mapping allows.
"""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import BoundedSemaphore, Event, Thread
from typing import Any, Final, Protocol

import msgspec

from sim.account.contract import Throttled
from sim.lambdas.invocation import sqs_event, unsettled
from sim.lambdas.queue import Message
from sim.sandboxes.sandboxes import Call
from sim.sandboxes.workers import Workers

MOST_AT_ONCE: Final = 10
"""Messages that SQS gives in one answer."""
PATIENCE: Final = timedelta(seconds=1)
"""How long one question waits for messages."""
_AGAIN_SECONDS: Final = 1.0


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """One event source mapping, of a queue and a function."""

    uuid: str
    queue_arn: str
    function_arn: str
    """With its alias, if there is one."""
    batch_size: int = 10
    window: timedelta = timedelta()
    partial_failures: bool = False
    maximum_concurrency: int = 1000


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and the handle that deletes it."""

    message: Message
    handle: str


class QueueUnavailable(Exception):
    """SQS refused: the queue is gone, or its reader has no right; the message is SQS's."""


class QueueGone(QueueUnavailable):
    """The queue or its reader was deleted, and nobody has told the poller yet."""


class Mail(Protocol):
    """SQS, as the reader of a mapping's queue."""

    def receive(self, mapping: Mapping, limit: int, patience: timedelta) -> list[Received]:
        """Wait for messages, as long as *patience*, and answer at most *limit* of them.

        Raises:
            QueueUnavailable: they cannot be read.
        """

    def delete(self, mapping: Mapping, handles: Iterable[str]) -> None:
        """Delete what was handled.

        Raises:
            QueueUnavailable: that cannot be done.
        """


Invoke = Callable[[str, bytes, str], Call]
"""Invokes a function by its ARN, with a payload, for somebody; may raise `Throttled` or LookupError."""


class Poller:
    """Reads one queue for one function until it is stopped."""

    def __init__(
        self,
        mapping: Mapping,
        mail: Mail,
        invoke: Invoke,
        workers: Workers,
        clock: Callable[[], datetime],
        refused: Callable[[str], None],
    ) -> None:
        """Begin at once; *refused* hears what SQS says when it does not let us."""
        self._mapping, self._mail, self._invoke, self._workers = mapping, mail, invoke, workers
        self._clock, self._refused = clock, refused
        self._slots = BoundedSemaphore(mapping.maximum_concurrency)
        self._stopped = Event()
        self._thread = Thread(target=self._read, name=f"poller-{mapping.uuid[:8]}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Read nothing more; what is out is settled still."""
        self._stopped.set()

    def join(self) -> None:
        """Return when it reads no more."""
        self._thread.join()

    def _read(self) -> None:
        while not self._stopped.is_set():
            if not self._slots.acquire(timeout=_AGAIN_SECONDS):
                continue
            batch = self._batch()
            if batch:
                self._workers.start(partial(self._hand_over, batch))
            else:
                self._slots.release()

    def _batch(self) -> list[Received]:
        """Answer the next batch; empty: nothing came. The first message opens the window, if there is one."""
        found: list[Received] = []
        closes: datetime | None = None
        patience = PATIENCE
        try:
            while patience > timedelta() and len(found) < self._mapping.batch_size:
                limit = min(MOST_AT_ONCE, self._mapping.batch_size - len(found))
                found += self._mail.receive(self._mapping, limit, patience)
                if not found or not self._mapping.window:
                    break
                closes = closes or self._clock() + self._mapping.window
                patience = min(PATIENCE, closes - self._clock())
        except QueueUnavailable as error:
            if not isinstance(error, QueueGone):
                self._refused(f"{self._mapping.queue_arn}: {error}")
            self._stopped.wait(_AGAIN_SECONDS)
        return found

    def _hand_over(self, batch: list[Received]) -> None:
        try:
            messages = tuple(one.message for one in batch)
            payload = json.dumps(sqs_event(self._mapping.queue_arn, messages)).encode()
            call = self._invoke(self._mapping.function_arn, payload, f"queue {self._mapping.queue_arn.split(':')[-1]}")
            failed = self._failed(call, messages)
            done = [one.handle for one in batch if one.message.id not in failed]
            if done:
                self._mail.delete(self._mapping, done)
        except (Throttled, LookupError, QueueGone):
            return  # the messages come back by themselves, where there is still somebody for them
        except QueueUnavailable as error:
            self._refused(f"{self._mapping.queue_arn}: {error}")
        finally:
            self._slots.release()

    def _failed(self, call: Call, messages: tuple[Message, ...]) -> frozenset[str]:
        if call.how.status != "success":
            return frozenset(message.id for message in messages)
        return unsettled(json.loads(call.how.payload), messages) if self._mapping.partial_failures else frozenset()


class Pollers:
    """One poller for each mapping there is; `look` has to be called now and then."""

    def __init__(self, mappings: Callable[[], Iterable[Mapping]], make: Callable[[Mapping], Poller]) -> None:
        """Ask *mappings* what there is, each time; *make* begins a poller."""
        self._mappings, self._make = mappings, make
        self._pollers: dict[Mapping, Poller] = {}

    def look(self) -> None:
        """Begin pollers for new mappings, stop those whose mapping is gone or was changed."""
        wanted = set(self._mappings())
        for mapping in self._pollers.keys() - wanted:
            self._pollers.pop(mapping).stop()
        for mapping in wanted - self._pollers.keys():
            self._pollers[mapping] = self._make(mapping)

    def stop(self) -> None:
        """Stop all, and return when they read no more."""
        for poller in self._pollers.values():
            poller.stop()
        for poller in self._pollers.values():
            poller.join()


def message_from(said: dict[str, Any]) -> Received:
    """Read a message as ReceiveMessage answers it, with all its system attributes."""
    attributes = said["Attributes"]
    sent = _instant(attributes["SentTimestamp"])
    message = Message(said["MessageId"], said["Body"], sent, sent)
    message.receives = int(attributes["ApproximateReceiveCount"])
    message.first_received_at = _instant(attributes["ApproximateFirstReceiveTimestamp"])
    return Received(message=message, handle=said["ReceiptHandle"])


def _instant(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
