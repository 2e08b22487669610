"""Lambda's Runtime API, on loopback, for one execution environment.

The process asks for work (`invocation/next`, which is not answered before there is some), and says what came of it
(`response`, `error`), or that it cannot begin at all (`init/error`).
"""

from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Literal

import msgspec

_ROOT: Final = "/2018-06-01/runtime"
_POLL_SECONDS: Final = 0.02
_MADE: Final = b'{"status":"OK"}'


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation, as the process is handed it."""

    request_id: str
    payload: bytes
    arn: str
    """As it was called: of an alias, a version, or the function."""
    deadline_ms: int
    """Since 1970."""
    trace_id: str

    def headers(self) -> dict[str, str]:
        """Answer what the Runtime API says besides the payload."""
        return {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": self.request_id,
            "Lambda-Runtime-Deadline-Ms": str(self.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": self.arn,
            "Lambda-Runtime-Trace-Id": self.trace_id,
        }


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What the process said: `next`, that it is ready for work; or how something ended."""

    what: Literal["next", "response", "error", "init-error"]
    body: bytes = b""


class RuntimeApi:
    """One port of loopback, for one process."""

    def __init__(self) -> None:
        """Listen on a free port, in a thread of its own."""
        self.news: SimpleQueue[News] = SimpleQueue()
        """What the process said and nobody has looked at."""
        self.work: SimpleQueue[Work | None] = SimpleQueue()
        """What the process is given when it asks; None: nothing more comes."""
        self._server = _Server(self)
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name="runtime-api", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Host and port, as AWS_LAMBDA_RUNTIME_API has them."""
        return f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop listening; who waits for work gets none. The process should have ended before."""
        self.work.put(None)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, api: RuntimeApi) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the signature is the library's
        """Say nothing: a process that is killed leaves its connections behind."""


class _Asked(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path != f"{_ROOT}/invocation/next":
            self._answer(HTTPStatus.NOT_FOUND)
            return
        self.server.api.news.put(News(what="next"))
        work = self.server.api.work.get()
        if work is None:
            self.close_connection = True
            return
        self._answer(HTTPStatus.OK, work.payload, work.headers())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path.removeprefix(f"{_ROOT}/").split("/"):
            case ["invocation", _, "response"]:
                news = News(what="response", body=body)
            case ["invocation", _, "error"]:
                news = News(what="error", body=body)
            case ["init", "error"]:
                news = News(what="init-error", body=body)
            case _:
                self._answer(HTTPStatus.NOT_FOUND)
                return
        self._answer(HTTPStatus.ACCEPTED, _MADE)
        self.server.api.news.put(news)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Say nothing."""

    def _answer(self, status: HTTPStatus, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
