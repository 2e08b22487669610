"""The newest journal entries of a cluster, as far as a hub needs them.

Only the fields that every version of Joiner writes alike are decoded: an entry with actions that this version does not
know is read like any other.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from shared.errors import NotFound
from shared.model.decisions.action import Function
from shared.ports.storage import Bucket
from shared.report.journal.journal import JOURNAL_PREFIX

DAYS_READ: Final = 2
"""Days whose journal is listed: today and yesterday."""
MAX_ENTRIES_READ: Final = 10
"""Newest entries of a function that are read until one has what is needed."""
RECORD_FUNCTIONS: Final[tuple[Function, ...]] = ("disrupt", "provision", "interrupt")
"""Functions whose decision records contain the whole cluster."""
_KEY_TIME_PATTERN: Final = re.compile(r"(\d{4}/\d\d/\d\d/\d{6})-[^/]*\.json$")


class EntryFields(msgspec.Struct, frozen=True, kw_only=True):
    """A part of `shared.report.journal.journal.JournalEntry`."""

    function: str
    at: datetime
    counts: dict[str, float] = {}
    snapshot: str = ""
    """Bucket key of the decision record; "" if none was stored."""
    code: str = ""


class NewestEntries(msgspec.Struct, frozen=True, kw_only=True):
    """The newest entries of a function, newest first."""

    entries: tuple[EntryFields, ...] = ()
    unreadable_at: datetime | None = None
    """When the newest entry was written that could not be decoded."""
    messages: tuple[str, ...] = ()
    """What could not be decoded."""


def read_newest_entries(bucket: Bucket, function: Function, now: datetime, *, is_copy: bool) -> NewestEntries:
    """Read the newest entries of *function*, until one has a decision record: older ones say nothing more.

    Raises:
        Fault: the bucket cannot be read.
    """
    entries: list[EntryFields] = []
    messages: list[str] = []
    unreadable_at: datetime | None = None
    for key_time, key in _list_newest_keys(bucket, function, now, is_copy=is_copy):
        try:
            entry = msgspec.json.decode(bucket.get(key), type=EntryFields)
        except NotFound:
            continue  # it expired after it was listed
        except msgspec.DecodeError as error:
            messages.append(f"{key}: written by another version of Joiner, or damaged: {error}")
            unreadable_at = unreadable_at or key_time
            continue
        entries.append(entry)
        if entry.snapshot:
            break
    return NewestEntries(entries=tuple(entries), unreadable_at=unreadable_at, messages=tuple(messages))


def _list_newest_keys(
    bucket: Bucket, function: Function, now: datetime, *, is_copy: bool
) -> Sequence[tuple[datetime, str]]:
    """Return the times and keys of the newest entries, newest first."""
    prefix = f"{JOURNAL_PREFIX}{function}/"
    days = [""] if is_copy else [f"{now - timedelta(days=number):%Y/%m/%d}/" for number in range(DAYS_READ)]
    keys: list[tuple[datetime, str]] = []
    for day in days:
        keys += sorted(_parse_key_times(bucket.list_keys(f"{prefix}{day}")), reverse=True)
        if keys:
            break
    return keys[: MAX_ENTRIES_READ if function in RECORD_FUNCTIONS else 1]


def _parse_key_times(keys: Sequence[str]) -> Iterator[tuple[datetime, str]]:
    for key in keys:
        if match := _KEY_TIME_PATTERN.search(key):
            yield datetime.strptime(match[1], "%Y/%m/%d/%H%M%S").replace(tzinfo=UTC), key
