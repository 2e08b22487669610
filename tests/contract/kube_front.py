"""The ends of the `Kube` contract: memory itself, the client over HTTP in front of it, and a real API server.

The real one takes part when it is asked for (tests/controlplane/fixtures.py). A test module takes the fixtures it needs
by name: ``kube, memory = kube_front.kube, kube_front.memory``.
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

from shared.errors import Conflict, EvictionRefused, Expired, Fault, Forbidden, Gone, Invalid
from shared.kube.client import KubeClient
from shared.ports import Kube
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube

Object = dict[str, Any]

STATUS = {Gone: 404, Conflict: 409, Expired: 410, Forbidden: 403, Invalid: 422, EvictionRefused: 429}


def status_of(fault: Fault) -> int:
    if isinstance(fault, Invalid):
        return {"BadRequest": 400, "MethodNotAllowed": 405}.get(fault.code, 422)
    return 500 if "more than one PodDisruptionBudget" in str(fault) else STATUS[type(fault)]


class Front(BaseHTTPRequestHandler):
    """HTTP in front of an `InMemoryKube`.

    An answer goes out whole: silence after its beginning, however short, is never that of a slow machine.
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
            self._answer(lambda: self.kube.read(url.path))
        else:
            self._answer(
                lambda: self.kube.list(
                    url.path,
                    label_selector=query.get("labelSelector", ""),
                    field_selector=query.get("fieldSelector", ""),
                    limit=int(query.get("limit", "0")),
                    continue_token=query.get("continue", ""),
                )
            )

    def do_POST(self) -> None:
        body = self._body("application/json")
        self._answer(lambda: self.kube.create(self.path, body))

    def do_PATCH(self) -> None:
        body = self._body("application/merge-patch+json")
        self._answer(lambda: self.kube.patch(self.path, body))

    def do_DELETE(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(lambda: self._delete(body))

    def log_message(self, *_: object) -> None:
        pass

    def _watch(self, path: str, query: dict[str, str]) -> None:
        """Send what there is, as the real one does: without a bookmark, and without an end."""
        selector, since = query.get("fieldSelector", ""), query["resourceVersion"]
        try:
            lines = list(self.kube.watch(path, since=since, field_selector=selector)().events)
        except Fault as fault:
            status = {"kind": "Status", "code": status_of(fault), "message": str(fault)}
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

    def _body(self, content_type: str) -> bytes:
        assert self.headers["Content-Type"] == content_type
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, call: Callable[[], bytes]) -> None:
        try:
            status, body = 200, call()
        except Fault as fault:
            status, body = status_of(fault), msgspec.json.encode({"kind": "Status", "message": str(fault)})
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Speaks TLS if it has a *context*; whoever gives up the handshake is nobody's error."""

    context: SSLContext | None = None

    def get_request(self) -> tuple[socket, Any]:
        accepted, address = super().get_request()
        if self.context:
            accepted = self.context.wrap_socket(accepted, server_side=True)
        return accepted, address

    def handle_error(self, *_: object) -> None:
        pass


def serve(handler: type[BaseHTTPRequestHandler], context: SSLContext | None = None) -> Iterator[str]:
    """Serve *handler* on a port of this machine; yield the endpoint."""
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


def listed(kube: Kube, path: str, *, selector: str = "", fields: str = "", limit: int = 500, after: str = "") -> Object:
    document = kube.list(path, label_selector=selector, field_selector=fields, limit=limit, continue_token=after)
    return cast("Object", msgspec.json.decode(document))


def names(document: Object) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


def is_gone(kube: Kube, path: str) -> bool:
    try:
        kube.read(path)
    except Gone:
        return True
    return False


def eventually(claim: Callable[[], object], seconds: float = 300) -> None:
    """Wait for what a real cluster does after it has answered; memory has done it by then."""
    deadline = time.monotonic() + seconds
    while not _holds(claim):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


def _holds(claim: Callable[[], object]) -> bool:
    """Say whether *claim* holds; what it looks at may not be there yet, not have been written, or be out of reach."""
    try:
        return bool(claim())
    except (Fault, KeyError):
        return False


def pod(name: str, **spec: object) -> Object:
    whole = {"containers": [{"name": "app", "image": "app"}], "terminationGracePeriodSeconds": 30} | spec
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": whole}


@pytest.fixture
def memory() -> InMemoryKube:
    return InMemoryKube(ApiServer(Clock()))


@pytest.fixture
def endpoint(memory: InMemoryKube) -> Iterator[str]:
    Front.kube = memory
    yield from serve(Front)


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
            return KubeClient(request.getfixturevalue("endpoint"), quiet=timedelta(milliseconds=20))
        case _:
            return cast("Kube", request.getfixturevalue("real_kube"))


@pytest.fixture
def namespace(kube: Kube) -> str:
    """A namespace of the test's own."""
    return str(create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "contract-"}})["metadata"]["name"])
