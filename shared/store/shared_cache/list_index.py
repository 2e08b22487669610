"""The index of the stored lists: a table row that names the document of each list, and their documents in the bucket.

A document is stored under the digest of its content before the row names it, so the row never names half a document.
The row is written only if it is still at the version that was read: of two containers that store lists at once, one
fails and changes nothing. Its name is the digest of Joiner's code: containers of another version have another row.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from shared.errors import Conflict
from shared.model.core.metadata import Problem
from shared.ports.storage import Bucket, Table
from shared.store.shared_cache.code_digest import compute_code_digest
from shared.store.shared_cache.list_document import decode_list, encode_list

ROW_KIND: Final = "stored-lists"
LIST_PREFIX: Final = "lists/"
_ROW_TTL: Final = timedelta(hours=1)
"""Longer than a stored list is used, so that the rows of earlier versions disappear."""


class StoredListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the index knows of one stored list."""

    key: str
    """The bucket key of its document: `LIST_PREFIX` and a digest of the document."""
    version: str
    """The resourceVersion of the list."""
    listed_at: datetime
    """When its objects were listed; later changes were read by watches."""
    current_at: datetime
    """When it was at its resourceVersion: the last list or watch."""
    size_bytes: int
    """Size of the list as the API server sends it."""


class ListIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The body of the row, and its version in the table."""

    cluster_uid: str = ""
    """Uid of the namespace kube-system: it identifies the Kubernetes cluster that the lists are of."""
    lists: dict[str, StoredListEntry] = {}
    """By the field of the list in a ClusterSnapshot."""
    row_version: int = 0


class StoredList(msgspec.Struct, frozen=True, kw_only=True):
    """One list with the entry that describes it; the key of *entry* is ignored when it is written."""

    entry: StoredListEntry
    values: tuple[Any, ...]
    """In the order of a ClusterSnapshot."""
    problems: tuple[Problem, ...]


def read_list_index(table: Table) -> ListIndex:
    """Return the index of this version of Joiner; an empty one if there is none, or it cannot be decoded.

    Raises:
        Fault: the table did not respond.
    """
    row = table.read(ROW_KIND, compute_code_digest())
    if row is None:
        return ListIndex()
    try:
        index = msgspec.json.decode(row.body, type=ListIndex)
    except msgspec.DecodeError:
        return ListIndex(row_version=row.version)
    return msgspec.structs.replace(index, row_version=row.version)


def read_stored_list(bucket: Bucket, field: str, entry: StoredListEntry) -> StoredList:
    """Return the list *field* that *entry* describes.

    Raises:
        Fault: the bucket did not respond, or the document does not exist.
        ValueError: the document is damaged.
    """
    body = bucket.get(entry.key)
    if _build_key(body) != entry.key:
        raise ValueError(f"{field}: the document is not the one that was stored")
    values, problems = decode_list(field, body)
    return StoredList(entry=entry, values=values, problems=problems)


def write_stored_lists(
    table: Table, bucket: Bucket, index: ListIndex, stored_lists: Mapping[str, StoredList], now: datetime
) -> bool:
    """Store *stored_lists*, by field, and add them to *index*; return False if another container was faster.

    Raises:
        Fault: the table or the bucket did not respond; the index names complete documents only.
    """
    entries: dict[str, StoredListEntry] = {}
    for field, stored_list in sorted(stored_lists.items()):
        body = encode_list(field, stored_list.values, stored_list.problems)
        entry = entries[field] = msgspec.structs.replace(stored_list.entry, key=_build_key(body))
        bucket.put(entry.key, body)
    new_index = msgspec.structs.replace(index, lists=index.lists | entries, row_version=0)
    row_body = msgspec.json.encode(new_index, order="deterministic").decode()
    try:
        table.write(ROW_KIND, compute_code_digest(), row_body, version=index.row_version, expires_at=now + _ROW_TTL)
    except Conflict:
        return False
    return True


def _build_key(body: bytes) -> str:
    return f"{LIST_PREFIX}{sha256(body).hexdigest()[:32]}"
