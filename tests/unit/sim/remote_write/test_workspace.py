"""The simulated workspace refuses what Amazon Managed Service for Prometheus refuses."""

import struct
from datetime import UTC, datetime, timedelta

import pytest

from shared.model.core.metrics.metric_samples import LabelPairs
from sim.remote_write.workspace import MAX_LABELS, RefusedSeries, Workspace
from sim.remote_write.write_request import (
    MalformedBody,
    ReceivedSample,
    ReceivedSeries,
    decode_snappy,
    decode_write_request,
)

NOW = datetime(2026, 11, 28, 8, 30, tzinfo=UTC)
NAME = ("__name__", "joiner_nodes")


def make_series(*labels: tuple[str, str], value: float = 1.0, age: timedelta = timedelta(0)) -> ReceivedSeries:
    timestamp_ms = round((NOW - age).timestamp() * 1000)
    return ReceivedSeries(labels=labels or (NAME,), samples=(ReceivedSample(value=value, timestamp_ms=timestamp_ms),))


def get_refusal(workspace: Workspace, *series: ReceivedSeries) -> str:
    with pytest.raises(RefusedSeries) as refusal:
        workspace.receive(series)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ((("zone", "a"),), "no valid metric name"),
        ((("__name__", "joiner-nodes"),), "no valid metric name"),
        ((NAME, ("zone", "a"), ("nodepool", "b")), "labels are not sorted: __name__, zone, nodepool"),
        ((NAME, ("zone", "a"), ("zone", "b")), "duplicate label name"),
        ((NAME, ("a-b", "a")), "sample invalid label: 'a-b'"),
        ((NAME, ("a" * 1025, "a")), "sample invalid label"),
        ((NAME, ("zone", "")), "label without a value: zone"),
        ((NAME, ("zone", "a" * 2049)), "label value too long: zone"),
        ((NAME, *((f"a{number:03}", "a") for number in range(MAX_LABELS))), "series has 151 labels"),
    ],
)
def test_series_with_invalid_labels_is_refused(labels: LabelPairs, reason: str) -> None:
    workspace = Workspace(lambda: NOW)
    assert reason in get_refusal(workspace, make_series(*labels))
    assert workspace.samples_by_labels == {}


def test_samples_out_of_order_duplicate_or_of_another_time_are_refused_and_others_kept() -> None:
    workspace = Workspace(lambda: NOW)
    workspace.receive((make_series(),))
    refusal = get_refusal(workspace, make_series(age=timedelta(seconds=1)), make_series(NAME, ("zone", "a"), value=2.0))
    assert "out of order" in refusal
    assert workspace.get_latest("joiner_nodes") == {(): 1.0, (("zone", "a"),): 2.0}
    assert "duplicate sample" in get_refusal(workspace, make_series(value=2.0))
    assert "too old" in get_refusal(workspace, make_series(age=timedelta(hours=2)))
    assert "too new" in get_refusal(workspace, make_series(age=-timedelta(hours=1)))
    assert "no samples" in get_refusal(workspace, ReceivedSeries(labels=(NAME,), samples=()))
    two_refusals = get_refusal(workspace, make_series(), make_series(NAME, ("zone", "a")))
    assert two_refusals.endswith("(2 in total)")


def test_snappy_literals_of_all_lengths_are_decoded() -> None:
    assert decode_snappy(b"\x03\x08abc") == b"abc"
    assert decode_snappy(b"\x46\xf0\x45" + b"a" * 70) == b"a" * 70


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "index out of range"),
        (b"\x04\x08abc", "the block has 3 bytes, and not 4"),
        (b"\x03\x08ab", "the block has 2 bytes, and not 3"),
        (b"\x03\x09abc", "not made of literals"),
        (b"\xff" * 11, "more than 64 bits"),
        (b"\x02\x04\x0a\x05", "a field is longer than its message"),
        (b"\x01\x00\x0d", "field 1 has the type 5"),
        (b"\x02\x04\x08\x01", "a field is not a message"),
        (b"\x04\x0c\x0a\x02\x12\x00", None),
        (b"\x06\x14\x0a\x04\x12\x02\x08\x01", "a sample has fields of other types"),
        (b"\x06\x14\x0a\x04\x12\x02\x09\x01", "requires a buffer"),
    ],
)
def test_malformed_bodies_are_refused(body: bytes, reason: str | None) -> None:
    if reason is None:
        [series] = decode_write_request(body)
        assert series.samples == (ReceivedSample(value=0.0, timestamp_ms=0),)
        return
    with pytest.raises(MalformedBody, match=reason):
        decode_write_request(body)


def test_fields_that_the_receiver_does_not_know_are_skipped() -> None:
    label = b"\x0a\x01a\x12\x01b"
    sample = b"\x09" + struct.pack("<d", 2.5) + b"\x10\x05"
    fields = b"\x0a" + bytes((len(label),)) + label + b"\x12" + bytes((len(sample),)) + sample + b"\x18\x01"
    content = b"\x0a" + bytes((len(fields),)) + fields + b"\x1a\x00"
    [series] = decode_write_request(bytes((len(content), (len(content) - 1) << 2)) + content)
    assert series == ReceivedSeries(labels=(("a", "b"),), samples=(ReceivedSample(value=2.5, timestamp_ms=5),))
