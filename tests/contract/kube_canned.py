"""An API server that sends the same response to every request."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import msgspec
import pytest

from tests.contract.kube_front import run_server


class CannedHandler(BaseHTTPRequestHandler):
    """Sends one response to every request (status 0: hangs up) and records the request."""

    status: ClassVar[int]
    body: ClassVar[bytes]
    extra_headers: ClassVar[dict[str, str]]
    received_requests: ClassVar[list[tuple[str, str, dict[str, str], bytes]]]

    def do_GET(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.title(): value for name, value in self.headers.items()}
        self.received_requests.append((self.command, self.path, headers, sent))
        if not self.status:
            return
        self.send_response(self.status)
        for name, value in ({"Content-Length": str(len(self.body))} | self.extra_headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    CannedHandler.status, CannedHandler.body, CannedHandler.extra_headers, CannedHandler.received_requests = (
        200,
        b"{}",
        {},
        [],
    )
    yield from run_server(CannedHandler)


def set_response(status: int, message: str = "", **headers: str) -> None:
    CannedHandler.status = status
    CannedHandler.body = msgspec.json.encode({"kind": "Status", "message": message, "reason": "Because"})
    CannedHandler.extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
