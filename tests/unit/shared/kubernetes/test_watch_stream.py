"""When a watch has caught up with the head of its collection, and when it has not."""

from collections.abc import Iterator
from typing import cast

import msgspec
import pytest
from urllib3 import BaseHTTPResponse, HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError

from shared.errors import Expired, Fault, Forbidden, Throttled, Unreachable
from shared.kubernetes import watch_stream
from shared.kubernetes.watch_stream import CollectionHead, parse_head, read_changes
from shared.ports.kubernetes import WatchEvents

CALL = "GET /api/v1/pods"
HEAD = CollectionHead(version=20, count=2)


class FakeResponse:
    """A response body in chunks, followed by silence or by its end."""

    def __init__(self, *chunks: bytes, silent: bool = True) -> None:
        """Return *chunks* from `stream`."""
        self.chunks, self.silent = chunks, silent
        self.read = 0

    def stream(self, amount: int | None) -> Iterator[bytes]:
        assert amount is None
        for chunk in self.chunks:
            self.read += 1
            yield chunk
        if self.silent:
            raise ReadTimeoutError(HTTPConnectionPool("k"), CALL, "Read timed out.")


def encode_event(type_: str, version: int) -> bytes:
    return msgspec.json.encode({"type": type_, "object": {"metadata": {"resourceVersion": str(version)}}})


def join_lines(*lines: bytes) -> bytes:
    return b"".join(event_line + b"\n" for event_line in lines)


def read_stream(stream: FakeResponse, since: int = 10) -> WatchEvents:
    return read_changes(CALL, cast("BaseHTTPResponse", stream), since, HEAD)


@pytest.mark.parametrize("last", ["BOOKMARK", "ADDED", "MODIFIED", "DELETED"])
def test_watch_ends_when_an_event_reaches_the_collection_head(last: str) -> None:
    first, end = encode_event("ADDED", 11), encode_event(last, 20)
    stream = FakeResponse(join_lines(first, end), join_lines(encode_event("ADDED", 21)))
    events = (first,) if last == "BOOKMARK" else (first, end)
    assert read_stream(stream) == WatchEvents(events=events, version="20", count=2)
    assert stream.read == 1


@pytest.mark.parametrize("last", ["BOOKMARK", "MODIFIED"])
def test_watch_events_after_the_collection_head_are_not_returned(last: str) -> None:
    stream = FakeResponse(
        join_lines(encode_event("ADDED", 11)), join_lines(encode_event(last, 21)), join_lines(encode_event("ADDED", 22))
    )
    assert read_stream(stream) == WatchEvents(events=(encode_event("ADDED", 11),), version="20", count=2)


def test_read_timeout_ends_the_watch_at_the_last_version_received() -> None:
    assert read_stream(FakeResponse()) == WatchEvents(version="10", count=2)
    response = FakeResponse(join_lines(encode_event("ADDED", 11), encode_event("MODIFIED", 14)))
    assert read_stream(response) == WatchEvents(
        events=(encode_event("ADDED", 11), encode_event("MODIFIED", 14)), version="14", count=2
    )
    assert read_stream(FakeResponse(join_lines(encode_event("BOOKMARK", 15)))) == WatchEvents(version="15", count=2)


def test_watch_event_lines_may_be_split_across_chunks() -> None:
    body = join_lines(encode_event("ADDED", 11), b"", encode_event("DELETED", 20))
    stream = FakeResponse(*(body[at : at + 7] for at in range(0, len(body), 7)))
    assert read_stream(stream).events == (encode_event("ADDED", 11), encode_event("DELETED", 20))


@pytest.mark.parametrize(
    "stream",
    [
        FakeResponse(silent=False),
        FakeResponse(join_lines(encode_event("ADDED", 11)), silent=False),
        FakeResponse(encode_event("ADDED", 20), silent=False),
        FakeResponse(encode_event("ADDED", 20)),
        FakeResponse(join_lines(encode_event("ADDED", 11)), b'{"type":'),
        FakeResponse(b"nothing\n"),
        FakeResponse(b'{"type":"ADDED"}\n'),
        FakeResponse(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"x"}}}\n'),
        FakeResponse(b'{"type":"ADDED","object":"\xff"}\n'),
    ],
)
def test_closed_or_invalid_stream_before_the_head_raises_unreachable(stream: FakeResponse) -> None:
    with pytest.raises(Unreachable):
        read_stream(stream)


@pytest.mark.parametrize(
    ("code", "fault"), [(410, Expired), (403, Forbidden), (429, Throttled), (500, Unreachable), (504, Unreachable)]
)
def test_error_event_in_the_watch_stream_raises_a_fault(code: int, fault: type[Fault]) -> None:
    status = {"kind": "Status", "code": code, "message": "too old resource version: 10 (20)"}
    stream = FakeResponse(
        join_lines(encode_event("ADDED", 11), msgspec.json.encode({"type": "ERROR", "object": status}))
    )
    with pytest.raises(fault, match="too old resource version"):
        read_stream(stream)


def test_too_many_bytes_of_changes_raise_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_stream, "MAX_CHANGES_BYTES", 150)
    with pytest.raises(Expired, match="150 bytes"):
        read_stream(FakeResponse(*(join_lines(encode_event("ADDED", version)) for version in (11, 12, 13))))


@pytest.mark.parametrize(
    ("metadata", "items", "count"),
    [
        ({}, [], 0),
        ({}, None, 0),
        ({}, [{}], 1),
        ({"continue": "x", "remainingItemCount": 7}, [{}], 8),
        ({"continue": "x"}, [{}], None),
    ],
)
def test_collection_head_count_includes_remaining_items_if_known(
    metadata: dict[str, object], items: list[object] | None, count: int | None
) -> None:
    body = msgspec.json.encode({"metadata": {"resourceVersion": "20"} | metadata, "items": items})
    assert parse_head(CALL, body) == CollectionHead(version=20, count=count)


@pytest.mark.parametrize("body", [b"{}", b'{"metadata":{}}', b'{"metadata":{"resourceVersion":"x"}}', b"\xff"])
def test_collection_head_without_a_version_raises_unreachable(body: bytes) -> None:
    with pytest.raises(Unreachable):
        parse_head(CALL, body)
