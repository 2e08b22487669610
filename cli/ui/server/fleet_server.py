"""The HTTP server of `joiner ui`: on 127.0.0.1 only, read-only, with a token; it serves no files.

The standard library's server is enough: one user, a handful of endpoints, one thread for each connection, and no
further dependency. Every request passes `request_checks.py` before anything else.
"""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any, Final

import msgspec

from cli.explain.evidence import UnknownObject
from cli.terminal.errors import InputError
from cli.ui.page import render_fleet_page
from cli.ui.server import request_checks as checks
from cli.ui.server.explanations import build_explanation
from cli.ui.server.fleet_feed import FleetFeed
from cli.ui.what_if.comparison import WhatIfRequest, compare_plans
from cli.ui.what_if.node_pool_yaml import render_node_pools

DEFAULT_PORT: Final = 7468
"""The default port; if it is in use, a free port is used."""
LOOPBACK: Final = "127.0.0.1"
REQUEST_TIMEOUT_SECONDS: Final = 30
"""A client that sends nothing for so long is disconnected."""
MAX_EVENT_STREAMS: Final = 16
VERSION_HEADER: Final = "X-Joiner-Version"
"""The version of the document in a response: the page compares it with those of events."""
_JSON: Final = "application/json; charset=utf-8"
_SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Server": "joiner",
}
_DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_PAGE_POLICY: Final = "frame-ancestors 'none'"
"""The page names its scripts and connections itself; a policy in the page cannot forbid frames."""


class FleetServer(ThreadingHTTPServer):
    """Serves one feed."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, token: str, feed: FleetFeed, title: str) -> None:
        """Listen on *port* of the loopback interface; 0 is a free port.

        Raises:
            OSError: the port is in use.
            InputError: the page's script is not built.
        """
        self.token, self.feed = token, feed
        self.page = render_fleet_page(title).encode()
        self.event_streams = BoundedSemaphore(MAX_EVENT_STREAMS)
        self.planning = Lock()
        """Held while a plan is computed: one at a time."""
        super().__init__((LOOPBACK, port), FleetRequestHandler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's signature
        """Ignore a broken connection: the browser was closed."""


class FleetRequestHandler(BaseHTTPRequestHandler):
    """Serves one connection."""

    server: FleetServer
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Serve the page, the document, explanations, NodePools and events."""
        self._serve(
            {
                "/": self._send_page,
                "/api/fleet": lambda _: self._send_document(),
                "/api/events": lambda _: self._send_events(),
                "/api/explain": self._send_explanation,
                "/api/node-pools": lambda _: self._send_node_pools(),
            }
        )

    def do_POST(self) -> None:
        """Compare plans; nothing else is accepted."""
        self._serve({"/api/what-if": lambda _: self._send_comparison()})

    def _serve(self, endpoints: Mapping[str, Callable[[dict[str, str]], None]]) -> None:
        try:
            hosts = self.headers.get_all("Host") or []
            checks.check_host(hosts[0] if len(hosts) == 1 else "", self.server.port)
            checks.check_origin(self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site"), self.server.port)
            path, parameters = checks.parse_query(self.path)
            sent_token = parameters.get("token") if path == "/" else self.headers.get(checks.TOKEN_HEADER)
            checks.check_token(sent_token, self.server.token)
            endpoints.get(path, _refuse_path)(parameters)
        except checks.RejectedRequest as rejection:
            self._send_message(rejection.status, str(rejection))

    def _send_page(self, _: dict[str, str]) -> None:
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page, _PAGE_POLICY)

    def _send_document(self) -> None:
        version, body = self.server.feed.get_document()
        self._send(HTTPStatus.OK, _JSON, body, more_headers={VERSION_HEADER: str(version)})

    def _send_explanation(self, parameters: dict[str, str]) -> None:
        kind, name = parameters.get("kind", ""), parameters.get("name", "")
        try:
            explanation = self.server.feed.read_history(
                lambda history: build_explanation(history.build_evidence(), kind, name)
            )
        except UnknownObject as error:
            raise checks.RejectedRequest(HTTPStatus.NOT_FOUND, str(error)) from None
        self._send_json(explanation)

    def _send_node_pools(self) -> None:
        cluster = self.server.feed.read_history(lambda history: history.cluster)
        self._send_json({"nodePools": render_node_pools(cluster.node_pools if cluster is not None else ())})

    def _send_comparison(self) -> None:
        if self.headers.get_content_type() != "application/json":
            raise checks.RejectedRequest(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON with Content-Type: application/json"
            )
        length = checks.check_body_length(
            self.headers.get_all("Content-Length") or [], self.headers.get("Transfer-Encoding")
        )
        try:
            request = msgspec.json.decode(self.rfile.read(length), type=WhatIfRequest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise checks.RejectedRequest(HTTPStatus.BAD_REQUEST, f"the body is not valid: {error}") from None
        cluster = self.server.feed.read_history(lambda history: history.cluster)
        with self.server.planning:
            try:
                comparison = compare_plans(cluster, request)
            except InputError as error:
                raise checks.RejectedRequest(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        self._send_json(comparison)

    def _send_events(self) -> None:
        """Send an event after each observation, until the client or the server ends.

        The first event of a live source comes at once: the document can have changed since the page fetched it.
        """
        if not self.server.event_streams.acquire(blocking=False):
            raise checks.RejectedRequest(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open: close some")
        try:
            self.close_connection = True
            self._send_headers(HTTPStatus.OK, "text/event-stream; charset=utf-8", _DATA_POLICY)
            number = 0 if self.server.feed.is_live else self.server.feed.wait_for_update(0, 0).number
            while not self.server.feed.is_stopped:
                update = self.server.feed.wait_for_update(number)
                data = json.dumps({"version": update.version, "end": update.end})
                event = f"event: fleet\ndata: {data}\n\n" if update.number != number else ": idle\n\n"
                number = update.number
                self.wfile.write(event.encode())
                self.wfile.flush()
        except OSError:  # the page was closed
            return
        finally:
            self.server.event_streams.release()

    def _send_json(self, value: object) -> None:
        self._send(HTTPStatus.OK, _JSON, msgspec.json.encode(value))

    def _send_message(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # the body of a rejected request is not read
        self._send(status, _JSON, msgspec.json.encode({"error": message}))

    def _send(
        self,
        status: HTTPStatus,
        content_type: str,
        body: bytes,
        policy: str = _DATA_POLICY,
        more_headers: Mapping[str, str] | None = None,
    ) -> None:
        self._send_headers(status, content_type, policy, {"Content-Length": str(len(body)), **(more_headers or {})})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_headers(
        self, status: HTTPStatus, content_type: str, policy: str, more_headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response_only(status)
        headers = {
            "Content-Type": content_type,
            "Content-Security-Policy": policy,
            **_SECURITY_HEADERS,
        }
        for name, value in (headers | dict(more_headers or {})).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send errors of the HTTP parser, and of methods that are not served, in the same form as all others."""
        del explain
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.command = getattr(self, "command", None) or ""
        self.request_version = getattr(self, "request_version", "") or self.protocol_version
        is_refused_method = status == HTTPStatus.METHOD_NOT_ALLOWED
        text = "method not allowed: use GET, or POST for /api/what-if" if is_refused_method else message
        self._send_message(status, text or status.phrase)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the signature of the library
        """Log nothing: addresses contain the token."""


def _refuse_path(_: dict[str, str]) -> None:
    raise checks.RejectedRequest(HTTPStatus.NOT_FOUND, "endpoint not found")
