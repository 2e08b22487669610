"""The data that the server of `joiner ui` serves, refreshed in the background while the source is live."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from cli.fleet.document.json_format import convert_to_milliseconds, encode_fleet_document
from cli.fleet.sources.fleet_history import FleetHistory
from cli.journal.journal import Journal
from cli.terminal.errors import InputError
from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot

REFRESH_INTERVAL_SECONDS: Final = 5.0
HEARTBEAT_SECONDS: Final = 15.0
"""Interval of comments in an idle event stream: a closed connection is detected."""


T = TypeVar("T")


class FleetObservation(msgspec.Struct, frozen=True, kw_only=True):
    """What a live source is at one time."""

    at: datetime
    cluster: ClusterSnapshot
    journal: Journal | None = None
    """None: unchanged."""


class FleetFeed:
    """The newest fleet document, and a number that grows with each change."""

    def __init__(
        self, history: FleetHistory, now: datetime, read: Callable[[], FleetObservation] | None = None
    ) -> None:
        """Serve *history* as of *now*; *read* reads a live source again, None: the source does not change."""
        self._history, self._read = history, read
        self._condition = threading.Condition()
        """Guards the document, its number and its time."""
        self._history_lock = threading.Lock()
        self._stopped = threading.Event()
        self._number = 1
        self._now = now
        self._body = self._encode(now)
        self._thread = threading.Thread(target=self._run, daemon=True) if read is not None else None

    @property
    def is_live(self) -> bool:
        """Whether the source is read repeatedly."""
        return self._read is not None

    @property
    def is_stopped(self) -> bool:
        """Whether the server stops: event streams end."""
        return self._stopped.is_set()

    def start(self) -> None:
        """Start to refresh, if the source is live."""
        if self._thread is not None:
            self._thread.start()

    def stop(self) -> None:
        """Stop refreshing, and end all event streams."""
        self._stopped.set()
        with self._condition:
            self._condition.notify_all()

    def get_body(self) -> bytes:
        """Return the fleet document as JSON."""
        with self._condition:
            return self._body

    def read_history(self, read: Callable[[FleetHistory], T]) -> T:
        """Return what *read* returns of the history, which does not change meanwhile."""
        with self._history_lock:
            return read(self._history)

    def wait_for_change(self, last_number: int, seconds: float = HEARTBEAT_SECONDS) -> tuple[int, int]:
        """Wait until the document is newer than *last_number*, at most *seconds*; return its number and its time."""
        with self._condition:
            self._condition.wait_for(lambda: self._number > last_number or self._stopped.is_set(), seconds)
            return self._number, convert_to_milliseconds(self._now)

    def refresh_once(self) -> None:
        """Read the source once; if it cannot be read, the last document stays, with the error as a note."""
        if self._read is None:
            return
        try:
            observation = self._read()
        except (InputError, Fault) as error:
            self._publish(None, f"the cluster could not be read, and the page shows its last state: {error}")
        else:
            self._publish(observation, "")

    def _publish(self, observation: FleetObservation | None, read_error: str) -> None:
        with self._history_lock:
            self._history.read_error = read_error
            if observation is not None:
                if observation.journal is not None:
                    self._history.replace_journal(observation.journal)
                self._history.observe(observation.cluster, observation.at)
            now = self._now if observation is None else observation.at
            body = self._encode(now)
        with self._condition:
            self._now, self._body, self._number = now, body, self._number + 1
            self._condition.notify_all()

    def _encode(self, now: datetime) -> bytes:
        return encode_fleet_document(self._history.build_document(now, is_live=self.is_live))

    def _run(self) -> None:
        while not self._stopped.wait(REFRESH_INTERVAL_SECONDS):
            self.refresh_once()
