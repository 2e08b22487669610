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


class FleetUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What an event tells the page: it fetches the document if the version is new, and else only extends its end."""

    number: int
    """Grows with each observation."""
    version: int
    """Grows with each change of the document, except for its end and its totals."""
    end: int
    """The time of the last observation."""


class FleetFeed:
    """The newest fleet document, encoded when it is asked for, and a number that grows with each observation."""

    def __init__(
        self, history: FleetHistory, now: datetime, read: Callable[[], FleetObservation] | None = None
    ) -> None:
        """Serve *history* as of *now*; *read* reads a live source again, None: the source does not change."""
        self._history, self._read = history, read
        self._condition = threading.Condition()
        """Guards everything below."""
        self._stopped = threading.Event()
        self._number = 1
        self._now = now
        self._encoded_document: tuple[int, bytes] | None = None
        """The version of the last document that was asked for, and its JSON."""
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

    def get_document(self) -> tuple[int, bytes]:
        """Return the version of the fleet document, and the document as JSON."""
        with self._condition:
            version = self._history.compute_version()
            if self._encoded_document is None or self._encoded_document[0] != version:
                document = self._history.build_document(self._now, is_live=self.is_live)
                self._encoded_document = (version, encode_fleet_document(document))
            return self._encoded_document

    def read_history(self, read: Callable[[FleetHistory], T]) -> T:
        """Return what *read* returns of the history, which does not change meanwhile."""
        with self._condition:
            return read(self._history)

    def wait_for_update(self, last_number: int, seconds: float = HEARTBEAT_SECONDS) -> FleetUpdate:
        """Wait until there is a newer observation than *last_number*, at most *seconds*; return the newest."""
        with self._condition:
            self._condition.wait_for(lambda: self._number > last_number or self._stopped.is_set(), seconds)
            end = convert_to_milliseconds(self._now)
            return FleetUpdate(number=self._number, version=self._history.compute_version(), end=end)

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
        with self._condition:
            self._history.report_read_error(read_error)
            if observation is not None:
                if observation.journal is not None:
                    self._history.replace_journal(observation.journal)
                self._history.observe(observation.cluster, observation.at)
                self._now = observation.at
            self._number += 1
            self._condition.notify_all()

    def _run(self) -> None:
        while not self._stopped.wait(REFRESH_INTERVAL_SECONDS):
            self.refresh_once()
