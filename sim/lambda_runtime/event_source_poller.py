"""An event source mapping: polls an SQS queue when messages are visible, invokes a function and deletes messages."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeAlias

from sim.lambda_runtime.event_payloads import build_sqs_event, list_failed_message_ids
from sim.lambda_runtime.invocation import Event, Invocation
from sim.lambda_runtime.service_calls import ServiceCalls
from sim.lambda_runtime.sqs_queue import SqsMessage, SqsQueue
from sim.lambda_runtime.stack_template.stack_parts import EventSourceMapping
from sim.time.virtual_clock import Clock

InvokeWithCallback: TypeAlias = Callable[[str, Event, str, Callable[[Invocation], None]], None]
"""Invokes a function by name with an event, for a trigger; calls back when the invocation has ended."""


class EventSourcePoller:
    """Polls one queue for one function."""

    def __init__(
        self,
        mapping: EventSourceMapping,
        queue: SqsQueue,
        clock: Clock,
        invoke: InvokeWithCallback,
        service_calls: ServiceCalls,
    ) -> None:
        """Poll when *queue* reports that a message will become visible."""
        self._service_calls = service_calls
        self._mapping = mapping
        self._queue = queue
        self._clock = clock
        self._invoke = invoke
        self._running_batches = 0
        self._poll_times: set[datetime] = set()
        self._window_end: datetime | None = None
        """End of the batching window of the batch that is being collected; None: no window is open."""
        queue.on_visible_at = self._schedule_poll

    def _schedule_poll(self, poll_time: datetime) -> None:
        if poll_time not in self._poll_times:
            self._poll_times.add(poll_time)
            self._clock.call_at(poll_time, partial(self._poll, poll_time), f"poll {self._mapping.queue}")

    def _poll(self, poll_time: datetime) -> None:
        self._poll_times.discard(poll_time)
        if not self._service_calls.can_poll(self._mapping.function, self._queue.spec.arn):
            return
        while self._running_batches < self._mapping.maximum_concurrency and not self._is_collecting():
            batch = self._queue.receive(self._mapping.batch_size)
            if not batch:
                return
            self._running_batches += 1
            event = build_sqs_event(self._queue.spec.arn, batch)
            self._invoke(
                self._mapping.function, event, f"queue:{self._mapping.queue}", partial(self._complete_batch, batch)
            )

    def _is_collecting(self) -> bool:
        """Return whether the batching window is open, so that more messages may join the visible ones."""
        visible_count, now = self._queue.count_visible(), self._clock.get_time()
        if not self._mapping.batching_window or not visible_count or visible_count >= self._mapping.batch_size:
            self._window_end = None
            return False
        if self._window_end is None:
            self._window_end = now + self._mapping.batching_window
            self._schedule_poll(self._window_end)
        if now < self._window_end:
            return True
        self._window_end = None
        return False

    def _complete_batch(self, batch: tuple[SqsMessage, ...], invocation: Invocation) -> None:
        self._running_batches -= 1
        failed_ids = self._list_failed_ids(batch, invocation)
        if self._service_calls.can_delete_messages(self._mapping.function, self._queue.spec.arn):
            for message in batch:
                if message.id not in failed_ids:
                    self._queue.delete(message.id)
        if self._queue.count_visible():
            self._schedule_poll(self._clock.get_time())

    def _list_failed_ids(self, batch: tuple[SqsMessage, ...], invocation: Invocation) -> frozenset[str]:
        if invocation.outcome != "ok":
            return frozenset(message.id for message in batch)
        return (
            list_failed_message_ids(invocation.response, batch) if self._mapping.reports_item_failures else frozenset()
        )
