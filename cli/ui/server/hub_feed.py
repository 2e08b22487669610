"""The data of the page of many clusters: the buckets are read again in the background."""

import threading
from collections.abc import Callable
from typing import Final

import msgspec

from cli.hub.page import build_hub_document
from cli.hub.session import HubView

READ_INTERVAL_SECONDS: Final = 300.0
"""Clusters store most values once an hour, and a read of a cluster is up to 90 requests."""


class HubFeed:
    """The newest view of the clusters."""

    def __init__(
        self, view: HubView, read: Callable[[], HubView], interval_seconds: float = READ_INTERVAL_SECONDS
    ) -> None:
        """Serve *view*; *read* reads the clusters again every *interval_seconds*."""
        self._read, self._interval_seconds = read, interval_seconds
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._document = (1, _encode_view(view, interval_seconds))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to read again."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()

    def get_document(self) -> tuple[int, bytes]:
        """Return the number of the read, and the document as JSON."""
        with self._lock:
            return self._document

    def refresh_once(self) -> None:
        """Read all clusters once."""
        body = _encode_view(self._read(), self._interval_seconds)
        with self._lock:
            self._document = (self._document[0] + 1, body)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_seconds):
            self.refresh_once()


def _encode_view(view: HubView, interval_seconds: float) -> bytes:
    return msgspec.json.encode({**build_hub_document(view), "readIntervalSeconds": interval_seconds})
