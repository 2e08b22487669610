"""When a watch has caught up, and when it has not."""

from collections.abc import Iterator
from typing import cast

import msgspec
import pytest
from urllib3 import BaseHTTPResponse, HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError

from shared.errors import Expired, Fault, Forbidden, Throttled, Unreachable
from shared.kube import follow
from shared.kube.follow import Head, changes_from, head_from
from shared.ports import Changes

CALL = "GET /api/v1/pods"
HEAD = Head(version=20, count=2)


class Stream:
    """What a socket gives, chunk by chunk; then it is silent, or at its end."""

    def __init__(self, *chunks: bytes, silent: bool = True) -> None:
        """Give *chunks*."""
        self.chunks, self.silent = chunks, silent
        self.read = 0

    def stream(self, amount: int | None) -> Iterator[bytes]:
        assert amount is None
        for chunk in self.chunks:
            self.read += 1
            yield chunk
        if self.silent:
            raise ReadTimeoutError(HTTPConnectionPool("k"), CALL, "Read timed out.")


def line(type_: str, version: int) -> bytes:
    return msgspec.json.encode({"type": type_, "object": {"metadata": {"resourceVersion": str(version)}}})


def text(*lines: bytes) -> bytes:
    return b"".join(one + b"\n" for one in lines)


def followed(stream: Stream, since: int = 10) -> Changes:
    return changes_from(CALL, cast("BaseHTTPResponse", stream), since, HEAD)


@pytest.mark.parametrize("last", ["BOOKMARK", "ADDED", "MODIFIED", "DELETED"])
def test_it_has_caught_up_with_whatever_is_at_the_head(last: str) -> None:
    first, end = line("ADDED", 11), line(last, 20)
    stream = Stream(text(first, end), text(line("ADDED", 21)))
    told = (first,) if last == "BOOKMARK" else (first, end)
    assert followed(stream) == Changes(events=told, version="20", count=2)
    assert stream.read == 1


@pytest.mark.parametrize("last", ["BOOKMARK", "MODIFIED"])
def test_what_is_after_the_head_is_left_for_the_next_time(last: str) -> None:
    stream = Stream(text(line("ADDED", 11)), text(line(last, 21)), text(line("ADDED", 22)))
    assert followed(stream) == Changes(events=(line("ADDED", 11),), version="20", count=2)


def test_silence_ends_it_but_proves_nothing() -> None:
    assert followed(Stream()) == Changes(version="10", count=2)
    told = Stream(text(line("ADDED", 11), line("MODIFIED", 14)))
    assert followed(told) == Changes(events=(line("ADDED", 11), line("MODIFIED", 14)), version="14", count=2)
    assert followed(Stream(text(line("BOOKMARK", 15)))) == Changes(version="15", count=2)


def test_lines_come_in_any_pieces() -> None:
    whole = text(line("ADDED", 11), b"", line("DELETED", 20))
    stream = Stream(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
    assert followed(stream).events == (line("ADDED", 11), line("DELETED", 20))


@pytest.mark.parametrize(
    "stream",
    [
        Stream(silent=False),
        Stream(text(line("ADDED", 11)), silent=False),
        Stream(line("ADDED", 20), silent=False),
        Stream(line("ADDED", 20)),
        Stream(text(line("ADDED", 11)), b'{"type":'),
        Stream(b"nothing\n"),
        Stream(b'{"type":"ADDED"}\n'),
        Stream(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"x"}}}\n'),
        Stream(b'{"type":"ADDED","object":"\xff"}\n'),
    ],
)
def test_an_end_before_the_head_is_no_answer(stream: Stream) -> None:
    with pytest.raises(Unreachable):
        followed(stream)


@pytest.mark.parametrize(
    ("code", "fault"), [(410, Expired), (403, Forbidden), (429, Throttled), (500, Unreachable), (504, Unreachable)]
)
def test_an_error_among_the_changes_is_a_fault(code: int, fault: type[Fault]) -> None:
    status = {"kind": "Status", "code": code, "message": "too old resource version: 10 (20)"}
    stream = Stream(text(line("ADDED", 11), msgspec.json.encode({"type": "ERROR", "object": status})))
    with pytest.raises(fault, match="too old resource version"):
        followed(stream)


def test_more_than_a_list_would_be_is_better_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "MOST", 150)
    with pytest.raises(Expired, match="150 bytes"):
        followed(Stream(*(text(line("ADDED", version)) for version in (11, 12, 13))))


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
def test_the_head_counts_as_far_as_the_server_does(
    metadata: dict[str, object], items: list[object] | None, count: int | None
) -> None:
    body = msgspec.json.encode({"metadata": {"resourceVersion": "20"} | metadata, "items": items})
    assert head_from(CALL, body) == Head(version=20, count=count)


@pytest.mark.parametrize("body", [b"{}", b'{"metadata":{}}', b'{"metadata":{"resourceVersion":"x"}}', b"\xff"])
def test_a_head_without_a_version_is_no_answer(body: bytes) -> None:
    with pytest.raises(Unreachable):
        head_from(CALL, body)
