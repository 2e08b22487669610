"""Checks segment documents as AWS X-Ray does before it stores them.

The rules are those of the AWS X-Ray Developer Guide, "AWS X-Ray segment documents"
(https://docs.aws.amazon.com/xray/latest/devguide/xray-api-segmentdocuments.html).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

DAEMON_HEADER: Final = {"format": "json", "version": 1}
MAX_DOCUMENT_BYTES: Final = 64 * 1024
_MAX_ANNOTATIONS: Final = 50
_NAME: Final = re.compile(r"[\w\s.:/%&#=+\-@]{1,200}")
_ENTITY_ID: Final = re.compile(r"[0-9a-f]{16}")
_TRACE_ID: Final = re.compile(r"1-[0-9a-f]{8}-[0-9a-f]{24}")
_ANNOTATION_KEY: Final = re.compile(r"[0-9A-Za-z_]{1,500}")
_MAX_ANNOTATION_LENGTH: Final = 1_000
_NAMESPACES: Final = ("aws", "local", "remote")
"""The SDKs of X-Ray send `local` for segments that are no calls; the page does not list it."""


def read_datagram(datagram: bytes) -> dict[str, Any]:
    """Return the segment document in a *datagram* for the X-Ray daemon.

    Raises:
        ValueError: X-Ray would reject it; the message contains all reasons.
    """
    header, _, body = datagram.partition(b"\n")
    document: dict[str, Any] = msgspec.json.decode(body)
    problems = [] if msgspec.json.decode(header) == DAEMON_HEADER else [f"header {header!r}"]
    problems += [f"{len(body)} bytes"] if len(body) > MAX_DOCUMENT_BYTES else []
    problems += [] if _TRACE_ID.fullmatch(document.get("trace_id", "")) else ["trace_id"]
    problems += [] if document.get("type") == "subsegment" or "parent_id" not in document else ["type"]
    problems += find_document_problems(document)
    if problems:
        raise ValueError(f"X-Ray rejects the segment document: {', '.join(problems)}")
    return document


def find_document_problems(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what X-Ray rejects in *document* and in the segments within it."""
    name = document.get("name", "")
    if not _NAME.fullmatch(name):
        yield f"name {name!r}"
    if not _ENTITY_ID.fullmatch(document.get("id", "")):
        yield f"id of {name}"
    if not isinstance(document.get("start_time"), float):
        yield f"start_time of {name}"
    if not isinstance(document.get("end_time"), float) and not document.get("in_progress"):
        yield f"end_time of {name}"
    if document.get("namespace", "aws") not in _NAMESPACES:
        yield f"namespace of {name}"
    annotations = document.get("annotations", {})
    if len(annotations) > _MAX_ANNOTATIONS:
        yield f"{len(annotations)} annotations of {name}"
    for key, value in annotations.items():
        is_short = not isinstance(value, str) or len(value) <= _MAX_ANNOTATION_LENGTH
        if not (_ANNOTATION_KEY.fullmatch(key) and isinstance(value, str | int | float | bool) and is_short):
            yield f"annotation {key} of {name}"
    for subsegment in document.get("subsegments", ()):
        yield from find_document_problems(subsegment)
