"""Encoding of remote write requests, decoded by the simulator's independent decoder."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shared.report.remote_write.write_request import (
    MAX_REQUEST_BYTES,
    MAX_SERIES_PER_REQUEST,
    encode_requests,
    encode_snappy,
)
from sim.remote_write.write_request import decode_snappy, decode_write_request

NOW = datetime(2026, 11, 28, 8, 30, 0, 250_000, tzinfo=UTC)
LABEL_NAMES = st.sampled_from(["a", "b", "nodepool", "resource_type", "zone"])
LABELS = st.dictionaries(LABEL_NAMES, st.text(max_size=300)).map(lambda labels: tuple(sorted(labels.items())))
SAMPLES = st.lists(st.tuples(LABELS, st.floats(allow_nan=False)), max_size=20)


@given(st.dictionaries(st.sampled_from(["joiner_a", "karpenter_b"]), SAMPLES))
def test_decoded_request_has_all_samples_with_sorted_labels_the_cluster_and_the_time(
    samples_by_metric: dict[str, list[tuple[tuple[tuple[str, str], ...], float]]],
) -> None:
    requests = list(encode_requests(samples_by_metric, "prod", NOW))
    received = [series for _, body in requests for series in decode_write_request(body)]
    expected = [
        tuple(sorted((name, text) for name, text in (("__name__", metric), ("cluster", "prod"), *labels) if text))
        for metric, samples in samples_by_metric.items()
        for labels, _ in samples
    ]
    assert [series.labels for series in received] == expected
    values = [value for samples in samples_by_metric.values() for _, value in samples]
    assert [sample.value for series in received for sample in series.samples] == values
    assert {sample.timestamp_ms for series in received for sample in series.samples} <= {1795854600250}
    assert sum(count for count, _ in requests) == len(received)


def test_requests_have_at_most_2000_series_and_512_kib() -> None:
    metrics = {"joiner_a": [((("a", str(number)),), 1.0) for number in range(2 * MAX_SERIES_PER_REQUEST + 1)]}
    assert [count for count, _ in encode_requests(metrics, "prod", NOW)] == [2000, 2000, 1]
    large = {"joiner_a": [((("a", "x" * 2000),), 1.0) for _ in range(600)]}
    requests = list(encode_requests(large, "prod", NOW))
    assert [count for count, _ in requests] == [253, 253, 94]
    assert all(len(decode_snappy(body)) <= MAX_REQUEST_BYTES for _, body in requests)
    assert list(encode_requests({"joiner_a": []}, "prod", NOW)) == []


@given(st.binary(max_size=100), st.integers(min_value=0, max_value=3000))
def test_snappy_blocks_decode_to_the_content(content: bytes, repeats: int) -> None:
    assert decode_snappy(encode_snappy(content * repeats)) == content * repeats
