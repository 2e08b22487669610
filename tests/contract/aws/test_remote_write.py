"""The `RemoteWrite` port over HTTP, against the simulated endpoint of a workspace."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from shared.aws.prometheus.remote_write import HEADERS, RemoteWriteEndpoint
from shared.errors import Fault, Forbidden, Invalid, NotFound, Throttled, Unreachable
from shared.report.remote_write.write_request import encode_requests
from sim.remote_write.endpoint import MAX_BODY_BYTES, EndpointResponse, WorkspaceEndpoint
from sim.remote_write.workspace import Workspace

URL = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"
CREDENTIALS = Credentials("ASIATEST", "key", "token")
Change = Callable[[AWSRequest], None]


def get_now() -> datetime:
    return datetime.now(UTC)


def build_body(value: float = 1.0, age: timedelta = timedelta(0)) -> bytes:
    [(_, body)] = encode_requests({"joiner_nodes": [((("nodepool", "a"),), value)]}, "prod", get_now() - age)
    return body


class Receiver:
    """A workspace behind its endpoint; *change* changes a request after it was signed."""

    def __init__(self, change: Change = lambda _: None, region: str = "eu-west-1") -> None:
        """Accept requests that are signed for *region*."""
        self.workspace = Workspace(get_now)
        self.port = build_workspace_port(self.workspace, change, region)


def build_workspace_port(
    workspace: Workspace, change: Change = lambda _: None, region: str = "eu-west-1"
) -> RemoteWriteEndpoint:
    """Return a port whose requests *workspace* receives; *change* changes them after they were signed."""
    endpoint = WorkspaceEndpoint(workspace, CREDENTIALS, region, get_now)

    def send(request: Any) -> EndpointResponse:
        change(request)
        return endpoint.send(request)

    return RemoteWriteEndpoint(URL, lambda: CREDENTIALS, send)


def test_signed_request_is_accepted_and_its_samples_are_kept() -> None:
    receiver = Receiver()
    receiver.port.write(build_body())
    assert receiver.workspace.get_latest("joiner_nodes") == {(("cluster", "prod"), ("nodepool", "a")): 1.0}


def set_header(name: str, value: str) -> Change:
    def change(request: Any) -> None:
        del request.headers[name]
        request.headers[name] = value

    return change


def set_method(request: Any) -> None:
    request.method = "PUT"


def set_body(request: Any) -> None:
    request.body = build_body(2.0)


@pytest.mark.parametrize(
    ("change", "fault", "message"),
    [
        (set_header("Content-Type", "application/json"), Forbidden, "signature"),
        (set_header("Authorization", ""), Forbidden, "HTTP 403: Missing Authentication Token"),
        (set_header("Authorization", "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=a"), Forbidden, "not signed"),
        (set_header("X-Amz-Security-Token", "other"), Forbidden, "security token"),
        (set_header("X-Amz-Date", "20200101T000000Z"), Forbidden, "Signature expired"),
        (set_method, Invalid, "HTTP 405: PUT is not allowed"),
        (set_body, Forbidden, "signature"),
    ],
)
def test_request_that_was_changed_after_its_signature_is_refused(
    change: Change, fault: type[Fault], message: str
) -> None:
    receiver = Receiver(change)
    with pytest.raises(fault, match=message):
        receiver.port.write(build_body())
    assert receiver.workspace.samples_by_labels == {}


def test_signature_for_another_region_is_refused() -> None:
    with pytest.raises(Forbidden, match="signature"):
        Receiver(region="us-east-1").port.write(build_body())


def test_without_credentials_no_request_is_made() -> None:
    port = RemoteWriteEndpoint(URL, lambda: None, lambda _: pytest.fail("a request was made"))
    with pytest.raises(Forbidden, match="Unable to locate credentials"):
        port.write(b"")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\x03\x08abc", "HTTP 400"),
        (build_body(age=timedelta(hours=2)), "HTTP 400: timestamp too old"),
        (b"\x00" * (MAX_BODY_BYTES + 1), "HTTP 413"),
    ],
    ids=["malformed", "old", "large"],
)
def test_body_that_the_workspace_refuses_is_invalid(body: bytes, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Receiver().port.write(body)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
        ("X-Prometheus-Remote-Write-Version", "2.0.0"),
    ],
)
def test_request_with_another_header_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEADERS, name, value)
    with pytest.raises(Invalid, match=f"HTTP 415: {name.lower()} is '{value}'"):
        Receiver().port.write(build_body())


class Handler(BaseHTTPRequestHandler):
    """Answers with the status in the path, and records the headers."""

    headers_of_requests: ClassVar[list[dict[str, str]]] = []
    answer: ClassVar[bytes] = b"the answer\nof the server " + b"x" * 1000
    content_type: ClassVar[str] = "text/plain"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.headers_of_requests.append({key.lower(): value for key, value in self.headers.items()})
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Content-Length", str(len(self.answer)))
        self.send_header("Content-Type", self.content_type)
        self.send_header("Location", "/204")
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    http_server = HTTPServer(("127.0.0.1", 0), Handler)
    Handler.headers_of_requests.clear()
    thread = Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http_server.server_port}"
    http_server.shutdown()
    http_server.server_close()
    thread.join()


@pytest.mark.loopback
def test_other_receivers_get_requests_without_signature_and_token(server: str) -> None:
    port = RemoteWriteEndpoint(f"{server}/200", lambda: CREDENTIALS)
    port.write(build_body())
    port.close_idle_connections()
    port.write(build_body())
    port.close_idle_connections()
    assert len(Handler.headers_of_requests) == 2
    assert not {"authorization", "x-amz-security-token"} & Handler.headers_of_requests[0].keys()
    assert Handler.headers_of_requests[0]["content-type"] == "application/x-protobuf"


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("status", "fault"),
    [(302, Invalid), (400, Invalid), (401, Forbidden), (404, NotFound), (429, Throttled), (503, Unreachable)],
)
def test_status_becomes_a_fault_after_one_attempt(status: int, fault: type[Fault], server: str) -> None:
    port = RemoteWriteEndpoint(f"{server}/{status}", lambda: CREDENTIALS)
    with pytest.raises(fault) as caught:
        port.write(build_body())
    port.close_idle_connections()
    assert str(caught.value).startswith(f"remote write to 127.0.0.1: HTTP {status}: the answer of the server")
    assert len(str(caught.value)) < 300
    assert len(Handler.headers_of_requests) == 1


@pytest.mark.loopback
@pytest.mark.parametrize("content_type", ["text/plain", "text/plain; charset=foo", "text/plain; charset=ascii"])
def test_answer_in_another_encoding_is_part_of_the_message(
    content_type: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "content_type", content_type)
    monkeypatch.setattr(Handler, "answer", b"down: \xff\xfe")
    port = RemoteWriteEndpoint(f"{server}/503", lambda: CREDENTIALS)
    with pytest.raises(Unreachable, match="HTTP 503: down: \N{REPLACEMENT CHARACTER}"):
        port.write(build_body())
    port.close_idle_connections()


@pytest.mark.loopback
def test_receiver_that_refuses_the_connection_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"remote write to 127\.0\.0\.1"):
        RemoteWriteEndpoint("http://127.0.0.1:1/api/v1/write", lambda: CREDENTIALS).write(b"")
