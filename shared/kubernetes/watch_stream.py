"""Reads a watch for a short time, and decides when it has caught up with the collection.

Before a watch begins, the head of the collection is read: a list of at most one object, by a consistent read, whose
resourceVersion is that of the newest write in the whole cluster. The watch has caught up when it delivers a change or a
bookmark at or after the head. Changes after the head are left for the next read: the result equals a list at the head.

If the collection had no recent writes, no event comes, and bookmarks come only once a minute. So silence ends the watch
too. Head and watch share one connection, hence one API server, whose watch cache was brought up to the head to answer
the list (Kubernetes 1.34 and later; before that it may lag by milliseconds, which the quiet timeout covers): all
pending events are sent at once, and silence means that all were sent. That is no proof. Therefore the next watch starts
at the version of the last change received, never at the head: a late event is delivered by the next watch. The head
also reports the number of objects, which must match the cache.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import ReadTimeoutError

from shared.errors import Expired, Unreachable
from shared.kubernetes.errors import build_fault
from shared.ports.kubernetes import WatchEvents

MAX_CHANGES_BYTES: Final = 32 * 1024 * 1024
"""The limit for the changes of one watch; beyond it, paging through a list is cheaper."""


class _HeadMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: int
    remaining_item_count: int | None = None
    continue_token: str = msgspec.field(name="continue", default="")


class _HeadList(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _HeadMeta
    items: tuple[msgspec.Raw, ...] | None = None


class CollectionHead(msgspec.Struct, frozen=True, kw_only=True):
    """The newest resourceVersion of a collection and its number of objects (None if the server does not report it)."""

    version: int
    count: int | None


class _EventMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: int = 0


class _EventObject(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of any object, or the code of an ERROR event's Status."""

    metadata: _EventMeta = _EventMeta()
    code: int = 0


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    object: _EventObject


class _Error(msgspec.Struct, frozen=True, kw_only=True):
    object: msgspec.Raw


def parse_head(call: str, body: bytes) -> CollectionHead:
    """Parse the head from a list of at most one object.

    Raises:
        Unreachable: the resourceVersion is not a number.
    """
    try:
        head_list = msgspec.json.decode(body, type=_HeadList, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{call}: {error}") from error
    item_count, remaining = len(head_list.items or ()), head_list.metadata.remaining_item_count
    if head_list.metadata.continue_token and remaining is None:
        return CollectionHead(version=head_list.metadata.resource_version, count=None)
    return CollectionHead(version=head_list.metadata.resource_version, count=item_count + (remaining or 0))


def read_changes(call: str, response: BaseHTTPResponse, since: int, head: CollectionHead) -> WatchEvents:
    """Read the changes after *since* up to *head* from a watch stream, or until the stream is silent.

    Raises:
        Expired: there are too many changes, or the server's history does not reach back to *since*.
        Unreachable: the stream ended before it had caught up, or in the middle of an event.
        Fault: the error that an ERROR event reports.
    """
    events: list[bytes] = []
    newest_version = since
    for line in _read_lines(call, response):
        event = _parse_event(call, line)
        if event.type == "ERROR":
            status = msgspec.json.decode(line, type=_Error).object
            raise build_fault(call, event.object.code, bytes(status), {})
        version = event.object.metadata.resource_version
        if event.type != "BOOKMARK" and version <= head.version:
            events.append(line)
        if version >= head.version:
            return WatchEvents(events=tuple(events), version=str(head.version), count=head.count)
        newest_version = max(newest_version, version)
    return WatchEvents(events=tuple(events), version=str(newest_version), count=head.count)


def _read_lines(call: str, response: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the lines of the stream until nothing arrives within the socket's timeout."""
    partial_line, size = b"", 0
    try:
        for chunk in response.stream(None):
            size += len(chunk)
            if size > MAX_CHANGES_BYTES:
                raise Expired(f"{call}: more than {MAX_CHANGES_BYTES} bytes of changes")
            *lines, partial_line = (partial_line + chunk).split(b"\n")
            yield from filter(None, lines)
    except ReadTimeoutError:
        if not partial_line:
            return
    raise Unreachable(f"{call}: ended before it was up to date")


def _parse_event(call: str, line: bytes) -> _Event:
    try:
        return msgspec.json.decode(line, type=_Event, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{call}: invalid watch event: {error}") from error
