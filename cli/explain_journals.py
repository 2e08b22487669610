"""The journal as it lies in a folder or in a bucket: its cycles, oldest first."""

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import msgspec

from cli.clouds import region_here, said
from cli.explain_versions import legible
from cli.files import InputError
from cli.progress import progress
from cli.text import count
from shared.errors import Fault, Gone
from shared.model.action import Function
from shared.ports import Bucket
from shared.report.journal import PREFIX, Entry, read_entry

S3: Final = "s3://"
DAY: Final = timedelta(days=1)
"""So much of a bucket is read unless more is asked for: thousands of cycles."""
NAMED: Final = 3
UNSEEN: Final = "could not be seen"
_RANK: Final = {name: rank for rank, name in enumerate(("interrupt", "disrupt", "provision", "lifecycle"), 1)}
"""Which comes first of those that begin at the same instant: who asks for a claim before who launches it."""
_AT_ONCE: Final = 32
_WHEN: Final = re.compile(r"(\d{4}/\d\d/\d\d/\d{6})-[^/]*\.json$")


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, and where it lies."""

    key: str
    entry: Entry


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    source: str
    cycles: tuple[Cycle, ...] = ()
    """Oldest first."""
    told: tuple[str, ...] = ()
    """What could not be read."""
    unread: int = 0
    """So many entries, not all of which *told* names."""
    now: datetime
    """What times are compared with."""


def journal_at(source: str, now: datetime, since: timedelta | None, *, is_now: bool) -> Journal:
    """Read the journal at *source*: a folder, or ``s3://bucket/prefix``; of it what is younger than *since*.

    A folder may be a copy of some day: unless *is_now* says that *now* is meant, its time is that of its last cycle.

    Raises:
        InputError: there is no such folder, or the bucket does not answer.
    """
    with progress(f"reading the journal in {source}"):
        if source.startswith(S3):
            return _of_bucket(source, now, since or DAY)
        read = _of_folder(source)
    found, told = _decoded(read)
    end = now if is_now or not found else found[-1].entry.at
    return _journal(source, found, told, end, since)


def _journal(source: str, found: list[Cycle], told: list[str], now: datetime, since: timedelta | None) -> Journal:
    kept = tuple(one for one in found if since is None or one.entry.at >= now - since)
    unread = len(told)
    if len(told) > NAMED:
        told = [*told[:NAMED], f"… and {count(len(told) - NAMED, 'more file')}"]
    return Journal(source=source, cycles=kept, told=tuple(told), unread=unread, now=now)


def _decoded(read: Iterable[tuple[str, bytes | str]]) -> tuple[list[Cycle], list[str]]:
    """Answer the cycles, oldest first, and what is wrong with the others; a text instead of bytes says it."""
    found: list[Cycle] = []
    told: list[str] = []
    for key, body in read:
        if isinstance(body, str):
            told.append(f"{key}: {body}")
            continue
        try:
            found.append(Cycle(key=key, entry=read_entry(body)))
        except msgspec.DecodeError as error:
            entry, lost = legible(body)
            if entry is None:
                told.append(f"{key}: no entry of a journal: {error}")
                continue
            found.append(Cycle(key=key, entry=entry))
            told.append(f"{key}: of another version: {lost} cannot be read, the rest is told ({error})")
    return sorted(found, key=lambda one: (one.entry.at, _RANK.get(one.entry.function, 0), one.key)), told


def _of_folder(source: str) -> Iterator[tuple[str, bytes | str]]:
    """Read every file of *source* that ends in .json; of the copy of a whole bucket what is in its journal.

    Raises:
        InputError: there is no such folder.
    """
    folder = Path(source)
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "no such folder"
        raise InputError(
            f"--journal {source}: {what}: name one that holds a journal (`joiner demo --journal {source}` makes one), "
            "or s3://BUCKET"
        )
    inner = folder / PREFIX
    paths = sorted((inner if inner.is_dir() else folder).rglob("*.json"))
    return ((str(path.relative_to(folder)), _body_of(path)) for path in paths if not path.is_dir())


def _body_of(path: Path) -> bytes | str:
    try:
        return path.read_bytes()
    except OSError as error:
        return f"{error.strerror}"


def _of_bucket(source: str, now: datetime, since: timedelta) -> Journal:
    """Read what is younger than *since*.

    Raises:
        InputError: the bucket does not answer.
    """
    from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.s3 import S3Bucket  # noqa: PLC0415

    name, _, prefix = source.removeprefix(S3).partition("/")
    if not name:
        raise InputError(f"--journal {source}: names no bucket: write s3://BUCKET")
    clients = Clients(region_here() or "us-east-1")
    try:
        found, told = _decoded(cycles_of(S3Bucket(clients, name), prefix, now, since))
    except Fault as fault:
        raise InputError(f"--journal {source}: {said(fault)}") from None
    finally:
        clients.close()
    if not found and any(UNSEEN in one for one in told):
        raise InputError(f"--journal {source}: {count(len(told), 'file')}, and none could be read: {told[0]}")
    return _journal(source, found, told, now, since)


def cycles_of(bucket: Bucket, prefix: str, now: datetime, since: timedelta) -> list[tuple[str, bytes | str]]:
    """Answer the entries in *bucket* that are younger than *since*, by key; *prefix* is "" where we wrote them.

    Raises:
        Fault: the bucket does not answer.
    """
    root = f"{prefix.rstrip('/')}/" if prefix else PREFIX
    first = now - since
    days = [first.date() + number * DAY for number in range((now.date() - first.date()).days + 1)]
    wanted = [f"{root}{function}/{day:%Y/%m/%d}/" for function in get_args(Function) for day in days]
    earliest = f"{first:%Y/%m/%d/%H%M%S}"
    crew = ThreadPoolExecutor(_AT_ONCE)
    try:
        listed = [key for keys in crew.map(bucket.keys, wanted) for key in keys]
        recent = [key for key in listed if (found := _WHEN.search(key)) and found[1] >= earliest]
        return list(crew.map(_reader(bucket), recent))
    finally:
        crew.shutdown(cancel_futures=True)  # who interrupts does not wait for thousands


def _reader(bucket: Bucket) -> Callable[[str], tuple[str, bytes | str]]:
    def read(key: str) -> tuple[str, bytes | str]:
        try:
            return key, bucket.get(key)
        except Gone:
            return key, "is gone: it became too old meanwhile"
        except Fault as fault:
            return key, f"{UNSEEN}: {said(fault)}"

    return read
