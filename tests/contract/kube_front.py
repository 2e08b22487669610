"""Implementations of `Kube`: memory, the client over HTTP in front of memory, and a real API server.

The real one takes part on request (tests/controlplane/fixtures.py). A test module takes the fixtures it needs by name:
``kube, memory = kube_front.kube, kube_front.memory``.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from ssl import SSLContext
from threading import Thread
from typing import Any, ClassVar, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from shared.errors import Conflict, EvictionRefused, Expired, Fault, Forbidden, Invalid, NotFound
from shared.kubernetes.client import KubeClient
from shared.ports.kubernetes import Kube
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock

Object = dict[str, Any]

STATUS_BY_FAULT = {NotFound: 404, Conflict: 409, Expired: 410, Forbidden: 403, Invalid: 422, EvictionRefused: 429}


def get_status_code(fault: Fault) -> int:
    if isinstance(fault, Invalid):
        return {"BadRequest": 400, "MethodNotAllowed": 405}.get(fault.code, 422)
    return 500 if "more than one PodDisruptionBudget" in str(fault) else STATUS_BY_FAULT[type(fault)]


class Front(BaseHTTPRequestHandler):
    """HTTP in front of an `InMemoryKube`.

    A response is sent as a whole, so a pause in the middle of a response is never caused by a slow test run.
    """

    kube: ClassVar[InMemoryKube]
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 20
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if "watch" in query:
            self._watch(url.path, query)
        elif not query:
            self._respond(lambda: self.kube.read(url.path))
        else:
            self._respond(
                lambda: self.kube.list(
                    url.path,
                    label_selector=query.get("labelSelector", ""),
                    field_selector=query.get("fieldSelector", ""),
                    limit=int(query.get("limit", "0")),
                    continue_token=query.get("continue", ""),
                )
            )

    def do_POST(self) -> None:
        body = self._read_body("application/json")
        self._respond(lambda: self.kube.create(self.path, body))

    def do_PATCH(self) -> None:
        body = self._read_body("application/merge-patch+json")
        self._respond(lambda: self.kube.patch(self.path, body))

    def do_DELETE(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._respond(lambda: self._delete(body))

    def log_message(self, *_: object) -> None:
        pass

    def _watch(self, path: str, query: dict[str, str]) -> None:
        """Send all current events, as the real server does: without a bookmark, and without an end."""
        selector, since = query.get("fieldSelector", ""), query["resourceVersion"]
        try:
            lines = list(self.kube.watch(path, since=since, field_selector=selector)().events)
        except Fault as fault:
            status = {"kind": "Status", "code": get_status_code(fault), "message": str(fault)}
            lines = [msgspec.json.encode({"type": "ERROR", "object": status})]
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.wfile.write(b"%x\r\n%b\n\r\n" % (len(line) + 1, line))
        self.wfile.flush()
        self.rfile.read(1)
        self.close_connection = True

    def _delete(self, body: bytes) -> bytes:
        self.kube.delete(self.path, body)
        return b'{"kind":"Status"}'

    def _read_body(self, content_type: str) -> bytes:
        assert self.headers["Content-Type"] == content_type
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _respond(self, call: Callable[[], bytes]) -> None:
        try:
            status, body = 200, call()
        except Fault as fault:
            status, body = get_status_code(fault), msgspec.json.encode({"kind": "Status", "message": str(fault)})
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """An HTTP server that speaks TLS if it has a *context* and ignores aborted handshakes."""

    request_queue_size = 128
    """Connections that wait to be accepted; with the default of five, the kernel resets some of many at once."""

    context: SSLContext | None = None

    def get_request(self) -> tuple[socket, Any]:
        accepted, address = super().get_request()
        if self.context:
            accepted = self.context.wrap_socket(accepted, server_side=True)
        return accepted, address

    def handle_error(self, *_: object) -> None:
        pass


def run_server(handler: type[BaseHTTPRequestHandler], context: SSLContext | None = None) -> Iterator[str]:
    """Serve *handler* on a loopback port; yield the endpoint."""
    with Server(("127.0.0.1", 0), handler) as server:
        server.context = context
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
        server.shutdown()


def create(kube: Kube, path: str, obj: Object) -> Object:
    return cast("Object", msgspec.json.decode(kube.create(path, msgspec.json.encode(obj))))


def patch(kube: Kube, path: str, change: Object) -> Object:
    return cast("Object", msgspec.json.decode(kube.patch(path, msgspec.json.encode(change))))


def read(kube: Kube, path: str) -> Object:
    return cast("Object", msgspec.json.decode(kube.read(path)))


def list_objects(
    kube: Kube, path: str, *, selector: str = "", fields: str = "", limit: int = 500, after: str = ""
) -> Object:
    document = kube.list(path, label_selector=selector, field_selector=fields, limit=limit, continue_token=after)
    return cast("Object", msgspec.json.decode(document))


def list_names(document: Object) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


def is_gone(kube: Kube, path: str) -> bool:
    try:
        kube.read(path)
    except NotFound:
        return True
    return False


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    """Wait for an effect that a real cluster has after its response; memory has it already."""
    deadline = time.monotonic() + seconds
    while not _is_true(condition):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


def _is_true(condition: Callable[[], object]) -> bool:
    """Return whether *condition* holds; False also if an object is missing or the API server is unreachable."""
    try:
        return bool(condition())
    except (Fault, KeyError):
        return False


def make_pod(name: str, **spec: object) -> Object:
    pod_spec = {"containers": [{"name": "app", "image": "app"}], "terminationGracePeriodSeconds": 30} | spec
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": pod_spec}


@pytest.fixture
def memory() -> InMemoryKube:
    return InMemoryKube(ApiServer(Clock()))


@pytest.fixture
def endpoint(memory: InMemoryKube) -> Iterator[str]:
    Front.kube = memory
    yield from run_server(Front)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("http", marks=pytest.mark.loopback),
        pytest.param("real", marks=[pytest.mark.loopback, pytest.mark.controlplane]),
    ]
)
def kube(request: pytest.FixtureRequest) -> Kube:
    match request.param:
        case "memory":
            return cast("Kube", request.getfixturevalue("memory"))
        case "http":
            return KubeClient(request.getfixturevalue("endpoint"), quiet_timeout=timedelta(milliseconds=20))
        case _:
            return cast("Kube", request.getfixturevalue("real_kube"))


@pytest.fixture
def namespace(kube: Kube) -> str:
    """A namespace used by one test only."""
    return str(create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "contract-"}})["metadata"]["name"])
