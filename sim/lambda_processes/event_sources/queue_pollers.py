"""Event source mappings of SQS queues: one thread per mapping polls its queue and invokes a function with batches.

The function's response settles the batch: failed messages (all, if the invocation failed) become visible again after
their visibility timeout, the others are deleted. The mapping limits the number of concurrent batches.
"""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import BoundedSemaphore, Event, Thread
from typing import Any, Final, Protocol

import msgspec

from sim.aws_account.function_runtime import Throttled
from sim.lambda_processes.sandboxes import SandboxInvocation
from sim.lambda_processes.workers import WorkerPool
from sim.lambda_runtime.event_payloads import build_sqs_event, list_failed_message_ids
from sim.lambda_runtime.sqs_queue import SqsMessage

MAX_MESSAGES_PER_RECEIVE: Final = 10
"""The maximum of messages in one response of SQS."""
MAX_RECEIVE_WAIT: Final = timedelta(seconds=1)
"""How long one ReceiveMessage call waits for messages."""
_RETRY_INTERVAL_SECONDS: Final = 1.0


class QueueMapping(msgspec.Struct, frozen=True, kw_only=True):
    """An event source mapping from a queue to a function."""

    uuid: str
    queue_arn: str
    function_arn: str
    """With the alias, if the mapping has one."""
    batch_size: int = 10
    batching_window: timedelta = timedelta()
    reports_item_failures: bool = False
    maximum_concurrency: int = 1000


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and the receipt handle that deletes it."""

    message: SqsMessage
    receipt_handle: str


class QueueUnavailable(Exception):
    """SQS refused a call: the queue does not exist, or its reader has no permission; the message is SQS's."""


class QueueGone(QueueUnavailable):
    """The queue or its reader was deleted, and the poller has not been stopped yet."""


class QueueClient(Protocol):
    """SQS, with the permissions of the function of a mapping."""

    def receive_messages(self, mapping: QueueMapping, limit: int, wait_time: timedelta) -> list[ReceivedMessage]:
        """Wait at most *wait_time* for messages, and return at most *limit* of them.

        Raises:
            QueueUnavailable: the queue cannot be read.
        """

    def delete_messages(self, mapping: QueueMapping, receipt_handles: Iterable[str]) -> None:
        """Delete the handled messages.

        Raises:
            QueueUnavailable: they cannot be deleted.
        """


InvokeByArn = Callable[[str, bytes, str], SandboxInvocation]
"""Invokes a function by its ARN, with a payload and a source for display; may raise `Throttled` or LookupError."""


class QueuePoller:
    """Polls one queue for one function until it is stopped."""

    def __init__(
        self,
        mapping: QueueMapping,
        queue_client: QueueClient,
        invoke: InvokeByArn,
        workers: WorkerPool,
        clock: Callable[[], datetime],
        on_error: Callable[[str], None],
    ) -> None:
        """Start immediately; *on_error* is called with the message if SQS refuses a call."""
        self._mapping, self._queue_client, self._invoke, self._workers = mapping, queue_client, invoke, workers
        self._clock, self._on_error = clock, on_error
        self._slots = BoundedSemaphore(mapping.maximum_concurrency)
        self._stopped = Event()
        self._thread = Thread(target=self._poll_until_stopped, name=f"poller-{mapping.uuid[:8]}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Receive no more messages; running batches are still completed."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until no more messages are received."""
        self._thread.join()

    def _poll_until_stopped(self) -> None:
        while not self._stopped.is_set():
            if not self._slots.acquire(timeout=_RETRY_INTERVAL_SECONDS):
                continue
            batch = self._collect_batch()
            if batch:
                self._workers.submit(partial(self._process_batch, batch))
            else:
                self._slots.release()

    def _collect_batch(self) -> list[ReceivedMessage]:
        """Return the next batch; empty: no message arrived.

        The first message opens the batching window, if there is one.
        """
        messages: list[ReceivedMessage] = []
        window_end: datetime | None = None
        wait_time = MAX_RECEIVE_WAIT
        try:
            while wait_time > timedelta() and len(messages) < self._mapping.batch_size:
                limit = min(MAX_MESSAGES_PER_RECEIVE, self._mapping.batch_size - len(messages))
                messages += self._queue_client.receive_messages(self._mapping, limit, wait_time)
                if not messages or not self._mapping.batching_window:
                    break
                window_end = window_end or self._clock() + self._mapping.batching_window
                wait_time = min(MAX_RECEIVE_WAIT, window_end - self._clock())
        except QueueUnavailable as error:
            if not isinstance(error, QueueGone):
                self._on_error(f"{self._mapping.queue_arn}: {error}")
            self._stopped.wait(_RETRY_INTERVAL_SECONDS)
        return messages

    def _process_batch(self, batch: list[ReceivedMessage]) -> None:
        try:
            messages = tuple(message.message for message in batch)
            payload = json.dumps(build_sqs_event(self._mapping.queue_arn, messages)).encode()
            invocation = self._invoke(
                self._mapping.function_arn, payload, f"queue {self._mapping.queue_arn.split(':')[-1]}"
            )
            failed_ids = self._list_failed_ids(invocation, messages)
            handled_receipts = [message.receipt_handle for message in batch if message.message.id not in failed_ids]
            if handled_receipts:
                self._queue_client.delete_messages(self._mapping, handled_receipts)
        except (Throttled, LookupError, QueueGone):
            return  # the messages become visible again by themselves, if the queue still exists
        except QueueUnavailable as error:
            self._on_error(f"{self._mapping.queue_arn}: {error}")
        finally:
            self._slots.release()

    def _list_failed_ids(self, invocation: SandboxInvocation, messages: tuple[SqsMessage, ...]) -> frozenset[str]:
        if invocation.result.status != "success":
            return frozenset(message.id for message in messages)
        return (
            list_failed_message_ids(json.loads(invocation.result.payload), messages)
            if self._mapping.reports_item_failures
            else frozenset()
        )


class QueuePollers:
    """One poller for each existing mapping; call `tick` regularly."""

    def __init__(
        self, list_mappings: Callable[[], Iterable[QueueMapping]], start_poller: Callable[[QueueMapping], QueuePoller]
    ) -> None:
        """Read the current mappings from *list_mappings* each time; *start_poller* starts a poller."""
        self._list_mappings, self._start_poller = list_mappings, start_poller
        self._poller_by_mapping: dict[QueueMapping, QueuePoller] = {}

    def tick(self) -> None:
        """Start pollers for new mappings, and stop those of mappings that were deleted or changed."""
        current_mappings = set(self._list_mappings())
        for mapping in self._poller_by_mapping.keys() - current_mappings:
            self._poller_by_mapping.pop(mapping).stop()
        for mapping in current_mappings - self._poller_by_mapping.keys():
            self._poller_by_mapping[mapping] = self._start_poller(mapping)

    def stop(self) -> None:
        """Stop all pollers, and wait until they receive no more messages."""
        for poller in self._poller_by_mapping.values():
            poller.stop()
        for poller in self._poller_by_mapping.values():
            poller.join()


def parse_message(response_message: dict[str, Any]) -> ReceivedMessage:
    """Parse a message of a ReceiveMessage response with all its system attributes."""
    attributes = response_message["Attributes"]
    sent_at = _parse_epoch_milliseconds(attributes["SentTimestamp"])
    message = SqsMessage(response_message["MessageId"], response_message["Body"], sent_at, sent_at)
    message.receives = int(attributes["ApproximateReceiveCount"])
    message.first_received_at = _parse_epoch_milliseconds(attributes["ApproximateFirstReceiveTimestamp"])
    return ReceivedMessage(message=message, receipt_handle=response_message["ReceiptHandle"])


def _parse_epoch_milliseconds(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
