"""The journal in a folder or in a bucket: its cycles, oldest first."""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, get_args

import msgspec

from cli.aws.session import describe_fault, get_default_region
from cli.journal.entry_versions import decode_readable_parts
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.errors import Fault, NotFound
from shared.model.core.formatting import format_count
from shared.model.decisions.action import Function
from shared.ports.storage import Bucket
from shared.report.journal.journal import JOURNAL_PREFIX, JournalEntry, decode_entry

S3_SCHEME: Final = "s3://"
ONE_DAY: Final = timedelta(days=1)
"""The default period that is read from a bucket: thousands of cycles."""
MAX_NAMED_ERRORS: Final = 3
READ_FAILURE_MESSAGE: Final = "could not be read"
_FUNCTION_RANKS: Final = {name: rank for rank, name in enumerate(("interrupt", "disrupt", "provision", "lifecycle"), 1)}
"""Order of functions that start at the same instant: a function that requests a NodeClaim precedes its launch."""
_MAX_CONCURRENT_READS: Final = 32
_KEY_TIME_PATTERN: Final = re.compile(r"(\d{4}/\d\d/\d\d/\d{6})-[^/]*\.json$")


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """A journal entry and its key."""

    key: str
    entry: JournalEntry


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The cycles that were read, and the read errors."""

    source: str
    cycles: tuple[Cycle, ...] = ()
    """Oldest first."""
    messages: tuple[str, ...] = ()
    """The entries that cannot be read, or only in part, with the reason."""
    unreadable_count: int = 0
    """Number of entries that cannot be read completely; *messages* names only the first ones."""
    now: datetime
    """The reference time for ages."""


def load_journal(source: str, now: datetime, since: timedelta | None, *, is_now: bool) -> Journal:
    """Load the journal from *source*: a folder, or ``s3://bucket/prefix``; only entries younger than *since*.

    A folder may be an old copy: unless *is_now* is set, the journal's time is that of its last cycle, not *now*.

    Raises:
        InputError: The folder does not exist, or the bucket cannot be read.
    """
    with show_progress(f"reading the journal in {source}"):
        if source.startswith(S3_SCHEME):
            return _load_from_bucket(source, now, since or ONE_DAY)
        entries = _read_folder(source)
    cycles, messages = decode_cycles(entries)
    end = now if is_now or not cycles else cycles[-1].entry.at
    return _build_journal(source, cycles, messages, end, since)


def _build_journal(
    source: str, cycles: list[Cycle], messages: list[str], now: datetime, since: timedelta | None
) -> Journal:
    recent_cycles = tuple(cycle for cycle in cycles if since is None or cycle.entry.at >= now - since)
    unreadable_count = len(messages)
    if len(messages) > MAX_NAMED_ERRORS:
        messages = [
            *messages[:MAX_NAMED_ERRORS],
            f"… and {format_count(len(messages) - MAX_NAMED_ERRORS, 'more file')}",
        ]
    return Journal(
        source=source, cycles=recent_cycles, messages=tuple(messages), unreadable_count=unreadable_count, now=now
    )


def decode_cycles(entries: Iterable[tuple[str, bytes | str]]) -> tuple[list[Cycle], list[str]]:
    """Return the cycles, oldest first, and messages for the others; a text instead of bytes is a read error."""
    cycles: list[Cycle] = []
    messages: list[str] = []
    for key, body in entries:
        if isinstance(body, str):
            messages.append(f"{key}: {body}")
            continue
        try:
            cycles.append(Cycle(key=key, entry=decode_entry(body)))
        except msgspec.DecodeError as error:
            entry, unreadable_parts = decode_readable_parts(body)
            if entry is None:
                messages.append(f"{key}: not a journal entry: {error}")
                continue
            cycles.append(Cycle(key=key, entry=entry))
            messages.append(f"{key}: written by another version of Joiner: {unreadable_parts} skipped ({error})")
    return sorted(
        cycles, key=lambda cycle: (cycle.entry.at, _FUNCTION_RANKS.get(cycle.entry.function, 0), cycle.key)
    ), messages


def _read_folder(source: str) -> Iterator[tuple[str, bytes | str]]:
    """Read every file in *source* that ends in .json; in a copy of a whole bucket, only its journal."""
    folder = Path(source)
    if not folder.is_dir():
        problem = "not a folder" if folder.exists() else "folder not found"
        raise InputError(
            f"--journal {source}: {problem}; name a folder with a journal "
            f"(`joiner demo --journal {source}` creates an example), or s3://BUCKET"
        )
    inner = folder / JOURNAL_PREFIX
    paths = sorted((inner if inner.is_dir() else folder).rglob("*.json"))
    return ((str(path.relative_to(folder)), _read_body(path)) for path in paths if not path.is_dir())


def _read_body(path: Path) -> bytes | str:
    try:
        return path.read_bytes()
    except OSError as error:
        return f"{error.strerror}"


@contextmanager
def open_bucket(source: str) -> Iterator[tuple[Bucket, str]]:
    """Open the bucket of *source*, as ``s3://bucket/prefix``; the context value is the bucket and the prefix.

    Raises:
        InputError: The source names no bucket, or the bucket cannot be read.
    """
    from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.s3 import S3Bucket  # noqa: PLC0415

    name, _, prefix = source.removeprefix(S3_SCHEME).partition("/")
    if not name:
        raise InputError(f"--journal {source}: no bucket name: write s3://BUCKET")
    clients = Clients(get_default_region() or "us-east-1")
    try:
        yield S3Bucket(clients, name), prefix
    except Fault as fault:
        raise InputError(f"--journal {source}: {describe_fault(fault)}") from None
    finally:
        clients.close()


def _load_from_bucket(source: str, now: datetime, since: timedelta) -> Journal:
    """Load the entries younger than *since*."""
    with open_bucket(source) as (bucket, prefix):
        cycles, messages = decode_cycles(read_bucket_entries(bucket, prefix, now, since))
    if not cycles and any(READ_FAILURE_MESSAGE in message for message in messages):
        raise InputError(
            f"--journal {source}: none of {format_count(len(messages), 'file')} could be read: {messages[0]}"
        )
    return _build_journal(source, cycles, messages, now, since)


def read_bucket_entries(bucket: Bucket, prefix: str, now: datetime, since: timedelta) -> list[tuple[str, bytes | str]]:
    """Return the entries in *bucket* that are younger than *since*, by key; *prefix* is "" for Joiner's own bucket.

    Raises:
        Fault: The bucket cannot be read.
    """
    root = f"{prefix.rstrip('/')}/" if prefix else JOURNAL_PREFIX
    first = now - since
    days = [first.date() + number * ONE_DAY for number in range((now.date() - first.date()).days + 1)]
    key_prefixes = [f"{root}{function}/{day:%Y/%m/%d}/" for function in get_args(Function) for day in days]
    earliest = f"{first:%Y/%m/%d/%H%M%S}"
    executor = ThreadPoolExecutor(_MAX_CONCURRENT_READS)
    try:
        listed_keys = [key for keys in executor.map(bucket.list_keys, key_prefixes) for key in keys]
        recent_keys = [
            key for key in listed_keys if (key_match := _KEY_TIME_PATTERN.search(key)) and key_match[1] >= earliest
        ]
        return list(executor.map(partial(_read_entry_body, bucket), recent_keys))
    finally:
        executor.shutdown(cancel_futures=True)  # after an interrupt, thousands of pending reads are canceled


def _read_entry_body(bucket: Bucket, key: str) -> tuple[str, bytes | str]:
    try:
        return key, bucket.get(key)
    except NotFound:
        return key, "expired while the journal was read"
    except Fault as fault:
        return key, f"{READ_FAILURE_MESSAGE}: {describe_fault(fault)}"
