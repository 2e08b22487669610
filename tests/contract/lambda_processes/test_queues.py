"""Event source mappings: batches, their partial failures, and the number of concurrent batches."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import pytest

from sim.aws_account.function_runtime import Throttled
from sim.lambda_processes.event_sources.queue_pollers import (
    QueueMapping,
    QueuePoller,
    QueuePollers,
    QueueUnavailable,
    ReceivedMessage,
)
from sim.lambda_processes.sandboxes import SandboxInvocation
from sim.lambda_runtime.sqs_queue import SqsQueue
from sim.lambda_runtime.stack_template.stack_parts import SqsQueueSpec
from sim.time.virtual_clock import Clock
from tests.contract.lambda_processes.sandbox_directory import ARN, CODE, TinyLambda, open_tiny_lambda, zip_code

pytestmark = pytest.mark.loopback
SECOND, MINUTE, NEVER = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=3650)
BACK_SOON = pytest.mark.parametrize("letters", [15 * MINUTE], indirect=True, ids=["short visibility timeout"])
MAPPING = QueueMapping(
    uuid="m",
    queue_arn="arn:aws:sqs:us-east-1:111122223333:work",
    function_arn=f"{ARN}tiny",
    maximum_concurrency=1,
)


FAILING = zip_code(CODE.replace('event.get("do", "")', '"fail"'))


def make_mapping(**fields: Any) -> QueueMapping:
    return msgspec.structs.replace(MAPPING, **fields)


class ClockedQueue:
    """A queue on a clock of its own: time advances only while its reader waits in vain, a second at a time.

    With at most one concurrent batch, the reader doesn't poll while a function runs, however long that takes.
    """

    def __init__(self, tiny: TinyLambda, visibility_timeout: timedelta) -> None:
        """Hide received messages for *visibility_timeout*; after the third receive a message becomes a dead letter."""
        self._tiny, self._lock, self.clock = tiny, Lock(), Clock()
        parts = SqsQueueSpec(
            name="work",
            url="",
            arn=MAPPING.queue_arn,
            visibility_timeout=visibility_timeout,
            retention=NEVER,
            max_receive_count=3,
        )
        self.queue, self.dead = SqsQueue(parts, self.clock), SqsQueue(parts, self.clock)
        self.queue.dead_letter_queue = self.dead
        self.on_throttled: Callable[[], None] = lambda: None
        self.refusal = ""
        self.reported_refusals: list[str] = []

    def send(self, *bodies: str, delay: timedelta | None = None) -> None:
        with self._lock:
            for body in bodies:
                self.queue.add(f"id-{body}", body, delay)

    def receive_messages(self, mapping: QueueMapping, limit: int, wait_time: timedelta) -> list[ReceivedMessage]:
        assert mapping.queue_arn == MAPPING.queue_arn
        assert wait_time <= SECOND
        if self.refusal:
            raise QueueUnavailable(self.refusal)
        with self._lock:
            messages = [
                ReceivedMessage(message=message, receipt_handle=message.id) for message in self.queue.receive(limit)
            ]
            if not messages:
                self.clock.advance(wait_time)
        if not messages:
            time.sleep(0.001)
        return messages

    def delete_messages(self, mapping: QueueMapping, receipt_handles: Iterable[str]) -> None:
        assert mapping.queue_arn == MAPPING.queue_arn
        with self._lock:
            for handle in receipt_handles:
                self.queue.delete(handle)

    def build_poller(self, mapping: QueueMapping) -> QueuePoller:
        return QueuePoller(
            mapping, self, self._invoke, self._tiny.workers, self.clock.get_time, self.reported_refusals.append
        )

    def _invoke(self, arn: str, payload: bytes, source: str) -> SandboxInvocation:
        try:
            return self._tiny.service.invoke(arn, "", payload, source=source)
        except Throttled:
            self.on_throttled()
            raise

    @property
    def is_empty(self) -> bool:
        return not self.queue.messages


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[TinyLambda]:
    with open_tiny_lambda(tmp_path) as tiny_lambda:
        yield tiny_lambda


@pytest.fixture
def letters(tiny: TinyLambda, request: pytest.FixtureRequest) -> ClockedQueue:
    return ClockedQueue(tiny, getattr(request, "param", NEVER))


@pytest.fixture
def polled(letters: ClockedQueue) -> Iterator[Callable[[QueueMapping], QueuePoller]]:
    pollers: list[QueuePoller] = []

    def begin(mapping: QueueMapping) -> QueuePoller:
        pollers.append(letters.build_poller(mapping))
        return pollers[-1]

    yield begin
    for poller in pollers:
        poller.stop()
        poller.join()


def test_processed_messages_are_deleted(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    letters.send("a", "b", "c")
    polled(MAPPING)
    tiny.wait_until(lambda: letters.is_empty)
    [(event, _)] = tiny.account.list_seen_calls()
    assert [record["body"] for record in event["Records"]] == ["a", "b", "c"]
    assert event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "1"
    assert [call.source for call in tiny.calls] == ["queue work"]


def test_batches_do_not_exceed_the_batch_size(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    letters.send(*map(str, range(5)))
    polled(make_mapping(batch_size=2))
    tiny.wait_until(lambda: letters.is_empty)
    assert [len(event["Records"]) for event, _ in tiny.account.list_seen_calls()] == [2, 2, 1]


def test_batching_window_collects_more_messages_than_a_single_receive(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    letters.send(*map(str, range(25)))
    polled(make_mapping(batch_size=100, batching_window=60 * SECOND))
    tiny.wait_until(lambda: letters.is_empty)
    assert [len(event["Records"]) for event, _ in tiny.account.list_seen_calls()] == [25]


@BACK_SOON
def test_only_failed_messages_are_retried_and_finally_become_dead_letters(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(code=FAILING)
    tiny.invoke(Records=[])
    letters.send("good", "bad one")
    polled(make_mapping(reports_item_failures=True))
    tiny.wait_until(lambda: bool(letters.dead.messages))
    assert [message.body for message in letters.dead.messages] == ["bad one"]
    assert letters.is_empty
    tiny.wait_until(lambda: len(tiny.calls) == 4)


@BACK_SOON
def test_batch_without_partial_failure_reporting_fails_as_a_whole(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(handler="tiny.missing")
    letters.send("a", "b")
    polled(MAPPING)
    tiny.wait_until(lambda: len(letters.dead.messages) == 2)
    assert all(call.result.status == "error" for call in tiny.calls)


@BACK_SOON
def test_throttled_batch_is_retried(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(reserved_concurrency=0)
    letters.on_throttled = lambda: tiny.account.versions.update({"$LATEST": tiny.account.build_function()})
    letters.send("a")
    polled(MAPPING)
    tiny.wait_until(lambda: letters.is_empty)
    [(event, _)] = tiny.account.list_seen_calls()
    assert event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "2"


def test_delayed_message_is_received_after_its_delay(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    letters.send("late", delay=300 * SECOND)
    began = letters.clock.get_time()
    polled(MAPPING)
    tiny.wait_until(lambda: letters.is_empty)
    assert letters.clock.get_time() - began >= 300 * SECOND


def test_receive_error_is_reported_and_retried(
    tiny: TinyLambda, letters: ClockedQueue, polled: Callable[[QueueMapping], QueuePoller]
) -> None:
    letters.refusal = "AccessDenied"
    letters.send("a")
    polled(MAPPING)
    tiny.wait_until(lambda: bool(letters.reported_refusals))
    letters.refusal = ""
    tiny.wait_until(lambda: letters.is_empty)
    assert letters.reported_refusals[0] == f"{MAPPING.queue_arn}: AccessDenied"


def test_pollers_follow_the_current_event_source_mappings(tiny: TinyLambda, letters: ClockedQueue) -> None:
    mapped: list[QueueMapping] = [MAPPING]
    pollers = QueuePollers(lambda: mapped, letters.build_poller)
    pollers.tick()
    letters.send("a")
    tiny.wait_until(lambda: letters.is_empty)
    mapped.clear()
    pollers.tick()
    mapped.append(make_mapping(uuid="another"))
    pollers.tick()
    letters.send("b")
    tiny.wait_until(lambda: letters.is_empty)
    pollers.stop()
    assert len(tiny.calls) == 2
