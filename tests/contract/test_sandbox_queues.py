"""Event source mappings: batches, what of them comes back, and how many are out at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import pytest

from sim.account.contract import Throttled
from sim.clock import Clock
from sim.lambdas.parts import Queue
from sim.lambdas.queue import SqsQueue
from sim.sandboxes.queues import Mapping, Poller, Pollers, QueueUnavailable, Received
from sim.sandboxes.sandboxes import Call
from tests.contract.sandbox_directory import ARN, CODE, Place, place, zipped

pytestmark = pytest.mark.loopback
SECOND, MINUTE, NEVER = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=3650)
SOON = pytest.mark.parametrize("letters", [15 * MINUTE], indirect=True, ids=["back soon"])
MAPPING = Mapping(
    uuid="m",
    queue_arn="arn:aws:sqs:us-east-1:111122223333:work",
    function_arn=f"{ARN}tiny",
    maximum_concurrency=1,
)


FAILING = zipped(CODE.replace('event.get("do", "")', '"fail"'))


def changed(**fields: Any) -> Mapping:
    return msgspec.structs.replace(MAPPING, **fields)


class Letters:
    """A queue on a clock of its own: time passes only while its reader waits in vain, a second at a time.

    With one batch out at once the reader does not ask while a function runs, however long that takes.
    """

    def __init__(self, tiny: Place, visibility_timeout: timedelta) -> None:
        """Hide what was received for *visibility_timeout*; the third time in vain is the last."""
        self._tiny, self._lock, self.clock = tiny, Lock(), Clock()
        parts = Queue(
            name="work",
            url="",
            arn=MAPPING.queue_arn,
            visibility_timeout=visibility_timeout,
            retention=NEVER,
            max_receive_count=3,
        )
        self.queue, self.dead = SqsQueue(parts, self.clock), SqsQueue(parts, self.clock)
        self.queue.dead_letters = self.dead
        self.on_throttled: Callable[[], None] = lambda: None
        self.refuses = ""
        self.refused: list[str] = []

    def send(self, *bodies: str, delay: timedelta | None = None) -> None:
        with self._lock:
            for body in bodies:
                self.queue.send(f"id-{body}", body, delay)

    def receive(self, mapping: Mapping, limit: int, patience: timedelta) -> list[Received]:
        assert mapping.queue_arn == MAPPING.queue_arn
        assert patience <= SECOND
        if self.refuses:
            raise QueueUnavailable(self.refuses)
        with self._lock:
            found = [Received(message=one, handle=one.id) for one in self.queue.receive(limit)]
            if not found:
                self.clock.advance(patience)
        if not found:
            time.sleep(0.001)
        return found

    def delete(self, mapping: Mapping, handles: Iterable[str]) -> None:
        assert mapping.queue_arn == MAPPING.queue_arn
        with self._lock:
            for handle in handles:
                self.queue.delete(handle)

    def poller(self, mapping: Mapping) -> Poller:
        return Poller(mapping, self, self._invoke, self._tiny.workers, self.clock.now, self.refused.append)

    def _invoke(self, arn: str, payload: bytes, by: str) -> Call:
        try:
            return self._tiny.service.invoke(arn, "", payload, by=by)
        except Throttled:
            self.on_throttled()
            raise

    @property
    def is_empty(self) -> bool:
        return not self.queue.messages


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


@pytest.fixture
def letters(tiny: Place, request: pytest.FixtureRequest) -> Letters:
    return Letters(tiny, getattr(request, "param", NEVER))


@pytest.fixture
def polled(letters: Letters) -> Iterator[Callable[[Mapping], Poller]]:
    begun: list[Poller] = []

    def begin(mapping: Mapping) -> Poller:
        begun.append(letters.poller(mapping))
        return begun[-1]

    yield begin
    for one in begun:
        one.stop()
        one.join()


def test_what_was_handled_is_deleted(tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]) -> None:
    letters.send("a", "b", "c")
    polled(MAPPING)
    tiny.until(lambda: letters.is_empty)
    [(event, _)] = tiny.account.seen()
    assert [one["body"] for one in event["Records"]] == ["a", "b", "c"]
    assert event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "1"
    assert [one.by for one in tiny.calls] == ["queue work"]


def test_a_batch_is_no_larger_than_it_may_be(
    tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]
) -> None:
    letters.send(*map(str, range(5)))
    polled(changed(batch_size=2))
    tiny.until(lambda: letters.is_empty)
    assert [len(event["Records"]) for event, _ in tiny.account.seen()] == [2, 2, 1]


def test_a_window_gathers_more_than_sqs_gives_at_once(
    tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]
) -> None:
    letters.send(*map(str, range(25)))
    polled(changed(batch_size=100, window=60 * SECOND))
    tiny.until(lambda: letters.is_empty)
    assert [len(event["Records"]) for event, _ in tiny.account.seen()] == [25]


@SOON
def test_what_failed_comes_back_alone_and_in_the_end_is_a_dead_letter(
    tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(code=FAILING)
    tiny.ask(Records=[])
    letters.send("good", "bad one")
    polled(changed(partial_failures=True))
    tiny.until(lambda: bool(letters.dead.messages))
    assert [one.body for one in letters.dead.messages] == ["bad one"]
    assert letters.is_empty
    tiny.until(lambda: len(tiny.calls) == 4)


@SOON
def test_without_partial_failures_a_batch_fails_as_a_whole(
    tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(handler="tiny.missing")
    letters.send("a", "b")
    polled(MAPPING)
    tiny.until(lambda: len(letters.dead.messages) == 2)
    assert all(one.how.status == "error" for one in tiny.calls)


@SOON
def test_a_throttled_batch_comes_back(tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(reserved_concurrency=0)
    letters.on_throttled = lambda: tiny.account.versions.update({"$LATEST": tiny.account.made()})
    letters.send("a")
    polled(MAPPING)
    tiny.until(lambda: letters.is_empty)
    [(event, _)] = tiny.account.seen()
    assert event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "2"


def test_a_delayed_message_comes_when_it_is_due(
    tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]
) -> None:
    letters.send("late", delay=300 * SECOND)
    began = letters.clock.now()
    polled(MAPPING)
    tiny.until(lambda: letters.is_empty)
    assert letters.clock.now() - began >= 300 * SECOND


def test_a_refusal_is_told_and_tried_again(tiny: Place, letters: Letters, polled: Callable[[Mapping], Poller]) -> None:
    letters.refuses = "AccessDenied"
    letters.send("a")
    polled(MAPPING)
    tiny.until(lambda: bool(letters.refused))
    letters.refuses = ""
    tiny.until(lambda: letters.is_empty)
    assert letters.refused[0] == f"{MAPPING.queue_arn}: AccessDenied"


def test_pollers_follow_what_is_mapped(tiny: Place, letters: Letters) -> None:
    mapped: list[Mapping] = [MAPPING]
    pollers = Pollers(lambda: mapped, letters.poller)
    pollers.look()
    letters.send("a")
    tiny.until(lambda: letters.is_empty)
    mapped.clear()
    pollers.look()
    mapped.append(changed(uuid="another"))
    pollers.look()
    letters.send("b")
    tiny.until(lambda: letters.is_empty)
    pollers.stop()
    assert len(tiny.calls) == 2
