"""The body of a remote write request: the protobuf message WriteRequest, in the snappy block format.

Version 1.0 of the protocol (https://prometheus.io/docs/specs/prw/remote_write_spec/). A message of strings, doubles and
integers needs a few lines; libraries for protobuf and snappy would be the largest of the layer. The data is not
compressed: the snappy format also allows blocks that are copied as they are.
"""

import struct
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from shared.model.core.metrics.metric_samples import MetricSamples, Sample

CLUSTER_LABEL: Final = "cluster"
METRIC_NAME_LABEL: Final = "__name__"
MAX_SERIES_PER_REQUEST: Final = 2000
MAX_REQUEST_BYTES: Final = 512 * 1024
"""Half of the smallest limit of receivers; a series of ours has less than 2 KiB."""
_BLOCK_BYTES: Final = 65536
_STRING_1, _STRING_2, _DOUBLE_1, _INTEGER_2 = 0x0A, 0x12, 0x09, 0x10
"""Number and type of a field: submessages have the type of strings."""
_LITERAL_TAG: Final = bytes((61 << 2,))
"""Snappy: bytes to copy follow; their number less one is in two bytes."""


def encode_requests(samples_by_metric: MetricSamples, cluster: str, at: datetime) -> Iterator[tuple[int, bytes]]:
    """Yield the number of series and the body of each request; all samples have the label *cluster* and the time *at*.

    The order of *samples_by_metric* is kept.
    """
    timestamp = round(at.timestamp() * 1000)
    batch: list[bytes] = []
    batch_bytes = 0
    for series in _encode_all_series(samples_by_metric, cluster, timestamp):
        if batch and (len(batch) == MAX_SERIES_PER_REQUEST or batch_bytes + len(series) > MAX_REQUEST_BYTES):
            yield len(batch), encode_snappy(b"".join(batch))
            batch, batch_bytes = [], 0
        batch.append(series)
        batch_bytes += len(series)
    if batch:
        yield len(batch), encode_snappy(b"".join(batch))


def encode_snappy(content: bytes) -> bytes:
    """Return *content* in the snappy block format (https://github.com/google/snappy/blob/main/format_description.txt).

    >>> encode_snappy(b"abc").hex(" ")
    '03 f4 02 00 61 62 63'
    """
    parts = [_encode_varint(len(content))]
    for start in range(0, len(content), _BLOCK_BYTES):
        block = content[start : start + _BLOCK_BYTES]
        parts += (_LITERAL_TAG, struct.pack("<H", len(block) - 1), block)
    return b"".join(parts)


def _encode_all_series(samples_by_metric: MetricSamples, cluster: str, timestamp: int) -> Iterator[bytes]:
    for name, samples in samples_by_metric.items():
        fixed_labels = ((METRIC_NAME_LABEL, name), (CLUSTER_LABEL, cluster))
        for sample in samples:
            yield _encode_field(_STRING_1, _encode_series(sample, fixed_labels, timestamp))


def _encode_series(sample: Sample, fixed_labels: Iterable[tuple[str, str]], timestamp: int) -> bytes:
    """Encode a message TimeSeries; to Prometheus, a label without a value does not exist."""
    own_labels, value = sample
    labels = sorted((key, text) for key, text in (*fixed_labels, *own_labels) if text)
    encoded_labels = [
        _encode_field(_STRING_1, _encode_field(_STRING_1, key.encode()) + _encode_field(_STRING_2, text.encode()))
        for key, text in labels
    ]
    encoded_sample = struct.pack("<Bd", _DOUBLE_1, value) + bytes((_INTEGER_2,)) + _encode_varint(timestamp)
    return b"".join(encoded_labels) + _encode_field(_STRING_2, encoded_sample)


def _encode_field(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + _encode_varint(len(content)) + content


def _encode_varint(number: int) -> bytes:
    groups = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - seven bits in each byte
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
