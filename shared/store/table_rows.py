"""Table rows: bodies that may be undecodable, and writes for which another controller may be faster."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeVar

import msgspec

from shared.errors import Conflict
from shared.model.core.metadata import Problem
from shared.ports.storage import FencingToken, Table, TableRow

BodyT = TypeVar("BodyT")


def decode_body(row: TableRow | None, type_: type[BodyT]) -> BodyT | None:
    """Return the body of *row*; None if there is no row, or its body cannot be decoded."""
    try:
        return msgspec.json.decode(row.body, type=type_) if row is not None else None
    except msgspec.DecodeError:
        return None


def decode_rows(
    rows: Iterable[TableRow], type_: type[BodyT], problems: list[Problem], consequence: str
) -> Iterator[tuple[TableRow, BodyT]]:
    """Yield the *rows* with their bodies; rows that cannot be decoded add to *problems*.

    *consequence* tells what happens when such a row is removed.
    """
    for row in rows:
        try:
            body = msgspec.json.decode(row.body, type=type_)
        except msgspec.DecodeError as error:
            message = f"body: {error}; remove the row, {consequence}"
            problems.append(Problem(kind=row.kind, name=row.name, message=message))
        else:
            yield row, body


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
