"""A server on loopback that closes connections without a response, as load balancers do with idle ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Thread
from typing import Literal, cast

CloseMode = Literal["never", "reused", "always"]
BODY = b'{"kind": "Node"}'


class ClosingServer(ThreadingHTTPServer):
    """Responds to every request, except as `close_mode` says; closed connections were read first."""

    daemon_threads = True

    def __init__(self, context: SSLContext | None = None) -> None:
        """Listen, with TLS if *context* is given."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scheme = "https" if context else "http"
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.close_mode: CloseMode = "never"
        """Which requests get no response: none, those on a connection that was used before, or all."""
        self.methods: list[str] = []
        """The methods of all requests, also of those without a response."""
        self.connection_count = 0

    @property
    def url(self) -> str:
        """The URL without a path."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    _is_used = False

    def setup(self) -> None:
        super().setup()
        cast("ClosingServer", self.server).connection_count += 1

    def do_GET(self) -> None:
        server = cast("ClosingServer", self.server)
        server.methods.append(self.command)
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if server.close_mode == "always" or (server.close_mode == "reused" and self._is_used):
            self.close_connection = True
            return
        self._is_used = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def serve(context: SSLContext | None = None) -> Iterator[ClosingServer]:
    """Run a server while the context lasts."""
    server = ClosingServer(context)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
