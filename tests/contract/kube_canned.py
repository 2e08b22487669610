"""An API server that has one answer for everything."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import msgspec
import pytest

from tests.contract.kube_front import serve


class Canned(BaseHTTPRequestHandler):
    """Answers every request with one answer (status 0: hangs up), and remembers the request."""

    status: ClassVar[int]
    body: ClassVar[bytes]
    extra: ClassVar[dict[str, str]]
    seen: ClassVar[list[tuple[str, str, dict[str, str], bytes]]]

    def do_GET(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), sent))
        if not self.status:
            return
        self.send_response(self.status)
        for name, value in ({"Content-Length": str(len(self.body))} | self.extra).items():
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
    Canned.status, Canned.body, Canned.extra, Canned.seen = 200, b"{}", {}, []
    yield from serve(Canned)


def answer(status: int, message: str = "", **headers: str) -> None:
    Canned.status = status
    Canned.body = msgspec.json.encode({"kind": "Status", "message": message, "reason": "Because"})
    Canned.extra = {name.replace("_", "-"): value for name, value in headers.items()}
