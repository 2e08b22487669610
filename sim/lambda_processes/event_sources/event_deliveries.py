"""Event deliveries to targets, as EventBridge makes them: with retries, and finally to a dead-letter queue.

A failed delivery is retried after pauses that double, until the number of attempts or the age that the target's retry
policy allows is reached.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Final, Protocol

import msgspec

from sim.lambda_processes.workers import WorkerPool

FIRST_RETRY_DELAY: Final = timedelta(seconds=1)
"""Delay of the first retry of a failed delivery."""


class DeliveryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target of events."""

    arn: str
    role_arn: str = ""
    """The role that delivers; empty: EventBridge itself, which the target's resource policy must allow."""
    source_arn: str = ""
    """The ARN of the resource on behalf of which the role is assumed."""
    input: str = ""
    """JSON that replaces the event; empty: the event itself."""
    max_attempts: int = 186
    """Including the first attempt."""
    max_age: timedelta = timedelta(days=1)
    dead_letter_arn: str = ""


class Undelivered(Exception):
    """The target did not accept the event; the message is the target's."""


class TargetClient(Protocol):
    """Delivers events to targets."""

    def deliver_event(self, target: DeliveryTarget, event: str, source: str) -> None:
        """Deliver *event*, JSON, to *target*; a function is invoked asynchronously. *source* is for display.

        Raises:
            Undelivered: the target did not accept the event.
        """

    def send_to_dead_letter_queue(self, target: DeliveryTarget, event: str, reason: str) -> None:
        """Send *event* to the target's dead-letter queue, if it has one."""


class _PendingDelivery(msgspec.Struct, frozen=True, kw_only=True):
    target: DeliveryTarget
    event: str
    source: str
    first_sent_at: datetime
    due_at: datetime
    failures: int = 0


class EventDeliveries:
    """Pending deliveries of events; call `tick` regularly. Safe to share between threads."""

    def __init__(self, client: TargetClient, workers: WorkerPool, clock: Callable[[], datetime]) -> None:
        """Deliver with *client*, in threads of *workers*."""
        self._client, self._workers, self._clock = client, workers, clock
        self._pending_deliveries: list[_PendingDelivery] = []
        self._lock = Lock()

    def add(self, target: DeliveryTarget, event: str, source: str) -> None:
        """Add a delivery of *event* (or of the input of *target*); the next `tick` attempts it."""
        now = self._clock()
        with self._lock:
            self._pending_deliveries.append(
                _PendingDelivery(
                    target=target, event=target.input or event, source=source, first_sent_at=now, due_at=now
                )
            )

    def tick(self) -> None:
        """Attempt all due deliveries, each in its own thread."""
        now = self._clock()
        with self._lock:
            due_deliveries = [delivery for delivery in self._pending_deliveries if delivery.due_at <= now]
            self._pending_deliveries = [delivery for delivery in self._pending_deliveries if delivery.due_at > now]
        for delivery in due_deliveries:
            self._workers.submit(partial(self._attempt_delivery, delivery))

    def _attempt_delivery(self, delivery: _PendingDelivery) -> None:
        try:
            self._client.deliver_event(delivery.target, delivery.event, delivery.source)
        except Undelivered as error:
            retry_at = self._clock() + FIRST_RETRY_DELAY * 2**delivery.failures
            if (
                delivery.failures + 1 >= delivery.target.max_attempts
                or retry_at - delivery.first_sent_at > delivery.target.max_age
            ):
                self._client.send_to_dead_letter_queue(delivery.target, delivery.event, str(error))
                return
            with self._lock:
                self._pending_deliveries.append(
                    msgspec.structs.replace(delivery, failures=delivery.failures + 1, due_at=retry_at)
                )
