"""One client in many threads: its connections, its token, its backoff."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from threading import Barrier, Lock
from typing import ClassVar

import pytest
from urllib3 import HTTPConnectionPool

from shared.errors import Fault, Throttled
from shared.kubernetes.backoff import Backoff
from shared.kubernetes.client import MAX_CONNECTIONS, KubeClient
from tests.contract.kube_front import run_server

pytestmark = pytest.mark.loopback

NODE = "/api/v1/nodes/a"
CALL_COUNT = 64


class SlowHandler(BaseHTTPRequestHandler):
    """Responds after 5ms: 401 to the rejected tokens, 429 to the first requests, 200 to the others."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    rejected_tokens: ClassVar[tuple[str, ...]]
    throttled_count: ClassVar[int]
    first_responses: ClassVar[Barrier]
    """The first requests, which get their responses together."""
    lock: ClassVar[Lock]
    request_count: ClassVar[int]
    connection_count: ClassVar[int]

    def setup(self) -> None:
        super().setup()
        with self.lock:
            SlowHandler.connection_count += 1

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.lock:
            number = self.request_count
            SlowHandler.request_count += 1
        if number < self.first_responses.parties:
            self.first_responses.wait(30)
        time.sleep(0.005)
        is_rejected = self.headers.get("Authorization") in self.rejected_tokens
        self.send_response(401 if is_rejected else 429 if number < self.throttled_count else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_GET(self) -> None:
        self.do_PATCH()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    SlowHandler.rejected_tokens, SlowHandler.throttled_count, SlowHandler.first_responses = (), 0, Barrier(1)
    SlowHandler.lock, SlowHandler.request_count, SlowHandler.connection_count = Lock(), 0, 0
    yield from run_server(SlowHandler)


def patch_in_threads(kube: KubeClient, count: int = CALL_COUNT) -> list[Fault | None]:
    """Patch *count* times, `MAX_CONNECTIONS` at once; return the fault of each call."""

    def patch(_: int) -> Fault | None:
        try:
            kube.patch(NODE, b"{}")
        except Fault as fault:
            return fault
        return None

    with ThreadPoolExecutor(MAX_CONNECTIONS) as executor:
        return list(executor.map(patch, range(count)))


def test_all_connections_stay_open_for_the_next_calls(endpoint: str) -> None:
    kube = KubeClient(endpoint)
    assert patch_in_threads(kube) + patch_in_threads(kube) == [None] * 2 * CALL_COUNT
    assert 1 < SlowHandler.connection_count <= MAX_CONNECTIONS
    kube.close_idle_connections()


def test_token_that_is_rejected_in_many_threads_is_renewed_once(endpoint: str) -> None:
    tokens = ["old"]
    renewals: list[str] = []
    SlowHandler.rejected_tokens, SlowHandler.first_responses = ("Bearer old",), Barrier(8)

    def renew() -> None:
        renewals.append(tokens[-1])
        tokens.append("new")

    kube = KubeClient(endpoint, token=lambda: tokens[-1], renew=renew)
    assert patch_in_threads(kube) == [None] * CALL_COUNT
    assert renewals == ["old"]


def test_rejected_new_token_is_not_renewed_for_every_call(endpoint: str) -> None:
    renewals: list[str] = []
    SlowHandler.rejected_tokens = ("Bearer token-0", "Bearer token-1")
    kube = KubeClient(endpoint, token=lambda: f"token-{len(renewals)}", renew=lambda: renewals.append("renewed"))
    assert None not in patch_in_threads(kube)
    assert len(renewals) == 1


def test_calls_that_are_throttled_together_wait_together_and_succeed(endpoint: str) -> None:
    SlowHandler.throttled_count, SlowHandler.first_responses = 8, Barrier(8)
    now, all_wait, waits = [datetime.now(UTC)], Barrier(MAX_CONNECTIONS), list[float]()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if all_wait.wait(30) == 0:
            now.append(now[-1] + timedelta(seconds=seconds))
        all_wait.wait(30)

    kube = KubeClient(endpoint, backoff=Backoff(lambda: now[-1], wait))
    assert patch_in_threads(kube) == [None] * CALL_COUNT
    assert waits == [1.0] * MAX_CONNECTIONS


def test_success_after_the_wait_ends_the_backoff(endpoint: str) -> None:
    SlowHandler.throttled_count = 1
    now, waits = datetime.now(UTC), list[float]()
    kube = KubeClient(endpoint, backoff=Backoff(lambda: now, waits.append))
    kube.patch(NODE, b"{}")
    kube.patch(NODE, b"{}")
    assert waits == [1.0]


def test_server_that_stays_busy_gets_few_requests(endpoint: str) -> None:
    SlowHandler.throttled_count = 1_000
    kube = KubeClient(endpoint, backoff=Backoff(lambda: datetime.now(UTC), lambda seconds: time.sleep(seconds / 20)))
    assert {type(fault) for fault in patch_in_threads(kube, 300)} == {Throttled}
    assert SlowHandler.request_count <= 6 * MAX_CONNECTIONS


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_call_is_sent_once_although_another_thread_closes_the_idle_connections(
    endpoint: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """urllib3 looks up the pool and takes its connection in two steps."""
    kube, take_connection = KubeClient(endpoint), HTTPConnectionPool._get_conn  # noqa: SLF001 - between the two steps

    def close_first(pool: HTTPConnectionPool, timeout: float | None = None) -> object:
        monkeypatch.setattr(HTTPConnectionPool, "_get_conn", take_connection)
        kube.close_idle_connections()
        return take_connection(pool, timeout)

    monkeypatch.setattr(HTTPConnectionPool, "_get_conn", close_first)
    assert (kube.read(NODE) if method == "GET" else kube.patch(NODE, b"{}")) == b"{}"
    assert SlowHandler.request_count == 1
