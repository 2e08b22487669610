"""Following a collection for a moment: how one knows that one has caught up.

Before a watch begins, the head of the collection is read: a list of at most one object, by a consistent read, whose
version is that of the newest write anywhere. The watch has caught up once it shows a change or a bookmark at or after
the head. What came after the head is left for the next time: the answer is what a list at the head would show.

Where nothing was written to the collection of late, there is nothing to come, and bookmarks come once a minute. So
silence ends it too. Head and watch share one connection, hence one API server, whose cache was brought up to the head
to answer it (Kubernetes 1.34 and later; before, it may be milliseconds behind, which the silence covers): all there is
to tell is sent at once, and silence means that it was told. That is no proof. Therefore the version to follow on from
is then that of the last change that was seen, never the head: what was late is told the next time. And the head says
how many objects there are, which must agree.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import ReadTimeoutError

from shared.errors import Expired, Unreachable
from shared.kube.answers import fault_from
from shared.ports import Changes

MOST: Final = 32 * 1024 * 1024
"""Bytes of changes; after that pages of a list are the better way."""


class _HeadMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: int
    remaining_item_count: int | None = None
    continue_token: str = msgspec.field(name="continue", default="")


class _HeadList(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _HeadMeta
    items: tuple[msgspec.Raw, ...] | None = None


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The newest version of a collection, and how many objects it has, None where the server does not say."""

    version: int
    count: int | None


class _EventMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: int = 0


class _EventObject(msgspec.Struct, frozen=True, kw_only=True):
    """Any object, or the Status of an ERROR."""

    metadata: _EventMeta = _EventMeta()
    code: int = 0


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    object: _EventObject


class _Error(msgspec.Struct, frozen=True, kw_only=True):
    object: msgspec.Raw


def head_from(call: str, body: bytes) -> Head:
    """Read the head from a list of at most one object.

    Raises:
        Unreachable: it has no version that is a number.
    """
    try:
        found = msgspec.json.decode(body, type=_HeadList, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{call}: {error}") from error
    shown, remaining = len(found.items or ()), found.metadata.remaining_item_count
    if found.metadata.continue_token and remaining is None:
        return Head(version=found.metadata.resource_version, count=None)
    return Head(version=found.metadata.resource_version, count=shown + (remaining or 0))


def changes_from(call: str, response: BaseHTTPResponse, since: int, head: Head) -> Changes:
    """Read the changes after *since* up to *head* from the stream of a watch, or until it falls silent.

    Raises:
        Expired: there are too many of them, or the server's history does not reach back to *since*.
        Unreachable: the stream ended before it had caught up, or in the middle of a change.
        Fault: as the server says.
    """
    events: list[bytes] = []
    seen = since
    for line in _lines(call, response):
        event = _event(call, line)
        if event.type == "ERROR":
            status = msgspec.json.decode(line, type=_Error).object
            raise fault_from(call, event.object.code, bytes(status), {})
        version = event.object.metadata.resource_version
        if event.type != "BOOKMARK" and version <= head.version:
            events.append(line)
        if version >= head.version:
            return Changes(events=tuple(events), version=str(head.version), count=head.count)
        seen = max(seen, version)
    return Changes(events=tuple(events), version=str(seen), count=head.count)


def _lines(call: str, response: BaseHTTPResponse) -> Iterator[bytes]:
    """Iterate over the lines of the stream until nothing comes for as long as its socket waits."""
    rest, size = b"", 0
    try:
        for chunk in response.stream(None):
            size += len(chunk)
            if size > MOST:
                raise Expired(f"{call}: more than {MOST} bytes of changes")
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)
    except ReadTimeoutError:
        if not rest:
            return
    raise Unreachable(f"{call}: ended before it had caught up")


def _event(call: str, line: bytes) -> _Event:
    try:
        return msgspec.json.decode(line, type=_Event, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{call}: a change that is none: {error}") from error
