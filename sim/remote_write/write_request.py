"""Decoding of the body of a remote write request: the snappy block format, then the protobuf message WriteRequest.

Written from the descriptions of both formats, and not from Joiner's encoder, so that each checks the other.
"""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from shared.model.core.metrics.metric_samples import LabelPairs

_VARINT, _FIXED_64, _BYTES = 0, 1, 2
_MAX_VARINT_BYTES: Final = 10
_SHORT_LITERAL_BYTES: Final = 60


class MalformedBody(Exception):
    """The body cannot be decoded."""


class ReceivedSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample, as received."""

    value: float
    timestamp_ms: int


class ReceivedSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A series, as received."""

    labels: LabelPairs
    samples: tuple[ReceivedSample, ...]


def decode_write_request(body: bytes) -> tuple[ReceivedSeries, ...]:
    """Return the series of a request.

    Raises:
        MalformedBody: *body* is not a WriteRequest in the snappy block format.
    """
    try:
        content = decode_snappy(body)
        return tuple(_decode_series(field) for number, field in _iterate_fields(content) if number == 1)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
        raise MalformedBody(str(error)) from error


def decode_snappy(body: bytes) -> bytes:
    """Return the content of a block with literals.

    Raises:
        MalformedBody: the block has another length than it says, or copies of earlier bytes, which Joiner never sends.
    """
    length, position = _read_varint(body, 0)
    content = bytearray()
    while position < len(body):
        tag = body[position]
        position += 1
        if tag & 3:
            raise MalformedBody("the block is not made of literals")
        size = tag >> 2
        if size >= _SHORT_LITERAL_BYTES:
            count = size - _SHORT_LITERAL_BYTES + 1
            size = int.from_bytes(body[position : position + count], "little")
            position += count
        content += body[position : position + size + 1]
        position += size + 1
    if len(content) != length or position != len(body):
        raise MalformedBody(f"the block has {len(content)} bytes, and not {length}")
    return bytes(content)


def _decode_series(content: object) -> ReceivedSeries:
    fields_by_number: dict[int, list[object]] = {1: [], 2: []}
    for number, field in _iterate_fields(content):
        fields_by_number.setdefault(number, []).append(field)
    labels = tuple(map(_decode_label, fields_by_number[1]))
    return ReceivedSeries(labels=labels, samples=tuple(map(_decode_sample, fields_by_number[2])))


def _decode_label(content: object) -> tuple[str, str]:
    texts = {number: bytes(field).decode() for number, field in _iterate_fields(content) if isinstance(field, bytes)}
    return texts.get(1, ""), texts.get(2, "")


def _decode_sample(content: object) -> ReceivedSample:
    fields = dict(_iterate_fields(content))
    value, timestamp = fields.get(1, 0.0), fields.get(2, 0)
    if not isinstance(value, float) or not isinstance(timestamp, int):
        raise MalformedBody("a sample has fields of other types")
    return ReceivedSample(value=value, timestamp_ms=timestamp)


def _iterate_fields(content: object) -> Iterator[tuple[int, bytes | float | int]]:
    if not isinstance(content, bytes):
        raise MalformedBody("a field is not a message")
    position = 0
    while position < len(content):
        key, position = _read_varint(content, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _read_varint(content, position)
            yield number, value
        elif wire_type == _FIXED_64:
            yield number, struct.unpack_from("<d", content, position)[0]
            position += 8
        elif wire_type == _BYTES:
            size, position = _read_varint(content, position)
            if position + size > len(content):
                raise MalformedBody("a field is longer than its message")
            yield number, content[position : position + size]
            position += size
        else:
            raise MalformedBody(f"field {number} has the type {wire_type}")


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    number = 0
    for count in range(_MAX_VARINT_BYTES):
        byte = content[position + count]
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return number, position + count + 1
    raise MalformedBody("a number has more than 64 bits")
