"""Table, bucket, topic and event bus in memory, with exactly the guarantees of AWS that Joiner relies on."""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Final

from shared.errors import Conflict, Invalid, NotFound
from shared.ports.messaging import BusEvent
from shared.ports.storage import FencingToken, TableRow

LEASE_KIND: Final = "lease"
"""The kind of the rows to which a `FencingToken` refers."""

SUBJECT_PATTERN: Final = re.compile(r"[!-~][ -~]{0,98}")
"""Subject of an SNS message: fewer than 100 characters."""
MAX_MESSAGE_BYTES: Final = 256 * 1024
"""Maximum size of an SNS message."""
MAX_ENTRIES_PER_REQUEST: Final = 10
"""Maximum number of events in a PutEvents request."""
MAX_ENTRY_BYTES: Final = 256 * 1024
"""Maximum size of all events of a PutEvents request."""
MAX_ITEM_BYTES: Final = 400 * 1024
"""Maximum size of a DynamoDB item, names and values together."""


class MemoryTable:
    """The port `shared.ports.storage.Table`; writes are atomic across threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[tuple[str, str], TableRow] = {}
        self._lock = Lock()

    def read(self, kind: str, name: str) -> TableRow | None:
        """Return the row, including an expired row; None if there is none."""
        return self._rows.get((kind, name))

    def list_rows(self, kind: str) -> tuple[TableRow, ...]:
        """Return the rows of *kind*, sorted by name."""
        with self._lock:
            return tuple(row for (row_kind, _), row in sorted(self._rows.items()) if row_kind == kind)

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: FencingToken | None = None,
    ) -> TableRow:
        """Write the row; *expires_at* is rounded up to whole seconds.

        Raises:
            Conflict: the row is not at *version*, or the fence is not valid.
            Invalid: a name is empty, the item is too large, or the fence refers to the row itself.
        """
        row = TableRow(
            kind=kind, name=name, version=version + 1, body=body, expires_at=_round_up_to_seconds(expires_at)
        )
        _check_item(row, fence)
        with self._lock:
            if fence is not None and self._get_version(LEASE_KIND, fence.name) != fence.version:
                raise Conflict(f"{kind}/{name}: the lease {fence.name} is not at {fence.version} any more")
            if self._get_version(kind, name) != version:
                raise Conflict(f"{kind}/{name}: not at {version} any more")
            self._rows[kind, name] = row
        return row

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """Delete the row.

        Raises:
            Conflict: the row has another version.
        """
        with self._lock:
            if self._get_version(kind, name) not in {0, version}:
                raise Conflict(f"{kind}/{name}: not at {version} any more")
            self._rows.pop((kind, name), None)

    def _get_version(self, kind: str, name: str) -> int:
        row = self._rows.get((kind, name))
        return row.version if row else 0


class MemoryBucket:
    """The port `shared.ports.storage.Bucket`."""

    def __init__(self) -> None:
        """Start empty."""
        self._objects: dict[str, bytes] = {}

    def put(self, key: str, body: bytes) -> None:
        """Write one whole object."""
        self._objects[key] = bytes(body)

    def get(self, key: str) -> bytes:
        """Return one object.

        Raises:
            NotFound: the object does not exist.
        """
        if key not in self._objects:
            raise NotFound(key)
        return self._objects[key]

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that begin with *prefix*, sorted."""
        return tuple(sorted(key for key in self._objects if key.startswith(prefix)))


class MemoryTopic:
    """The port `shared.ports.messaging.Topic`."""

    def __init__(self) -> None:
        """Start without messages."""
        self.published_messages: list[tuple[str, str]] = []
        """Subjects and texts of the published messages, oldest first."""

    def publish(self, subject: str, text: str) -> None:
        """Store the message.

        Raises:
            Invalid: SNS would reject it.
        """
        if not SUBJECT_PATTERN.fullmatch(subject):
            raise Invalid(f"no subject: {subject!r}", code="InvalidParameter")
        if not text or len(text.encode()) > MAX_MESSAGE_BYTES:
            raise Invalid("no message, or one that is too long", code="InvalidParameter")
        self.published_messages.append((subject, text))


class MemoryEventBus:
    """The port `shared.ports.messaging.EventBus`."""

    def __init__(self) -> None:
        """Start without events."""
        self.events: list[BusEvent] = []
        """The accepted events, oldest first; an event that was put twice is here twice."""
        self.is_refused: Callable[[BusEvent], bool] = lambda _: False
        """Whether EventBridge refuses an entry of a request, and accepts the others."""

    def put(self, events: Sequence[BusEvent]) -> tuple[tuple[int, ...], str]:
        """Store the events, except those that are refused.

        Raises:
            Invalid: EventBridge would reject the request.
        """
        if not 1 <= len(events) <= MAX_ENTRIES_PER_REQUEST:
            raise Invalid("Entries: 1 to 10 are allowed", code="ValidationException")
        entry_bytes = (
            14 + sum(len(text.encode()) for text in (event.source, event.detail_type, event.detail)) for event in events
        )
        if sum(entry_bytes) > MAX_ENTRY_BYTES:
            raise Invalid("Total size of the entries in the request is over the limit.", code="ValidationException")
        refused = tuple(index for index, event in enumerate(events) if self.is_refused(event))
        self.events += [event for index, event in enumerate(events) if index not in refused]
        return refused, "ThrottlingException: Rate exceeded" if refused else ""


def _check_item(row: TableRow, fence: FencingToken | None) -> None:
    if not (row.kind and row.name):
        raise Invalid("a key may not be empty", code="ValidationException")
    if _compute_item_bytes(row) > MAX_ITEM_BYTES:
        raise Invalid(
            f"{row.kind}/{row.name}: Item size has exceeded the maximum allowed size", code="ValidationException"
        )
    if fence is not None and (row.kind, row.name) == (LEASE_KIND, fence.name):
        raise Invalid("a transaction may not name one item twice", code="ValidationException")


def _compute_item_bytes(row: TableRow) -> int:
    """Return the size of the item as DynamoDB counts it: names and strings in UTF-8, and numbers with up to 21 bytes.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    numbers = [row.version] if row.expires_at is None else [row.version, int(row.expires_at.timestamp())]
    names = ("pk", "sk", "version", "body", *(["expires"] if row.expires_at is not None else []))
    texts = (*names, row.kind, row.name, row.body)
    return sum(len(text.encode()) for text in texts) + sum(len(str(number)) // 2 + 2 for number in numbers)


def _round_up_to_seconds(instant: datetime | None) -> datetime | None:
    return instant and datetime.fromtimestamp(math.ceil(instant.timestamp()), UTC)
