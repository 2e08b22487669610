"""The HTTP server of the pages: on 127.0.0.1 only, read-only, with a token; it serves no files.

The standard library's server is enough: one user, a handful of endpoints, one thread for each connection, and no
further dependency. Every request passes `request_checks.py` before anything else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

import msgspec

from cli.ui.server import request_checks as checks

DEFAULT_PORT: Final = 7468
"""The default port; if it is in use, a free port is used."""
LOOPBACK: Final = "127.0.0.1"
REQUEST_TIMEOUT_SECONDS: Final = 30
"""A client that sends nothing for so long is disconnected."""
VERSION_HEADER: Final = "X-Joiner-Version"
"""The version of the document in a response: the page compares it with those of events."""
DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_JSON: Final = "application/json; charset=utf-8"
_PAGE_POLICY: Final = "frame-ancestors 'none'"
"""The page names its scripts and connections itself; a policy in the page cannot forbid frames."""
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

Endpoint: TypeAlias = Callable[[dict[str, str]], None]
"""Handles a request; the argument has the parameters of the query."""


class PageServer(ThreadingHTTPServer):
    """Serves one page and its data."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, token: str, page: str, handler: type["PageRequestHandler"]) -> None:
        """Listen on *port* of the loopback interface; 0 is a free port.

        Raises:
            OSError: the port is in use.
        """
        self.token, self.page = token, page.encode()
        super().__init__((LOOPBACK, port), handler)

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


class PageRequestHandler(BaseHTTPRequestHandler, ABC):
    """Serves one connection."""

    server: PageServer
    method_hint = "use GET"
    """The methods that the endpoints have."""
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Serve the page and its data."""
        self._serve({"/": self._send_page, **self.get_endpoints()})

    def do_POST(self) -> None:
        """Compute something; nothing is changed."""
        self._serve(self.get_post_endpoints())

    @abstractmethod
    def get_endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints of the data, by path."""

    def get_post_endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints for POST, by path."""
        return {}

    def _serve(self, endpoints: Mapping[str, Endpoint]) -> None:
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
        self.send_body(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page, _PAGE_POLICY)

    def send_json(self, value: object) -> None:
        """Send *value* as JSON."""
        self.send_document(msgspec.json.encode(value))

    def send_document(self, body: bytes, version: int | None = None) -> None:
        """Send the JSON *body*, with the version of its content if there is one."""
        headers = {} if version is None else {VERSION_HEADER: str(version)}
        self.send_body(HTTPStatus.OK, _JSON, body, more_headers=headers)

    def _send_message(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # the body of a rejected request is not read
        self.send_body(status, _JSON, msgspec.json.encode({"error": message}))

    def send_body(
        self,
        status: HTTPStatus,
        content_type: str,
        body: bytes,
        policy: str = DATA_POLICY,
        more_headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a whole response."""
        self.send_headers(status, content_type, policy, {"Content-Length": str(len(body)), **(more_headers or {})})
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_headers(
        self, status: HTTPStatus, content_type: str, policy: str, more_headers: Mapping[str, str] | None = None
    ) -> None:
        """Send the status and the headers, which always include those of security."""
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
        text = f"method not allowed: {self.method_hint}" if is_refused_method else message
        self._send_message(status, text or status.phrase)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the signature of the library
        """Log nothing: addresses contain the token."""


def _refuse_path(_: dict[str, str]) -> None:
    raise checks.RejectedRequest(HTTPStatus.NOT_FOUND, "endpoint not found")
