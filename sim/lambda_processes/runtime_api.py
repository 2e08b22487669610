"""Lambda's Runtime API on loopback, for one execution environment.

The process requests work (`invocation/next`, which waits until there is an invocation), and reports the result
(`response`, `error`), or that its initialization failed (`init/error`).
"""

from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Literal

import msgspec

_BASE_PATH: Final = "/2018-06-01/runtime"
_POLL_INTERVAL_SECONDS: Final = 0.02
_ACCEPTED_BODY: Final = b'{"status":"OK"}'


class InvocationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation, as the process receives it."""

    request_id: str
    payload: bytes
    arn: str
    """The invoked ARN: of an alias, a version, or the function."""
    deadline_ms: int
    """Milliseconds since 1970."""
    trace_id: str

    def build_headers(self) -> dict[str, str]:
        """Return the headers that the Runtime API sends with the payload."""
        return {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": self.request_id,
            "Lambda-Runtime-Deadline-Ms": str(self.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": self.arn,
            "Lambda-Runtime-Trace-Id": self.trace_id,
        }


class RuntimeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the process: `next` means that it is ready for work, the others are results."""

    kind: Literal["next", "response", "error", "init-error"]
    body: bytes = b""


class RuntimeApi:
    """A server on one loopback port, for one process."""

    def __init__(self) -> None:
        """Listen on a free port, in its own thread."""
        self.messages: SimpleQueue[RuntimeMessage] = SimpleQueue()
        """Messages of the process that are not yet read."""
        self.requests: SimpleQueue[InvocationRequest | None] = SimpleQueue()
        """Invocations for the process; None: there are no more."""
        self._server = _Server(self)
        self._thread = Thread(
            target=self._server.serve_forever, args=(_POLL_INTERVAL_SECONDS,), name="runtime-api", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Host and port, in the format of AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop the server; a waiting process gets no invocation. The process should have ended before."""
        self.requests.put(None)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, runtime_api: RuntimeApi) -> None:
        super().__init__(("127.0.0.1", 0), _RequestHandler)
        self.runtime_api = runtime_api

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the signature is the library's
        """Log nothing: a killed process leaves open connections."""


class _RequestHandler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path != f"{_BASE_PATH}/invocation/next":
            self._send_response(HTTPStatus.NOT_FOUND)
            return
        self.server.runtime_api.messages.put(RuntimeMessage(kind="next"))
        invocation_request = self.server.runtime_api.requests.get()
        if invocation_request is None:
            self.close_connection = True
            return
        self._send_response(HTTPStatus.OK, invocation_request.payload, invocation_request.build_headers())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path.removeprefix(f"{_BASE_PATH}/").split("/"):
            case ["invocation", _, "response"]:
                runtime_message = RuntimeMessage(kind="response", body=body)
            case ["invocation", _, "error"]:
                runtime_message = RuntimeMessage(kind="error", body=body)
            case ["init", "error"]:
                runtime_message = RuntimeMessage(kind="init-error", body=body)
            case _:
                self._send_response(HTTPStatus.NOT_FOUND)
                return
        self._send_response(HTTPStatus.ACCEPTED, _ACCEPTED_BODY)
        self.server.runtime_api.messages.put(runtime_message)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Log nothing."""

    def _send_response(self, status: HTTPStatus, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
