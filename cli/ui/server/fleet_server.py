"""The server of the page of a fleet: its endpoints."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from threading import BoundedSemaphore, Lock
from typing import Final

import msgspec

from cli.explain.evidence import UnknownObject
from cli.terminal.errors import InputError
from cli.ui.page import render_fleet_page
from cli.ui.server import request_checks as checks
from cli.ui.server.explanations import build_explanation
from cli.ui.server.fleet_feed import FleetFeed
from cli.ui.server.page_server import DATA_POLICY, Endpoint, PageRequestHandler, PageServer
from cli.ui.what_if.comparison import WhatIfRequest, compare_plans
from cli.ui.what_if.node_pool_yaml import render_node_pools

MAX_EVENT_STREAMS: Final = 16


class FleetServer(PageServer):
    """Serves one feed."""

    def __init__(self, port: int, token: str, feed: FleetFeed, title: str) -> None:
        """Listen on *port* of the loopback interface; 0 is a free port.

        Raises:
            OSError: the port is in use.
            InputError: the page's script is not built.
        """
        self.feed = feed
        self.event_streams = BoundedSemaphore(MAX_EVENT_STREAMS)
        self.planning = Lock()
        """Held while a plan is computed: one at a time."""
        super().__init__(port, token, render_fleet_page(title), FleetRequestHandler)


class FleetRequestHandler(PageRequestHandler):
    """Serves one connection."""

    server: FleetServer
    method_hint = "use GET, or POST for /api/what-if"

    def get_endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints of the document, explanations, NodePools and events."""
        return {
            "/api/fleet": lambda _: self._send_fleet(),
            "/api/events": lambda _: self._send_events(),
            "/api/explain": self._send_explanation,
            "/api/node-pools": lambda _: self._send_node_pools(),
        }

    def get_post_endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoint that compares plans."""
        return {"/api/what-if": lambda _: self._send_comparison()}

    def _send_fleet(self) -> None:
        version, body = self.server.feed.get_document()
        self.send_document(body, version)

    def _send_explanation(self, parameters: dict[str, str]) -> None:
        kind, name = parameters.get("kind", ""), parameters.get("name", "")
        try:
            explanation = self.server.feed.read_history(
                lambda history: build_explanation(history.build_evidence(), kind, name)
            )
        except UnknownObject as error:
            raise checks.RejectedRequest(HTTPStatus.NOT_FOUND, str(error)) from None
        self.send_json(explanation)

    def _send_node_pools(self) -> None:
        cluster = self.server.feed.read_history(lambda history: history.cluster)
        self.send_json({"nodePools": render_node_pools(cluster.node_pools if cluster is not None else ())})

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
        self.send_json(comparison)

    def _send_events(self) -> None:
        """Send an event after each observation, until the client or the server ends.

        The first event of a live source comes at once: the document can have changed since the page fetched it.
        """
        if not self.server.event_streams.acquire(blocking=False):
            raise checks.RejectedRequest(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open: close some")
        try:
            self.close_connection = True
            self.send_headers(HTTPStatus.OK, "text/event-stream; charset=utf-8", DATA_POLICY)
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
