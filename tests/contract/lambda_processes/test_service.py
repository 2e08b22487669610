"""Calls of functions: by version and alias, and asynchronous ones."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from sim.lambda_processes.lambda_service import LambdaService, QueuedInvocation
from sim.lambda_processes.workers import Ticker, WorkerPool
from sim.time.virtual_clock import Clock
from tests.contract.lambda_processes.sandbox_directory import ARN, TinyLambda, open_tiny_lambda

pytestmark = pytest.mark.loopback


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[TinyLambda]:
    with open_tiny_lambda(tmp_path) as tiny_lambda:
        yield tiny_lambda


@pytest.mark.parametrize(
    ("name", "qualifier", "version"),
    [
        ("tiny", "", "$LATEST"),
        ("tiny", "live", "7"),
        (f"{ARN}tiny:live", "", "7"),
        (f"{ARN}tiny:$LATEST", "", "$LATEST"),
    ],
)
def test_invocation_resolves_its_version_by_name_arn_and_alias(
    tiny: TinyLambda, name: str, qualifier: str, version: str
) -> None:
    tiny.account.publish("7")
    tiny.account.live = "7"
    assert tiny.service.invoke_for_api(name, qualifier, b"{}").version == version
    assert [called_version for _, called_version in tiny.account.list_seen_calls()] == [version]


def test_invoking_a_missing_function_raises_a_lookup_error(tiny: TinyLambda) -> None:
    with pytest.raises(LookupError):
        tiny.service.invoke("other", "", b"{}")
    with pytest.raises(LookupError):
        tiny.service.invoke_asynchronously("other", "", b"{}")


def test_weighted_alias_sends_its_share_of_invocations_to_the_canary_version(tiny: TinyLambda) -> None:
    tiny.account.publish("1")
    tiny.account.publish("2")
    tiny.account.live, tiny.account.weights = "1", {"2": 0.3}
    version_counts = Counter(tiny.invoke("live").version for _ in range(100))
    assert set(version_counts) == {"1", "2"}
    assert 15 <= version_counts["2"] <= 45
    tiny.account.live, tiny.account.weights = "2", {}
    assert tiny.invoke("live").version == "2"


def test_asynchronous_invocation_runs_in_the_background(tiny: TinyLambda) -> None:
    tiny.service.invoke_asynchronously("tiny", "", b'{"say": "later"}', source="somebody")
    assert not tiny.calls
    assert tiny.service.pending == 1
    tiny.wait_until(lambda: tiny.service.pending == 0)
    assert [(call.source, call.result.status) for call in tiny.calls] == [("somebody", "success")]


@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (2, 3)])
def test_failed_asynchronous_invocation_is_retried_and_then_discarded(
    tiny: TinyLambda, retries: int, calls: int
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(async_retries=retries)
    tiny.service.invoke_asynchronously("tiny", "", b'{"do": "raise"}')
    tiny.wait_until(lambda: tiny.service.pending == 0)
    assert len(tiny.calls) == calls
    assert len({call.request_id for call in tiny.calls}) == 1, "a repetition has the id of the call"
    [(discarded, reason)] = tiny.discarded_invocations
    assert discarded.payload == b'{"do": "raise"}'
    assert "as asked" in reason


class ImmediateWorkerPool(WorkerPool):
    def submit(self, work: Callable[[], object]) -> None:
        work()


def test_throttled_asynchronous_invocation_is_retried_until_it_expires(tiny: TinyLambda) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(reserved_concurrency=0, max_event_age_seconds=60)
    clock, discarded = Clock(), list[QueuedInvocation]()
    service = LambdaService(
        tiny.account,
        tiny.sandboxes,
        clock.get_time,
        ImmediateWorkerPool(),
        on_discard=lambda _function, invocation, _reason: discarded.append(invocation),
    )
    service.invoke_asynchronously("tiny", "", b"{}")
    while service.pending:
        service.tick()
        clock.advance(timedelta(seconds=1))
    assert not tiny.calls
    assert [(invocation.throttles, invocation.failures) for invocation in discarded] == [(5, 0)], (
        "after 0, 1, 3, 7, 15 and 31 seconds"
    )


def test_invocation_of_a_deleted_function_is_dropped(tiny: TinyLambda) -> None:
    tiny.account.live = "7"
    tiny.account.publish("7")
    tiny.service.invoke_asynchronously("tiny", "live", b"{}")
    del tiny.account.versions["7"]
    tiny.wait_until(lambda: tiny.service.pending == 0)
    assert not tiny.calls


def test_ticker_runs_until_it_is_stopped(tiny: TinyLambda) -> None:
    heart = Ticker([tiny.service.tick])
    tiny.service.invoke_asynchronously("tiny", "", b"{}")
    tiny.wait_until(lambda: bool(tiny.calls), tick=False)
    heart.stop()
    assert not heart.errors


def test_ticker_continues_after_a_failed_tick() -> None:
    looks: list[str] = []
    finished = Event()

    def record_and_fail() -> None:
        looks.append("failed")
        raise ValueError("as asked")

    heart = Ticker([record_and_fail, lambda: finished.set() if len(looks) > 1 else None])
    assert finished.wait(600)
    heart.stop()
    assert heart.errors[0] == "ValueError: as asked"


def test_worker_pool_accepts_no_work_after_shutdown() -> None:
    workers, looks = WorkerPool(1), list[str]()
    workers.shut_down()
    workers.submit(lambda: looks.append("too late"))
    assert not looks
