"""An event source mapping at work: it reads a queue once there is something to read, and settles what was read."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeAlias

from sim.clock import Clock
from sim.lambdas.invocation import Event, Invocation, sqs_event, unsettled
from sim.lambdas.parts import EventSourceMapping
from sim.lambdas.queue import Message, SqsQueue

Call: TypeAlias = Callable[[str, Event, str, Callable[[Invocation], None]], None]
"""Calls a function by name with an event, for a trigger; says when it is over."""


class Poller:
    """Reads one queue for one function."""

    def __init__(self, mapping: EventSourceMapping, queue: SqsQueue, clock: Clock, call: Call) -> None:
        """Be told by *queue* when to look."""
        self._mapping = mapping
        self._queue = queue
        self._clock = clock
        self._call = call
        self._in_flight = 0
        self._due: set[datetime] = set()
        self._closes: datetime | None = None
        """When the batch that is being gathered is handed over, full or not."""
        queue.ripens = self._poll_at

    def _poll_at(self, when: datetime) -> None:
        if when not in self._due:
            self._due.add(when)
            self._clock.call_at(when, partial(self._poll, when), f"poll {self._mapping.queue}")

    def _poll(self, when: datetime) -> None:
        self._due.discard(when)
        while self._in_flight < self._mapping.maximum_concurrency and not self._gathers():
            batch = self._queue.receive(self._mapping.batch_size)
            if not batch:
                return
            self._in_flight += 1
            event = sqs_event(self._queue.queue.arn, batch)
            self._call(self._mapping.function, event, f"queue:{self._mapping.queue}", partial(self._settle, batch))

    def _gathers(self) -> bool:
        """Whether the mapping's window is open, so that more messages may join those that are visible."""
        count, now = self._queue.visible(), self._clock.now()
        if not self._mapping.window or not count or count >= self._mapping.batch_size:
            self._closes = None
            return False
        if self._closes is None:
            self._closes = now + self._mapping.window
            self._poll_at(self._closes)
        if now < self._closes:
            return True
        self._closes = None
        return False

    def _settle(self, batch: tuple[Message, ...], invocation: Invocation) -> None:
        self._in_flight -= 1
        failed = self._failed(batch, invocation)
        for message in batch:
            if message.id not in failed:
                self._queue.delete(message.id)
        if self._queue.visible():
            self._poll_at(self._clock.now())

    def _failed(self, batch: tuple[Message, ...], invocation: Invocation) -> frozenset[str]:
        if invocation.outcome != "ok":
            return frozenset(message.id for message in batch)
        return unsettled(invocation.answer, batch) if self._mapping.partial_failures else frozenset()
