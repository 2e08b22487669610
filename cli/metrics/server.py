"""Print the metrics, or serve them on the loopback interface: read-only, one path."""

import sys
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from cli.metrics.exposition import ExpositionReader, RefreshedExposition
from cli.terminal.errors import InputError
from cli.terminal.stderr import print_errors
from cli.ui.server.request_checks import LOOPBACK_NAMES, RejectedRequest, parse_query

METRICS_PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_TIMEOUT_SECONDS: Final = 30
"""A client that sends nothing for so long is disconnected."""


def print_metrics(read: ExpositionReader) -> int:
    """Print the metrics once; return 1 if the input could not be read."""
    try:
        exposition = read()
    except InputError as error:
        return print_errors("metrics", [str(error)])
    sys.stdout.write(exposition.render(datetime.now(UTC)))
    return 0


def serve_metrics(read: ExpositionReader, address: tuple[str, int], refresh_seconds: int) -> int:
    """Serve the metrics on *address* until Ctrl-C; return 1 if the port is in use."""
    try:
        server = MetricsServer(address, RefreshedExposition(read, refresh_seconds))
    except OSError as error:
        return print_errors("metrics", [f"--listen {address[0]}:{address[1]}: {error.strerror}: choose another port"])
    sys.stdout.write(f"metrics: {server.url}\nCtrl-C stops the server\n")
    sys.stdout.flush()
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        sys.stdout.write("\nstopped\n")
    finally:
        server.server_close()
    return 0


class MetricsServer(ThreadingHTTPServer):
    """Serves one exposition."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], exposition: RefreshedExposition) -> None:
        """Listen on *address*; port 0 is a free port.

        Raises:
            OSError: the port is in use.
        """
        self.exposition = exposition
        super().__init__(address, MetricsRequestHandler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the metrics."""
        return f"http://127.0.0.1:{self.port}{METRICS_PATH}"


class MetricsRequestHandler(BaseHTTPRequestHandler):
    """Serves one connection."""

    server: MetricsServer
    timeout = REQUEST_TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Return the metrics; 503 with the reason if the cluster cannot be read."""
        try:
            self._check_request()
            self._send(HTTPStatus.OK, self.server.exposition.render())
        except RejectedRequest as rejection:
            self._send(rejection.status, f"{rejection}\n")
        except InputError as error:
            print_errors("metrics", [str(error)])
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")

    def _check_request(self) -> None:
        """Check the host, so that no web page reads the metrics by DNS rebinding, then the path.

        Raises:
            RejectedRequest: the host is not this server, or the path has no metrics.
        """
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in {f"{name}:{self.server.port}" for name in LOOPBACK_NAMES}:
            raise RejectedRequest(HTTPStatus.FORBIDDEN, f"unknown host: the metrics are at {self.server.url}")
        if parse_query(self.path)[0] != METRICS_PATH:
            raise RejectedRequest(HTTPStatus.NOT_FOUND, f"not found: the metrics are at {self.server.url}")

    def _send(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        """Log nothing: Prometheus scrapes continuously."""
