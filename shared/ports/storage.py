"""The DynamoDB table and the S3 bucket as protocols."""

from datetime import datetime
from typing import Protocol

import msgspec


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the table. *version* increases by one with every write; *body* is JSON that the writer defines."""

    kind: str
    name: str
    version: int
    body: str
    expires_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return whether it has expired, though the table may still contain it."""
        return self.expires_at is not None and self.expires_at <= now


class FencingToken(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a lease: a write succeeds only while the lease row *name* is still at *version*."""

    name: str
    version: int
    overtaken: tuple[int, ...] = ()
    """Versions whose holders never released the lease, latest first: they may still be about to write."""


class Table(Protocol):
    """The DynamoDB table, for state that must be exact between concurrent functions. Key: kind, name."""

    def read(self, kind: str, name: str) -> TableRow | None:
        """Return the row with a consistent read; None if there is none.

        Expired rows are returned too: check *expires_at*.
        """

    def list_rows(self, kind: str) -> tuple[TableRow, ...]:
        """Return all rows of *kind* with a consistent read, sorted by name, including expired rows."""

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
        """Write the row if it is still at *version* (0: it does not exist) and *fence*, if given, is valid.

        Raises:
            Conflict: the row has another version, or the fence is not valid.
        """

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """Delete the row if it is still at *version*; if it is already gone, that is no error.

        Raises:
            Conflict: the row has another version.
        """


class Bucket(Protocol):
    """The S3 bucket: catalog and journal."""

    def put(self, key: str, body: bytes) -> None:
        """Write one whole object."""

    def get(self, key: str) -> bytes:
        """Return one object.

        Raises:
            NotFound: the object does not exist.
        """

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that begin with *prefix*, sorted."""
