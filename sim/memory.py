"""Table, bucket and topic in memory: what DynamoDB, S3 and SNS promise us, and nothing that they do not."""

import math
import re
from datetime import UTC, datetime
from threading import Lock
from typing import Final

import msgspec

from shared.errors import Conflict, Gone, Invalid
from shared.ports import Fence, Row

LEASE: Final = "lease"
"""The kind of the rows that a `Fence` names."""

SUBJECT: Final = re.compile(r"[!-~][ -~]{0,98}")
"""Of a message by e-mail: below a hundred characters."""
LONGEST_TEXT: Final = 256 * 1024
"""Bytes."""
LARGEST_ITEM: Final = 400 * 1024
"""Bytes, names and values together."""


class MemoryTable:
    """`shared.ports.Table`; a write is one step for every thread."""

    def __init__(self) -> None:
        """Begin empty."""
        self._rows: dict[tuple[str, str], Row] = {}
        self._lock = Lock()

    def read(self, kind: str, name: str) -> Row | None:
        """Answer the row, expired or not."""
        return self._rows.get((kind, name))

    def rows(self, kind: str) -> tuple[Row, ...]:
        """Answer the rows of *kind*, sorted by name."""
        with self._lock:
            return tuple(row for (its_kind, _), row in sorted(self._rows.items()) if its_kind == kind)

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: Fence | None = None,
    ) -> Row:
        """Write the row; *expires_at* is kept in whole seconds, rounded up.

        Raises:
            Conflict: the row is not at *version*, or the fence does not hold.
            Invalid: a name is empty, the item is too large, or the fence is the row itself.
        """
        row = Row(kind=kind, name=name, version=version + 1, body=body, expires_at=_whole_seconds(expires_at))
        _check(row, fence)
        with self._lock:
            if fence is not None and self._version(LEASE, fence.name) != fence.version:
                raise Conflict(f"{kind}/{name}: the lease {fence.name} is not at {fence.version} any more")
            if self._version(kind, name) != version:
                raise Conflict(f"{kind}/{name}: not at {version} any more")
            self._rows[kind, name] = row
        return row

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """Delete the row.

        Raises:
            Conflict: it has another version.
        """
        with self._lock:
            if self._version(kind, name) not in {0, version}:
                raise Conflict(f"{kind}/{name}: not at {version} any more")
            self._rows.pop((kind, name), None)

    def _version(self, kind: str, name: str) -> int:
        row = self._rows.get((kind, name))
        return row.version if row else 0


class MemoryBucket:
    """`shared.ports.Bucket`."""

    def __init__(self) -> None:
        """Begin empty."""
        self._objects: dict[str, bytes] = {}

    def put(self, key: str, body: bytes) -> None:
        """Write one object, whole."""
        self._objects[key] = bytes(body)

    def get(self, key: str) -> bytes:
        """Answer one object.

        Raises:
            Gone: there is none.
        """
        if key not in self._objects:
            raise Gone(key)
        return self._objects[key]

    def keys(self, prefix: str) -> tuple[str, ...]:
        """Answer the keys that begin with *prefix*, sorted."""
        return tuple(sorted(key for key in self._objects if key.startswith(prefix)))


class MemoryTopic:
    """`shared.ports.Topic`."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self.said: list[tuple[str, str]] = []
        """Subjects and texts, oldest first."""

    def publish(self, subject: str, text: str) -> None:
        """Keep it.

        Raises:
            Invalid: SNS would not take it.
        """
        if not SUBJECT.fullmatch(subject):
            raise Invalid(f"no subject: {subject!r}", code="InvalidParameter")
        if not text or len(text.encode()) > LONGEST_TEXT:
            raise Invalid("no message, or one that is too long", code="InvalidParameter")
        self.said.append((subject, text))


def _check(row: Row, fence: Fence | None) -> None:
    if not (row.kind and row.name):
        raise Invalid("a key may not be empty", code="ValidationException")
    if len(msgspec.json.encode(row)) > LARGEST_ITEM:
        raise Invalid(f"{row.kind}/{row.name}: the item is too large", code="ValidationException")
    if fence is not None and (row.kind, row.name) == (LEASE, fence.name):
        raise Invalid("a transaction may not name one item twice", code="ValidationException")


def _whole_seconds(instant: datetime | None) -> datetime | None:
    return instant and datetime.fromtimestamp(math.ceil(instant.timestamp()), UTC)
