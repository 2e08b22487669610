"""The server of the page of many clusters: its endpoints."""

from collections.abc import Mapping

from cli.ui.page import render_fleet_page
from cli.ui.server.hub_feed import HubFeed
from cli.ui.server.page_server import Endpoint, PageRequestHandler, PageServer


class HubServer(PageServer):
    """Serves one feed."""

    def __init__(self, port: int, token: str, feed: HubFeed, title: str) -> None:
        """Listen on *port* of the loopback interface; 0 is a free port.

        Raises:
            OSError: the port is in use.
            InputError: the page's script is not built.
        """
        self.feed = feed
        super().__init__(port, token, render_fleet_page(title, asset="hub"), HubRequestHandler)


class HubRequestHandler(PageRequestHandler):
    """Serves one connection."""

    server: HubServer

    def get_endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoint of the document."""
        return {"/api/hub": lambda _: self._send_hub()}

    def _send_hub(self) -> None:
        version, body = self.server.feed.get_document()
        self.send_document(body, version)
