"""Table rows: bodies that are large or undecodable, and writes for which another controller may be faster."""

from base64 import b64decode, b64encode
from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from shared.errors import Conflict, Invalid
from shared.model.core.metadata import Problem
from shared.ports.storage import FencingToken, Table, TableRow

BodyT = TypeVar("BodyT")

MAX_BODY_BYTES: Final = 400 * 1024 - 4 * 1024
"""DynamoDB refuses items above 400 KB, names and values together; keys, version and expiry take less than 4 KB.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-items
"""
MAX_PLAIN_BODY_BYTES: Final = 200 * 1024
"""Larger bodies are compressed: the body of a launch group has nearly the same user data once per launch template."""
MAX_CACHED_BODIES: Final = 64
"""Number of decoded rows that a container keeps: launch groups, with their user data, are read in every run."""


class _CompressedBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body that is stored compressed. Versions that do not know it report the row as one that cannot be decoded."""

    xz: str
    """The body, compressed with xz, in base64."""


def encode_body(body: object, name: str, fix: str) -> str:
    """Return *body* as JSON, compressed if it is large; *name* and *fix* are for the error.

    Raises:
        Invalid: DynamoDB would refuse the row, even compressed.
    """
    encoded = msgspec.json.encode(body, order="deterministic")
    if len(encoded) > MAX_PLAIN_BODY_BYTES:
        encoded = _compress(encoded)
    if len(encoded) > MAX_BODY_BYTES:
        text = f"{name}: the row has {len(encoded) // 1024} KiB, and DynamoDB stores at most 400 KiB; {fix}"
        raise Invalid(text, code="ValidationException")
    return encoded.decode()


def encode_compressed_body(body: object) -> str:
    """Return *body* as JSON, compressed also if it is small."""
    return _compress(msgspec.json.encode(body)).decode()


def _compress(encoded: bytes) -> bytes:
    import lzma  # noqa: PLC0415 - few rows need it

    # Preset 1 has a dictionary of 1 MiB, which is larger than most bodies, and takes 9 MiB of memory.
    compressed = lzma.compress(encoded, preset=1)
    return msgspec.json.encode(_CompressedBody(xz=b64encode(compressed).decode()))


def decode_body_text(body: str, type_: type[BodyT]) -> BodyT:
    """Return the value that `encode_body` encoded.

    Raises:
        msgspec.DecodeError: *body* is not a value of *type_*.
    """
    if not body.startswith('{"xz":'):
        return msgspec.json.decode(body, type=type_)
    import lzma  # noqa: PLC0415 - few rows need it

    try:
        plain = lzma.decompress(b64decode(msgspec.json.decode(body, type=_CompressedBody).xz))
    except (lzma.LZMAError, ValueError) as error:
        raise msgspec.DecodeError(f"compressed body: {error}") from error
    return msgspec.json.decode(plain, type=type_)


def decode_body(row: TableRow | None, type_: type[BodyT]) -> BodyT | None:
    """Return the body of *row*; None if there is no row, or its body cannot be decoded."""
    try:
        return decode_body_text(row.body, type_) if row is not None else None
    except msgspec.DecodeError:
        return None


@lru_cache(maxsize=MAX_CACHED_BODIES)
def _decode_cached(body: str, type_: Any) -> Any:  # noqa: ANN401 - as `decode_body_text`
    return decode_body_text(body, type_)


def decode_rows(
    rows: Iterable[TableRow], type_: type[BodyT], problems: list[Problem], consequence: str
) -> Iterator[tuple[TableRow, BodyT]]:
    """Yield the *rows* with their bodies; rows that cannot be decoded add to *problems*.

    *type_* is immutable: the value of an unchanged row is the same object in the next run of the container.
    *consequence* tells what happens when such a row is removed.
    """
    for row in rows:
        try:
            body: BodyT = _decode_cached(row.body, cast("Hashable", type_))
        except msgspec.DecodeError:
            problems.extend(describe_undecodable_row(row, type_, consequence))
        else:
            yield row, body


def describe_undecodable_row(row: TableRow, type_: type[BodyT], consequence: str) -> Iterator[Problem]:
    """Yield why the body of *row* cannot be decoded; nothing if it can.

    *consequence* tells what happens when the row is removed.
    """
    try:
        decode_body_text(row.body, type_)
    except msgspec.DecodeError as error:
        yield Problem(kind=row.kind, name=row.name, message=f"body: {error}; remove the row, {consequence}")


def decode_current_rows(
    table: Table, kind: str, now: datetime, type_: type[BodyT], problems: list[Problem]
) -> Iterator[BodyT]:
    """Yield the bodies of the rows of *kind* that are not expired at *now*; undecodable rows add to *problems*.

    Raises:
        Fault: the table could not be read.
    """
    rows = (row for row in table.list_rows(kind) if not row.is_expired(now))
    return (body for _, body in decode_rows(rows, type_, problems, "it is rewritten"))


def try_write(
    table: Table,
    kind: str,
    name: str,
    body: str,
    *,
    version: int,
    expires_at: datetime | None = None,
    fence: FencingToken | None = None,
) -> TableRow | None:
    """Write the row as `Table.write` does; return None if another controller was faster, or the fence is not valid.

    Raises:
        Fault: the table did not respond.
    """
    try:
        return table.write(kind, name, body, version=version, expires_at=expires_at, fence=fence)
    except Conflict:
        return None
